"""The only place in the tests that names a store. To add one, write how it opens and list it."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from testbed.fresh_databases import FreshDatabases
from testbed.sqlite_template import put_template
from tests.store.support.generators import T0, NewStore
from tests.store.support.postgres_stores import open_at
from vestige.store.contract.processes import Who
from vestige.store.contract.store import MemoryStore
from vestige.store.inmemory import InMemoryStore
from vestige.store.postgres.connection import PostgresSession
from vestige.store.postgres.store import PostgresStore
from vestige.store.sqlite.store import SqliteStore

ME = Who(pid=os.getpid(), command="vestige test", since=T0)


def open_inmemory(folder: Path) -> MemoryStore:
    ids = count(1)
    node = f"{folder.parent.name}-{folder.name}"
    return InMemoryStore(node=node, who=ME, new_id=lambda: f"{node}-{next(ids)}")


def open_sqlite(folder: Path) -> MemoryStore:
    ticks, ids = count(), count(1)
    put_template(folder / "vestige.db")
    return SqliteStore.open(
        folder / "vestige.db",
        rng=Random(1),
        sleep=lambda seconds: None,
        monotonic=lambda: next(ticks) / 10,  # a retry that never ends would end here
        new_id=lambda: f"{folder.name}-{next(ids)}",
        now=lambda: T0,
        machine="test",
        who=ME,
    )


Open = Callable[[Path], MemoryStore]
FILES: dict[str, Open] = {"inmemory": open_inmemory, "sqlite": open_sqlite}
ORACLE = "inmemory"
OTHERS = ("sqlite", pytest.param("postgres", marks=pytest.mark.slow))  # it starts a server


@pytest.fixture
def postgres_url(postgres_databases: FreshDatabases) -> Iterator[str]:
    """A database on the tests' server, with an empty store."""
    url = postgres_databases.take()
    yield url
    postgres_databases.give_back(url)


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that is run from now on, but for those that begin and end transactions."""
    run: list[str] = []
    execute = PostgresSession.execute

    def watched(
        self: PostgresSession, sql: str, parameters: Sequence[Any] = ()
    ) -> Any:  # whatever the driver gives
        run.append(sql)
        return execute(self, sql, parameters)

    monkeypatch.setattr(PostgresSession, "execute", watched)
    return run


@contextmanager
def opener(backend: str, root: Path, request: pytest.FixtureRequest) -> Iterator[NewStore]:
    """Opens fresh stores of a kind, and closes them in the end."""
    names = (f"{backend}-{number}" for number in count(1))
    if backend == "postgres":
        with on_databases(request.getfixturevalue("postgres_databases"), names) as new:
            yield new
        return
    opened: list[MemoryStore] = []

    def new_folder() -> MemoryStore:
        opened.append(FILES[backend](root / next(names)))
        return opened[-1]

    yield new_folder
    for store in opened:
        store.close()


@contextmanager
def on_databases(databases: FreshDatabases, names: Iterator[str]) -> Iterator[NewStore]:
    """Opens fresh stores in databases. One whose store was closed is used again: some tests open hundreds."""
    opened: list[tuple[str, PostgresStore]] = []

    def reclaim() -> None:
        for used in [one for one in opened if one[1].closed]:
            opened.remove(used)
            databases.give_back(used[0])

    def new() -> MemoryStore:
        reclaim()
        url = databases.take()
        store = open_at(url, node=next(names))
        opened.append((url, store))
        return store

    yield new
    for _, store in opened:
        store.close()
    reclaim()


def become_clone(store: MemoryStore, original: MemoryStore) -> None:
    """Give a store that knows all of another one its node id too, as a clone of the machine would have it."""
    node = original.node
    if isinstance(store, InMemoryStore):
        with store._writing() as state:
            state.seq = max((event.seq for event in state.log if event.node == node), default=0)
    elif isinstance(store, SqliteStore | PostgresStore):
        store._connections.written(lambda db: db.execute("UPDATE installation SET node = ?", (node,)))
    if isinstance(store, PostgresStore):
        store._connections.node.text = node
    else:
        store._node = node  # type: ignore[attr-defined]  # the other stores have one


@pytest.fixture(params=[ORACLE, *OTHERS])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewStore]:
    """Opens fresh stores of the kind under test, and closes them in the end."""
    with opener(request.param, tmp_path, request) as new:
        yield new


@pytest.fixture
def store(new_store: NewStore) -> MemoryStore:
    """One fresh store of the kind under test."""
    return new_store()


@pytest.fixture
def new_oracle(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewStore]:
    """Opens fresh reference stores, for comparing answers with."""
    with opener(ORACLE, tmp_path / "oracle", request) as new:
        yield new


@pytest.fixture(scope="module", params=OTHERS)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[MemoryStore, MemoryStore]]:
    """A reference store and a store of another kind, shared by a module that fills them once."""
    root = tmp_path_factory.mktemp("pair")
    with opener(ORACLE, root, request) as new_oracle, opener(request.param, root, request) as new:
        yield new_oracle(), new()
