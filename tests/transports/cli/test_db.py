"""`vestige db`, and what the other commands say about the database the settings name."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from testbed.postgres_server import Server
from tests.transports.cli.harness import Outcome, invoke

SECRET = "hunter2-and-more"
NOWHERE = f"postgresql://ada:{SECRET}@127.0.0.1:1/memories"


def answer(outcome: Outcome) -> dict[str, Any]:
    assert outcome.stdout, outcome.stderr
    told: dict[str, Any] = json.loads(outcome.stdout)
    return told


def error(outcome: Outcome) -> dict[str, Any]:
    refused: dict[str, Any] = json.loads(outcome.stderr.splitlines()[-1])["error"]
    return refused


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def environ(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Names a database in which nothing is yet, of each kind in turn."""
    place = {"VESTIGE_DATA_DIR": str(tmp_path / "data")}
    if request.param == "sqlite":
        yield place
        return
    server: Server = request.getfixturevalue("postgres_server")
    url = server.new_database()
    yield {**place, "VESTIGE_DATABASE_URL": url}
    server.drop(url)


def test_status_of_a_database_without_a_store_says_so_and_makes_none(environ: dict[str, str]) -> None:
    for _ in range(2):
        seen = invoke(["db", "status"], environ=environ)
        assert (seen.exit_code, answer(seen)["state"], answer(seen)["tables"]) == (1, "absent", [])


def test_init_makes_a_store_once(environ: dict[str, str]) -> None:
    first = invoke(["db", "init"], environ=environ)
    again = invoke(["db", "init"], environ=environ)

    assert first.exit_code == again.exit_code == 0
    assert f"a store with schema {answer(first)['known']}" in answer(first)["made"]
    assert answer(again)["made"] == []
    assert answer(again)["node"] == answer(first)["node"]
    assert "nothing was changed" in invoke(["db", "init", "--table"], environ=environ).stdout


def test_status_tells_what_is_there_in_the_same_shape_on_every_store(environ: dict[str, str]) -> None:
    assert invoke(["ingest", "Ada drinks tea."], environ=environ).exit_code == 0

    told = answer(invoke(["db", "status"], environ=environ))

    assert set(told) == {
        "state", "place", "server", "extensions", "schema", "known", "steps", "readOnly", "sizeBytes",
        "tables", "connections", "writer", "node", "profiles", "index", "processes",
    }  # fmt: skip
    assert (told["state"], told["schema"], told["steps"], told["readOnly"]) == (
        "ready",
        told["known"],
        [],
        False,
    )
    rows = {one["name"]: one["rows"] for one in told["tables"]}
    assert (rows["memories"], rows["vectors"], rows["edges"]) == (1, 1, 0)
    (profile,) = told["profiles"]
    assert (profile["state"], profile["memories"], profile["pieces"]) == ("in use", 1, 1)
    assert told["index"]["vectors"] == 1
    assert [one["pid"] for one in told["processes"]] == [os.getpid()]
    shown = invoke(["db", "status", "--table"], environ=environ).stdout
    assert "ready" in shown
    assert told["server"] in shown


def test_migrate_says_that_there_is_nothing_to_do(environ: dict[str, str]) -> None:
    refused = invoke(["db", "migrate"], environ=environ)
    assert (refused.exit_code, error(refused)["hint"]) == (1, "Create one with `vestige db init`.")
    invoke(["db", "init"], environ=environ)

    done = answer(invoke(["db", "migrate"], environ=environ))
    planned = invoke(["db", "migrate", "--dry-run", "--table"], environ=environ)

    assert (done["dryRun"], done["steps"], done["schema"]) == (False, [], done["known"])
    assert "nothing to do" in planned.stdout


def test_status_tells_what_it_can_of_a_store_of_a_newer_version(environ: dict[str, str]) -> None:
    assert invoke(["ingest", "Ada drinks tea."], environ=environ).exit_code == 0
    _grow_old(environ)

    seen = invoke(["db", "status"], environ=environ)

    told = answer(seen)
    assert (seen.exit_code, told["state"], told["schema"]) == (1, "newer", 99)
    assert {one["name"]: one["rows"] for one in told["tables"]}["memories"] == 1
    shown = invoke(["db", "status", "--table"], environ=environ).stdout
    assert "9.9.9" in shown
    assert "upgrade Vestige" in shown


