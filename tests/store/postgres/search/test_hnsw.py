"""The HNSW index of vectors in PostgreSQL: what is found by it, and how it is looked after."""

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from psycopg.conninfo import make_conninfo

from testbed.patience import PATIENCE_SECONDS, until
from tests.store.support.generators import (
    SIGNATURE,
    Dice,
    a_memory,
    add,
    axis,
    between,
    change_model,
    hits,
    memory_id,
    rows,
)
from tests.store.support.postgres_stores import open_at, outside, put, query
from vestige.core.models import ANYTHING, EVERYTHING, Filter
from vestige.store.contract.search import Probe
from vestige.store.postgres.processes.locks import Lock, signed
from vestige.store.postgres.search import vectors
from vestige.store.postgres.store import PostgresStore
from vestige.store.sql.database import Database
from vestige.store.sql.rows import store_facts

pytestmark = pytest.mark.slow


def near(
    store: PostgresStore, vector: NDArray[np.float32], where: Filter = ANYTHING, most: int = 10
) -> set[str]:
    """What the dense arm finds."""
    probe = Probe(vector=vector, signature=SIGNATURE, where=where, per_arm=most)
    return set(store.gather(probe, access=EVERYTHING).ids)


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "EXACT_ROWS", 50)
    monkeypatch.setattr(vectors, "LEAST_PIECES", 20)


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    yield from opened(postgres_url, "on")


@pytest.fixture
def indexing(postgres_url: str) -> Iterator[PostgresStore]:
    """A store whose server uses the index. In tables so small it would rather read all of them."""
    yield from opened(postgres_url, "off")


def opened(url: str, others: str, *, looked_at: int = 20_000) -> Iterator[PostgresStore]:
    """A store on whose server other plans than by the index are so, and whose index looks at so many."""
    plans = " ".join(f"-c enable_{one}={others}" for one in ("seqscan", "bitmapscan", "sort"))
    options = f"{plans} -c hnsw.max_scan_tuples={looked_at}"
    with closing(open_at(make_conninfo(url, options=options))) as store:
        yield store


def finds_by_index(store: PostgresStore, where: Filter = ANYTHING) -> bool:
    """Whether the server would find the nearest by the index, knowing what the tables hold."""
    query(store._connections.place.url, "ANALYZE")
    with store._looking((), where, EVERYTHING) as (db, _, seen):
        assert seen.space is not None
        part = vectors.arm(
            vectors.Query(space=seen.space, vector=axis(0)), seen.passing, 10, pieces=vectors.LEAST_PIECES
        )
        plan = db.execute(f"EXPLAIN {part.sql}", part.params).fetchall()
    return any("Index Scan using vectors_near_" in line for (line,) in plan)


# -- what is found ---------------------------------------------------------------------------------


def test_a_search_that_sees_many_vectors_has_an_index_built_and_finds_the_same_by_it(
    indexing: PostgresStore, statements: list[str]
) -> None:
    dice = Dice(41)
    put(indexing, np.array([dice.unit() for _ in range(300)]))
    assert indexing.index_status().indexed == 0
    near(indexing, axis(0))
    indexing._hnsw.join()
    status = indexing.index_status()
    assert (status.vectors, status.indexed, status.segments) == (300, 300, 1)
    assert status.size_bytes > 0
    assert finds_by_index(indexing)
    shares = []
    for _ in range(40):
        asked = dice.unit()
        exact = indexing.nearest(rows(asked), SIGNATURE, ANYTHING, access=EVERYTHING, limit=10)[0]
        statements.clear()
        shares.append(len(near(indexing, asked) & set(hits(exact))) / 10)
        assert len(statements) == 3
    assert np.mean(shares) >= 0.98


CLOSE = np.array([between(0, 1 + at % 7, 0.99 - at / 10_000) for at in range(300)])
FAR = np.array([between(0, 1 + at % 7, 0.5 - at / 1_000) for at in range(100)])


def test_the_index_goes_on_behind_a_filter_and_sees_what_comes_and_goes(
    indexing: PostgresStore, statements: list[str]
) -> None:
    put(indexing, CLOSE)
    wanted = put(indexing, FAR, scope="/project", first=300)
    assert indexing.rebuild_index().indexed == 400
    assert finds_by_index(indexing, Filter(scope="/project"))
    statements.clear()
    assert near(indexing, axis(0), Filter(scope="/project")) == set(wanted[:10])
    assert len(statements) == 3, "by the index alone"
    (newest,) = put(indexing, rows(axis(0)), first=400)
    assert newest in near(indexing, axis(0))


@pytest.mark.parametrize("others", ["on", "off"])
def test_what_passes_is_found_where_the_index_ends_before_it(
    postgres_url: str, statements: list[str], others: str
) -> None:
    for store in opened(postgres_url, others, looked_at=100):
        put(store, CLOSE)
        wanted = put(store, FAR, scope="/project", first=300)
        assert store.rebuild_index().indexed == 400
        project = Filter(scope="/project")
        assert finds_by_index(store, project) == (others == "off")
        statements.clear()
        assert near(store, axis(0), project) == set(wanted[:10])
        assert len(statements) == (4 if others == "off" else 3), "once more, and then exactly"


