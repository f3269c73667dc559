"""`vestige restore`: a backup takes the place of the store, or nothing changes."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from testbed.patience import PATIENCE_SECONDS
from tests.transports.cli.harness import ENVIRONMENT, Outcome, invoke
from vestige.app.console import restore_main
from vestige.core.errors import StoreError
from vestige.store.contract.processes import Who
from vestige.store.sqlite.backup.restore import restore

WHO = Who(pid=1, command="a test", since=datetime(2026, 1, 2, tzinfo=UTC))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store with two memories, and a backup of when it had one."""
    folder = tmp_path / "data"
    said(folder, "ingest", "Ada prefers tea.")
    said(folder, "backup", str(tmp_path / "one.db"))
    said(folder, "ingest", "Ben runs on Fridays.")
    return folder


def said(home: Path, *words: str) -> dict[str, Any]:
    outcome = invoke([*words, "--data-dir", str(home)])
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    value: dict[str, Any] = json.loads(outcome.stdout)
    return value


def contents(home: Path) -> set[str]:
    return {one["content"] for one in said(home, "memory", "list")["results"]}


def attempt(home: Path, backup: Path) -> Outcome:
    return invoke(["restore", str(backup), "--yes", "--data-dir", str(home)])


def assert_unchanged(home: Path, outcome: Outcome, code: str) -> None:
    assert outcome.exit_code != 0
    assert json.loads(outcome.stderr)["error"]["code"] == code
    assert contents(home) == {"Ada prefers tea.", "Ben runs on Fridays."}
    assert_nothing_left(home)


OUR_FILES = {
    "vestige.db", "vestige.db-wal", "vestige.db-shm", "vestige.db.lock", "vestige.db.mark",
    "backups", "processes",
}  # fmt: skip


def assert_nothing_left(home: Path) -> None:
    assert {path.name for path in home.iterdir()} <= OUR_FILES
    assert not [*(home / "backups").glob("*")]


def test_a_backup_takes_the_place_of_the_store_under_a_new_node(home: Path, tmp_path: Path) -> None:
    before = said(home, "status")["node"]
    done = said(home, "restore", str(tmp_path / "one.db"), "--yes")
    assert done["memories"] == 1
    assert contents(home) == {"Ada prefers tea."}
    after = said(home, "status")
    assert after["node"] == done["node"] != before
    assert after["withEmbeddings"] == 1
    assert said(home, "search", "tea")["total"] == 1
    assert (home / "vestige.db").stat().st_mode & 0o777 == 0o600


def test_the_store_that_was_there_is_kept_and_can_be_restored_in_turn(home: Path, tmp_path: Path) -> None:
    kept = Path(said(home, "restore", str(tmp_path / "one.db"), "--yes")["kept"])
    assert kept.parent == home / "backups"
    again = said(home, "restore", str(kept), "--yes")
    assert contents(home) == {"Ada prefers tea.", "Ben runs on Fridays."}
    assert again["kept"] != str(kept)


def test_a_copied_database_in_wal_mode_is_a_backup_with_and_without_its_log(
    home: Path, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(home / "vestige.db")) as reader:
        reader.execute("SELECT count(*) FROM memories").fetchone()
        said(home, "ingest", "Cy lives in Turin.")
        copied = tmp_path / "copied"
        shutil.copytree(home, copied)
    assert (copied / "vestige.db-wal").stat().st_size > 0
    assert said(tmp_path / "new", "restore", str(copied / "vestige.db"), "--yes")["memories"] == 3
    assert contents(tmp_path / "new") >= {"Cy lives in Turin."}


def test_a_backup_can_be_restored_where_there_was_no_store(home: Path, tmp_path: Path) -> None:
    done = said(tmp_path / "elsewhere", "restore", str(tmp_path / "one.db"), "--yes")
    assert done["kept"] is None
    assert contents(tmp_path / "elsewhere") == {"Ada prefers tea."}


def test_a_damaged_store_can_be_replaced_and_is_kept_with_its_log(home: Path, tmp_path: Path) -> None:
    (home / "vestige.db").write_bytes(b"not a database at all" * 1000)
    (home / "vestige.db-wal").write_bytes(b"what was left of the log")
    kept = Path(said(home, "restore", str(tmp_path / "one.db"), "--yes")["kept"])
    assert contents(home) == {"Ada prefers tea."}
    assert kept.read_bytes().startswith(b"not a database")
    assert Path(f"{kept}-wal").read_bytes() == b"what was left of the log"


