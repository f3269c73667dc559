-- The kind of source that a memory came from; memories of before have none.
ALTER TABLE memories ADD COLUMN origin TEXT COLLATE "C";
ALTER TABLE memories ALTER origin SET STATISTICS 0;
