-- The journal by which caches of every process learn which memories changed: 0 in the row of the memory, 1 in its
-- strength, 2 in its vectors. Triggers write it, so that no way of changing a memory can pass it by. The last
-- 100,000 entries are kept; a cache that is further behind reads everything again.
CREATE TABLE changed_keys (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    key INTEGER NOT NULL,
    part INTEGER NOT NULL
);
CREATE TRIGGER changed_keys_kept AFTER INSERT ON changed_keys BEGIN
    DELETE FROM changed_keys WHERE seq <= NEW.seq - 100000;
END;

CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
    INSERT INTO changed_keys (key, part) VALUES (NEW.key, 0);
END;
CREATE TRIGGER memories_revised AFTER UPDATE ON memories BEGIN
    INSERT INTO changed_keys (key, part) VALUES (NEW.key, 0);
END;
CREATE TRIGGER memories_removed AFTER DELETE ON memories BEGIN
    INSERT INTO changed_keys (key, part) VALUES (OLD.key, 0);
END;
CREATE TRIGGER memory_tags_added AFTER INSERT ON memory_tags BEGIN
    INSERT INTO changed_keys (key, part) VALUES (NEW.key, 0);
END;
CREATE TRIGGER memory_tags_removed AFTER DELETE ON memory_tags BEGIN
    INSERT INTO changed_keys (key, part) VALUES (OLD.key, 0);
END;
CREATE TRIGGER strengths_added AFTER INSERT ON strengths BEGIN
    INSERT INTO changed_keys (key, part) VALUES (NEW.key, 1);
END;
CREATE TRIGGER strengths_changed AFTER UPDATE ON strengths BEGIN
    INSERT INTO changed_keys (key, part) VALUES (NEW.key, 1);
END;
CREATE TRIGGER vectors_added AFTER INSERT ON vectors BEGIN
    INSERT INTO changed_keys (key, part) VALUES (NEW.key, 2);
END;
CREATE TRIGGER vectors_removed AFTER DELETE ON vectors BEGIN
    INSERT INTO changed_keys (key, part) VALUES (OLD.key, 2);
END;
