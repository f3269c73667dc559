-- When a model was first used here. Of models in use before, the time of the first memory.
ALTER TABLE profiles ADD COLUMN created_at TEXT;
UPDATE profiles SET created_at = coalesce(
    (SELECT min(created_at) FROM memories), strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000+00:00'
);
CREATE TRIGGER profiles_created AFTER INSERT ON profiles WHEN NEW.created_at IS NULL BEGIN
    UPDATE profiles SET created_at = strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000+00:00' WHERE id = NEW.id;
END;

-- For people with a SQL client: the model whose vectors are in use. The hash is that of its whole signature.
CREATE VIEW embedding_model AS
SELECT
    json_extract(p.signature, '$.name') AS name,
    json_extract(p.signature, '$.dimension') AS dimension,
    substr(p.profile, -16) AS hash,
    p.created_at
FROM profiles p WHERE p.active = 1;

-- Another program changed a text and not its hash: vectors made from the earlier text must not count any more.
CREATE TRIGGER memories_text_changed AFTER UPDATE OF content ON memories
WHEN NEW.content <> OLD.content AND NEW.phrasings = OLD.phrasings AND NEW.text_hash = OLD.text_hash BEGIN
    UPDATE memories SET text_hash = '' WHERE key = NEW.key;
END;