def test_a_backup_with_a_flipped_bit_in_a_text_is_refused_by_name(home: Path, tmp_path: Path) -> None:
    backup = tmp_path / "one.db"
    with closing(sqlite3.connect(backup)) as db:
        (memory_id,) = db.execute("SELECT id FROM memories").fetchone()
    whole = backup.read_bytes()
    assert whole.count(b"Ada prefers tea.") == 1
    backup.write_bytes(whole.replace(b"Ada prefers tea.", b"Ada prefers sea."))
    outcome = attempt(home, backup)
    assert_unchanged(home, outcome, "store_corrupt")
    assert memory_id in json.loads(outcome.stderr)["error"]["message"]


def test_a_backup_with_a_text_that_another_program_changed_is_restored(home: Path, tmp_path: Path) -> None:
    backup = tmp_path / "one.db"
    with closing(sqlite3.connect(backup)) as db, db:
        db.execute("UPDATE memories SET content = 'Ada prefers coffee.'")
    assert attempt(home, backup).exit_code == 0
    assert contents(home) == {"Ada prefers coffee."}


def test_a_damaged_backup_changes_nothing(home: Path, tmp_path: Path) -> None:
    backup = tmp_path / "one.db"
    data = bytearray(backup.read_bytes())
    for page in range(4096 * 4, len(data), 4096 * 3):
        data[page : page + 512] = b"\xa5" * 512
    backup.write_bytes(data)
    assert_unchanged(home, attempt(home, backup), "store_corrupt")


def test_a_cut_backup_changes_nothing(home: Path, tmp_path: Path) -> None:
    backup = tmp_path / "one.db"
    backup.write_bytes(backup.read_bytes()[: backup.stat().st_size // 2])
    assert_unchanged(home, attempt(home, backup), "store_corrupt")


def test_a_backup_of_a_newer_vestige_changes_nothing(home: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "one.db")) as db, db:
        db.execute(
            "INSERT INTO schema_migrations (version, name, applied_at, checksum, written_by)"
            " VALUES (999, 'future', '2030-01-01T00:00:00Z', 'x', '9.9')"
        )
    assert_unchanged(home, attempt(home, tmp_path / "one.db"), "store_too_new")


def test_a_file_that_is_no_backup_changes_nothing(home: Path, tmp_path: Path) -> None:
    text, foreign = tmp_path / "notes.txt", tmp_path / "foreign.db"
    text.write_text("Dear diary", encoding="utf-8")
    with closing(sqlite3.connect(foreign)) as db, db:
        db.execute("CREATE TABLE recipes (name TEXT)")
    for wrong in (text, foreign, tmp_path / "missing.db", tmp_path, home / "vestige.db"):
        assert_unchanged(home, attempt(home, wrong), "invalid_input")


def test_what_is_no_file_is_told_from_what_is_not_there_and_what_to_give_is_said(
    home: Path, tmp_path: Path
) -> None:
    for wrong, told in ((tmp_path, "is not a file."), (tmp_path / "missing.db", "There is no file")):
        error = json.loads(attempt(home, wrong).stderr)["error"]
        assert told in error["message"]
        assert "vestige backup" in error["hint"]


def test_the_program_of_its_own_calls_itself_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["vestige-restore", "-h"])
    with CliRunner().isolation() as (out, _, _), pytest.raises(SystemExit) as ended:
        restore_main()
    assert not ended.value.code
    assert out.getvalue().startswith(b"Usage: vestige-restore [OPTIONS]")


def test_a_restore_needs_a_file_and_a_yes_where_nobody_can_be_asked(home: Path, tmp_path: Path) -> None:
    assert_unchanged(home, invoke(["restore", "--data-dir", str(home)]), "invalid_input")
    asked = invoke(["restore", str(tmp_path / "one.db"), "--data-dir", str(home)])
    assert_unchanged(home, asked, "invalid_input")


def test_a_store_that_does_not_open_in_its_place_is_put_back(home: Path, tmp_path: Path) -> None:
    def refuse() -> None:
        (home / "vestige.db-wal").touch()
        raise StoreError("It does not open.")

    with pytest.raises(StoreError, match="does not open"):
        restore(tmp_path / "one.db", home / "vestige.db", who=WHO, prove=refuse)
    assert contents(home) == {"Ada prefers tea.", "Ben runs on Fridays."}
    assert_nothing_left(home)
    with pytest.raises(StoreError, match="does not open"):
        restore(tmp_path / "one.db", tmp_path / "new.db", who=WHO, prove=refuse)
    assert not (tmp_path / "new.db").exists()


