"""How the SQLite tests open stores, and look into their files."""

import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest

from testbed.sqlite_template import put_template
from vestige.store.contract.processes import Who
from vestige.store.sqlite.connection import WRITE_DEADLINE_SECONDS, WriterWait
from vestige.store.sqlite.opening import SqliteDependencies
from vestige.store.sqlite.store import SqliteStore

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class FakeClock:
    """A monotonic clock that only sleeping moves."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.naps: list[float] = []

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.seconds += seconds + 0.5  # the attempt itself took a while too


def ids(prefix: str = "node") -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"{prefix}-{next(numbers)}"


def around(
    clock: FakeClock | None = None, *, prefix: str = "node", machine: str = "here"
) -> SqliteDependencies:
    clock = clock or FakeClock()
    waiting = WriterWait(rng=random.Random(7), sleep=clock.sleep, monotonic=clock.monotonic)
    who = Who(pid=os.getpid(), command="vestige test", since=NOW)
    return SqliteDependencies(waiting=waiting, new_id=ids(prefix), now=lambda: NOW, machine=machine, who=who)


def open_at(
    path: Path,
    *,
    clock: FakeClock | None = None,
    prefix: str = "node",
    machine: str = "here",
    busy_seconds: float = WRITE_DEADLINE_SECONDS,
    read_only: bool = False,
) -> SqliteStore:
    clock = clock or FakeClock()
    return SqliteStore.open(
        path,
        rng=random.Random(7),
        sleep=clock.sleep,
        monotonic=clock.monotonic,
        new_id=ids(prefix),
        now=lambda: NOW,
        machine=machine,
        busy_seconds=busy_seconds,
        read_only=read_only,
    )


# A module takes these over by naming them: `path, store = sqlite_files.path, sqlite_files.store`.


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database under test is."""
    return tmp_path / "vestige.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    """A fresh store there."""
    put_template(path)
    opened = open_at(path)
    yield opened
    opened.close()


def query(path: Path, sql: str, *params: object) -> list[tuple[object, ...]]:
    """What any SQLite client would answer."""
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql, params).fetchall()


def every_text(path: Path) -> Iterator[str]:
    """Every value of every table, shadow tables and blobs included."""
    with closing(sqlite3.connect(path)) as db:
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in db.execute(f'SELECT * FROM "{table}"'):
                for value in row:
                    yield value.decode("latin-1") if isinstance(value, bytes) else str(value)
