-- The tables of SQLite's schema 6, by the same names, so that one SQL serves both (ADR 0019). Times are RFC 3339
-- text in UTC, always 32 characters; JSON is text, so that what is exported is equal byte for byte. Text compares
-- by its bytes, whatever the database's collation.

CREATE TABLE memories (
    key BIGINT PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    scope TEXT COLLATE "C" NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    updated_at TEXT COLLATE "C" NOT NULL,
    node_type TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C",
    author TEXT COLLATE "C",
    agent_id TEXT COLLATE "C",
    session_id TEXT COLLATE "C",
    thread TEXT COLLATE "C",
    position BIGINT,
    occurred_at TEXT COLLATE "C",
    valid_from TEXT COLLATE "C",
    valid_until TEXT COLLATE "C",
    superseded_by TEXT COLLATE "C",
    pinned BIGINT NOT NULL,
    suppression_count BIGINT NOT NULL,
    suppressed_at TEXT COLLATE "C",
    revision BIGINT NOT NULL,
    text_hash TEXT COLLATE "C" NOT NULL,
    tags TEXT COLLATE "C" NOT NULL,
    domains TEXT COLLATE "C" NOT NULL,
    domain_scores TEXT COLLATE "C" NOT NULL,
    metadata TEXT COLLATE "C" NOT NULL,
    content TEXT COLLATE "C" NOT NULL,
    phrasings TEXT COLLATE "C" NOT NULL,
    archived_at TEXT COLLATE "C"
);
CREATE INDEX memories_by_created ON memories (created_at DESC, id);
CREATE INDEX memories_by_scope ON memories (scope) INCLUDE (key);
CREATE INDEX memories_by_thread ON memories (thread, position) WHERE thread IS NOT NULL;
CREATE INDEX memories_by_session ON memories (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX memories_suppressed ON memories (suppression_count) INCLUDE (key) WHERE suppression_count > 0;
CREATE INDEX memories_beginning ON memories (valid_from) INCLUDE (key) WHERE valid_from IS NOT NULL;
CREATE INDEX memories_ending ON memories (valid_until) INCLUDE (key) WHERE valid_until IS NOT NULL;
CREATE INDEX memories_archived ON memories (archived_at) INCLUDE (key) WHERE archived_at IS NOT NULL;
CREATE INDEX memories_updated ON memories (updated_at);

CREATE TABLE memory_tags (
    key BIGINT NOT NULL REFERENCES memories ON DELETE CASCADE,
    tag TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (key, tag)
);
CREATE INDEX memory_tags_by_tag ON memory_tags (tag, key);

-- The normal form of content and phrasings, hashed: which memory says exactly this already?
CREATE TABLE fingerprints (
    key BIGINT NOT NULL REFERENCES memories ON DELETE CASCADE,
    fingerprint TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (key, fingerprint)
);
CREATE INDEX fingerprints_by_fingerprint ON fingerprints (fingerprint, key);

-- Narrow and apart from the text, with room in each page: a search hit rewrites a row in its place.
CREATE TABLE strengths (
    key BIGINT PRIMARY KEY REFERENCES memories ON DELETE CASCADE,
    stability DOUBLE PRECISION NOT NULL,
    difficulty DOUBLE PRECISION NOT NULL,
    decay_from BIGINT NOT NULL,
    due_at TEXT COLLATE "C" NOT NULL,
    last_accessed TEXT COLLATE "C" NOT NULL,
    retention DOUBLE PRECISION NOT NULL,
    retention_at TEXT COLLATE "C" NOT NULL,
    retrieval DOUBLE PRECISION NOT NULL,
    storage DOUBLE PRECISION NOT NULL,
    learning_state TEXT COLLATE "C" NOT NULL,
    reps BIGINT NOT NULL,
    lapses BIGINT NOT NULL,
    exposed_at TEXT COLLATE "C",
    times_retrieved BIGINT NOT NULL,
    times_useful BIGINT NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX strengths_by_due ON strengths (due_at);

-- `memory` is the earlier row of `memories` as a JSON object of its columns.
CREATE TABLE revisions (
    key BIGINT NOT NULL REFERENCES memories ON DELETE CASCADE,
    revision BIGINT NOT NULL,
    recorded_at TEXT COLLATE "C" NOT NULL,
    ended_at TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    memory TEXT COLLATE "C" NOT NULL,
    UNIQUE (key, revision)
);

CREATE TABLE tombstones (
    id TEXT COLLATE "C" PRIMARY KEY,
    scope TEXT COLLATE "C" NOT NULL,
    deleted_at TEXT COLLATE "C" NOT NULL
);

-- Append-only. Positions and numbers are given under the lock that all writers take, so they are in the order of
-- commits; an identity column would not be. `prior` and `new` are the scheduling numbers around a remark.
CREATE TABLE events (
    position BIGINT PRIMARY KEY,
    node TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    clock BIGINT NOT NULL,
    at TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    memory_id TEXT COLLATE "C",
    scope TEXT COLLATE "C" NOT NULL,
    payload TEXT COLLATE "C" NOT NULL,
    prior TEXT COLLATE "C",
    new TEXT COLLATE "C",
    UNIQUE (node, seq)
);
CREATE INDEX events_by_memory ON events (memory_id, position);
CREATE INDEX events_of_curve ON events (clock, node, seq) WHERE kind = 'curve.tuned';
CREATE INDEX events_of_documents ON events (
    ((payload::jsonb ->> 'kind') COLLATE "C"), ((payload::jsonb ->> 'id') COLLATE "C"), clock, node, seq
) WHERE kind IN ('document.put', 'document.dropped');
CREATE INDEX events_of_edges ON events (
    memory_id, ((payload::jsonb ->> 'target') COLLATE "C"), ((payload::jsonb ->> 'kind') COLLATE "C"), clock, node, seq
) WHERE kind IN ('edge.linked', 'edge.unlinked');
CREATE INDEX events_by_target ON events (((payload::jsonb ->> 'target') COLLATE "C"))
WHERE kind IN ('edge.linked', 'edge.unlinked');

CREATE TABLE edges (
    source BIGINT NOT NULL REFERENCES memories ON DELETE CASCADE,
    target BIGINT NOT NULL REFERENCES memories ON DELETE CASCADE,
    kind TEXT COLLATE "C" NOT NULL,
    weight DOUBLE PRECISION NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (source, target, kind)
);
CREATE INDEX edges_by_target ON edges (target);

CREATE TABLE claims (
    key TEXT COLLATE "C" PRIMARY KEY,
    digest TEXT COLLATE "C" NOT NULL,
    answer TEXT COLLATE "C" NOT NULL,
    at TEXT COLLATE "C" NOT NULL
);

-- Which memories a claimed request touched: an answer that quotes one must go when it is deleted.
CREATE TABLE claim_memories (
    key BIGINT NOT NULL REFERENCES memories ON DELETE CASCADE,
    claim TEXT COLLATE "C" NOT NULL REFERENCES claims ON DELETE CASCADE,
    PRIMARY KEY (key, claim)
);
CREATE INDEX claim_memories_by_claim ON claim_memories (claim);

CREATE TABLE profiles (
    id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    profile TEXT COLLATE "C" NOT NULL,
    signature TEXT COLLATE "C" NOT NULL,
    active BIGINT NOT NULL
);
CREATE UNIQUE INDEX profiles_active ON profiles (active) WHERE active = 1;

-- One row per piece, of unit length. Ids only grow; all pieces of a memory are written together. A profile with
-- many rows gets an HNSW index of its own; the type has no dimension here because profiles differ in it.
CREATE TABLE vectors (
    id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    profile BIGINT NOT NULL REFERENCES profiles,
    key BIGINT NOT NULL REFERENCES memories ON DELETE CASCADE,
    start BIGINT NOT NULL,
    "end" BIGINT NOT NULL,
    text_hash TEXT COLLATE "C" NOT NULL,
    vector VECTOR NOT NULL
);
CREATE INDEX vectors_by_key ON vectors (key, profile);
CREATE INDEX vectors_by_profile ON vectors (profile);

-- The journal by which caches learn that vectors and token bits have gone.
CREATE TABLE dead_vectors (
    position BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    vector_id BIGINT NOT NULL
);

-- A sign bit per dimension and token of all its pieces, and a byte per token that says whether it stands in a
-- question. They do not compress.
CREATE TABLE token_bits (
    key BIGINT NOT NULL REFERENCES memories ON DELETE CASCADE,
    profile BIGINT NOT NULL REFERENCES profiles,
    bits BYTEA NOT NULL,
    asked BYTEA NOT NULL,
    PRIMARY KEY (key, profile)
);
ALTER TABLE token_bits ALTER bits SET STORAGE EXTERNAL, ALTER asked SET STORAGE EXTERNAL;

-- The analyser's terms, joined by spaces, and what they are found by: who has a term and how often, and how common
-- it is.
CREATE TABLE words (
    key BIGINT PRIMARY KEY REFERENCES memories ON DELETE CASCADE,
    terms TEXT COLLATE "C" NOT NULL
);
CREATE TABLE postings (
    term TEXT COLLATE "C" NOT NULL,
    key BIGINT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (term, key) INCLUDE (count)
);
CREATE TABLE terms (
    term TEXT COLLATE "C" PRIMARY KEY,
    memories BIGINT NOT NULL,
    occurrences BIGINT NOT NULL
) WITH (fillfactor = 70);
CREATE TABLE analysed (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    version BIGINT NOT NULL
);

-- Where each memory stands and what form it has: narrow, because every search holds it in memory. `seq` grows with
-- every write, so that a cache reads only what is new. The row of a deleted memory stays, with the length -1.
CREATE TABLE places (
    seq BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    key BIGINT NOT NULL UNIQUE,
    thread BIGINT,
    source BIGINT,
    position BIGINT,
    length BIGINT NOT NULL,
    form BIGINT NOT NULL,
    flags BIGINT NOT NULL,
    speaker BIGINT NOT NULL,
    born BIGINT NOT NULL
);

-- What mechanisms keep beside the memories. `clock` and `node` are the stamp of the last put.
CREATE TABLE documents (
    key BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    kind TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    scope TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    updated_at TEXT COLLATE "C" NOT NULL,
    cites TEXT COLLATE "C" NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    clock BIGINT NOT NULL,
    node TEXT COLLATE "C" NOT NULL,
    UNIQUE (kind, id)
);
CREATE INDEX documents_by_update ON documents (kind, updated_at DESC, id);

CREATE TABLE document_cites (
    memory BIGINT NOT NULL REFERENCES memories ON DELETE CASCADE,
    document BIGINT NOT NULL REFERENCES documents ON DELETE CASCADE,
    PRIMARY KEY (memory, document)
);
CREATE INDEX document_cites_by_document ON document_cites (document);

-- How curved forgetting is here, and the highest reading of the hybrid logical clock that was given or seen.
CREATE TABLE curve (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    w20 DOUBLE PRECISION NOT NULL
);
INSERT INTO curve (one, w20) VALUES (1, 0.1542);
CREATE TABLE clock (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    reading BIGINT NOT NULL
);
INSERT INTO clock (one, reading) VALUES (1, 0);

-- What one process tells the others that are at work on the same store. The last thousand are kept, and all of them
-- go when a memory is deleted.
CREATE TABLE notices (
    id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    process TEXT COLLATE "C" NOT NULL,
    message TEXT COLLATE "C" NOT NULL
);

-- Who has the store open or does something alone, each for as long as a session holds the lock of its number.
CREATE TABLE present (
    id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    purpose TEXT COLLATE "C" NOT NULL,
    who TEXT COLLATE "C" NOT NULL
);

CREATE TABLE installation (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    node TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL,
    since TEXT COLLATE "C" NOT NULL
);

-- The server notes samples of a column's values to plan with, and a deletion does not take them away: of what
-- people wrote, and of what was computed from it, it is to note nothing. A term, a label and a tag are found by an
-- index in any case.
ALTER TABLE memories
    ALTER content SET STATISTICS 0,
    ALTER phrasings SET STATISTICS 0,
    ALTER metadata SET STATISTICS 0,
    ALTER tags SET STATISTICS 0,
    ALTER domains SET STATISTICS 0,
    ALTER domain_scores SET STATISTICS 0,
    ALTER node_type SET STATISTICS 0,
    ALTER source SET STATISTICS 0,
    ALTER author SET STATISTICS 0,
    ALTER agent_id SET STATISTICS 0,
    ALTER session_id SET STATISTICS 0,
    ALTER thread SET STATISTICS 0;
ALTER TABLE memory_tags ALTER tag SET STATISTICS 0;
ALTER TABLE revisions ALTER memory SET STATISTICS 0, ALTER reason SET STATISTICS 0;
ALTER TABLE words ALTER terms SET STATISTICS 0;
ALTER TABLE postings ALTER term SET STATISTICS 0;
ALTER TABLE terms ALTER term SET STATISTICS 0;
ALTER TABLE documents ALTER body SET STATISTICS 0;
ALTER TABLE claims ALTER answer SET STATISTICS 0;
ALTER TABLE notices ALTER message SET STATISTICS 0;
ALTER TABLE vectors ALTER vector SET STATISTICS 0;
ALTER TABLE token_bits ALTER bits SET STATISTICS 0, ALTER asked SET STATISTICS 0;

-- For people with a SQL client: the documented names.
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

-- The reviews of the log. `rating` is the FSRS grade (1 again … 4 easy) an evidence counts as, NULL when it is not a
-- review.
CREATE VIEW review_events AS
SELECT
    position AS id,
    memory_id,
    at AS timestamp,
    CASE payload::jsonb ->> 'evidence'
        WHEN 'again' THEN 1 WHEN 'demoted' THEN 1 WHEN 'hard' THEN 2 WHEN 'good' THEN 3
        WHEN 'reinforced' THEN 3 WHEN 'easy' THEN 4 WHEN 'promoted' THEN 4
    END AS rating,
    payload::jsonb ->> 'evidence' AS evidence,
    prior AS prior_state,
    new AS new_state,
    node,
    seq,
    clock
FROM events WHERE kind = 'memory.remarked';
