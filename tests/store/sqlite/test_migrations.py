import gzip
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.project import PROJECT
from testbed.world import START, HandClock, open_world
from tests.store.support.canonical import assert_whole, canonical
from tests.store.support.generators import (
    DAY,
    SIGNATURE,
    NewStore,
    a_memory,
    add,
    add_with,
    axis,
    found,
    held,
    hits,
    memory_id,
    rows,
)
from tests.store.support.sqlite_files import around, open_at, query
from vestige import __version__
from vestige.cognition.text.analyser import ANALYSER_VERSION
from vestige.core.clock import HLC_COUNTER_BITS, LAST_MILLISECOND
from vestige.core.errors import StoreError, StoreTooNew
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.operations.registry.groups import registry
from vestige.store.contract.search import Probe
from vestige.store.migrations import AppliedMigration, Migration, load, pending
from vestige.store.sqlite.opening import open_file, schema

NEXT = len(schema()) + 1
NEWER = Migration(version=NEXT, name="newer", sql="CREATE TABLE newer (x);\nINSERT INTO newer VALUES (1);\n")
OLD = PROJECT / "tests" / "store" / "old"
RACER = """
import sys
from pathlib import Path
from tests.store.support.sqlite_files import open_at
from tests.store.support.generators import a_memory, add
import time, random, uuid
from datetime import datetime, UTC
from vestige.store.sqlite.store import SqliteStore
store = SqliteStore.open(
    Path(sys.argv[1]), rng=random.Random(), sleep=time.sleep, monotonic=time.monotonic,
    new_id=lambda: sys.argv[2], now=lambda: datetime(2026, 1, 1, tzinfo=UTC), machine="here",
)
add(store, a_memory(sys.argv[2]))
print(store.node)
store.close()
"""


def test_every_statement_of_a_migration_is_found_one_by_one() -> None:
    tricky = Migration(
        version=1,
        name="tricky",
        sql="-- a; comment\nCREATE TABLE a (x TEXT DEFAULT ';');\nCREATE TRIGGER t AFTER INSERT ON a BEGIN\n"
        "  DELETE FROM a;\n  SELECT 1;\nEND;\n-- the end\n",
    )
    first, second = tricky.statements()
    assert first.endswith("';');")
    assert second.startswith("CREATE TRIGGER")
    assert second.endswith("END;")


def test_a_migration_that_ends_inside_a_statement_is_refused() -> None:
    with pytest.raises(StoreError, match="inside a statement"):
        list(Migration(version=1, name="cut", sql="CREATE TABLE a (x").statements())


def test_line_ends_do_not_change_a_checksum() -> None:
    unix = Migration(version=1, name="a", sql="CREATE TABLE a (x);\nCREATE TABLE b (x);\n")
    windows = Migration(version=1, name="a", sql=unix.sql.replace("\n", "\r\n"))
    assert windows.checksum == unix.checksum


def test_migrations_are_numbered_without_gaps_or_repeats(tmp_path: Path) -> None:
    (tmp_path / "0001_one.sql").write_text("SELECT 1;", encoding="utf-8")
    (tmp_path / "README.md").write_text("not a migration", encoding="utf-8")
    assert [one.name for one in load(tmp_path)] == ["one"]
    (tmp_path / "0003_three.sql").write_text("SELECT 3;", encoding="utf-8")
    with pytest.raises(StoreError, match="gaps"):
        load(tmp_path)
    (tmp_path / "0002_two.sql").write_text("SELECT 2;", encoding="utf-8")
    assert [one.version for one in load(tmp_path)] == [1, 2, 3]
    (tmp_path / "0002_twin.sql").write_text("SELECT 2;", encoding="utf-8")
    with pytest.raises(StoreError, match="repeats"):
        load(tmp_path)


def test_what_was_applied_is_recorded_with_its_checksum_and_author(tmp_path: Path) -> None:
    open_at(tmp_path / "vestige.db").close()
    rows = query(tmp_path / "vestige.db", "SELECT version, name, checksum, written_by FROM schema_migrations")
    assert rows == [(one.version, one.name, one.checksum, __version__) for one in schema()]


