"""That deleted text leaves the journal too, even where a reader was in the way at first."""

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from testbed.project import PROJECT
from tests.store.support import sqlite_files
from tests.store.support.generators import T0, a_memory, add, forget, remark
from tests.store.support.sqlite_files import FakeClock, open_at
from vestige.core.documents import Document
from vestige.core.models import EVERYTHING, Evidence
from vestige.store.contract.changes import Drop, Put
from vestige.store.sqlite.file import wal
from vestige.store.sqlite.store import SqliteStore

path, store = sqlite_files.path, sqlite_files.store
PURGER = """
import os, sys
from pathlib import Path
from tests.store.support.generators import forget
from tests.store.support.sqlite_files import open_at
forget(open_at(Path(sys.argv[1])), "m1")
os._exit(0)
"""
LOOKER = """
import sys
from pathlib import Path
files = [file for file in Path(sys.argv[1]).rglob("*") if file.is_file()]
print(*sorted(file.name for file in files if sys.argv[2].encode() in file.read_bytes()))
"""


def holds(path: Path, word: str) -> list[str]:
    """The files with this word, told by another process: whoever closes a file that SQLite has open in the
    same process frees what it had locked there."""
    asked = [sys.executable, "-S", "-c", LOOKER, str(path.parent), word]
    return subprocess.run(asked, capture_output=True, check=True, text=True).stdout.split()


@contextmanager
def long_reader(path: Path) -> Iterator[sqlite3.Connection]:
    """Somebody who sees the store as it is now, for as long as it takes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memories").fetchone()
        yield reader


def leave_a_debt(path: Path) -> None:
    """Purge in a process that is gone when the reader that was in its way ends."""
    brief = open_at(path)
    add(brief, a_memory("m1", "the xylophone password"), a_memory("m2"))
    with long_reader(path):
        forget(brief, "m1")
        brief.close()
        assert holds(path, "xylophone"), "a reader still sees the moment before"


def test_what_a_reader_kept_in_the_journal_goes_with_the_next_commit(store: SqliteStore, path: Path) -> None:
    add(store, a_memory("m1", "the xylophone password"), a_memory("m2"))
    with long_reader(path):
        forget(store, "m1")
        assert holds(path, "xylophone"), "a reader still sees the moment before"
        assert store.lingers_in == "vestige.db-wal"

    remark(store, "m2", Evidence.GOOD, T0)

    assert holds(path, "xylophone") == []
    assert store.lingers_in is None


def test_what_another_store_purged_goes_with_any_commit_after_the_reader(
    store: SqliteStore, path: Path
) -> None:
    leave_a_debt(path)
    assert holds(path, "xylophone")
    assert store.lingers_in

    remark(store, "m2", Evidence.GOOD, T0)

    assert holds(path, "xylophone") == []
    assert store.lingers_in is None


def test_what_another_store_purged_goes_when_one_that_only_read_is_closed(
    store: SqliteStore, path: Path
) -> None:
    visitor = open_at(path)
    leave_a_debt(path)
    assert visitor.get_many(["m2"], access=EVERYTHING)
    visitor.close()
    assert holds(path, "xylophone") == []
    assert store.lingers_in is None


@pytest.mark.slow
def test_what_a_process_that_was_killed_had_purged_goes_with_the_next_commit_of_another(
    store: SqliteStore, path: Path
) -> None:
    add(store, a_memory("m1", "the xylophone password"), a_memory("m2"))
    telling = store.histories(access=EVERYTHING, batch=1)
    next(telling)
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT / 'src'}:{PROJECT}"}
    subprocess.run([sys.executable, "-c", PURGER, str(path)], cwd=PROJECT, env=environment, check=True)
    assert list(telling)
    assert holds(path, "xylophone")

    remark(store, "m2", Evidence.GOOD, T0)

    assert holds(path, "xylophone") == []


def test_a_debt_that_is_left_when_everybody_is_gone_is_paid_by_the_next_who_comes(path: Path) -> None:
    leave_a_debt(path)
    assert list(path.parent.glob("*.owed"))
    open_at(path).close()
    assert list(path.parent.glob("*.owed")) == []


def test_a_debt_made_by_another_in_the_moment_of_paying_stays(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, a_memory("m1", "the xylophone password"), a_memory("m2", "the marimba password"))
    empty = wal.emptied
    with ExitStack() as reading:

        def emptied(db: sqlite3.Connection, patience_seconds: float) -> bool:
            done = empty(db, patience_seconds)
            monkeypatch.undo()
            reading.enter_context(long_reader(path))
            with closing(open_at(path)) as other:
                forget(other, "m2")
            return done

        monkeypatch.setattr(wal, "emptied", emptied)
        forget(store, "m1")
        assert holds(path, "marimba")
        assert store.lingers_in
    add(store, a_memory("m3"))
    assert holds(path, "marimba") == []
    assert store.lingers_in is None


def test_while_a_reader_stays_writers_wait_for_it_only_now_and_then(path: Path) -> None:
    clock = FakeClock()
    with closing(open_at(path, clock=clock)) as store:
        add(store, a_memory("m1"), a_memory("m2"))
        with long_reader(path):
            forget(store, "m1")
            said: list[str] = []
            assert store._connections._writer
            store._connections._writer.set_trace_callback(said.append)
            for number in range(5):
                add(store, a_memory(f"more-{number}"))
            assert sum("wal_checkpoint" in one for one in said) == 5
            waited = f"PRAGMA busy_timeout = {round(1000 * wal.PATIENCE_SECONDS[0])}"
            assert waited not in said
            clock.seconds += wal.INSIST_SECONDS
            add(store, a_memory("later"), a_memory("latest"))
            assert said.count(waited) == 1


def test_a_dropped_document_leaves_the_files_too(store: SqliteStore, path: Path) -> None:
    note = Document(kind="note", id="n1", created_at=T0, updated_at=T0, body={"text": "xylophone"})
    store.commit([Put(document=note)], access=EVERYTHING)
    store.commit([Drop(kind="note", id="n1", at=T0)], access=EVERYTHING)
    assert holds(path, "xylophone") == []


def test_the_note_of_a_debt_is_for_its_owner_and_names_nothing(store: SqliteStore, path: Path) -> None:
    leave_a_debt(path)
    (note,) = path.parent.glob("*.owed")
    assert note.read_bytes() == b""
    assert stat.S_IMODE(note.stat().st_mode) == 0o600 or sys.platform == "win32"


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_store_that_is_opened_by_a_link_owes_and_pays_beside_the_file_itself(
    store: SqliteStore, path: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    linked = tmp_path / "elsewhere" / "linked.db"
    linked.symlink_to(path)
    leave_a_debt(path)
    with closing(open_at(linked)) as other:
        assert other.lingers_in == "vestige.db-wal"
        add(other, a_memory("m3"))
        assert other.lingers_in is None
    assert holds(path, "xylophone") == []
