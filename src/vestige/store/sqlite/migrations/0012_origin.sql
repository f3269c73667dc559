-- The kind of source that a memory came from. It comes last in the row, like `archived_at`; memories of before have
-- none.
ALTER TABLE memories ADD COLUMN origin TEXT;
