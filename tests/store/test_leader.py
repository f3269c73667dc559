"""One leader among several processes on a store that lasts: here each opened store stands for a process."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from testbed.patience import until
from testbed.project import PROJECT
from tests.conftest import POSTGRES
from tests.store.support import postgres_stores, sqlite_files
from vestige.store.contract.store import MemoryStore

READ_ONLY = "&options=-c%20default_transaction_read_only%3Don"
LEADING = """
import sys
from pathlib import Path
from tests.store.support import postgres_stores, sqlite_files
kind, place = sys.argv[1:]
store = sqlite_files.open_at(Path(place)) if kind == "sqlite" else postgres_stores.open_at(place)
print(store.leading(), flush=True)
input()
"""


class Shared:
    """A store that any number may open."""

    def __init__(self, kind: str, place: str) -> None:
        self.kind, self.place = kind, place

    def open(self, *, read_only: bool = False) -> MemoryStore:
        if self.kind == "sqlite":
            return sqlite_files.open_at(Path(self.place), read_only=read_only)
        return postgres_stores.open_at(self.place + (READ_ONLY if read_only else ""))


@pytest.fixture(params=["sqlite", POSTGRES])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shared]:
    if request.param == "sqlite":
        yield Shared("sqlite", str(tmp_path / "vestige.db"))
    else:
        yield Shared("postgres", request.getfixturevalue("postgres_url"))


def test_one_leads_at_a_time_and_who_comes_next_leads_when_it_is_gone(shared: Shared) -> None:
    with ExitStack() as open_ones:
        stores = [open_ones.enter_context(closing(shared.open())) for _ in range(3)]
        assert [store.leading() for store in stores] == [True, False, False]
        assert [store.leading() for store in stores] == [True, False, False]
        stores[0].close()
        assert [store.leading() for store in reversed(stores[1:])] == [True, False]


def test_who_has_not_asked_does_not_lead(shared: Shared) -> None:
    with closing(shared.open()), closing(shared.open()) as other:
        assert other.leading()


def test_a_store_that_can_only_be_read_never_leads(shared: Shared) -> None:
    shared.open().close()
    with closing(shared.open(read_only=True)) as reader:
        assert reader.read_only
        assert not reader.leading()
        with closing(shared.open()) as writer:
            assert writer.leading()


@pytest.mark.slow  # starts a process
def test_a_leader_that_is_killed_is_followed_by_the_next_who_asks(shared: Shared) -> None:
    command = [sys.executable, "-c", LEADING, shared.kind, shared.place]
    with (
        closing(shared.open()) as here,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=PROJECT
        ) as process,
    ):
        assert process.stdout
        assert process.stdout.readline() == "True\n"
        assert not here.leading()
        process.kill()
        process.wait()
        until(here.leading)


@pytest.mark.parametrize("shared", [POSTGRES], indirect=True)
def test_a_leader_whose_session_ended_leads_again_only_if_nobody_else_does(shared: Shared) -> None:
    with closing(shared.open()) as one, closing(shared.open()) as other:
        assert one.leading()
        assert not other.leading()
        postgres_stores.query(
            shared.place,
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name LIKE 'vestige%%'",
        )
        until(other.leading)
        assert not one.leading()
        other.close()
        until(one.leading)
