"""An upgrade beside other processes: those that are seen are waited for, and one of a version that cannot be
seen may go on writing."""

import json
import os
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from tests.store.sqlite.test_migrations import old_store
from tests.store.support import sqlite_files
from tests.store.support.generators import NewStore, a_memory, add
from tests.store.support.sqlite_files import NOW, FakeClock, around, open_at, query
from vestige.core.errors import StoreBusy
from vestige.core.models import EVERYTHING
from vestige.store.contract.processes import Who
from vestige.store.migrations import Migration
from vestige.store.sqlite.connection import WRITE_DEADLINE_SECONDS
from vestige.store.sqlite.opening import MIGRATION_WAITS, open_file, schema
from vestige.store.sqlite.processes import locks, presence
from vestige.store.sqlite.store import SqliteStore

path, store = sqlite_files.path, sqlite_files.store
NEXT = Migration(version=900, name="next", sql="CREATE TABLE next (one INTEGER);")


def test_a_migration_is_refused_with_their_names_while_others_have_the_old_schema_open(
    path: Path, store: SqliteStore
) -> None:
    add(store, a_memory("m1"))
    clock = FakeClock()
    server = presence.join(path, Who(pid=77, command="vestige-mcp", since=NOW, server=True), lambda: False)
    assert server
    with pytest.raises(
        StoreBusy, match=r"but other processes have it open: .*vestige-mcp \(pid 77"
    ) as caught:
        open_file(path, around(clock), migrations=[*schema(), NEXT])
    server.close()
    assert clock.seconds >= MIGRATION_WAITS * WRITE_DEADLINE_SECONDS
    assert caught.value.hint == "Stop these first, then try again. Nothing was changed."
    assert sorted(caught.value.details["pids"]) == sorted([77, os.getpid()])
    assert query(path, "SELECT count(*) FROM schema_migrations WHERE version = 900") == [(0,)]
    assert not (path.parent / "backups").exists()
    assert locks.holder(path) is None
    add(store, a_memory("m2"))


def test_a_migration_waits_until_the_others_have_gone(path: Path, store: SqliteStore) -> None:
    clock = FakeClock()
    nap = clock.sleep

    def end_of_the_other(seconds: float) -> None:
        nap(seconds)
        if len(clock.naps) == 3:
            store.close()

    clock.sleep = end_of_the_other  # type: ignore[method-assign]  # the other process ends while we nap
    connections, _ = open_file(path, around(clock), migrations=[*schema(), NEXT])
    connections.close()
    assert len(clock.naps) == 3
    assert query(path, "SELECT count(*) FROM schema_migrations WHERE version = 900") == [(1,)]


def test_what_a_process_of_the_older_version_still_writes_can_be_told_too(
    tmp_path: Path, new_oracle: NewStore
) -> None:
    path = old_store(tmp_path, "schema5")
    with closing(sqlite3.connect(path, isolation_level=None)) as running:
        running.execute("SELECT count(*) FROM events").fetchone()
        store = open_at(path)
        for number, said in enumerate(("new", "changed", "changed again")):
            put_as_before(running, "finding", "old-fact", said, logged=number != 1)
        (reading,) = running.execute("SELECT reading FROM clock").fetchone()
        assert running.execute("SELECT max(clock) FROM events").fetchone() <= (reading,)
        (stamped,) = running.execute("SELECT clock, node FROM documents WHERE id = 'old-fact'").fetchall()
        assert stamped[0] <= reading
        assert stamped[1] == store.node
    (event,) = add(store, a_memory("after", at=NOW))
    assert event.clock > reading
    told = [life for lives in store.histories(access=EVERYTHING) for life in lives]
    other = new_oracle()
    assert other.absorb(told, access=EVERYTHING).waiting == ()
    assert list(other.histories(access=EVERYTHING)) == list(store.histories(access=EVERYTHING))
    (document,) = other.documents("finding", access=EVERYTHING, ids=["old-fact"], limit=9)
    assert document.body == {"said": "changed again"}
    store.close()


def put_as_before(db: sqlite3.Connection, kind: str, name: str, said: str, *, logged: bool) -> None:
    """Put a document with the statements of schema 5, which knows no stamps."""
    at = "2027-05-01T12:00:00.123456+00:00"
    db.execute("BEGIN IMMEDIATE")
    db.execute(
        "INSERT INTO documents (kind, id, scope, version, created_at, updated_at, cites, body)"
        " VALUES (?, ?, '/', 1, ?, ?, '[]', ?) ON CONFLICT (kind, id) DO UPDATE SET scope = excluded.scope,"
        " version = excluded.version + 1, created_at = excluded.created_at, updated_at = excluded.updated_at,"
        " cites = excluded.cites, body = excluded.body RETURNING key",
        (kind, name, at, at, json.dumps({"said": said})),
    ).fetchall()
    if logged:
        clock = int(datetime.fromisoformat(at).timestamp() * 1000) << 16
        db.execute(
            "INSERT INTO events (position, node, seq, clock, at, kind, scope, payload)"
            " SELECT max(e.position) + 1, i.node,"
            " coalesce((SELECT max(seq) FROM events WHERE node = i.node), 0) + 1,"
            " max(max(e.clock) + 1, ?), ?, 'document.put', '/', ? FROM events e, installation i",
            (clock, at, json.dumps({"kind": kind, "id": name})),
        )
    db.execute("COMMIT")


def test_the_place_that_an_older_version_writes_says_when_its_memory_was_made(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    with closing(open_at(path)) as store:
        add(store, a_memory("m1"))
    before = query(path, "SELECT born FROM places")
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "INSERT OR REPLACE INTO places (key, thread, source, position, length, form, flags, speaker)"
            " SELECT key, thread, source, position, length, form, flags, speaker FROM places"
        )
        db.commit()
    assert query(path, "SELECT born FROM places") == before != [(0,)]