def test_the_store_is_copied_aside_where_there_are_no_hard_links(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    done = restore(tmp_path / "one.db", home / "vestige.db", who=WHO, prove=lambda: None)
    assert done.kept is not None
    with closing(sqlite3.connect(done.kept)) as db:
        assert db.execute("SELECT count(*) FROM memories").fetchone() == (2,)
    assert contents(home) == {"Ada prefers tea."}


def test_what_a_killed_restore_left_behind_goes_with_the_next(home: Path, tmp_path: Path) -> None:
    left = home / ".restoring-killed"
    (left / "store").mkdir(parents=True)
    (left / "store" / "vestige.db").write_bytes(b"half a copy")
    said(home, "restore", str(tmp_path / "one.db"), "--yes")
    assert not left.exists()


def test_a_dry_run_says_what_is_in_a_backup_and_changes_nothing(home: Path, tmp_path: Path) -> None:
    told = said(home, "restore", str(tmp_path / "one.db"), "--dry-run")
    assert (told["kind"], told["memories"]) == ("database", 1)
    assert contents(home) == {"Ada prefers tea.", "Ben runs on Fridays."}
    assert_nothing_left(home)


def test_a_copy_whose_log_has_a_gap_is_refused(home: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "one.db")) as db, db:
        node, last = db.execute("SELECT node, max(seq) FROM events").fetchone()
        db.execute(
            "INSERT INTO events (position, node, seq, clock, at, kind, scope, payload)"
            " SELECT position + 2, node, seq + 2, clock + 2, at, kind, scope, payload FROM events"
            " WHERE node = ? AND seq = ?",
            (node, last),
        )
    refused = attempt(home, tmp_path / "one.db")
    assert "missing from the log" in str(json.loads(refused.stderr)["error"]["details"]["check"])
    assert_unchanged(home, refused, "store_corrupt")


# -- other processes, and other users ------------------------------------------------------------------

HOLDER = """
import sys
from vestige.app.app import open_app
from vestige.operations.registry.groups import registry
with open_app({"data_dir": sys.argv[1]}) as app:
    app.run(registry.operations["system_status"], {}, lambda *_: None)
    print("open", flush=True)
    sys.stdin.read()
"""

# Imports first: an unprivileged user may not even be able to read the interpreter's own files.
UNPRIVILEGED = """
import os, resource, sys
from pathlib import Path
from vestige.core.errors import VestigeError
from datetime import UTC, datetime
from vestige.store.contract.processes import Who
from vestige.store.sqlite.opening import schema
from vestige.store.sqlite.backup.restore import restore
schema()
who = Who(pid=os.getpid(), command="a test", since=datetime(2026, 1, 2, tzinfo=UTC))
backup, database, user, limit = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
if user and os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
try:
    restore(backup, database, who=who, prove=lambda: None)
except VestigeError as exc:
    print(exc.code)
"""


def run_child(script: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.slow
def test_a_store_that_another_process_uses_is_left_alone(home: Path, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **ENVIRONMENT},
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        refused = attempt(home, tmp_path / "one.db")
        assert_unchanged(home, refused, "store_busy")
        error = json.loads(refused.stderr)["error"]
        assert f"pid {holder.pid}" in error["message"]
        assert error["details"]["pids"] == [holder.pid]
        holder.stdin.close()
        assert holder.wait(PATIENCE_SECONDS) == 0
    assert attempt(home, tmp_path / "one.db").exit_code == 0


READER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN")
db.execute("SELECT count(*) FROM memories").fetchone()
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_another_program_that_reads_the_store_is_named_where_the_system_tells(
    home: Path, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(home / "vestige.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"open\n"
        error = json.loads(attempt(home, tmp_path / "one.db").stderr)["error"]
        reader.stdin.close()
    assert error["code"] == "store_busy"
    named = f"(pid {reader.pid})" if Path("/proc/locks").exists() else "another program"
    assert named in error["message"]


@pytest.mark.slow
def test_a_disk_that_takes_no_more_changes_nothing(home: Path, tmp_path: Path) -> None:
    limit = (tmp_path / "one.db").stat().st_size // 2
    code = run_child(UNPRIVILEGED, str(tmp_path / "one.db"), str(home / "vestige.db"), "0", str(limit))
    assert code in ("store", "store_full")
    assert contents(home) == {"Ada prefers tea.", "Ben runs on Fridays."}
    assert_nothing_left(home)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for path in folder.rglob("*"):
        path.chmod(0o700)
    shutil.rmtree(folder)


@pytest.mark.slow
def test_a_directory_that_cannot_be_written_is_left_alone(
    home: Path, tmp_path: Path, open_folder: Path
) -> None:
    shutil.copy(tmp_path / "one.db", open_folder / "one.db")
    (open_folder / "one.db").chmod(0o644)
    shutil.copytree(home, open_folder / "data")
    before = (open_folder / "data" / "vestige.db").read_bytes()
    (open_folder / "data" / "vestige.db").chmod(0o444)
    (open_folder / "data").chmod(0o555)
    nobody = 65534
    code = run_child(
        UNPRIVILEGED, str(open_folder / "one.db"), str(open_folder / "data" / "vestige.db"), str(nobody), "0"
    )
    assert code == "store_read_only"
    assert (open_folder / "data" / "vestige.db").read_bytes() == before
    assert_nothing_left(open_folder / "data")
