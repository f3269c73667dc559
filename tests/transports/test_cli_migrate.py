"""`vestige migrate`: says what an upgrade would do, does it, and changes the model."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.store.sqlite_files import query
from tests.store.test_sqlite_migrations import old_store
from tests.transports.cli_harness import Outcome, invoke
from vestige.store.sqlite.opening import schema


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A data directory with a store of schema 2."""
    folder = tmp_path / "data"
    folder.mkdir()
    old_store(folder, "schema2")
    return folder


def migrate(folder: Path, *words: str, **environ: str) -> Outcome:
    return invoke(["migrate", *words, "--data-dir", str(folder)], environ=environ)


def said(done: Outcome) -> dict[str, Any]:
    assert (done.exit_code, done.stderr) == (0, "")
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def refused(done: Outcome) -> dict[str, Any]:
    assert done.exit_code != 0
    error: dict[str, Any] = json.loads(done.stderr)["error"]
    return error


def test_a_dry_run_names_the_steps_and_the_backup_and_changes_nothing(old: Path) -> None:
    before = (old / "vestige.db").read_bytes()
    told = said(migrate(old, "--dry-run"))
    assert (told["dryRun"], told["schema"], told["known"]) == (True, 2, len(schema()))
    assert told["steps"][:2] == ["0003_documents", "0004_curve"]
    assert told["backups"] == str(old / "backups")
    assert (old / "vestige.db").read_bytes() == before
    assert not (old / "backups").exists()
    people = migrate(old, "--dry-run", "--table").stdout
    assert "A backup would be made in" in people
    assert "0003_documents would be applied" in people


def test_migrating_applies_the_steps_after_a_backup(old: Path) -> None:
    told = said(migrate(old))
    assert (told["dryRun"], told["schema"], len(told["steps"])) == (False, 2, len(schema()) - 2)
    assert query(old / "vestige.db", "SELECT max(version) FROM schema_migrations") == [(len(schema()),)]
    assert len(list((old / "backups").glob("*.db"))) == 1
    assert said(migrate(old))["steps"] == []
    assert "as it should be" in migrate(old, "--table").stdout
    assert "nothing to do" in migrate(old, "--dry-run", "--table").stdout


def test_a_dry_run_makes_no_store(tmp_path: Path) -> None:
    told = said(migrate(tmp_path / "none", "--dry-run"))
    assert (told["schema"], told["backups"]) == (0, None)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_a_newer_database_is_refused(old: Path, words: tuple[str, ...]) -> None:
    migrate(old)
    with closing(sqlite3.connect(old / "vestige.db")) as db:
        db.execute("INSERT INTO schema_migrations VALUES (99, 'future', 'then', 'x', '7.5.0')")
        db.commit()
    error = refused(migrate(old, *words))
    assert "7.5.0" in error["message"]
    assert "Upgrade" in error["hint"]


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "vestige.db")) as db:
        db.execute("CREATE TABLE theirs (x)")
    assert "another program" in refused(migrate(tmp_path, "--dry-run"))["message"]


def test_reembedding_changes_the_model_of_the_store(old: Path) -> None:
    told = said(migrate(old, "--reembed"))
    assert (told["embedded"], told["model"]) == (0, "hashing"), "its vectors are of that model already"
    with closing(sqlite3.connect(old / "vestige.db")) as db:
        db.execute(
            'UPDATE profiles SET signature = replace(signature, \'"revision":"1"\', \'"revision":"0"\')'
        )
        db.commit()
    told = said(migrate(old, "--reembed"))
    assert told["embedded"] == query(old / "vestige.db", "SELECT count(*) FROM memories")[0][0]
    assert query(old / "vestige.db", "SELECT count(DISTINCT profile) FROM vectors") == [(1,)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--to", "postgresql://localhost/x"), "SQLite only"),
        (("--from", "sqlite"), "SQLite only"),
        (("--model", "x"), "--reembed"),
        (("--reembed", "--model", "x"), "one model only"),
        (("--reembed", "--dry-run"), "schema only"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is(
    old: Path, words: tuple[str, ...], message: str
) -> None:
    before = (old / "vestige.db").read_bytes()
    assert message in refused(migrate(old, *words))["message"]
    assert (old / "vestige.db").read_bytes() == before
