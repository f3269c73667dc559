"""Ends of transfers for tests: files and databases, and stores to carry."""

import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from itertools import count
from pathlib import Path

from testbed.world import HandClock, open_world
from tests.store.old.make import Story, live
from tests.store.support.generators import a_memory, add
from tests.store.support.postgres_stores import open_at as open_on_server
from tests.store.support.sqlite_files import around, open_at
from vestige.core.models import EVERYTHING
from vestige.exchange.portable.file import Writer
from vestige.store.contract.processes import Who
from vestige.store.contract.store import MemoryStore
from vestige.store.postgres.opening import PostgresDependencies
from vestige.store.postgres.server.address import ServerAddress
from vestige.store.postgres.transfer import PostgresEnd
from vestige.store.sqlite.transfer import SqliteEnd
from vestige.store.transfer.ends import End

NOW = datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)
ME = Who(pid=os.getpid(), command="vestige migrate", since=NOW)
_NODES = count(1)

AnyEnd = SqliteEnd | PostgresEnd


def quietly(done: float, total: float | None, what: str | None) -> None:
    """Nobody looks."""


def _new_id() -> str:
    return f"carried-{os.getpid()}-{next(_NODES)}"


def in_file(path: Path) -> SqliteEnd:
    """A file as an end."""
    return SqliteEnd(
        path=path,
        around=replace(around(), new_id=_new_id),
        prepare=lambda folder: folder.mkdir(parents=True, exist_ok=True),
    )


def on_server(url: str) -> PostgresEnd:
    """A database as an end."""
    surroundings = PostgresDependencies(
        sleep=time.sleep,
        monotonic=time.monotonic,
        new_id=_new_id,
        now=lambda: NOW,
        wait_seconds=5.0,
        statement_seconds=600.0,
        most_connections=4,
    )
    return PostgresEnd(place=ServerAddress(url=url), around=surroundings, who=ME)


def opened(end: AnyEnd) -> MemoryStore:
    """The store that is there, opened as everybody does."""
    if isinstance(end, SqliteEnd):
        return open_at(end.path)
    return open_on_server(end.place.url, schema=end.place.schema)


def a_life(folder: Path) -> Path:
    """A store with something in every table; its file."""
    with open_world(folder, clock=HandClock()) as world:
        live(Story(world))
        cited = world.remember("A note is kept about this one.")
        world.call("memory", action="tag", id=cited, add=["kept"], remove=[])
        world.call("keys", action="create", label="Ada", scopes=["/project/a"], expires="30d")
        world.call("keys", action="rotate", id="Ada")
        world.app.engine.store.end_login("ended", NOW, forgetting=world.clock.now)
    return folder / "vestige.db"


def exported(store: MemoryStore) -> bytes:
    """Everything canonical in the portable form, with vectors."""
    written = BytesIO()
    writer = Writer(written, store.signature())
    for batch in store.histories(access=EVERYTHING, vectors=True):
        for life in batch:
            writer.add(life)
    writer.end()
    return written.getvalue()


def export_of(end: End) -> bytes:
    """What a store that is an end exports."""
    with end.source() as side:
        return exported(side.store)


def stop_after(batches: int) -> Callable[[float, float | None, str | None], None]:
    """Somebody who ends a transfer after so many batches."""
    seen = count(1)

    def progress(done: float, total: float | None, what: str | None) -> None:
        if next(seen) == batches:
            raise KeyboardInterrupt

    return progress


def write_one_more(path: Path) -> None:
    """Another process writes to a file."""
    with closing(open_at(path, prefix="later")) as store:
        add(store, a_memory("later", "Somebody wrote this later."))
