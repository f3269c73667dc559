"""The tables of the index of sessions."""

VERSION = 1

TABLES = (
    """CREATE TABLE files (
        path TEXT PRIMARY KEY, client TEXT NOT NULL, checkpoint TEXT NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE sessions (
        key INTEGER PRIMARY KEY, client TEXT NOT NULL, id TEXT NOT NULL, cwd TEXT, repository TEXT,
        branch TEXT, title TEXT, title_rank INTEGER NOT NULL DEFAULT 0, parent TEXT, subagent INTEGER,
        started REAL, ended REAL, resume TEXT, path TEXT NOT NULL, prompts INTEGER NOT NULL DEFAULT 0,
        entries INTEGER NOT NULL DEFAULT 0, passages INTEGER NOT NULL DEFAULT 0,
        talk_terms INTEGER NOT NULL DEFAULT 0, prompt_terms INTEGER NOT NULL DEFAULT 0,
        work_terms INTEGER NOT NULL DEFAULT 0, UNIQUE (client, id)
    )""",
    "CREATE INDEX sessions_ended ON sessions (ended)",
    "CREATE INDEX sessions_id ON sessions (id)",
    # The number of an entry in its session is the order of arrival: `key`.
    """CREATE TABLE entries (
        key INTEGER PRIMARY KEY, session INTEGER NOT NULL, uid TEXT NOT NULL, parent TEXT, grouped TEXT,
        role TEXT NOT NULL, at REAL, text TEXT NOT NULL, thought TEXT NOT NULL, output TEXT NOT NULL,
        off_tree INTEGER NOT NULL DEFAULT 0, dropped INTEGER NOT NULL DEFAULT 0, passage INTEGER NOT NULL
    )""",
    "CREATE UNIQUE INDEX entries_uid ON entries (uid)",
    "CREATE INDEX entries_session ON entries (session, key)",
    "CREATE INDEX entries_passage ON entries (passage)",
    """CREATE TABLE actions (
        entry INTEGER NOT NULL, number INTEGER NOT NULL, session INTEGER NOT NULL, call TEXT NOT NULL,
        name TEXT NOT NULL, command TEXT, files TEXT NOT NULL, detail TEXT NOT NULL, status INTEGER,
        PRIMARY KEY (entry, number)
    ) WITHOUT ROWID""",
    "CREATE INDEX actions_call ON actions (session, call)",
    """CREATE TABLE passages (
        key INTEGER PRIMARY KEY, session INTEGER NOT NULL, talk_chars INTEGER NOT NULL,
        work_chars INTEGER NOT NULL, talk_terms INTEGER NOT NULL, prompt_terms INTEGER NOT NULL,
        work_terms INTEGER NOT NULL
    )""",
    "CREATE INDEX passages_session ON passages (session)",
    # Titles of sessions by an entry of theirs, which may come later or from another file.
    "CREATE TABLE titles (leaf TEXT PRIMARY KEY, title TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE archive (
        path TEXT NOT NULL, client TEXT NOT NULL, name TEXT NOT NULL, sha256 TEXT NOT NULL,
        size INTEGER NOT NULL, archived REAL NOT NULL, state TEXT NOT NULL, PRIMARY KEY (path, sha256)
    ) WITHOUT ROWID""",
    # Without a copy of the words: they come from the entries again where a passage grows.
    """CREATE VIRTUAL TABLE words USING fts5 (
        prompt, talk, work, output, content = '', tokenize = "ascii tokenchars '_'"
    )""",
    "CREATE VIRTUAL TABLE words_at USING fts5vocab (words, instance)",
)

WAL = "PRAGMA journal_mode = WAL"
PRAGMAS = (
    "PRAGMA synchronous = NORMAL",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -32000",
    "PRAGMA journal_size_limit = 67108864",
)
