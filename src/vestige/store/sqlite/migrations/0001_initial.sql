-- Times are RFC 3339 text in UTC, always 32 characters, so that text order is time order; only
-- `strengths.decay_from` is an integer (microseconds since 1970), because it feeds array maths.
-- Short columns come first: a scan that filters never has to read the text.

CREATE TABLE memories (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    scope TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    node_type TEXT NOT NULL,
    source TEXT,
    author TEXT,
    agent_id TEXT,
    session_id TEXT,
    thread TEXT,
    position INTEGER,
    occurred_at TEXT,
    valid_from TEXT,
    valid_until TEXT,
    superseded_by TEXT,
    pinned INTEGER NOT NULL,
    suppression_count INTEGER NOT NULL,
    suppressed_at TEXT,
    revision INTEGER NOT NULL,
    text_hash TEXT NOT NULL,
    tags TEXT NOT NULL,
    domains TEXT NOT NULL,
    domain_scores TEXT NOT NULL,
    metadata TEXT NOT NULL,
    content TEXT NOT NULL,
    phrasings TEXT NOT NULL
);
CREATE INDEX memories_by_created ON memories (created_at DESC, id);
CREATE INDEX memories_by_scope ON memories (scope);
CREATE INDEX memories_by_thread ON memories (thread, position) WHERE thread IS NOT NULL;
CREATE INDEX memories_by_session ON memories (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX memories_suppressed ON memories (suppression_count) WHERE suppression_count > 0;
CREATE INDEX memories_beginning ON memories (valid_from) WHERE valid_from IS NOT NULL;
CREATE INDEX memories_ending ON memories (valid_until) WHERE valid_until IS NOT NULL;

CREATE TABLE memory_tags (
    key INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    tag TEXT NOT NULL,
    PRIMARY KEY (key, tag)
) WITHOUT ROWID;
CREATE INDEX memory_tags_by_tag ON memory_tags (tag, key);

-- The normal form of content and phrasings, hashed: which memory says exactly this already?
CREATE TABLE fingerprints (
    key INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    fingerprint TEXT NOT NULL,
    PRIMARY KEY (key, fingerprint)
) WITHOUT ROWID;
CREATE INDEX fingerprints_by_fingerprint ON fingerprints (fingerprint, key);

-- Narrow and apart from the text, so that a search hit never rewrites a text row.
CREATE TABLE strengths (
    key INTEGER PRIMARY KEY REFERENCES memories ON DELETE CASCADE,
    stability REAL NOT NULL,
    difficulty REAL NOT NULL,
    decay_from INTEGER NOT NULL,
    due_at TEXT NOT NULL,
    last_accessed TEXT NOT NULL,
    retention REAL NOT NULL,
    retention_at TEXT NOT NULL,
    retrieval REAL NOT NULL,
    storage REAL NOT NULL,
    learning_state TEXT NOT NULL,
    reps INTEGER NOT NULL,
    lapses INTEGER NOT NULL,
    exposed_at TEXT,
    times_retrieved INTEGER NOT NULL,
    times_useful INTEGER NOT NULL
);
CREATE INDEX strengths_by_due ON strengths (due_at);

-- `memory` is the earlier row of `memories` as a JSON object of its columns.
CREATE TABLE revisions (
    key INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    revision INTEGER NOT NULL,
    recorded_at TEXT NOT NULL,
    ended_at TEXT NOT NULL,
    reason TEXT NOT NULL,
    memory TEXT NOT NULL,
    UNIQUE (key, revision)
);

CREATE TABLE tombstones (
    id TEXT PRIMARY KEY,
    scope TEXT NOT NULL,
    deleted_at TEXT NOT NULL
) WITHOUT ROWID;

-- Append-only. `prior` and `new` are the scheduling numbers around a remark, for `review_events`.
CREATE TABLE events (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    node TEXT NOT NULL,
    seq INTEGER NOT NULL,
    clock INTEGER NOT NULL,
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    memory_id TEXT,
    scope TEXT NOT NULL,
    payload TEXT NOT NULL,
    prior TEXT,
    new TEXT,
    UNIQUE (node, seq)
);
CREATE INDEX events_by_memory ON events (memory_id, position);

CREATE TABLE edges (
    source INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    target INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    kind TEXT NOT NULL,
    weight REAL NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (source, target, kind)
) WITHOUT ROWID;
CREATE INDEX edges_by_target ON edges (target);

CREATE TABLE claims (
    key TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    answer TEXT NOT NULL,
    at TEXT NOT NULL
) WITHOUT ROWID;

-- Which memories a claimed request touched: an answer that quotes one must go when it is deleted.
CREATE TABLE claim_memories (
    key INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    claim TEXT NOT NULL REFERENCES claims ON DELETE CASCADE,
    PRIMARY KEY (key, claim)
) WITHOUT ROWID;
CREATE INDEX claim_memories_by_claim ON claim_memories (claim);

-- AUTOINCREMENT: adopting A, then B, then A again gives three ids, so no cache mistakes the last for
-- the first.
CREATE TABLE profiles (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    profile TEXT NOT NULL,
    signature TEXT NOT NULL,
    active INTEGER NOT NULL
);
CREATE UNIQUE INDEX profiles_active ON profiles (active) WHERE active = 1;

-- One row per piece: float32, little-endian, unit length. Ids only grow; all pieces of a memory are
-- written together, so they are neighbours in id order.
CREATE TABLE vectors (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    profile INTEGER NOT NULL REFERENCES profiles,
    key INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    text_hash TEXT NOT NULL,
    vector BLOB NOT NULL
);
CREATE INDEX vectors_by_key ON vectors (key);
CREATE INDEX vectors_by_profile ON vectors (profile);

-- The journal by which other processes learn which vectors have gone.
CREATE TABLE dead_vectors (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    vector_id INTEGER NOT NULL
);

-- The analyser's terms, joined by spaces; the rowid is the memory's key.
CREATE VIRTUAL TABLE words USING fts5 (terms, tokenize = "ascii tokenchars '_'");

CREATE TABLE installation (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    node TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    since TEXT NOT NULL
);

-- For people with a SQLite client: the documented names, read-only, built-in SQL only.
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
    EXISTS (SELECT 1 FROM vectors v WHERE v.key = m.key) AS has_embedding,
    (SELECT p.profile FROM vectors v JOIN profiles p ON p.id = v.profile WHERE v.key = m.key LIMIT 1)
        AS embedding_model,
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
    m.revision,
    m.domains,
    m.domain_scores,
    m.metadata
FROM memories m JOIN strengths s ON s.key = m.key;

-- The reviews of the log. `rating` is the FSRS grade (1 again … 4 easy) an evidence counts as, NULL
-- when it is not a review.
CREATE VIEW review_events AS
SELECT
    position AS id,
    memory_id,
    at AS timestamp,
    CASE json_extract(payload, '$.evidence')
        WHEN 'again' THEN 1 WHEN 'demoted' THEN 1 WHEN 'hard' THEN 2 WHEN 'good' THEN 3
        WHEN 'reinforced' THEN 3 WHEN 'easy' THEN 4 WHEN 'promoted' THEN 4
    END AS rating,
    json_extract(payload, '$.evidence') AS evidence,
    prior AS prior_state,
    new AS new_state,
    node,
    seq,
    clock
FROM events WHERE kind = 'memory.remarked';
