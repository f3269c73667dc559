"""Words that another version analysed are made anew by the first process that opens the store."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from tests.store.support.generators import T0, a_memory, add
from tests.store.support.postgres_stores import open_at, outside, query
from vestige.core.errors import StoreBusy
from vestige.store.postgres import opening
from vestige.store.postgres.processes.locks import Lock, signed

pytestmark = pytest.mark.slow  # starts a server

IS_SLOW = """
CREATE SEQUENCE makings;
CREATE FUNCTION be_slow() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM nextval('makings'), pg_sleep(1); RETURN NULL; END $$;
CREATE TRIGGER slow AFTER INSERT ON words FOR EACH STATEMENT EXECUTE FUNCTION be_slow()"""


@pytest.fixture
def outdated(postgres_url: str) -> str:
    """Where a store is as another version left it."""
    with closing(open_at(postgres_url)) as store:
        add(store, a_memory("m1", "zinc"))
    query(postgres_url, "DELETE FROM analysed")
    return postgres_url


def test_who_opens_it_meanwhile_waits_for_longer_than_for_a_write(
    outdated: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "MIGRATION_WAITS", 1_000)
    query(outdated, IS_SLOW)
    count = 3
    together = threading.Barrier(count)

    def begin(number: int) -> None:
        together.wait()
        with closing(open_at(outdated, busy_seconds=0.2, statement_seconds=0.5)) as store:
            assert store.examine(T0.replace(year=2030)) == [], number

    try:
        with ThreadPoolExecutor(count) as threads:
            list(threads.map(begin, range(count)))
        assert query(outdated, "SELECT last_value FROM makings") == [(1,)], "by one of them"
    finally:
        query(outdated, "DROP FUNCTION be_slow CASCADE; DROP SEQUENCE makings")


def test_who_waits_in_vain_is_told_so(outdated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "MIGRATION_WAITS", 1)
    with outside(outdated) as other:
        ((oid,),) = query(outdated, "SELECT 'public'::regnamespace::oid::bigint")
        other.execute("SELECT pg_advisory_lock(%s::int, %s::int)", (Lock.UPGRADES, signed(oid)))
        with pytest.raises(StoreBusy, match="did not finish in time"):
            open_at(outdated, busy_seconds=0.1)
    with closing(open_at(outdated)) as store:
        assert store.examine(T0.replace(year=2030)) == []
