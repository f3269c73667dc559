-- The file with the columns of all memories after an entry of the journal, by which a process starts sooner. One that
-- knows of a deleted memory is not used any more.
CREATE TABLE snapshots (
    file TEXT PRIMARY KEY,
    seq INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER snapshots_unlisted AFTER DELETE ON memories BEGIN
    DELETE FROM snapshots;
END;

-- Up to this entry of the journal no memory lacked vectors of a profile, or token bits where they are made.
CREATE TABLE embedded_up_to (
    profile INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (profile, tokens)
) WITHOUT ROWID;
CREATE TRIGGER token_bits_removed AFTER DELETE ON token_bits BEGIN
    INSERT INTO changed_keys (key, part) VALUES (OLD.key, 2);
END;
