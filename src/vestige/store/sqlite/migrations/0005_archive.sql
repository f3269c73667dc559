-- When a memory was put aside, by `gc`. It comes last in the row, but SQLite tells that it is NULL from the
-- row's header: a scan that filters still never has to read the text.
ALTER TABLE memories ADD COLUMN archived_at TEXT;
CREATE INDEX memories_archived ON memories (archived_at) WHERE archived_at IS NOT NULL;
