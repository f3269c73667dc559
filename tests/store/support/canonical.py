"""What a database holds, seen by any SQLite client: all that is canonical, and whether it is whole."""

from pathlib import Path

from tests.store.support.sqlite_files import query
from vestige.store.sqlite.opening import schema

# Without claims: an upgrade may spend them.
CANONICAL = (
    "memories", "memory_tags", "revisions", "tombstones", "events", "edges", "strengths", "documents",
    "document_cites", "curve",
)  # fmt: skip

Rows = dict[str, tuple[list[str], list[tuple[object, ...]]]]


def canonical(path: Path, like: Rows | None = None) -> Rows:
    """Every row that is not derived, with the columns it has, or those it had in an earlier state."""
    there = {name for (name,) in query(path, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    found: Rows = {}
    for table in CANONICAL if like is None else like:
        if table in there:
            names = [str(row[1]) for row in query(path, f"PRAGMA table_info({table})")]
            columns = names if like is None else like[table][0]
            chosen = ", ".join(columns)
            found[table] = (columns, query(path, f"SELECT {chosen} FROM {table} ORDER BY {chosen}"))
    return found


def assert_whole(path: Path) -> None:
    """SQLite finds no fault, and every memory has all that is derived from it but vectors."""
    assert query(path, "PRAGMA integrity_check") == [("ok",)]
    assert query(path, "PRAGMA foreign_key_check") == []
    assert query(path, "SELECT max(version) FROM schema_migrations") == [(len(schema()),)]
    keys = query(path, "SELECT key FROM memories ORDER BY key")
    for table, key in (("words", "rowid"), ("strengths", "key"), ("fingerprints", "DISTINCT key")):
        assert query(path, f"SELECT {key} FROM {table} ORDER BY 1") == keys, table
    assert query(path, "SELECT key FROM places WHERE length >= 0 ORDER BY key") == keys
