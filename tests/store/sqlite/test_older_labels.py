"""Labels of an older store that are longer than is taken now: they stay usable here, and a server says no."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.postgres_server import Server
from tests.store.support import sqlite_files
from tests.store.support.generators import T0, a_memory, add, forget, held, ids, remark, revise
from tests.store.support.sqlite_files import open_at
from tests.store.support.transfer_ends import in_file, on_server, quietly
from vestige.core.errors import TooLarge
from vestige.core.models import ANYTHING, EVERYTHING, MAX_LABEL_BYTES, Evidence, Filter
from vestige.store.transfer.move import move

path = sqlite_files.path
LONGER = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(1_000))


@pytest.fixture
def older(path: Path) -> Path:
    """A store with a memory whose thread no index of a server could hold."""
    with closing(open_at(path)) as store:
        add(store, replace(a_memory("a"), thread="to be"), a_memory("b"))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE memories SET thread = ? WHERE id = 'a'", (LONGER,))
    return path


def test_they_are_found_remarked_and_deleted_and_made_shorter_when_they_are_revised(older: Path) -> None:
    with closing(open_at(older)) as store:
        assert ids(store.find(Filter(thread=LONGER), access=EVERYTHING, limit=5)) == ["a"]
        remark(store, "a", Evidence.GOOD, T0)
        memory = replace(held(store, "a").memory, revision=2)
        with pytest.raises(TooLarge, match=f"`thread` .* limit is {MAX_LABEL_BYTES:,}"):
            revise(store, memory)
        revise(store, replace(memory, thread="shorter"))
        forget(store, "a")


@pytest.mark.slow
def test_a_server_takes_what_else_there_is_and_they_are_told(older: Path, postgres_server: Server) -> None:
    goal = on_server(postgres_server.new_database())
    moved = move(in_file(older), goal, quietly)
    assert ("memories", "a") in {(refusal.table, refusal.name) for refusal in moved.refused}
    assert moved.comparison.differences == ()
    with goal.destination() as side:
        assert ids(side.store.find(ANYTHING, access=EVERYTHING, limit=5)) == ["b"]
