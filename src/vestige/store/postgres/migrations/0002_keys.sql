-- API keys: only the hash of each is kept. Lists are JSON; no list of scopes or domains means all of them.
CREATE TABLE api_keys (
    id TEXT COLLATE "C" PRIMARY KEY,
    hash TEXT COLLATE "C" NOT NULL UNIQUE,
    label TEXT COLLATE "C" NOT NULL,
    permissions TEXT COLLATE "C" NOT NULL,
    scopes TEXT COLLATE "C",
    domains TEXT COLLATE "C",
    created_at TEXT COLLATE "C" NOT NULL,
    expires_at TEXT COLLATE "C",
    last_used TEXT COLLATE "C",
    revoked_at TEXT COLLATE "C"
);
