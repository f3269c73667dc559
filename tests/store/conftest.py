"""The only place in the tests that names a store. To add one, write how it opens and list it."""

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random

import pytest

from tests.store.generators import T0, NewStore
from vestige.store.inmemory import InMemoryStore
from vestige.store.processes import Who
from vestige.store.protocol import MemoryStore
from vestige.store.sqlite.store import SqliteStore

ME = Who(pid=os.getpid(), command="vestige test", since=T0)


def open_inmemory(folder: Path) -> MemoryStore:
    return InMemoryStore(node=f"{folder.parent.name}-{folder.name}", who=ME)


def open_sqlite(folder: Path) -> MemoryStore:
    ticks, ids = count(), count(1)
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


BACKENDS: dict[str, Callable[[Path], MemoryStore]] = {"inmemory": open_inmemory, "sqlite": open_sqlite}
ORACLE = "inmemory"


def opener(backend: str, root: Path) -> Iterator[NewStore]:
    opened: list[MemoryStore] = []
    numbers = count(1)

    def new() -> MemoryStore:
        opened.append(BACKENDS[backend](root / f"{backend}-{next(numbers)}"))
        return opened[-1]

    yield new
    for store in opened:
        store.close()


@pytest.fixture(params=list(BACKENDS))
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewStore]:
    """Opens fresh stores of the kind under test, and closes them in the end."""
    yield from opener(request.param, tmp_path)


@pytest.fixture
def store(new_store: NewStore) -> MemoryStore:
    """One fresh store of the kind under test."""
    return new_store()


@pytest.fixture
def new_oracle(tmp_path: Path) -> Iterator[NewStore]:
    """Opens fresh reference stores, for comparing answers with."""
    yield from opener(ORACLE, tmp_path / "oracle")


@pytest.fixture(scope="module", params=[name for name in BACKENDS if name != ORACLE])
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[MemoryStore, MemoryStore]]:
    """A reference store and a store of another kind, shared by a module that fills them once."""
    root = tmp_path_factory.mktemp("pair")
    oracles, others = opener(ORACLE, root), opener(request.param, root)
    yield next(oracles)(), next(others)()
    for rest in (oracles, others):
        next(rest, None)
