"""Notices in a file: what they quote leaves it with a deletion, and they wait for nobody."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.support.generators import a_memory, add, forget
from tests.store.support.sqlite_files import FakeClock, open_at
from vestige.core.errors import StoreBusy, StoreReadOnly
from vestige.store.sqlite.processes.peers import PATIENCE_SECONDS

QUOTING = '{"type": "MemoryCreated", "data": {"content_preview": "xylophone"}, "quotes": ["m1"]}'


def test_what_a_notice_quotes_leaves_the_files_with_any_deletion(tmp_path: Path) -> None:
    with closing(open_at(tmp_path / "v.db")) as store:
        add(store, a_memory("m1", "xylophone"), a_memory("m2"))
        store.notify("one", [QUOTING])
        forget(store, "m1")
        store.notify("one", [QUOTING])
        held = [
            file.name for file in tmp_path.iterdir() if file.is_file() and b"xylophone" in file.read_bytes()
        ]
    assert held == []


def test_another_store_on_the_same_file_hears_it(tmp_path: Path) -> None:
    with closing(open_at(tmp_path / "v.db")) as one, closing(open_at(tmp_path / "v.db")) as two:
        one.notify("one", [QUOTING])
        assert [notice.message for notice in two.notices(0)] == [QUOTING]


def test_notices_give_up_sooner_than_writes_do(tmp_path: Path) -> None:
    clock = FakeClock()
    with (
        closing(open_at(tmp_path / "v.db", clock=clock)) as store,
        closing(sqlite3.connect(tmp_path / "v.db", isolation_level=None)) as outside,
    ):
        outside.execute("BEGIN IMMEDIATE")
        began = clock.seconds
        with pytest.raises(StoreBusy):
            store.notify("one", [QUOTING])
        assert clock.seconds - began < 1 + PATIENCE_SECONDS


def test_a_store_that_can_only_be_read_takes_none_and_shows_those_it_has(tmp_path: Path) -> None:
    with closing(open_at(tmp_path / "v.db")) as store:
        store.notify("one", [QUOTING])
    with closing(open_at(tmp_path / "v.db", read_only=True)) as reader:
        with pytest.raises(StoreReadOnly):
            reader.notify("one", [QUOTING])
        assert len(reader.notices(0)) == 1
