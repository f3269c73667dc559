-- The nearest vectors of each memory: SQLite's schema 13.
CREATE TABLE neighbours (
    vector_id BIGINT PRIMARY KEY REFERENCES vectors ON DELETE CASCADE,
    floor BIGINT NOT NULL,
    near BYTEA NOT NULL
);
CREATE TABLE neighbours_version (
    version BIGINT NOT NULL
);
INSERT INTO neighbours_version (version) VALUES (0);
