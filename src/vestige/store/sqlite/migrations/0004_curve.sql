-- How curved forgetting is here: one number for all memories, fitted to reviews. It begins as FSRS-6 has it.
CREATE TABLE curve (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    w20 REAL NOT NULL
);
INSERT INTO curve (one, w20) VALUES (1, 0.1542);
