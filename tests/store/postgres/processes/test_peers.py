"""Several processes on one store in PostgreSQL: here each store opened on a database stands for one."""

import json
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import timedelta

import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.project import PROJECT
from tests.store.support.generators import T0, a_memory, add, forget
from tests.store.support.postgres_stores import ME, open_at, outside, query
from vestige.core.errors import StoreBusy, StoreError, StoreReadOnly, StoreUnavailable
from vestige.core.models import EVERYTHING
from vestige.store.contract.processes import Who
from vestige.store.postgres.store import PostgresStore

pytestmark = pytest.mark.slow  # starts a server

SERVER = Who(pid=7, command="vestige serve", since=T0 + timedelta(hours=1), server=True, host="büro-2")
BACKUP = Who(pid=8, command="vestige backup", since=T0 + timedelta(hours=2))
EXCLUSIVE = replace(SERVER, pid=9, exclusive=True)
ANOTHER = '{"type": "Another"}'
MOMENT = 0.05

HOLDING = """
import sys
from tests.store.support.postgres_stores import open_at
store = open_at(sys.argv[1])
with store.alone("re-embed"):
    print("holds", flush=True)
    input()
"""


def test_all_who_have_the_store_open_are_seen_until_they_close_it(postgres_url: str) -> None:
    with closing(open_at(postgres_url, who=SERVER)) as one:
        with closing(open_at(postgres_url, who=ME)) as other:
            assert one.processes() == other.processes() == [ME, SERVER]
        assert one.processes() == [SERVER]
    assert query(postgres_url, "SELECT * FROM present") == []


def test_who_is_alone_is_named_to_other_processes_with_its_machine(postgres_url: str) -> None:
    with closing(open_at(postgres_url, who=SERVER)) as one, closing(open_at(postgres_url)) as other:
        with one.alone("re-embed"), pytest.raises(StoreBusy) as caught, other.alone("migrate"):
            pass
        assert caught.value.details["host"] == "büro-2"
        assert "vestige serve (pid 7 on büro-2" in caught.value.message
        assert one.processes() == [ME, SERVER]  # being alone is no further process
        with other.alone("migrate"):
            pass


def test_what_is_over_in_a_moment_waits_for_its_like(postgres_url: str) -> None:
    holds, done = threading.Event(), list[str]()
    with closing(open_at(postgres_url)) as one, closing(open_at(postgres_url)) as other:

        def purge() -> None:
            with other.alone("purge"):
                done.append("purged")

        thread = threading.Thread(target=purge)
        with one.alone("purge"):
            thread.start()
            holds.wait(0.1)
            assert done == []
        thread.join(PATIENCE_SECONDS)
        assert done == ["purged"]


def test_one_who_waits_in_vain_for_what_takes_a_moment_is_told_who_has_it(postgres_url: str) -> None:
    with closing(open_at(postgres_url)) as one, closing(open_at(postgres_url, busy_seconds=0.05)) as other:
        with one.alone("purge"), pytest.raises(StoreBusy) as caught, other.alone("purge"):
            pass
        assert caught.value.details["pid"] == ME.pid
        assert caught.value.details["purpose"] == "purge"
        with other.alone("purge"):
            pass


def test_who_waits_for_what_takes_a_moment_may_wait_longer_than_a_statement_may_take(
    postgres_url: str,
) -> None:
    with (
        closing(open_at(postgres_url)) as one,
        closing(open_at(postgres_url, statement_seconds=0.8, busy_seconds=2.0)) as other,
    ):
        with one.alone("purge"), pytest.raises(StoreBusy) as caught, other.alone("purge"):
            pass
        assert caught.value.details["purpose"] == "purge"


ENDS = """
CREATE FUNCTION end_it() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
CREATE TRIGGER ends AFTER INSERT ON present FOR EACH STATEMENT EXECUTE FUNCTION end_it()"""


def test_who_loses_its_session_while_it_takes_the_store_alone_is_told_that_the_server_is_away(
    postgres_url: str,
) -> None:
    with closing(open_at(postgres_url)) as store:
        query(postgres_url, ENDS)
        try:
            with pytest.raises(StoreUnavailable, match="administrator command"), store.alone("purge"):
                pass
        finally:
            query(postgres_url, "DROP FUNCTION end_it CASCADE")
        with store.alone("purge"):
            pass


