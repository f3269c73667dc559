-- The nearest vectors of each memory, derived from the vectors and brought up to date before they are used. A memory
-- stands here by its first vector, whose id is never given again: a list that names one of an earlier text, or of a
-- deleted memory, names nothing. `near` has the ids of vectors and the products with them; every other vector with a
-- product above `floor` is in it.
CREATE TABLE neighbours (
    vector_id INTEGER PRIMARY KEY REFERENCES vectors ON DELETE CASCADE,
    floor INTEGER NOT NULL,
    near BLOB NOT NULL
);
-- Grows with every change of the lists, so that nobody writes lists that were made from earlier ones.
CREATE TABLE neighbours_version (
    version INTEGER NOT NULL
);
INSERT INTO neighbours_version (version) VALUES (0);
