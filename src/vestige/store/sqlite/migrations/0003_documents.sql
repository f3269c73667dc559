-- What mechanisms keep beside the memories. `cites` is the list in its order; `document_cites` finds the
-- documents of a memory, which go with it.
CREATE TABLE documents (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    scope TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    cites TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (kind, id)
);
CREATE INDEX documents_by_update ON documents (kind, updated_at DESC, id);

CREATE TABLE document_cites (
    memory INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    PRIMARY KEY (memory, document)
) WITHOUT ROWID;
CREATE INDEX document_cites_by_document ON document_cites (document);