def test_what_is_newer_is_refused_with_advice_that_fits_the_store(environ: dict[str, str]) -> None:
    invoke(["db", "init"], environ=environ)
    _grow_old(environ)
    elsewhere = "storage.postgres.schema" if "VESTIGE_DATABASE_URL" in environ else "data directory"
    for words in (["db", "init"], ["db", "migrate"], ["search", "tea"]):
        refused = invoke(words, environ=environ)
        assert error(refused)["code"] == "store_too_new"
        assert f"another {elsewhere}." in error(refused)["hint"]


def _grow_old(environ: dict[str, str]) -> None:
    """Let a later Vestige have written this store."""
    step = "INSERT INTO schema_migrations VALUES (99, 'future', 'then', 'x', '9.9.9')"
    if url := environ.get("VESTIGE_DATABASE_URL"):
        with psycopg.connect(url, options="-c search_path=vestige") as server:
            server.execute(step)
        return
    with closing(sqlite3.connect(Path(environ["VESTIGE_DATA_DIR"]) / "vestige.db")) as db:
        db.execute(step)
        db.commit()


def test_a_memory_without_a_place_has_no_database(tmp_path: Path) -> None:
    refused = invoke(
        ["db", "status", "--data-dir", str(tmp_path)], environ={"VESTIGE_STORAGE_BACKEND": "memory"}
    )
    assert (refused.exit_code, error(refused)["code"]) == (2, "invalid_input")


# -- PostgreSQL ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_status_names_who_is_connected_and_who_writes(postgres_server: Server, tmp_path: Path) -> None:
    import psycopg

    from vestige.store.postgres.processes.locks import Lock

    url = postgres_server.new_database()
    environ = {"VESTIGE_DATA_DIR": str(tmp_path), "VESTIGE_DATABASE_URL": url}
    invoke(["db", "init"], environ=environ)
    with psycopg.connect(url, application_name="somebody") as db:
        db.execute(
            "SELECT pg_advisory_xact_lock(%s::int4, oid::int4) FROM pg_namespace WHERE nspname = 'vestige'",
            (Lock.WRITERS,),
        )
        told = answer(invoke(["db", "status"], environ=environ))
    assert [one["program"] for one in told["connections"] if one["program"] != "vestige"] == ["somebody"]
    assert told["writer"]["program"] == "somebody"
    postgres_server.drop(url)


@pytest.mark.slow
def test_a_backup_of_a_server_is_a_file_that_needs_none(postgres_server: Server, tmp_path: Path) -> None:
    url = postgres_server.new_database()
    there = {"VESTIGE_DATA_DIR": str(tmp_path / "there"), "VESTIGE_DATABASE_URL": url}
    here = {"VESTIGE_DATA_DIR": str(tmp_path / "here")}
    for text in (
        "Ada drinks tea.",
        "The harbour runs on PostgreSQL 14.",
        "The harbour runs on PostgreSQL 16 now.",
    ):
        invoke(["ingest", text], environ=there)

    made = [answer(invoke(["backup", "--rotate"], environ=there))["path"] for _ in range(2)]
    packed = answer(invoke(["backup", str(tmp_path / "all.tar.gz")], environ=there))["path"]

    assert {path.name for path in (tmp_path / "there" / "backups").iterdir()} == {
        Path(one).name for one in made
    }
    for number, backup in enumerate([made[-1], packed]):
        assert invoke(["restore", backup, "--yes"], environ=here).exit_code == 0
        assert exported(there, tmp_path / f"there-{number}") == exported(here, tmp_path / f"here-{number}")
        assert answer(invoke(["doctor"], environ=here))["status"] == "ok"
    postgres_server.drop(url)


