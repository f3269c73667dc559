"""What the server interrupts: by a session that ends, which is made good for by doing it again, and by its
time limit, which does not hold for what must be done as a whole."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from testbed.patience import PATIENCE_SECONDS, until
from tests.store.support.generators import (
    DAY,
    SIGNATURE,
    T0,
    a_memory,
    add,
    axis,
    change_model,
    embedded,
    held,
    rows,
)
from tests.store.support.postgres_stores import open_at, outside, query
from vestige.core.errors import StoreUnavailable
from vestige.core.models import ANYTHING, EVERYTHING, Filter
from vestige.store.contract.search import Probe
from vestige.store.postgres.connection import PostgresSession
from vestige.store.postgres.processes import peers
from vestige.store.postgres.store import PostgresStore
from vestige.store.sql.search import index_rows

pytestmark = pytest.mark.slow  # starts a server

COMING = replace(SIGNATURE, name="another")
FIRST, SECOND = a_memory("m1", "zinc"), a_memory("m2", "zinc and cobalt")
# A number that was taken stays taken, whatever becomes of the transaction.
ENDS_ONCE = """
CREATE SEQUENCE endings;
CREATE FUNCTION end_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF nextval('endings') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
    RETURN NULL; END $$;
CREATE TRIGGER ends AFTER {doing} FOR EACH STATEMENT EXECUTE FUNCTION end_once()"""
IS_SLOW = """
CREATE FUNCTION be_slow() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_sleep(0.6); RETURN NULL; END $$;
CREATE TRIGGER slow AFTER INSERT ON words FOR EACH STATEMENT EXECUTE FUNCTION be_slow()"""


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    with closing(open_at(postgres_url)) as opened:
        yield opened


def put_vectors(store: PostgresStore) -> None:
    assert store.put_vectors({"m1": embedded(FIRST, axis(1))}) == 1
    assert store.vectors(["m1"], SIGNATURE, access=EVERYTHING)["m1"].tolist() == [axis(1).tolist()]


def adopt(store: PostgresStore) -> None:
    store.put_vectors({"m1": embedded(FIRST, axis(1), signature=COMING)}, coming=COMING)
    assert store.adopt(COMING)
    assert store.signature() == COMING


def drop_vectors(store: PostgresStore) -> None:
    change_model(store, COMING, FIRST)
    store.drop_vectors(SIGNATURE)
    assert [one.signature for one in store.profiles()] == [COMING]


def put_strengths(store: PostgresStore) -> None:
    stronger = replace(held(store, "m1").strength, stability=42.0)
    after = store.log(access=EVERYTHING)[-1].position
    assert store.put_strengths({"m1": stronger}, after=after) == 1
    assert held(store, "m1").strength.stability == 42.0


def notify(store: PostgresStore) -> None:
    store.notify("a process", ['{"type": "Another"}'])
    assert len(store.notices(0)) == 1


def rebuild_words(store: PostgresStore) -> None:
    assert store.rebuild_words() == 1
    assert store.examine(T0.replace(year=2030)) == []


@pytest.mark.parametrize(
    ("doing", "work"),
    [
        ("INSERT ON vectors", put_vectors),
        ("UPDATE ON profiles", adopt),
        ("DELETE ON vectors", drop_vectors),
        ("UPDATE ON strengths", put_strengths),
        ("INSERT ON notices", notify),
        ("INSERT ON words", rebuild_words),
    ],
)
def test_what_is_safe_to_repeat_is_done_again_when_its_session_ends(
    store: PostgresStore,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
    doing: str,
    work: Callable[[PostgresStore], None],
) -> None:
    monkeypatch.setattr(peers, "PATIENCE_SECONDS", PATIENCE_SECONDS)
    add(store, FIRST)
    store.put_vectors({"m1": embedded(FIRST, axis(0))})
    query(postgres_url, ENDS_ONCE.format(doing=doing))
    work(store)
    assert query(postgres_url, "SELECT last_value > 1 FROM endings") == [(True,)]
    query(postgres_url, "DROP FUNCTION end_once CASCADE")


PROBE = Probe(terms=("zinc",), vector=axis(0), signature=SIGNATURE, per_arm=5)
READS: dict[str, Callable[[PostgresStore], object]] = {
    "gather": lambda store: store.gather(PROBE, access=EVERYTHING).ids,
    "lexical": lambda store: store.lexical(["zinc"], ANYTHING, access=EVERYTHING, limit=5),
    "nearest": lambda store: store.nearest(rows(axis(0)), SIGNATURE, ANYTHING, access=EVERYTHING, limit=5),
    "find": lambda store: store.find(Filter(known_at=T0 + DAY), access=EVERYTHING, limit=5),
    "stream": lambda store: list(store.stream(Filter(known_at=T0 + DAY), access=EVERYTHING)),
    "count": lambda store: store.count(Filter(known_at=T0 + DAY), access=EVERYTHING),
    "stats": lambda store: store.stats(access=EVERYTHING, now=T0),
    "vectors": lambda store: store.vectors(["m1"], SIGNATURE, access=EVERYTHING)["m1"].tolist(),
    "unembedded": lambda store: store.unembedded(SIGNATURE, limit=5),
    "get_many": lambda store: store.get_many(["m1"], access=EVERYTHING),
}


@pytest.mark.parametrize("name", READS)
def test_what_is_read_is_read_again_when_its_session_ends_before_the_last_statement(
    store: PostgresStore, postgres_url: str, statements: list[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    add(store, FIRST, SECOND)
    store.put_vectors({"m1": embedded(FIRST, axis(0))})
    expected = READS[name](store)
    statements.clear()
    assert READS[name](store) == expected
    left, execute = len(statements), PostgresSession.execute

    def ending(
        self: PostgresSession, sql: str, parameters: Sequence[Any] = ()
    ) -> Any:  # whatever the driver gives
        nonlocal left
        left -= 1
        if left == 0:
            query(postgres_url, "SELECT pg_terminate_backend(%s, 5000)", self.connection.info.backend_pid)
        return execute(self, sql, parameters)

    monkeypatch.setattr(PostgresSession, "execute", ending)
    assert READS[name](store) == expected
    assert left <= 0


def test_lives_are_taken_in_again_when_the_session_ends(store: PostgresStore, postgres_url: str) -> None:
    add(store, FIRST, SECOND)
    (told,) = store.histories(access=EVERYTHING)
    query(postgres_url, "DROP SCHEMA IF EXISTS annex CASCADE")
    try:
        with closing(open_at(postgres_url, schema="annex")) as annex:
            query(postgres_url, "SET search_path TO annex; " + ENDS_ONCE.format(doing="INSERT ON memories"))
            query(postgres_url, "ALTER FUNCTION annex.end_once SET search_path TO annex")
            annex.absorb(told, access=EVERYTHING)
            assert query(postgres_url, "SELECT last_value > 1 FROM annex.endings") == [(True,)]
            (here,) = annex.histories(access=EVERYTHING)
            assert here == told
    finally:
        query(postgres_url, "DROP SCHEMA annex CASCADE")


ENDS_OFTEN = ENDS_ONCE.replace("nextval('endings') = 1", "nextval('endings') < 200")


def test_what_the_server_interrupts_again_and_again_is_given_up(postgres_url: str) -> None:
    with closing(open_at(postgres_url, busy_seconds=0.3)) as store:
        query(postgres_url, ENDS_OFTEN.format(doing="INSERT ON memories"))
        try:
            with pytest.raises(StoreUnavailable):
                add(store, FIRST)
        finally:
            query(postgres_url, "DROP FUNCTION end_once CASCADE; DROP SEQUENCE endings")


WAITS_LONG = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    " AND clock_timestamp() - query_start > '1.0 s'"
)


@pytest.mark.parametrize(
    ("table", "work"),
    [
        ("tombstones", lambda store: store.examine(T0.replace(year=2030))),
        ("tombstones", lambda store: store.examine(T0.replace(year=2030), deep=True)),
        ("memory_tags", lambda store: store.repair("tags", T0)),
    ],
    ids=["examine", "examine deeply", "mend"],
)
def test_a_look_at_everything_and_a_repair_take_as_long_as_they_take(
    postgres_url: str, table: str, work: Callable[[PostgresStore], object]
) -> None:
    with (
        closing(open_at(postgres_url, statement_seconds=0.8)) as store,
        ThreadPoolExecutor(1) as threads,
        outside(postgres_url) as other,
    ):
        other.execute(f"BEGIN; LOCK TABLE {table}".encode())
        working = threads.submit(work, store)
        until(lambda: working.done() or query(postgres_url, WAITS_LONG) == [(1,)])
        other.execute("COMMIT")
        assert not working.result(), "neither trouble nor an answer"


def test_the_words_of_a_large_store_are_made_anew_however_long_it_takes(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_at(postgres_url)) as store:
        add(store, FIRST, SECOND, a_memory("m3", "zinc and nickel"))
    query(postgres_url, IS_SLOW)
    query(postgres_url, "DELETE FROM analysed")  # as if it was written by another version
    monkeypatch.setattr(index_rows, "WRITTEN_AT_ONCE", 2)
    with closing(open_at(postgres_url, statement_seconds=0.5)) as store:
        query(postgres_url, "DROP FUNCTION be_slow CASCADE")
        assert store.examine(T0.replace(year=2030)) == []
        query(postgres_url, "DELETE FROM words WHERE key = 2")
        store.repair("words", T0)
        assert store.examine(T0.replace(year=2030)) == []
