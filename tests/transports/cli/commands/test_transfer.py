"""`vestige migrate --from STORE --to STORE`, as people and programs see it."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import pytest

from testbed.postgres_server import Server
from testbed.world import HandClock, open_world
from tests.store.old.make import Story, live
from tests.store.support.transfer_ends import in_file
from tests.transports.cli.harness import Outcome, invoke
from vestige.core.errors import StoreUnavailable
from vestige.store.sqlite.transfer import SqliteEnd

TABLES = {"memories", "events", "edges", "revisions", "vectors", "strengths"}


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a store with something in every table."""
    folder = tmp_path_factory.mktemp("lived")
    with open_world(folder, clock=HandClock()) as world:
        live(Story(world))
    return (folder / "vestige.db").read_bytes()


@pytest.fixture
def home(lived: bytes, tmp_path: Path) -> Path:
    """A data directory with that store."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "vestige.db").write_bytes(lived)
    return folder


@pytest.fixture
def url(postgres_server: Server) -> Iterator[str]:
    """An empty database."""
    made = postgres_server.new_database()
    yield made
    postgres_server.drop(made)


def migrate(home: Path, *words: str, environ: Mapping[str, str] | None = None) -> Outcome:
    return invoke(["migrate", *words, "--data-dir", str(home)], environ=environ)


def said(done: Outcome, code: int = 0) -> dict[str, Any]:
    assert (done.exit_code, done.stderr) == (code, "")
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def refused(done: Outcome) -> dict[str, Any]:
    assert done.exit_code not in (0, 1)
    error: dict[str, Any] = json.loads(done.stderr)["error"]
    return error


# -- what is refused before anything is opened ------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from", "sqlite"), "--from and --to must be given together"),
        (("--to", "postgres"), "--from and --to must be given together"),
        (("--from", "sqlite", "--to", "./other"), "both of these are sqlite"),
        (("--from", "postgres", "--to", "postgresql://h/d"), "both of these are postgres"),
        (("--from", "sqlite", "--to", "postgrse"), "'postgrse' is not a store"),
        (("--from", "sqlite", "--to", "mysql://u:s3cret@h/d"), "'mysql' is not a store"),
        (("--from", "memory", "--to", "postgres"), "'memory' is not a store"),
        (("--from", "sqlite", "--to", "postgres"), "`storage.postgres.url` is not set"),
        (("--from", "sqlite", "--to", "postgresql://h/d", "--reembed"), "--reembed"),
    ],
)
def test_words_that_name_no_transfer_are_refused(home: Path, words: tuple[str, ...], message: str) -> None:
    before = (home / "vestige.db").read_bytes()
    error = refused(migrate(home, *words))
    assert message in error["message"]
    assert error.get("hint")
    assert "s3cret" not in str(error)
    assert (home / "vestige.db").read_bytes() == before


def test_a_server_that_cannot_be_reached_is_told_without_its_password(home: Path) -> None:
    before = (home / "vestige.db").read_bytes()
    done = migrate(home, "--from", "sqlite", "--to", "postgresql://ada:s3cret@127.0.0.1:1/none", "--table")
    assert done.exit_code == 3
    assert "No connection to" in done.stderr
    assert "s3cret" not in done.stderr + done.stdout
    assert (home / "vestige.db").read_bytes() == before


@pytest.mark.parametrize("name", ["mem.jsonl", "vestige.db"])
def test_a_file_that_is_no_database_is_told_from_a_store(home: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text('{"content": "Ada drinks tea."}\n', encoding="utf-8")
    error = refused(migrate(home, "--from", str(file), "--to", "postgresql://127.0.0.1:1/none"))
    assert error["message"] == f"{file} is not a store of Vestige."
    assert "`vestige import`" in error["hint"]


def test_a_folder_that_is_there_is_a_path_without_a_slash(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "back").mkdir()
    monkeypatch.chdir(tmp_path)
    error = refused(migrate(home, "--from", "back", "--to", "postgresql://127.0.0.1:1/none"))
    assert str(tmp_path / "back" / "vestige.db") in error["message"]


# -- what is said when it is cut off ----------------------------------------------------------------------


class Broken:
    """An end of a transfer at which something happens as soon as it is reached for."""

    name = "there"
    settings = ()

    def __init__(self, what: BaseException) -> None:
        self.what = what

    def now(self) -> datetime:
        raise AssertionError("nothing is written")

    def seal(self) -> None:
        return None

    def look(self) -> NoReturn:
        raise self.what

    source = destination = look


def between(home: Path, origin: Any, goal: Any, *words: str) -> Outcome:
    argv = ["migrate", "--from", "sqlite", "--to", "postgres", *words, "--data-dir", str(home), "--table"]
    return invoke(argv, open_ends=lambda *_: (origin, goal))


def cut_off(home: Path, what: BaseException, *words: str) -> Outcome:
    return between(home, Broken(what), Broken(what), *words)


def test_a_server_that_stops_in_the_middle_is_told_with_how_it_goes_on(home: Path, tmp_path: Path) -> None:
    goal, asked = in_file(tmp_path / "goal.db"), count()

    class Stopped(SqliteEnd):
        """Gone when the last row has come: what begins a transfer asks for the time, and what ends it."""

        def now(self) -> datetime:
            if next(asked):
                raise StoreUnavailable(hint="Check that the server runs. Nothing was half-written.")
            return super().now()

    stopped = Stopped(path=goal.path, around=goal.around, prepare=goal.prepare)
    done = between(home, in_file(home / "vestige.db"), stopped)
    assert done.exit_code == 3
    assert "Run the same command again to continue." in done.stderr
    assert "half-written" not in done.stderr
    assert between(home, in_file(home / "vestige.db"), goal).exit_code == 0


def test_a_server_that_was_not_there_to_begin_with_keeps_its_own_hint(home: Path) -> None:
    done = cut_off(home, StoreUnavailable(hint="Check the address."))
    assert "Hint: Check the address.\n" in done.stderr
    assert "to continue" not in done.stderr


def test_an_interrupted_transfer_says_how_it_goes_on(home: Path) -> None:
    done = cut_off(home, KeyboardInterrupt())
    assert (done.exit_code, done.stdout) == (130, "")
    assert done.stderr == "Interrupted. Run the same command again to continue.\n"
    for words in ("--dry-run", "--verify-only"):
        assert "to continue" not in cut_off(home, KeyboardInterrupt(), words).stderr


# -- there and back ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_there_and_back_again(home: Path, url: str, tmp_path: Path) -> None:
    before = (home / "vestige.db").read_bytes()
    words = ("--from", "sqlite", "--to", "postgres")
    environ = {"VESTIGE_DATABASE_URL": url}
    planned = said(migrate(home, *words, "--dry-run", environ=environ))
    assert (planned["dryRun"], planned["done"], planned["notCarried"]) == (True, False, [])
    assert planned["destination"]["schema"] == "would be made"
    assert (
        "Nothing has been changed." in migrate(home, *words, "--dry-run", "--table", environ=environ).stdout
    )
    done = said(migrate(home, *words, environ=environ))
    assert (done["whole"], done["sourceUntouched"], done["differences"]) == (True, True, [])
    assert done["rows"].keys() >= TABLES
    assert done["questions"] > 5
    assert any('backend = "postgres"' in one for one in done["settings"])
    assert (home / "vestige.db").read_bytes() == before
    again = migrate(home, *words, "--table", environ=environ)
    assert again.exit_code == 0
    assert "nothing was added" in again.stdout
    assert "byte for byte" in again.stdout
    checked = said(migrate(home, *words, "--verify-only", environ=environ))
    assert (checked["added"], checked["whole"]) == (0, True)
    back = said(migrate(home, "--from", url, "--to", str(tmp_path / "back")))
    assert back["whole"]
    assert any(f'--data-dir "{tmp_path / "back"}"' in one for one in back["settings"])
    other = said(migrate(home, "--from", url, "--to", str(tmp_path / "other.db")))
    assert any(f'`vestige restore "{tmp_path / "other.db"}"' in one for one in other["settings"])
    assert not any("--data-dir" in one for one in other["settings"])
    assert back["sourceHash"] is None
    assert _exported(tmp_path / "back") == _exported(home)


def _exported(folder: Path) -> bytes:
    with open_world(folder, clock=HandClock()) as world:
        world.call("export", format="portable", path="all.jsonl", scope="/")
    return (folder / "exports" / "all.jsonl").read_bytes()


@pytest.mark.slow
def test_what_is_not_carried_is_told_and_the_exit_code_says_so(home: Path, url: str) -> None:
    with closing(sqlite3.connect(home / "vestige.db")) as db:
        db.execute("UPDATE vectors SET vector = zeroblob(7)")
        db.execute("UPDATE token_bits SET profile = 99")
        db.commit()
    words = ("--from", "sqlite", "--to", url)
    assert len(said(migrate(home, *words, "--dry-run"), code=1)["notCarried"]) > 5
    done = migrate(home, *words, "--table")
    assert done.exit_code == 1
    assert "! 20 rows were not copied" in done.stdout
    assert "vector is not a vector" in done.stdout
    told = said(migrate(home, *words), code=1)
    assert (told["added"], told["whole"], len(told["notCarried"])) == (0, False, 20)
    assert {one["table"] for one in told["notCarried"]} == {"vectors", "token_bits"}
    assert all(one["id"] and one["reason"] for one in told["notCarried"])
