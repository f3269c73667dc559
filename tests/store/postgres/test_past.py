"""A database that is set back, restored or made anew under a process that uses it: what the process holds in
memory is of another past."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from testbed.postgres_server import Server
from tests.store.support.generators import SIGNATURE, a_memory, add, axis, embedded, some_tokens
from tests.store.support.postgres_stores import open_at, outside, query
from vestige.core.errors import StoreUnavailable
from vestige.core.models import EVERYTHING
from vestige.store.contract.changes import Add
from vestige.store.contract.search import Probe
from vestige.store.postgres.store import PostgresStore

pytestmark = pytest.mark.slow  # starts a server

SET_BACK = """
DELETE FROM postings WHERE key = 2; DELETE FROM places WHERE key = 2; DELETE FROM vectors WHERE key = 2;
DELETE FROM token_bits WHERE key = 2; DELETE FROM memories WHERE key = 2;
SELECT setval(pg_get_serial_sequence('places', 'seq'), 1)"""


@pytest.fixture
def empty(postgres_server: Server) -> Iterator[str]:
    """An empty database."""
    url = postgres_server.new_database()
    yield url
    postgres_server.drop(url)


def keep(store: PostgresStore, name: str, content: str, token: int) -> None:
    memory = a_memory(name, content)
    given = embedded(memory, axis(0), tokens=[some_tokens(token)])
    store.commit([Add(memory=memory, embedded=given)], access=EVERYTHING)


def found(store: PostgresStore, word: str) -> tuple[list[str], list[int]]:
    """The memories that a search for a word and a vector finds, and all their tokens."""
    probe = Probe(terms=(word,), vector=axis(0), signature=SIGNATURE, per_arm=9)
    pool = store.gather(probe, access=EVERYTHING)
    tokens = [] if pool.sketch is None else pool.sketch.bits[:, 0].tolist()
    return sorted(pool.ids), sorted(tokens)


def test_what_was_set_back_is_forgotten_by_who_had_seen_it(postgres_url: str) -> None:
    with closing(open_at(postgres_url)) as store:
        keep(store, "kept", "zinc", 1)
        keep(store, "lost", "zinc and cobalt and nickel", 2)
        assert found(store, "zinc") == (["kept", "lost"], [1, 2])
        query(postgres_url, SET_BACK)
        assert found(store, "zinc") == (["kept"], [1])
        keep(store, "other", "zinc and tin", 3)
        assert found(store, "zinc") == (["kept", "other"], [1, 3])


def test_searches_that_are_under_way_keep_what_they_began_with(postgres_url: str) -> None:
    with closing(open_at(postgres_url)) as store:
        keep(store, "kept", "zinc", 1)
        keep(store, "lost", "zinc", 2)
        with store._looking(()) as (_, earlier, _):
            query(postgres_url, SET_BACK)
            assert found(store, "zinc") == (["kept"], [1])
            assert earlier.directory.memories == 2
            assert earlier.names.of([2]) == {2: "lost"}


def test_vectors_that_died_less_often_than_was_known_are_read_again(postgres_url: str) -> None:
    with closing(open_at(postgres_url)) as store:
        keep(store, "kept", "zinc", 1)
        store.put_vectors({"kept": embedded(a_memory("kept", "zinc"), axis(0), tokens=[some_tokens(2)])})
        assert found(store, "zinc") == (["kept"], [2])
        query(postgres_url, "DELETE FROM dead_vectors")
        query(postgres_url, "UPDATE token_bits SET bits = '\\x01'")
        assert found(store, "zinc") == (["kept"], [1])


def test_a_restored_database_is_searched_as_it_is_though_its_numbers_are_the_same(
    postgres_server: Server, empty: str
) -> None:
    with closing(open_at(empty)) as store:
        keep(store, "kept", "zinc", 1)
    backup = postgres_server.new_database(template=empty)
    with closing(open_at(empty)) as store:
        keep(store, "lost", "zinc and cobalt", 2)
        assert found(store, "zinc") == (["kept", "lost"], [1, 2])
        _swap(postgres_server, empty, backup)
        with closing(open_at(empty)) as another:
            keep(another, "other", "zinc and nickel and tin", 3)
        assert found(store, "zinc") == (["kept", "other"], [1, 3])
    postgres_server.drop(backup)


def _swap(server: Server, first: str, second: str) -> None:
    """Give each of two databases the other's name; whoever is connected is thrown out."""
    names = [query(url, "SELECT current_database()")[0][0] for url in (first, second)]
    ended = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = ANY(%s)"
    with outside(server.url()) as db:
        db.execute(f"ALTER DATABASE {names[0]} ALLOW_CONNECTIONS false".encode())
        db.execute(ended, (names,))
        for name, another in ((names[0], "aside"), (names[1], names[0]), ("aside", names[1])):
            db.execute(f"ALTER DATABASE {name} RENAME TO {another}".encode())
        db.execute(f"ALTER DATABASE {names[1]} ALLOW_CONNECTIONS true".encode())


def test_a_schema_that_was_made_anew_is_searched_as_it_is_and_not_written_to(empty: str) -> None:
    with closing(open_at(empty, schema="house")) as store:
        keep(store, "lost", "zinc and cobalt", 1)
        keep(store, "lost too", "zinc", 2)
        assert found(store, "zinc") == (["lost", "lost too"], [1, 2])
        query(empty, "DROP SCHEMA house CASCADE")
        with closing(open_at(empty, schema="house")) as another:
            keep(another, "other", "zinc and nickel", 3)
            assert found(store, "zinc") == (["other"], [3])
            with pytest.raises(StoreUnavailable, match="not the one that was opened") as caught:
                add(store, a_memory("stray"))
            assert "restart" in (caught.value.hint or "").lower()
            add(another, a_memory("next"))


def test_a_schema_that_is_gone_is_not_written_to(empty: str) -> None:
    with closing(open_at(empty, schema="house")) as store:
        query(empty, "DROP SCHEMA house CASCADE")
        with pytest.raises(StoreUnavailable):
            add(store, a_memory("stray"))


def test_notices_that_begin_anew_are_heard_by_who_had_heard_more(postgres_url: str) -> None:
    told = '{"type": "Another"}'
    with closing(open_at(postgres_url)) as store:
        store.notify("a process", [told] * 3)
        last = store.notices(0)[-1].id
        assert store.notices(last) == []
        query(postgres_url, "DELETE FROM notices; ALTER TABLE notices ALTER id RESTART WITH 1")
        assert store.notices(last) == []
        store.notify("a process", [told])
        assert [notice.id for notice in store.notices(last)] == [1]
