"""A standby that lags: it is read as it is, and after a fail-over to it no number is given out twice."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from testbed.patience import until
from testbed.postgres_server import Cluster, Server, own_server
from tests.store.support.generators import T0, a_memory, add, forget, held
from tests.store.support.postgres_stores import open_at, query
from vestige.core.errors import StoreReadOnly
from vestige.core.models import EVERYTHING
from vestige.store.postgres.connection import PostgresSession

pytestmark = pytest.mark.slow  # starts two servers

REPLAYED = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A primary server and its standby, with one database."""

    primary: Server
    standby: Server
    url: str

    @property
    def standby_url(self) -> str:
        return self.standby.url(self.url.partition("?")[0].rpartition("/")[2])

    @property
    def both(self) -> str:
        """The address by which clients find whichever of the two may be written to."""
        homes = [quote(str(one.cluster.home), safe="") for one in (self.primary, self.standby) if one.cluster]
        base = self.url.partition("?")[0]
        return f"{base}?host={','.join(homes)}&port=5432,5432&target_session_attrs=read-write"

    def catch_up(self) -> None:
        """Wait until the standby has replayed everything."""
        position = query(self.url, "SELECT pg_current_wal_lsn()")[0][0]
        anywhere = self.standby.url("postgres")  # our own database may not be there yet
        until(lambda: query(anywhere, REPLAYED, position) == [(True,)])


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    with own_server({"fsync": "off"}) as primary, _standby(primary) as standby:
        yield primary, standby


@pytest.fixture
def pair(servers: tuple[Server, Server]) -> Pair:
    primary, standby = servers
    url = primary.new_database()
    open_at(url).close()
    made = Pair(primary=primary, standby=standby, url=url)
    made.catch_up()
    return made


@contextmanager
def _standby(primary: Server) -> Iterator[Server]:
    ours = primary.cluster
    assert ours is not None
    home = Path(tempfile.mkdtemp(prefix="vestige-pg-", dir=ours.home.parent))
    if ours.account.user is not None and ours.account.group is not None:
        shutil.chown(home, ours.account.user, ours.account.group)
    cluster = Cluster(home=home, programs=ours.programs, account=ours.account)
    source = f"host={ours.home} port=5432 user=postgres"
    with cluster.guard():
        cluster._run("pg_basebackup", "-d", source, "-R", "-X", "stream", "-c", "fast")
        with (home / "data" / "postgresql.auto.conf").open("a", encoding="utf-8") as settings:
            settings.write(f"unix_socket_directories = '{home}'\nmax_standby_streaming_delay = 0\n")
        cluster.start()
        at = quote(str(home), safe="")
        yield Server(f"postgresql://postgres@/postgres?host={at}&port=5432", cluster)


def test_a_lagging_standby_is_read_as_it_is_and_refuses_writes(pair: Pair) -> None:
    with closing(open_at(pair.url)) as store:
        add(store, a_memory("m1", "zinc"))
        pair.catch_up()
        with closing(open_at(pair.standby_url)) as behind:
            query(pair.standby_url, "SELECT pg_wal_replay_pause()")
            add(store, a_memory("m2", "cobalt"))
            assert held(behind, "m1").memory.content == "zinc"
            assert behind.get_many(["m2"], access=EVERYTHING) == []
            assert behind.node == store.node
            with pytest.raises(StoreReadOnly) as caught:
                add(behind, a_memory("m3"))
            assert "primary" in (caught.value.hint or "")
            query(pair.standby_url, "SELECT pg_wal_replay_resume()")
            pair.catch_up()
            assert held(behind, "m2").memory.content == "cobalt"


def test_a_read_that_a_standby_cancels_is_repeated(pair: Pair) -> None:
    with closing(open_at(pair.url)) as store:
        add(store, *(a_memory(f"m{number}") for number in range(50)))
        pair.catch_up()
        with closing(open_at(pair.standby_url)) as behind:
            times = 0

            def read(db: PostgresSession) -> int:
                nonlocal times
                times += 1
                before = db.execute("SELECT count(*) FROM memories").fetchone()[0]
                if times == 1:  # rows that this snapshot sees are removed for good
                    for number in range(49):
                        forget(store, f"m{number}")
                    query(pair.url, "VACUUM (FREEZE) memories")
                    pair.catch_up()
                return int(db.execute("SELECT count(*) FROM memories").fetchone()[0]) or before

            assert behind._connections.read(read) == 1
            assert times == 2


# The last test here: afterwards there is no primary server any more.
def test_after_a_failover_to_a_standby_that_lagged_the_process_writes_on_under_another_node(
    pair: Pair,
) -> None:
    with closing(open_at(pair.both, node="later")) as store:
        old = store.node
        add(store, a_memory("m1"))
        pair.catch_up()
        pair.standby.stop()
        lost = add(store, a_memory("m2"))  # acknowledged, and not replicated: a peer may have it already
        pair.primary.stop("immediate")
        pair.standby.start()
        query(pair.standby_url, "SELECT pg_promote()")
        written = add(store, a_memory("m3"))
        assert store.get_many(["m2"], access=EVERYTHING) == []
        assert store.node != old
        assert {event.node for event in written} == {store.node}
        names = {(event.node, event.seq) for event in lost}
        assert names.isdisjoint((event.node, event.seq) for event in store.log(access=EVERYTHING))
        with closing(open_at(pair.both, node="another")) as again:
            assert again.node == store.node
            assert [one for one in again.examine(T0, deep=True) if one.severity == "broken"] == []
