"""How the PostgreSQL tests open stores, and look into their databases."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from testbed.patience import PATIENCE_SECONDS
from tests.store.support.generators import T0, a_memory, embedded, memory_id
from vestige.core.models import EVERYTHING
from vestige.store.contract.changes import Add
from vestige.store.contract.processes import Who
from vestige.store.postgres.store import PostgresStore

ME = Who(pid=os.getpid(), command="vestige test", since=T0)
SCHEMA = "public"
"""Where stores are in the databases of tests: `FreshDatabases` empties the tables of this one."""


def open_at(
    url: str,
    *,
    schema: str = SCHEMA,
    node: str = "node",
    who: Who = ME,
    busy_seconds: float = PATIENCE_SECONDS,
    statement_seconds: float = PATIENCE_SECONDS,
    max_connections: int = 10,
) -> PostgresStore:
    ids = count(1)
    return PostgresStore.open(
        url,
        schema=schema,
        sleep=time.sleep,
        monotonic=time.monotonic,
        new_id=lambda: f"{node}-{next(ids)}",
        now=lambda: T0,
        who=who,
        busy_seconds=busy_seconds,
        statement_seconds=statement_seconds,
        max_connections=max_connections,
    )


def put(store: PostgresStore, vectors: NDArray[np.float32], scope: str = "/", first: int = 0) -> list[str]:
    """Memories with these vectors; their ids."""
    memories = [replace(a_memory(memory_id(first + at)), scope=scope) for at in range(len(vectors))]
    added = [
        Add(memory=one, embedded=embedded(one, vector)) for one, vector in zip(memories, vectors, strict=True)
    ]
    store.commit(added, access=EVERYTHING)
    return [one.id for one in memories]


@contextmanager
def outside(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Any other client of the server."""
    with psycopg.connect(url, autocommit=True) as db:
        yield db


def query(url: str, statement: str, *params: object) -> list[tuple[Any, ...]]:
    """What any other client would be answered."""
    with outside(url) as db:
        answer = db.execute(statement.encode(), params)
        return answer.fetchall() if answer.description else []
