"""That deleted text leaves the journal too, even where a reader was in the way at first."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.store import sqlite_files
from tests.store.generators import T0, a_memory, add, forget, remark
from vestige.models import Evidence
from vestige.store.sqlite.store import SqliteStore

path, store = sqlite_files.path, sqlite_files.store


def holds(path: Path, word: str) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir() if word.encode() in file.read_bytes())


def test_what_a_reader_kept_in_the_journal_goes_with_the_next_commit(store: SqliteStore, path: Path) -> None:
    add(store, a_memory("m1", "the xylophone password"), a_memory("m2"))
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memories").fetchone()
        forget(store, "m1")
        assert holds(path, "xylophone"), "a reader still sees the moment before"
        reader.execute("COMMIT")

    remark(store, "m2", Evidence.GOOD, T0)

    assert holds(path, "xylophone") == []
