"""What memories take on disk, by what they consist of, as SQLite itself counts its pages."""

import sqlite3
from pathlib import Path

from vestige.settings.settings import DATABASE_NAME

PARTS = {
    "memories": "text", "memory_tags": "text", "fingerprints": "text", "revisions": "text",
    "words": "words", "places": "words",
    "vectors": "vectors", "dead_vectors": "vectors",
    "token_bits": "token bits",
    "events": "events and strength", "strengths": "events and strength",
}  # fmt: skip
"""Which part each table belongs to; its indexes go with it, other tables are `other`."""
FILES = "vector files"
OTHER = "other"


def bytes_by_part(data_dir: Path) -> dict[str, int]:
    """Bytes of each part; empty where this SQLite cannot tell."""
    connection = sqlite3.connect(f"file:{data_dir / DATABASE_NAME}?mode=ro", uri=True)
    try:
        tables = dict(connection.execute("SELECT name, tbl_name FROM sqlite_schema"))
        sizes = connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name").fetchall()
    except sqlite3.OperationalError:  # built without dbstat
        return {}
    finally:
        connection.close()
    found: dict[str, int] = {}
    for name, size in sizes:
        part = _part(tables.get(name, name))
        found[part] = found.get(part, 0) + size
    files = sum(path.stat().st_size for path in data_dir.rglob("*") if path.is_file())
    database = sum(path.stat().st_size for path in data_dir.glob(f"{DATABASE_NAME}*"))
    return found | ({FILES: files - database} if files > database else {})


def token_bytes(data_dir: Path) -> int:
    """The token bits themselves, without what SQLite needs around them; 0 where there are none."""
    connection = sqlite3.connect(f"file:{data_dir / DATABASE_NAME}?mode=ro", uri=True)
    try:
        (size,) = connection.execute("SELECT sum(length(bits) + length(asked)) FROM token_bits").fetchone()
    finally:
        connection.close()
    return int(size or 0)


def _part(table: str) -> str:
    """A full-text table keeps its data in tables called after it."""
    return PARTS.get(table) or (PARTS["words"] if table.startswith("words_") else OTHER)
