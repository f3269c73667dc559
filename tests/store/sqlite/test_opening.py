import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from testbed.project import PROJECT
from tests.store.support.generators import DAY, SIGNATURE, T0, a_memory, add, add_with, axis, held, remark
from tests.store.support.sqlite_files import around, open_at, query
from vestige.core.errors import StoreCorrupt, StoreError, StoreReadOnly
from vestige.core.models import ANYTHING, EVERYTHING, Evidence
from vestige.store.migrations import Migration
from vestige.store.sql.filters import moment_text
from vestige.store.sqlite.file import identity
from vestige.store.sqlite.opening import open_file, schema

CHILD = """
import os, sys
from pathlib import Path
from tests.store.support.sqlite_files import open_at
from tests.store.support.generators import a_memory, add
from vestige.core.errors import VestigeError
from vestige.core.models import ANYTHING, EVERYTHING
for read_only in (False, True):  # all imports happen while the interpreter's files can be read
    warm = open_at(Path(sys.argv[2]), read_only=read_only)
    warm.lexical(["zinc"], ANYTHING, access=EVERYTHING, limit=5)
    warm.close()
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    store = open_at(Path(sys.argv[1]))
    found = store.lexical(["zinc"], ANYTHING, access=EVERYTHING, limit=5)
    print("read_only", store.read_only, "found", [one.memory_id for one in found])
    add(store, a_memory("new"))
except VestigeError as exc:
    print(exc.code, "|", exc.message, "|", exc.hint)
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def as_nobody(path: Path) -> str:
    """What a process without permissions says about a store."""
    here = PROJECT
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(path.parents[1] / "warm" / "vestige.db")],
        capture_output=True,
        text=True,
        check=True,
        cwd=here,
        env={"PYTHONPATH": f"{here / 'src'}:{here}", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    return done.stdout + done.stderr


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A directory that everybody can walk to, unlike pytest's own."""
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("needs root, to become somebody without permissions")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_new_store_is_for_its_owner_only_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = open_at(tmp_path / "data" / "vestige.db")
        add(store, a_memory("m1"))
    finally:
        os.umask(before)
    assert mode(tmp_path / "data") == 0o700
    made = list((tmp_path / "data").rglob("*"))
    assert {"vestige.db", "vestige.db-wal", "vestige.db-shm", "processes"} <= {one.name for one in made}
    assert {mode(one) for one in made if one.is_file()} == {0o600}
    assert {mode(one) for one in made if one.is_dir()} == {0o700}
    store.close()