def test_a_killed_process_is_alone_no_more(postgres_url: str) -> None:
    with (
        closing(open_at(postgres_url)) as store,
        subprocess.Popen(
            [sys.executable, "-c", HOLDING, postgres_url],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "holds\n"
        assert len(store.processes()) == 2
        with pytest.raises(StoreBusy, match=f"pid {process.pid}"), store.alone("migrate"):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_SECONDS)
        _until_only(store, ME)
        with store.alone("migrate"):
            pass
        with closing(open_at(postgres_url)):  # it clears away what the killed one left
            assert query(postgres_url, "SELECT count(*) FROM present") == [(2,)]


def _until_only(store: PostgresStore, who: Who) -> None:
    """The server sees a moment later that a client is gone."""
    while store.processes() != [who]:
        pass


def test_no_server_starts_beside_an_exclusive_one_and_no_exclusive_one_beside_another(
    postgres_url: str,
) -> None:
    with closing(open_at(postgres_url, who=SERVER)), pytest.raises(StoreBusy, match="vestige serve"):
        open_at(postgres_url, who=EXCLUSIVE)
    with closing(open_at(postgres_url, who=EXCLUSIVE)) as store:
        with pytest.raises(StoreBusy, match="vestige serve") as caught:
            open_at(postgres_url, who=SERVER)
        assert "storage.postgres.schema" in (caught.value.hint or "")
        with closing(open_at(postgres_url, who=BACKUP)):
            assert store.processes() == [EXCLUSIVE, BACKUP]
    with closing(open_at(postgres_url, who=SERVER)):
        pass


def test_of_exclusive_servers_that_start_at_once_one_starts(postgres_url: str) -> None:
    together, answers = threading.Barrier(3), list[str]()
    with ExitStack() as opened:

        def start() -> None:
            together.wait()
            try:
                opened.callback(open_at(postgres_url, who=EXCLUSIVE).close)
                answers.append("started")
            except StoreBusy:
                answers.append("refused")

        threads = [threading.Thread(target=start) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
        assert sorted(answers) == ["refused", "refused", "started"]


def test_a_process_whose_session_was_ended_is_seen_again(postgres_url: str) -> None:
    with closing(open_at(postgres_url, who=SERVER)) as store:
        _end_all_sessions(postgres_url)
        assert store.processes() == [SERVER]
        add(store, a_memory("m1"))


def _end_all_sessions(url: str) -> None:
    query(
        url,
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND application_name LIKE 'vestige%%'",
    )


# -- news ------------------------------------------------------------------------------------------


def test_a_notice_of_another_process_ends_waiting_at_once(postgres_url: str) -> None:
    one, other = open_at(postgres_url), open_at(postgres_url)
    with closing(one), closing(other), one.listening() as wait:
        assert wait(PATIENCE_SECONDS)
        assert not wait(MOMENT)
        other.notify("other", [ANOTHER])
        assert wait(PATIENCE_SECONDS)
        assert [notice.message for notice in one.notices(0)] == [ANOTHER]
        assert not wait(MOMENT)


def test_other_stores_in_the_database_wake_nobody(postgres_url: str) -> None:
    one, other = open_at(postgres_url), open_at(postgres_url, schema="elsewhere")
    with closing(one), closing(other), one.listening() as wait:
        wait(MOMENT)
        other.notify("other", [ANOTHER])
        assert not wait(MOMENT)
    query(postgres_url, "DROP SCHEMA elsewhere CASCADE")


def test_who_waits_for_news_hears_of_it_after_its_session_was_ended(postgres_url: str) -> None:
    one, other = open_at(postgres_url), open_at(postgres_url)
    with closing(one), closing(other), one.listening() as wait:
        wait(MOMENT)
        _end_all_sessions(postgres_url)
        other.notify("other", [ANOTHER])
        with pytest.raises(StoreUnavailable):
            wait(PATIENCE_SECONDS)
        assert wait(PATIENCE_SECONDS)
        assert [notice.message for notice in one.notices(0)] == [ANOTHER]


def test_what_is_told_does_not_travel_in_the_notification(postgres_url: str) -> None:
    with closing(open_at(postgres_url)) as store, outside(postgres_url) as listener:
        (oid,) = query(postgres_url, "SELECT 'public'::regnamespace::oid::bigint")[0]
        listener.execute(f"LISTEN vestige_{oid}".encode())
        store.notify("one", [json.dumps({"type": "MemoryCreated", "data": {"content_preview": "xylophone"}})])
        assert [told.payload for told in listener.notifies(timeout=PATIENCE_SECONDS, stop_after=1)] == [""]


def test_notices_do_not_wait_long_for_a_writer(postgres_url: str) -> None:
    with (
        closing(open_at(postgres_url)) as store,
        store._connections.writing(),
        pytest.raises(StoreBusy, match="vestige test"),
    ):
        store.notify("one", [ANOTHER])


def test_no_notice_quotes_what_is_deleted_at_the_same_time(postgres_url: str) -> None:
    quoting = json.dumps({"type": "Quote", "quotes": ["m1"]})
    with closing(open_at(postgres_url)) as one, closing(open_at(postgres_url)) as other:
        add(one, a_memory("m1"))
        one.notify("one", [quoting])
        forget(other, "m1")
        one.notify("one", [quoting])
        assert other.notices(0) == []
        assert other.get_many(["m1"], access=EVERYTHING) == []


def test_an_exclusive_server_does_not_start_where_it_can_only_read(postgres_url: str) -> None:
    reading = f"{postgres_url}&options=-c%20default_transaction_read_only%3Don"
    with pytest.raises(StoreError, match="exclusively"):
        open_at(reading, who=EXCLUSIVE)
    with closing(open_at(reading, who=SERVER)) as store, pytest.raises(StoreReadOnly):
        add(store, a_memory("m1"))