def exported(environ: dict[str, str], path: Path) -> bytes:
    invoke(["export", str(path), "--format", "portable"], environ=environ)
    return path.read_bytes()


@pytest.mark.slow
def test_a_file_cannot_take_the_place_of_a_store_on_a_server(postgres_server: Server, tmp_path: Path) -> None:
    url = postgres_server.new_database()
    environ = {"VESTIGE_DATA_DIR": str(tmp_path / "data"), "VESTIGE_DATABASE_URL": url}
    own = {"VESTIGE_DATA_DIR": str(tmp_path / "own")}
    invoke(["ingest", "Ada drinks tea."], environ=own)
    made = answer(invoke(["backup"], environ=own))["path"]

    refused = invoke(["restore", made, "--yes"], environ=environ)

    assert (refused.exit_code, error(refused)["code"]) == (2, "invalid_input")
    assert "vestige migrate --from FILE --to postgres" in error(refused)["hint"]
    assert not (tmp_path / "data").exists()
    postgres_server.drop(url)


@pytest.mark.parametrize("words", [["status"], ["db", "status"], ["db", "init"], ["search", "tea"]])
@pytest.mark.parametrize("form", ["--json", "--table"])
def test_a_server_that_does_not_answer_is_an_error_without_the_password(
    words: list[str], form: str, tmp_path: Path
) -> None:
    environ = {
        "VESTIGE_DATA_DIR": str(tmp_path),
        "VESTIGE_DATABASE_URL": NOWHERE,
        "VESTIGE_STORAGE_BUSY_SECONDS": "0.1",
        "VESTIGE_LOG_LEVEL": "debug",
    }
    refused = invoke([*words, form], environ=environ)
    assert refused.exit_code == 3
    assert "127.0.0.1" in refused.stderr
    assert SECRET not in refused.stdout + refused.stderr


def test_doctor_says_why_the_store_cannot_be_opened(tmp_path: Path) -> None:
    environ = {
        "VESTIGE_DATA_DIR": str(tmp_path),
        "VESTIGE_DATABASE_URL": NOWHERE,
        "VESTIGE_STORAGE_BUSY_SECONDS": "0.1",
    }
    seen = invoke(["doctor"], environ=environ)
    assert seen.exit_code == 1
    (found,) = answer(seen)["findings"]
    assert found["check"] == "opening"
    assert SECRET not in seen.stdout + seen.stderr


def test_config_shows_the_address_without_its_password(tmp_path: Path) -> None:
    shown = answer(invoke(["config", "--data-dir", str(tmp_path)], environ={"VESTIGE_DATABASE_URL": NOWHERE}))
    values = {one["name"]: one["value"] for one in shown["settings"]}
    assert values["storage.backend"] == "postgres"
    assert values["storage.postgres.url"] == "postgresql://ada@127.0.0.1:1/memories"
    assert values["storage.postgres.schema"] == "vestige"


def test_a_backend_without_an_address_is_refused(tmp_path: Path) -> None:
    refused = invoke(["status", "--data-dir", str(tmp_path)], environ={"VESTIGE_STORAGE_BACKEND": "postgres"})
    assert (refused.exit_code, error(refused)["code"]) == (2, "config")
    assert "VESTIGE_DATABASE_URL" in error(refused)["hint"]


@pytest.mark.parametrize("words", [["status"], ["db", "status"]])
def test_without_the_driver_the_extra_is_named(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("vestige.store.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    refused = invoke([*words, "--data-dir", str(tmp_path)], environ={"VESTIGE_DATABASE_URL": NOWHERE})
    assert (refused.exit_code, error(refused)["code"]) == (1, "missing_extra")
    assert error(refused)["hint"].endswith("-m pip install 'psycopg[binary]>=3.2'")


def test_the_driver_is_not_imported_before_it_is_needed() -> None:
    code = (
        "import sys, vestige.app, vestige.transports.cli.main, vestige.transports.mcp.stdio;"
        "print([name for name in sys.modules if name.startswith(('psycopg', 'vestige.store.postgres'))])"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "[]"