@pytest.mark.parametrize(("per_arm", "kept"), [(1, 400), (300, 600), (5_000, 1_000)])
def test_the_index_keeps_in_mind_as_many_as_it_is_asked_for(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, per_arm: int, kept: int
) -> None:
    monkeypatch.setattr(vectors, "LEAST_PIECES", 400)
    put(store, rows(axis(0)))
    with store._looking((), pieces=vectors.pieces_wanted(per_arm)) as (db, _, _):
        assert db.execute("SELECT current_setting('hnsw.ef_search')").fetchone() == (str(kept),)


# -- how it is looked after ------------------------------------------------------------------------


def test_an_index_that_was_not_finished_is_told_not_used_and_built_again(store: PostgresStore) -> None:
    dice = Dice(42)
    put(store, np.array([dice.unit() for _ in range(60)]))
    store.rebuild_index()
    with outside(store._connections.place.url) as db:
        db.execute("UPDATE pg_index SET indisvalid = FALSE WHERE indexrelid = 'vectors_near_1'::regclass")
    status = store.index_status()
    assert (status.indexed, list(status.problems)) == (0, ["vectors_near_1"])
    assert len(near(store, dice.unit())) == 10
    status = store.rebuild_index()
    assert (status.indexed, status.problems) == (60, {})


def test_the_index_of_a_model_goes_after_its_vectors(store: PostgresStore) -> None:
    dice = Dice(43)
    put(store, np.array([dice.unit() for _ in range(60)]))
    store.rebuild_index()
    coming = replace(SIGNATURE, name="another")
    change_model(store, coming, *(a_memory(memory_id(at)) for at in range(60)))
    assert store.rebuild_index().indexed == 60
    store.drop_vectors(SIGNATURE)
    with store._connections.reading() as db:
        left = db.execute("SELECT relname FROM pg_class WHERE left(relname, 13) = 'vectors_near_'").fetchall()
    assert left == [("vectors_near_2",)]


def test_an_index_is_built_by_one_at_a_time_and_by_nobody_after_closing(store: PostgresStore) -> None:
    put(store, np.array([axis(0)] * 60))
    lock = (Lock.TENDERS, signed(store._connections.schema_oid))
    with outside(store._connections.place.url) as other:
        other.execute("SELECT pg_advisory_lock(%s::int, %s::int)", lock)
        assert store.rebuild_index().indexed == 0
    store._hnsw.close()
    near(store, axis(0))
    assert store.rebuild_index().indexed == 0


KEEPS_IT_WAITING = "BEGIN; LOCK TABLE vectors IN SHARE ROW EXCLUSIVE MODE"
IS_BUILDING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'"
    " AND left(query, 12) = 'CREATE INDEX'"
)


def test_calls_do_not_wait_for_the_connection_by_which_an_index_is_built(postgres_url: str) -> None:
    with closing(open_at(postgres_url, max_connections=1, busy_seconds=1)) as store:
        put(store, np.array([axis(0)] * 60))
        with outside(postgres_url) as other:
            other.execute(KEEPS_IT_WAITING)
            near(store, axis(0))
            until(lambda: query(postgres_url, IS_BUILDING) == [(1,)])
            add(store, a_memory("another"))
            assert len(near(store, axis(0))) == 10


def test_a_store_is_closed_at_once_when_its_index_is_about_to_be_built(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    about_to, go_on = threading.Event(), threading.Event()
    profile = store_facts.profile

    def slowly(db: Database) -> store_facts.Profile | None:
        about_to.set()
        go_on.wait(PATIENCE_SECONDS)
        return profile(db)

    store = open_at(postgres_url)
    put(store, np.array([axis(0)] * 60))
    with outside(postgres_url) as other:
        other.execute(KEEPS_IT_WAITING)
        monkeypatch.setattr(store_facts, "profile", slowly)
        near(store, axis(0))
        assert about_to.wait(PATIENCE_SECONDS)
        closing_it = threading.Thread(target=store.close, daemon=True)
        closing_it.start()
        until(lambda: store._hnsw._closed)
        go_on.set()
        closing_it.join(PATIENCE_SECONDS / 4)
        assert not closing_it.is_alive()


def test_the_index_of_another_store_in_the_database_is_not_taken_for_ours(
    store: PostgresStore, postgres_url: str
) -> None:
    put(store, np.array([axis(0)] * 60))
    assert store.rebuild_index().indexed == 60
    try:
        with closing(open_at(postgres_url, schema="annex")) as annex:
            put(annex, np.array([axis(0)] * 60))
            near(annex, axis(0))
            annex._hnsw.join()
            assert annex.index_status().indexed == 60, "it was seen to be missing"
    finally:
        query(postgres_url, "DROP SCHEMA annex CASCADE")


def test_few_vectors_have_no_index(store: PostgresStore) -> None:
    put(store, np.array([axis(0)] * 50))
    assert store.rebuild_index().segments == 0
