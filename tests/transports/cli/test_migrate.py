"""`vestige migrate`: says what an upgrade would do, does it, and changes the model."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import psycopg
import pytest

from testbed.postgres_server import Server
from tests.store.sqlite.test_migrations import old_store
from tests.store.support.sqlite_files import query
from tests.transports.cli.harness import Outcome, invoke
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
    assert "the current one" in migrate(old, "--table").stdout
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


@pytest.fixture
def outdated(old: Path) -> Path:
    """A data directory whose store has vectors of another revision of the model."""
    assert said(migrate(old))["steps"]
    call_revision(old, "1", "0")
    return old


def call_revision(folder: Path, before: str, after: str) -> None:
    """Say that vectors of a revision of the model are of another one."""
    with closing(sqlite3.connect(folder / "vestige.db")) as db:
        db.execute(
            "UPDATE profiles SET signature = replace(signature, ?, ?)",
            (f'"revision":"{before}"', f'"revision":"{after}"'),
        )
        db.commit()


def count_memories(folder: Path) -> int:
    return len(query(folder / "vestige.db", "SELECT id FROM memories"))


def states(told: dict[str, Any]) -> list[tuple[str, int]]:
    return [(one["state"], one["memories"]) for one in told["profiles"]]


def remember(folder: Path, content: str) -> None:
    assert invoke(["ingest", content, "--data-dir", str(folder)]).exit_code == 0


def test_reembedding_with_the_model_in_use_embeds_nothing(old: Path) -> None:
    told = said(migrate(old, "--reembed"))
    assert (told["embedded"], told["model"]) == (0, "hashing")
    assert states(told) == [("in use", count_memories(old))]


def test_reembedding_changes_the_model_of_the_store_and_keeps_the_vectors_there_were(outdated: Path) -> None:
    told = said(migrate(outdated, "--reembed"))
    memories = count_memories(outdated)
    assert told["embedded"] == memories
    assert states(told) == [("in use", memories), ("former", memories)]
    people = migrate(outdated, "--reembed", "--table").stdout
    assert "0 memories embedded; the store's model is hashing" in people
    assert "former: hashing@" in people


def test_a_dry_run_of_reembedding_tells_what_it_would_take_and_changes_nothing(outdated: Path) -> None:
    before = (outdated / "vestige.db").read_bytes()
    told = said(migrate(outdated, "--reembed", "--dry-run"))
    memories = count_memories(outdated)
    assert (told["dryRun"], told["memories"], told["done"]) == (True, memories, 0)
    assert told["pieces"] >= memories
    assert told["bytes"] > told["pieces"] * 4 * 64
    assert told["seconds"] >= 0
    people = migrate(outdated, "--reembed", "--dry-run", "--table").stdout
    assert f"0 of {memories} memories have vectors of hashing" in people
    assert "Nothing has been changed." in people
    assert (outdated / "vestige.db").read_bytes() == before
    assert states(told) == [("in use", memories)]


def test_a_dry_run_does_not_upgrade_the_store_to_see_what_reembedding_would_take(old: Path) -> None:
    before = (old / "vestige.db").read_bytes()
    assert "a dry run needs the current one" in refused(migrate(old, "--reembed", "--dry-run"))["message"]
    assert (old / "vestige.db").read_bytes() == before


def test_rolling_back_puts_the_model_before_in_use_again_and_needs_none_for_it(outdated: Path) -> None:
    said(migrate(outdated, "--reembed"))
    memories = count_memories(outdated)
    planned = said(migrate(outdated, "--rollback", "--dry-run", VESTIGE_EMBEDDINGS_PROVIDER="off"))
    assert (planned["pieces"], planned["seconds"]) == (0, None)
    told = said(migrate(outdated, "--rollback", VESTIGE_EMBEDDINGS_PROVIDER="off"))
    assert (told["embedded"], states(told)) == (0, [("in use", memories), ("former", memories)])
    assert told["profiles"][1]["profile"] == planned["profiles"][0]["profile"]
    assert "by words only" in told["note"]


def test_rolling_back_to_the_model_of_the_settings_asks_for_no_other_settings(outdated: Path) -> None:
    said(migrate(outdated, "--reembed"))
    assert "note" in said(migrate(outdated, "--rollback"))
    assert "note" not in said(migrate(outdated, "--rollback"))


def test_rolling_back_embeds_what_was_written_since_if_the_settings_name_that_model(outdated: Path) -> None:
    said(migrate(outdated, "--reembed"))
    remember(outdated, "The xylophone is in the attic.")
    error = refused(migrate(outdated, "--rollback"))
    assert error["code"] == "model_mismatch"
    assert "--provider" in error["hint"]
    call_revision(outdated, "1", "2")
    call_revision(outdated, "0", "1")
    assert said(migrate(outdated, "--rollback"))["embedded"] == 1


def test_dropping_the_old_vectors_leaves_no_way_back(outdated: Path) -> None:
    assert said(migrate(outdated, "--drop-old"))["former"] is None
    said(migrate(outdated, "--reembed"))
    memories = count_memories(outdated)
    assert said(migrate(outdated, "--drop-old", "--dry-run"))["former"]["memories"] == memories
    told = said(migrate(outdated, "--drop-old"))
    assert (told["former"]["memories"], states(told)) == (memories, [("in use", memories)])
    assert query(outdated / "vestige.db", "SELECT count(DISTINCT profile) FROM vectors") == [(1,)]
    assert query(outdated / "vestige.db", "SELECT count(DISTINCT profile) FROM token_bits") == [(1,)]
    assert "There is no previous model." in migrate(outdated, "--drop-old", "--table").stdout
    assert "no former model" in refused(migrate(outdated, "--rollback"))["message"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--to", "postgresql://localhost/x"), "--from and --to must be given together"),
        (("--from", "sqlite"), "--from and --to must be given together"),
        (("--model", "x"), "--reembed"),
        (("--drop-old", "--provider", "fastembed"), "--provider needs --reembed"),
        (("--reembed", "--model", "x"), "only one model"),
        (("--reembed", "--provider", "local", "--model", "x"), "local has only one model"),
        (("--reembed", "--rollback"), "cannot be combined"),
        (("--rollback", "--drop-old", "--dry-run"), "cannot be combined"),
        (("--reembed", "--provider", "nobody"), "provider"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is(
    old: Path, words: tuple[str, ...], message: str
) -> None:
    before = (old / "vestige.db").read_bytes()
    assert message in refused(migrate(old, *words))["message"]
    assert (old / "vestige.db").read_bytes() == before


@pytest.mark.slow
def test_the_model_of_a_store_on_a_server_is_changed_and_taken_back_the_same_way(
    postgres_server: Server, tmp_path: Path
) -> None:
    url = postgres_server.new_database()
    environ = {"VESTIGE_STORAGE_BACKEND": "postgres", "VESTIGE_DATABASE_URL": url}
    for content in ("The xylophone is in the attic.", "Cobalt is on the upper shelf."):
        assert invoke(["ingest", content, "--data-dir", str(tmp_path)], environ=environ).exit_code == 0
    with psycopg.connect(url) as db:
        renamed = ('"revision":"1"', '"revision":"0"')
        db.execute("UPDATE vestige.profiles SET signature = replace(signature, %s, %s)", renamed)

    assert said(migrate(tmp_path, "--reembed", "--dry-run", **environ))["pieces"] == 2
    told = said(migrate(tmp_path, "--reembed", **environ))
    assert (told["embedded"], states(told)) == (2, [("in use", 2), ("former", 2)])
    assert said(migrate(tmp_path, "--rollback", **environ))["embedded"] == 0
    assert states(said(migrate(tmp_path, "--drop-old", **environ))) == [("in use", 2)]
    assert not (tmp_path / "vestige.db").exists()
    postgres_server.drop(url)


def test_people_read_whether_the_old_vectors_were_removed_or_would_be(outdated: Path) -> None:
    said(migrate(outdated, "--reembed"))
    planned = migrate(outdated, "--drop-old", "--dry-run", "--table").stdout
    assert "would be removed" in planned
    assert "Removed" not in planned
    assert "Removed the vectors of hashing@" in migrate(outdated, "--drop-old", "--table").stdout


@pytest.mark.parametrize(("words", "goes_on"), [(("--reembed",), True), (("--drop-old",), False)])
def test_whoever_interrupts_is_told_whether_it_goes_on_where_it_was(
    outdated: Path, words: tuple[str, ...], goes_on: bool
) -> None:
    def interrupted(flags: Mapping[str, Any]) -> NoReturn:
        raise KeyboardInterrupt

    done = invoke(["migrate", *words, "--data-dir", str(outdated)], open_app=interrupted)
    assert done.exit_code == 130
    assert ("Interrupted. Run the same command again to continue." in done.stderr) == goes_on
