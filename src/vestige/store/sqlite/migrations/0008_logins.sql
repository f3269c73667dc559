-- Logins that were ended before their time. A row is needed as long as the cookie of the login would open something.
CREATE TABLE ended_logins (
    id TEXT PRIMARY KEY,
    ends_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX ended_logins_by_end ON ended_logins (ends_at);
