-- The highest reading of the hybrid logical clock that was given or seen here.
CREATE TABLE clock (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    reading INTEGER NOT NULL
);

-- The stamp of a document's last put: two stores that both changed it agree by it on which one holds. Seconds and
-- their fraction are taken apart, because SQLite rounds a time to milliseconds, even into the next second.
ALTER TABLE documents ADD COLUMN clock INTEGER NOT NULL DEFAULT 0;
ALTER TABLE documents ADD COLUMN node TEXT NOT NULL DEFAULT '';
UPDATE documents SET
    clock = max(
        1,
        min(
            CAST(strftime('%s', substr(updated_at, 1, 19)) AS INTEGER) * 1000 + CAST(substr(updated_at, 21, 3) AS INTEGER),
            70368744177663  -- the last millisecond that the clock tells
        ) << 16
    ),
    node = coalesce((SELECT i.node FROM installation i), '');
-- What is held is never older than a put that was logged.
UPDATE documents SET clock = max(documents.clock, logged.clock + 1)
FROM (
    SELECT json_extract(e.payload, '$.kind') AS kind, json_extract(e.payload, '$.id') AS id, max(e.clock) AS clock
    FROM events e WHERE e.kind = 'document.put' GROUP BY 1, 2
) logged
WHERE logged.kind = documents.kind AND logged.id = documents.id;
INSERT INTO clock (one, reading) VALUES (
    1,
    max((SELECT coalesce(max(e.clock), 0) FROM events e), (SELECT coalesce(max(d.clock), 0) FROM documents d))
);
-- The stories of the curve, of a document and of an edge, and of all edges to a memory.
CREATE INDEX events_of_curve ON events (clock, node, seq) WHERE kind = 'curve.tuned';
CREATE INDEX events_of_documents ON events (
    json_extract(payload, '$.kind'), json_extract(payload, '$.id'), clock, node, seq
) WHERE kind IN ('document.put', 'document.dropped');
CREATE INDEX events_of_edges ON events (
    memory_id, json_extract(payload, '$.target'), json_extract(payload, '$.kind'), clock, node, seq
) WHERE kind IN ('edge.linked', 'edge.unlinked');
CREATE INDEX events_by_target ON events (json_extract(payload, '$.target'))
WHERE kind IN ('edge.linked', 'edge.unlinked');

-- When a memory was made, in microseconds: members of a thread without positions stand in this order, which is
-- the same wherever they were brought together.
ALTER TABLE places ADD COLUMN born INTEGER NOT NULL DEFAULT 0;
UPDATE places SET born = coalesce(
    (SELECT CAST(strftime('%s', substr(m.created_at, 1, 19)) AS INTEGER) * 1000000 + CAST(substr(m.created_at, 21, 6) AS INTEGER)
     FROM memories m WHERE m.key = places.key),
    0
);

-- Vectors of a coming profile are made beside those in use, so a memory has token bits of each.
CREATE TABLE token_bits_by_profile (
    key INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    profile INTEGER NOT NULL REFERENCES profiles,
    bits BLOB NOT NULL,
    asked BLOB NOT NULL,
    PRIMARY KEY (key, profile)
);
INSERT INTO token_bits_by_profile (key, profile, bits, asked) SELECT key, profile, bits, asked FROM token_bits;
DROP TABLE token_bits;
ALTER TABLE token_bits_by_profile RENAME TO token_bits;

-- What one process tells the others that are at work on the same store. The last thousand are kept, and all of them
-- go when a memory is deleted.
CREATE TABLE notices (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    process TEXT NOT NULL,
    message TEXT NOT NULL
);

-- A process of an older version that has the store open while it is upgraded goes on writing as it did. These see to
-- it that what it writes can be told to other stores. What writes stamps itself makes none of them do anything.
CREATE TRIGGER events_advance_clock AFTER INSERT ON events WHEN NEW.clock > (SELECT reading FROM clock) BEGIN
    UPDATE clock SET reading = NEW.clock;
END;
-- A document without a stamp gets one, and the one that it is put in the place of.
CREATE TRIGGER documents_before_stamp BEFORE INSERT ON documents WHEN NEW.clock = 0 BEGIN
    UPDATE clock SET reading = max(
        reading + 1,
        min(
            CAST(strftime('%s', substr(NEW.updated_at, 1, 19)) AS INTEGER) * 1000 + CAST(substr(NEW.updated_at, 21, 3) AS INTEGER),
            70368744177663
        ) << 16
    );
    UPDATE documents SET clock = (SELECT reading FROM clock), node = (SELECT node FROM installation)
    WHERE kind = NEW.kind AND id = NEW.id;
END;
CREATE TRIGGER documents_stamp AFTER INSERT ON documents WHEN NEW.clock = 0 BEGIN
    UPDATE documents SET clock = (SELECT reading FROM clock), node = (SELECT node FROM installation)
    WHERE key = NEW.key;
END;
-- Its put is logged after it was written, and it is never older than that.
CREATE TRIGGER events_stamp_document AFTER INSERT ON events
WHEN NEW.kind = 'document.put' AND NEW.node = (SELECT node FROM installation) BEGIN
    UPDATE documents SET clock = NEW.clock, node = NEW.node
    WHERE kind = json_extract(NEW.payload, '$.kind') AND id = json_extract(NEW.payload, '$.id')
        AND clock < NEW.clock;
END;
CREATE TRIGGER places_born AFTER INSERT ON places WHEN NEW.born = 0 BEGIN
    UPDATE places SET born = coalesce(
        (SELECT CAST(strftime('%s', substr(m.created_at, 1, 19)) AS INTEGER) * 1000000 + CAST(substr(m.created_at, 21, 6) AS INTEGER)
         FROM memories m WHERE m.key = NEW.key),
        0
    ) WHERE seq = NEW.seq;
END;

DROP VIEW knowledge_nodes;
-- As before, with the archive.
CREATE VIEW knowledge_nodes AS
SELECT
    m.id,
    m.content,
    m.node_type,
    m.created_at,
    m.updated_at,
    s.last_accessed,
    s.stability,
    s.difficulty,
    s.reps,
    s.lapses,
    s.learning_state,
    s.storage AS storage_strength,
    s.retrieval AS retrieval_strength,
    s.retention AS retention_strength,
    s.retention_at,
    s.due_at AS next_review,
    m.source,
    m.tags,
    EXISTS (SELECT 1 FROM vectors v JOIN profiles p ON p.id = v.profile WHERE v.key = m.key AND p.active = 1)
        AS has_embedding,
    (SELECT p.profile FROM vectors v JOIN profiles p ON p.id = v.profile
     WHERE v.key = m.key AND p.active = 1 LIMIT 1) AS embedding_model,
    m.valid_from,
    m.valid_until,
    m.occurred_at,
    m.scope,
    m.author,
    m.agent_id,
    m.session_id,
    m.thread,
    m.position,
    s.times_retrieved,
    s.times_useful,
    m.suppression_count,
    m.suppressed_at,
    m.pinned,
    m.superseded_by,
    m.archived_at,
    m.revision,
    m.domains,
    m.domain_scores,
    m.metadata
FROM memories m JOIN strengths s ON s.key = m.key;

-- Keys of requests are kept as hashes from now on: one may have been a secret. Those of before are spent.
DELETE FROM claim_memories;
DELETE FROM claims;
