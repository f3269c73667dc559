"""A store behind pgbouncer: session mode works; transaction mode is refused before anything is written."""

from contextlib import closing

import pytest

from testbed import pgbouncer
from testbed.patience import PATIENCE_SECONDS
from testbed.postgres_server import Server
from tests.store.support.generators import a_memory, add, held
from tests.store.support.meetings import words
from tests.store.support.postgres_stores import ME, open_at, query
from vestige.core.errors import StoreError, StoreUnavailable

pytestmark = pytest.mark.slow  # starts a server


@pytest.fixture
def installed() -> None:
    if pgbouncer.program() is None:
        pytest.skip(pgbouncer.NOT_TESTED)


@pytest.mark.usefixtures("installed")
def test_in_session_mode_everything_works(postgres_url: str) -> None:
    with pgbouncer.running(postgres_url, "session") as url, closing(open_at(url)) as store:
        for number in range(12):  # the driver prepares statements that come back
            add(store, a_memory(f"m{number}", f"zinc {number}"))
            assert held(store, f"m{number}").memory.content == f"zinc {number}"
        assert len(words(store, "zinc")) == 9
        assert store.processes() == [ME]
        with store.listening() as wait:
            wait(PATIENCE_SECONDS)
            store.notify("other", ["{}"])
            assert wait(PATIENCE_SECONDS)


@pytest.mark.usefixtures("installed")
def test_transaction_mode_is_refused_with_the_remedy_and_makes_nothing(postgres_server: Server) -> None:
    url = postgres_server.new_database()
    with pgbouncer.running(url, "transaction") as shared:
        with pytest.raises(StoreError, match="pooler") as caught:
            open_at(shared, schema="vestige")
        assert "pool_mode = session" in (caught.value.hint or "")
    assert query(url, "SELECT nspname FROM pg_namespace WHERE nspname = 'vestige'") == []
    postgres_server.drop(url)


def test_a_session_that_leads_to_another_schema_writes_nothing(postgres_server: Server) -> None:
    url = postgres_server.new_database()
    with closing(open_at(url, schema="one")) as one, closing(open_at(url, schema="two")):
        # As a pooler does it that hands the session of another client over.
        with one._connections.reading(snapshot=False) as db:
            db.command("SET search_path TO two, public")
        with pytest.raises(StoreUnavailable, match="not the one that was opened") as caught:
            add(one, a_memory("m1"))
        assert "session mode" in (caught.value.hint or "")
    assert query(url, "SELECT count(*) FROM two.memories") == [(0,)]
    postgres_server.drop(url)
