-- When a model was first used here. Of models in use before, the time of the first memory.
ALTER TABLE profiles ADD COLUMN created_at TEXT COLLATE "C";
ALTER TABLE profiles ALTER created_at
    SET DEFAULT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"');
UPDATE profiles SET created_at = coalesce(
    (SELECT min(created_at) FROM memories),
    to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"')
);

-- For people with a SQL client: the model whose vectors are in use. The hash is that of its whole signature.
CREATE VIEW embedding_model AS
SELECT
    p.signature::json ->> 'name' AS name,
    (p.signature::json ->> 'dimension')::bigint AS dimension,
    right(p.profile, 16) AS hash,
    p.created_at
FROM profiles p WHERE p.active = 1;
