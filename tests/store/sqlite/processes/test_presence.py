"""Servers that cannot be seen by others: where there are no locks, or nothing can be written."""

import errno
import logging
import os
import random
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.support import sqlite_files
from tests.store.support.generators import a_memory, add, held
from tests.store.support.sqlite_files import NOW, FakeClock, ids
from vestige.core.errors import StoreBusy, StoreError
from vestige.store.contract.processes import Who
from vestige.store.sqlite.processes.presence import FOLDER
from vestige.store.sqlite.store import SqliteStore

path = sqlite_files.path


def serve(path: Path, *, exclusive: bool, read_only: bool = False, parent: int = 0) -> SqliteStore:
    clock = FakeClock()
    return SqliteStore.open(
        path,
        rng=random.Random(7),
        sleep=clock.sleep,
        monotonic=clock.monotonic,
        new_id=ids(),
        now=lambda: NOW,
        machine="here",
        who=Who(
            pid=os.getpid(), command="vestige mcp", since=NOW, server=True, exclusive=exclusive, parent=parent
        ),
        read_only=read_only,
    )


@pytest.fixture(params=["no locks", "in the way"])
def unseen(request: pytest.FixtureRequest, path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on, nobody can make itself seen."""

    def block() -> None:
        (path.parent / FOLDER).write_text("in the way", encoding="utf-8")

    def unlock(handle: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    if request.param == "in the way":
        return block
    if sys.platform == "win32":
        pytest.skip("flock is how it is done elsewhere")
    return lambda: monkeypatch.setattr("fcntl.flock", unlock)


def test_a_server_that_others_cannot_see_works_with_a_warning(
    path: Path, unseen: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    unseen()
    with caplog.at_level(logging.WARNING), closing(serve(path, exclusive=False)) as store:
        add(store, a_memory("m1"))
    assert "cannot see this one" in caplog.text


def test_an_exclusive_server_that_others_cannot_see_does_not_start(
    path: Path, unseen: Callable[[], None]
) -> None:
    unseen()
    with pytest.raises(StoreError, match="exclusively") as caught:
        serve(path, exclusive=True)
    assert "--exclusive" in (caught.value.hint or "")


def test_an_exclusive_server_does_not_start_on_a_store_that_can_only_be_read(path: Path) -> None:
    with closing(serve(path, exclusive=True)) as store:
        add(store, a_memory("m1"))
    with pytest.raises(StoreError, match="exclusively"):
        serve(path, exclusive=True, read_only=True)
    with closing(serve(path, exclusive=False, read_only=True)) as reader:
        assert held(reader, "m1").memory.id == "m1"


def test_who_cannot_be_seen_leads_because_work_that_is_done_twice_is_better_than_none(
    path: Path, unseen: Callable[[], None]
) -> None:
    unseen()
    with closing(serve(path, exclusive=False)) as one, closing(serve(path, exclusive=False)) as other:
        assert one.leading()
        assert other.leading()


def test_the_workers_of_one_exclusive_server_count_as_one(path: Path) -> None:
    with closing(serve(path, exclusive=True, parent=7)), closing(serve(path, exclusive=True, parent=7)):
        for others in (0, 8):
            with pytest.raises(StoreBusy, match="Another server"):
                serve(path, exclusive=False, parent=others)
