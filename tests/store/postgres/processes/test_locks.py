"""The locks of a store in PostgreSQL: whoever holds one is in the way of nobody who asks for another."""

from contextlib import closing
from dataclasses import replace

import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.store.support.postgres_stores import ME, open_at, outside, query
from vestige.core.errors import StoreBusy
from vestige.store.postgres.processes.locks import Lock, signed

pytestmark = pytest.mark.slow  # starts a server

SERVER = replace(ME, server=True)
HOLD = "SELECT pg_advisory_lock(%s::int4, 'public'::regnamespace::oid::int4)"


def test_no_two_locks_have_the_same_number() -> None:
    assert len(Lock) == len(Lock.__members__) >= 6


@pytest.mark.parametrize("lock", [lock for lock in Lock if lock is not Lock.STARTS])
def test_a_server_starts_whatever_else_is_being_done(lock: Lock, postgres_url: str) -> None:
    open_at(postgres_url).close()
    with outside(postgres_url) as other:
        other.execute(HOLD, (lock,))
        with closing(open_at(postgres_url, who=SERVER, busy_seconds=0.1)) as store:
            assert store.processes() == [SERVER]


@pytest.mark.parametrize(
    ("busy_seconds", "statement_seconds"),
    [(0.1, PATIENCE_SECONDS), (2.0, 0.8)],
    ids=["", "a statement may take less"],
)
def test_a_server_does_not_start_while_another_is_starting(
    postgres_url: str, busy_seconds: float, statement_seconds: float
) -> None:
    with outside(postgres_url) as other:
        other.execute(HOLD, (Lock.STARTS,))
        with pytest.raises(StoreBusy, match="Another server is starting"):
            open_at(postgres_url, who=SERVER, busy_seconds=busy_seconds, statement_seconds=statement_seconds)


SLOW = """
CREATE FUNCTION take_long() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$;
CREATE TRIGGER slow AFTER INSERT ON present FOR EACH STATEMENT EXECUTE FUNCTION take_long()"""


def test_a_server_that_had_its_turn_to_start_waits_for_no_statement_longer_than_for_others(
    postgres_url: str,
) -> None:
    open_at(postgres_url).close()
    query(postgres_url, SLOW)
    try:
        with pytest.raises(StoreBusy, match="cancelled"):
            open_at(postgres_url, who=SERVER, statement_seconds=0.2)
    finally:
        query(postgres_url, "DROP FUNCTION take_long CASCADE")


def test_a_copied_database_is_not_opened_behind_a_writer_that_does_not_finish(postgres_url: str) -> None:
    query(postgres_url, "UPDATE installation SET fingerprint = 'elsewhere'")
    with outside(postgres_url) as other:
        other.execute(HOLD, (Lock.WRITERS,))
        with pytest.raises(StoreBusy):
            open_at(postgres_url, busy_seconds=0.1)
    open_at(postgres_url).close()


def test_a_lock_takes_any_number_of_a_schema() -> None:
    assert [signed(oid) for oid in (0, 2**31 - 1, 2**31, 2**32 - 1)] == [0, 2**31 - 1, -(2**31), -1]
