"""What is kept in memory belongs to one history of the store: a file that another program set back to an
earlier state, while this process has it open, is read again."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.store.support import sqlite_files
from tests.store.support.generators import SIGNATURE, T0, a_memory, add, add_with, axis, found, hits, rows
from tests.store.support.sqlite_files import open_at
from vestige.core.models import ANYTHING, EVERYTHING, Filter
from vestige.store.sqlite.store import SqliteStore

path, store = sqlite_files.path, sqlite_files.store
SCOPES = ("/x", "/y")


def keep(store: SqliteStore, name: str, scope: str, content: str, direction: int) -> None:
    add_with(store, replace(a_memory(name, content), scope=scope), axis(direction))


def seen(store: SqliteStore) -> dict[str, Any]:
    """Everything that a process answers from what it keeps."""
    return {
        "found": [found(store, Filter(scope=scope)) for scope in SCOPES],
        "counts": [store.count(Filter(scope=scope), access=EVERYTHING) for scope in SCOPES],
        "stats": store.stats(access=EVERYTHING, now=T0),
        "words": hits(store.lexical(["zinc"], ANYTHING, access=EVERYTHING, limit=10)),
        "scoped words": hits(store.lexical(["zinc"], Filter(scope="/y"), access=EVERYTHING, limit=10)),
        "near": hits(store.nearest(rows(axis(2)), SIGNATURE, ANYTHING, access=EVERYTHING, limit=10)[0]),
    }


def restore_in_place(backup: Path, path: Path) -> None:
    """What `.restore` of the SQLite shell does: every page of the file, under the locks of SQLite."""
    with closing(sqlite3.connect(backup)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)


@pytest.mark.parametrize("between", [False, True], ids=["unseen", "seen in between"])
def test_a_store_that_was_set_back_and_went_on_is_read_again(
    store: SqliteStore, path: Path, tmp_path: Path, between: bool
) -> None:
    keep(store, "first", "/x", "zinc", 1)
    with closing(sqlite3.connect(path)) as now, closing(sqlite3.connect(tmp_path / "backup.db")) as backup:
        now.backup(backup)
    keep(store, "second", "/x", "zinc and cobalt", 2)
    assert seen(store)["found"] == [["first", "second"], []]

    restore_in_place(tmp_path / "backup.db", path)
    if between:
        assert seen(store)["found"] == [["first"], []]
    with closing(open_at(path, prefix="other")) as other:
        keep(other, "third", "/y", "zinc and nickel", 3)
        expected = seen(other)

    assert seen(store) == expected
    assert expected["found"] == [["first"], ["third"]]


def test_a_store_that_only_grows_keeps_what_was_read(store: SqliteStore, path: Path) -> None:
    keep(store, "first", "/x", "zinc", 1)
    seen(store)
    kept = store._kept
    with closing(open_at(path, prefix="other")) as other:
        keep(other, "second", "/y", "zinc and nickel", 3)
    add(store, a_memory("third"))
    assert seen(store)["found"] == [["first"], ["second"]]
    assert store._kept is kept
