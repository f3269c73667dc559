-- API keys: only the hash of each is kept. Lists are JSON; no list of scopes or domains means all of them.
CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    label TEXT NOT NULL,
    permissions TEXT NOT NULL,
    scopes TEXT,
    domains TEXT,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    last_used TEXT,
    revoked_at TEXT
) WITHOUT ROWID;
