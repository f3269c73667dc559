"""A server that was restored from its archive is another installation: both may have gone on."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from testbed.postgres_server import Server, own_server
from tests.store.support.generators import a_memory, add, held
from tests.store.support.postgres_stores import SCHEMA, open_at, query

pytestmark = pytest.mark.slow  # starts a server


@pytest.fixture
def own() -> Iterator[Server]:
    """A server with nothing in its archive."""
    with own_server({"fsync": "off", "restore_command": "false"}) as started:
        yield started


def test_a_server_that_was_restored_from_its_archive_is_another_installation(own: Server) -> None:
    url = own.new_database()
    with closing(open_at(url, node="first")) as store:
        add(store, a_memory("m1"))
        first = store.node
    _restore(own)
    with closing(open_at(url, node="second")) as store:
        assert store.node != first
        assert held(store, "m1").memory.id == "m1"
        second = store.node
    own.stop()
    own.start()
    with closing(open_at(url, node="third")) as store:
        assert store.node == second, "a restart changes nothing"


def test_a_copy_that_nobody_can_tell_is_another_installation_once_it_is_told_so(postgres_url: str) -> None:
    with closing(open_at(postgres_url, node="first")) as store:
        first = store.node
    query(postgres_url, f"DELETE FROM {SCHEMA}.installation")  # as docs/howto/postgres.md says
    with closing(open_at(postgres_url, node="second")) as store:
        assert store.node != first


def _restore(server: Server) -> None:
    """Start it as one whose archive is read to its end: it then leaves the timeline of the original."""
    assert server.cluster is not None
    server.stop()
    (server.cluster.home / "data" / "recovery.signal").touch()
    server.start()
    while query(server.url(), "SELECT pg_is_in_recovery()") == [(True,)]:
        pass  # it can be read a moment before it is through