def test_a_file_that_everybody_could_read_becomes_private(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    open_at(path).close()
    path.chmod(0o644)
    open_at(path).close()
    assert mode(path) == 0o600


def test_connections_use_the_pragmas_the_design_asks_for(tmp_path: Path) -> None:
    store = open_at(tmp_path / "vestige.db")
    for opened in (store._connections.reading, store._connections.writing):
        with opened() as db:
            values = {
                name: db.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("journal_mode", "synchronous", "foreign_keys", "secure_delete", "temp_store")
            }
            assert values == {
                "journal_mode": "wal",
                "synchronous": 1,
                "foreign_keys": 1,
                "secure_delete": 1,
                "temp_store": 2,
            }
    store.close()


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    store = open_at(tmp_path / "vestige.db")
    with pytest.raises(StoreReadOnly), store._connections.reading() as db:
        db.execute("DELETE FROM memories")
    store.close()


def test_readers_are_reused_and_closed_at_the_end(tmp_path: Path) -> None:
    store = open_at(tmp_path / "vestige.db")
    with store._connections.reading() as first, store._connections.reading() as second:
        assert first is not second
    with store._connections.reading() as again:
        assert again in (first, second)
    store.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        first.execute("SELECT 1")


def test_the_documented_queries_work_from_any_sqlite_client(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    store = open_at(path)
    memory = a_memory("m1", "I am a rubber duck")
    tagged = type(memory)(id="m2", content="Löwe", created_at=T0, updated_at=T0, tags=("identität",))
    add_with(store, memory, axis(0))
    add(store, tagged)
    remark(store, "m1", Evidence.DEMOTED, T0 + DAY)
    best = query(
        path, "SELECT content, retention_strength, tags FROM knowledge_nodes ORDER BY retention_strength DESC"
    )
    assert best == [
        ("Löwe", held(store, "m2").strength.retention, '["identität"]'),
        ("I am a rubber duck", held(store, "m1").strength.retention, "[]"),
    ]
    assert query(path, "SELECT content FROM knowledge_nodes WHERE tags LIKE '%identität%'") == [("Löwe",)]
    assert query(path, "SELECT COUNT(*) FROM knowledge_nodes WHERE retention_strength < 0.1") == [(0,)]
    assert query(path, "SELECT id, has_embedding FROM knowledge_nodes ORDER BY id") == [("m1", 1), ("m2", 0)]
    ((name, dimension, digest, created_at),) = query(
        path, "SELECT name, dimension, hash, created_at FROM embedding_model"
    )
    assert (name, dimension) == (SIGNATURE.name, SIGNATURE.dimension)
    assert f"{name}@{digest}" == SIGNATURE.profile
    assert moment_text(datetime.fromisoformat(str(created_at))) == created_at
    store.close()


def test_review_events_shows_rating_and_state_before_and_after(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    store = open_at(path)
    add(store, a_memory("m1"))
    before = held(store, "m1").strength
    remark(store, "m1", Evidence.GOOD, T0 + DAY)
    remark(store, "m1", Evidence.EXPOSED, T0 + 2 * DAY)
    (review, exposure) = query(
        path, "SELECT memory_id, timestamp, rating, prior_state, new_state FROM review_events ORDER BY id"
    )
    assert review[:3] == ("m1", "2025-03-02T12:00:00.000000+00:00", 3)
    assert json.loads(str(review[3]))["stability"] == before.stability
    assert json.loads(str(review[4]))["stability"] > before.stability
    assert exposure[2] is None
    store.close()


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59.999999+00:00"])
def test_the_ends_of_the_calendar_are_times_like_any_other(tmp_path: Path, moment: str) -> None:
    at = type(T0).fromisoformat(moment)
    store = open_at(tmp_path / "vestige.db")
    (first,) = add(store, a_memory("old", at=at))
    (second,) = add(store, a_memory("now"))
    assert held(store, "old").memory.created_at == at
    assert second.clock > first.clock
    store.close()


def test_a_copied_store_is_another_node_and_numbers_its_own_events(tmp_path: Path) -> None:
    original = tmp_path / "vestige.db"
    store = open_at(original, prefix="first")
    (event,) = add(store, a_memory("m1"))
    store.close()
    shutil.copy(original, tmp_path / "copy.db")
    copied = open_at(tmp_path / "copy.db", prefix="second")
    (later,) = add(copied, a_memory("m2"))
    assert (event.node, event.seq) == ("first-1", 1)
    assert (later.node, later.seq, later.position) == ("second-1", 1, 2)
    assert later.clock > event.clock
    copied.close()
    again = open_at(original, prefix="third")
    assert again.node == "first-1"
    again.close()


def test_the_process_that_settles_second_takes_the_node_of_the_first(tmp_path: Path) -> None:
    store = open_at(tmp_path / "vestige.db", prefix="first")
    fingerprint = identity.installed_at(tmp_path / "vestige.db", "here")
    with store._connections.writing() as db:
        assert identity.settle_node(db, fingerprint, lambda: "too late", T0) == "first-1"
    store.close()


def test_the_same_disk_in_another_machine_is_another_node(tmp_path: Path) -> None:
    open_at(tmp_path / "vestige.db", prefix="first", machine="here").close()
    store = open_at(tmp_path / "vestige.db", prefix="second", machine="there")
    assert store.node == "second-1"
    store.close()


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "vestige.db").touch()
    store = open_at(tmp_path / "vestige.db")
    add(store, a_memory("m1"))
    assert held(store, "m1").memory.content == "zinc and cobalt"
    store.close()


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    path.write_text("Dear diary, " * 1000, encoding="utf-8")
    with pytest.raises(StoreCorrupt) as caught:
        open_at(path)
    assert "backup" in (caught.value.hint or "")
    assert path.read_text(encoding="utf-8").startswith("Dear diary")


def test_a_truncated_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    store = open_at(path)
    add(store, *(a_memory(f"m{number}") for number in range(200)))
    store.close()
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    with pytest.raises(StoreCorrupt):
        open_at(path)


def test_a_damaged_page_is_reported_as_damage(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    store = open_at(path)
    add(store, *(a_memory(f"m{number}", "granite " * 300) for number in range(200)))
    store.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(os.urandom(size // 4))
    damaged = open_at(path)
    with pytest.raises(StoreCorrupt):
        for _ in damaged.stream(access=EVERYTHING):
            pass
    damaged.close()


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE knowledge_nodes (id TEXT)")
    with pytest.raises(StoreError, match="another program"):
        open_at(path)
    assert query(path, "SELECT name FROM sqlite_master") == [("knowledge_nodes",)]


def test_a_directory_in_place_of_the_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "vestige.db").mkdir()
    with pytest.raises(StoreError):
        open_at(tmp_path / "vestige.db")


def test_a_missing_file_cannot_be_opened_for_reading(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        open_at(tmp_path / "vestige.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_store_opened_for_reading_answers_but_refuses_to_write(tmp_path: Path) -> None:
    writer = open_at(tmp_path / "vestige.db")
    add_with(writer, a_memory("m1"), axis(0))
    reader = open_at(tmp_path / "vestige.db", read_only=True, machine="elsewhere")
    assert reader.read_only
    assert reader.node == writer.node
    assert [one.memory_id for one in reader.lexical(["zinc"], ANYTHING, access=EVERYTHING, limit=5)] == ["m1"]
    with pytest.raises(StoreReadOnly) as caught:
        add(reader, a_memory("m2"))
    assert caught.value.hint
    reader.close()
    writer.close()


def test_a_store_of_an_older_schema_cannot_be_upgraded_by_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    open_at(path).close()
    later = [*schema(), Migration(version=len(schema()) + 1, name="later", sql="CREATE TABLE later (x);")]
    with pytest.raises(StoreReadOnly, match="older schema"):
        open_file(path, around(), read_only=True, migrations=later)


@pytest.mark.slow
def test_a_store_in_a_read_only_directory_can_be_searched(reachable: Path) -> None:
    path = reachable / "data" / "vestige.db"
    store = open_at(path)
    add(store, a_memory("m1"))
    store.close()
    files = sorted(path.parent.rglob("*"))
    path.chmod(0o444)
    path.parent.chmod(0o555)
    said = as_nobody(path)
    assert "read_only True found ['m1']" in said
    assert "store_read_only |" in said
    assert sorted(path.parent.rglob("*")) == files, "nothing was made beside it"


@pytest.mark.slow
def test_an_unreadable_directory_is_a_clear_error(reachable: Path) -> None:
    path = reachable / "data" / "vestige.db"
    open_at(path).close()
    said = as_nobody(path)
    assert said.startswith("store")
    assert "permission denied" in said.lower()


@pytest.mark.slow
def test_a_directory_where_nothing_can_be_made_is_a_clear_error(reachable: Path) -> None:
    (reachable / "data").mkdir(mode=0o755)
    said = as_nobody(reachable / "data" / "vestige.db")
    assert said.startswith("store_read_only")
    assert "permission denied" in said.lower()


@pytest.mark.slow
def test_changes_that_read_only_media_hide_are_warned_about(reachable: Path) -> None:
    working = reachable / "working" / "vestige.db"
    store = open_at(working)
    add(store, a_memory("m1"))
    store.close()
    crashed = open_at(working)
    add(crashed, a_memory("m2"))
    folder = reachable / "data"
    folder.mkdir()
    for name in ("vestige.db", "vestige.db-wal"):
        shutil.copy(working.with_name(name), folder / name)
        (folder / name).chmod(0o444)
    crashed.close()
    folder.chmod(0o555)
    said = as_nobody(folder / "vestige.db")
    assert "read_only True found ['m1']" in said
    assert "the latest changes to the store are not seen" in said


def test_opening_a_store_again_does_not_give_up_the_locks_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    leave = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('PRAGMA journal_mode = DELETE')"
    with closing(open_at(path)) as first:
        add(first, a_memory("m1"))
        open_at(path).close()
        # SQLite leaves the write-ahead log only for the last connection to a file.
        tried = subprocess.run(
            [sys.executable, "-c", leave, str(path)], capture_output=True, encoding="utf-8", check=False
        )
    assert "locked" in tried.stderr, tried.stdout