def test_a_newer_database_is_refused_by_version_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    open_at(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO schema_migrations VALUES (99, 'future', 'then', 'x', '7.5.0')")
        db.commit()
    before = path.read_bytes()
    with pytest.raises(StoreTooNew) as caught:
        open_at(path)
    assert "7.5.0" in caught.value.message
    assert "Upgrade" in (caught.value.hint or "")
    assert path.read_bytes() == before


def test_a_schema_step_of_another_text_is_refused() -> None:
    (first, *_) = schema()
    done = [AppliedMigration(version=1, name=first.name, checksum="other", written_by="0.0.1")]
    with pytest.raises(StoreError, match="not the one this Vestige has"):
        pending(schema(), done)


def test_upgrading_keeps_the_memories_and_a_backup_of_what_was(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    store = open_at(path)
    add(store, a_memory("m1"))
    store.close()
    connections, node = open_file(path, around(), migrations=[*schema(), NEWER])
    connections.close()
    assert node == "node-1"
    assert query(path, "SELECT x FROM newer") == [(1,)]
    assert query(path, "SELECT id FROM memories") == [("m1",)]
    (kept,) = (tmp_path / "backups").iterdir()
    assert query(kept, "SELECT id FROM memories") == [("m1",)]
    assert query(kept, "SELECT max(version) FROM schema_migrations") == [(len(schema()),)]
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_new_store_needs_no_backup(tmp_path: Path) -> None:
    open_at(tmp_path / "vestige.db").close()
    assert not (tmp_path / "backups").exists()


def test_a_failing_migration_leaves_nothing_behind_and_can_be_repeated(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    open_at(path).close()
    broken = Migration(
        version=NEXT, name="broken", sql="CREATE TABLE newer (x);\nINSERT INTO nowhere VALUES (1);\n"
    )
    with pytest.raises(StoreError, match="nowhere"):
        open_file(path, around(), migrations=[*schema(), broken])
    assert query(path, "SELECT name FROM sqlite_master WHERE name = 'newer'") == []
    connections, _ = open_file(path, around(prefix="later"), migrations=[*schema(), NEWER])
    connections.close()
    assert query(path, "SELECT max(version) FROM schema_migrations") == [(NEXT,)]


def old_store(folder: Path, name: str) -> Path:
    """A database as an earlier version left it."""
    path = folder / "vestige.db"
    path.write_bytes(gzip.decompress((OLD / f"{name}.db.gz").read_bytes()))
    return path


def test_a_store_of_schema_1_is_searched_like_one_made_today(tmp_path: Path) -> None:
    path = old_store(tmp_path, "schema1")
    store = open_at(path)
    asked, told, thanked, cobalt = (memory_id(number) for number in (1, 2, 3, 4))
    assert found(store, ANYTHING) == [asked, told, thanked, cobalt]
    assert held(store, cobalt).memory.revision == 2
    words = {one.memory_id: one for one in store.lexical(["granit"], ANYTHING, access=EVERYTHING, limit=9)}
    assert set(words) == {asked, told}, "a turn is found by the words of the one before it"
    assert words[told].own == 0.0 < words[told].window
    assert hits(store.lexical(["colour"], ANYTHING, access=EVERYTHING, limit=9)) == [cobalt]
    # vectors are made again, now with token bits
    assert len(store.unembedded(SIGNATURE, limit=9)) == 4
    assert store.nearest(rows(axis(0)), SIGNATURE, ANYTHING, access=EVERYTHING, limit=9) == [[]]
    assert store.rebuild_words() == 4
    assert {
        one.memory_id: one for one in store.lexical(["granit"], ANYTHING, access=EVERYTHING, limit=9)
    } == words
    store.close()
    assert query(path, "SELECT version FROM analysed") == [(ANALYSER_VERSION,)]
    assert len(list((tmp_path / "backups").iterdir())) == 1


@pytest.mark.parametrize("name", ["schema1", "schema2", "schema5"])
def test_everything_in_an_old_store_is_there_after_the_upgrade(tmp_path: Path, name: str) -> None:
    path = old_store(tmp_path, name)
    before = canonical(path)
    store = open_at(path)
    store.close()
    assert canonical(path, like=before) == before
    assert_whole(path)


@pytest.mark.parametrize(("name", "stop"), [("schema1", 2), *(("schema2", stop) for stop in (3, 4, 5))])
def test_an_upgrade_that_was_stopped_between_two_steps_goes_on(tmp_path: Path, name: str, stop: int) -> None:
    path = old_store(tmp_path, name)
    before = canonical(path)
    connections, _ = open_file(path, around(), migrations=schema()[:stop])
    connections.close()
    assert query(path, "SELECT max(version) FROM schema_migrations") == [(stop,)]
    open_at(path, prefix="later").close()
    assert canonical(path, like=before) == before
    assert_whole(path)


@pytest.mark.parametrize("name", ["schema1", "schema2", "schema5"])
def test_an_old_store_works_like_one_made_today(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    path = old_store(folder, name)
    known = {str(row[0]): str(row[1]) for row in query(path, "SELECT id, content FROM memories")}
    clock = HandClock(START + 500 * DAY)
    for _ in range(99):  # the story of the old store was told by a clock like this
        clock.new_id()
    with open_world(folder, clock=clock) as world:
        assert world.app.embed_missing_when_ready().wait(PATIENCE_SECONDS)
        for memory_id, content in known.items():
            assert world.get(memory_id)["content"] == content
        if name != "schema1":
            assert world.find("which paint is on the lower shelf", limit=1) == [
                "The cobalt paint is on the lower shelf."
            ]
            assert world.find("PostgreSQL", as_of="2027-04-05T20:00:00Z", limit=1)[0].endswith(
                "PostgreSQL 16."
            )
        rebuilt = world.app.run(registry.operations["rebuild"], {}, lambda *_: None).wire()
        assert (rebuilt["strengths"], rebuilt["drifted"]) == (len(known), 0)
        world.remember("Written after the upgrade: the mortar is in the shed.")
        assert world.find("where is the mortar", limit=1)[0].startswith("Written after")
        world.call("memory", action="delete", id=next(iter(known)))


@pytest.mark.parametrize("name", ["schema1", "schema2", "schema5"])
def test_all_of_an_old_store_can_be_told(tmp_path: Path, name: str, new_oracle: NewStore) -> None:
    path = old_store(tmp_path, name)
    events = query(path, "SELECT count(*) FROM events")
    store = open_at(path)
    told = [life for lives in store.histories(access=EVERYTHING) for life in lives]
    assert [(sum(len(life.events) for life in told),)] == events
    other = new_oracle()
    assert other.absorb(told, access=EVERYTHING).waiting == ()
    assert list(other.histories(access=EVERYTHING)) == list(store.histories(access=EVERYTHING))
    store.close()


def test_a_document_of_the_end_of_the_calendar_gets_a_stamp_that_can_be_told(tmp_path: Path) -> None:
    path = old_store(tmp_path, "schema5")
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE documents SET updated_at = '9999-12-31T23:59:59.999999+00:00'")
        db.commit()
    open_at(path).close()
    rows = query(path, "SELECT max(clock) FROM documents")
    assert rows == [(LAST_MILLISECOND << HLC_COUNTER_BITS,)]


def test_lexical_rows_of_another_analyser_are_made_again_at_open(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    store = open_at(path)
    add(store, a_memory("m1", "zinc"))
    store.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE words SET terms = 'outdated'")
        db.commit()
    for version, terms in ((ANALYSER_VERSION, "outdated"), (ANALYSER_VERSION - 1, "zinc")):
        with closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE analysed SET version = ?", (version,))
            db.commit()
        store = open_at(path)
        assert hits(store.lexical([terms], ANYTHING, access=EVERYTHING, limit=9)) == ["m1"], version
        store.close()


def test_a_store_without_places_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    store = open_at(path)
    memory = a_memory("m1", "zinc")
    add_with(store, memory, axis(0))
    store.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM places")
        db.execute("DELETE FROM analysed")
        db.commit()
    reader = open_at(path, read_only=True)
    assert reader.lexical(["zinc"], ANYTHING, access=EVERYTHING, limit=9) == []
    probe = Probe(terms=("zinc",), literals=("zinc",), vector=axis(0), signature=SIGNATURE, per_arm=9)
    pool = reader.gather(probe, access=EVERYTHING)
    assert pool.ids == ("m1",)
    assert (pool.own.tolist(), pool.cosine.tolist(), pool.literals.tolist()) == ([0.0], [1.0], [1])
    reader.close()
    writer = open_at(path)
    assert hits(writer.lexical(["zinc"], ANYTHING, access=EVERYTHING, limit=9)) == ["m1"]
    writer.close()


@pytest.mark.slow
def test_processes_that_open_a_new_store_at_once_all_succeed(tmp_path: Path) -> None:
    here = PROJECT
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path / "data" / "vestige.db"), f"racer-{number}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=here,
            env={"PYTHONPATH": f"{here / 'src'}:{here}"},
        )
        for number in range(3)
    ]
    said = [racer.communicate(timeout=PATIENCE_SECONDS) for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0, 0], said
    assert len({out for out, _ in said}) == 1, "one installation is one node"
    rows = query(tmp_path / "data" / "vestige.db", "SELECT id FROM memories ORDER BY id")
    assert rows == [("racer-0",), ("racer-1",), ("racer-2",)]
