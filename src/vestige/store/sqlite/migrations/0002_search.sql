-- Where each memory stands and what form it has: narrow, because every search holds it in memory. `seq`
-- grows with every write, so that a cache reads only what is new. The row of a deleted memory stays, with
-- the length -1. `thread`, `source` and `speaker` are hashes: two rows that share one belong together.
CREATE TABLE places (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    key INTEGER NOT NULL UNIQUE,
    thread INTEGER,
    source INTEGER,
    position INTEGER,
    length INTEGER NOT NULL,
    form INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    speaker INTEGER NOT NULL
);

-- One row per memory: a sign bit per dimension and token of all its pieces, and a byte per token that says
-- whether it stands in a question.
CREATE TABLE token_bits (
    key INTEGER PRIMARY KEY REFERENCES memories ON DELETE CASCADE,
    profile INTEGER NOT NULL REFERENCES profiles,
    bits BLOB NOT NULL,
    asked BLOB NOT NULL
);

-- Published files of vectors: all rows of `vectors` of a profile with first_id <= id <= last_id that lived
-- when it was written. A file never changes; one that holds a purged vector is unlisted and removed.
CREATE TABLE segments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    profile INTEGER NOT NULL REFERENCES profiles,
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    file TEXT NOT NULL UNIQUE,
    checksum TEXT NOT NULL
);

-- Which analyser made the lexical rows: an older one's are made again when the store is opened.
CREATE TABLE analysed (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL
);

CREATE VIRTUAL TABLE words_seen USING fts5vocab (words, row);
CREATE VIRTUAL TABLE words_at USING fts5vocab (words, instance);

-- Vectors were made without token bits; they are made again in the background.
INSERT INTO dead_vectors (vector_id) SELECT id FROM vectors ORDER BY id;
DELETE FROM vectors;
