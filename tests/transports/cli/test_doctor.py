"""`vestige doctor` on the command line: its exit code, and a store that cannot be opened."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.store.sqlite.file.test_damage import overwritten, spoilt
from tests.store.sqlite.test_checks import break_it
from tests.transports.cli.harness import invoke


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store with one memory, and a backup of it."""
    folder = tmp_path / "data"
    assert invoke(["ingest", "Ada prefers tea.", "--data-dir", str(folder)]).exit_code == 0
    assert invoke(["backup", "--data-dir", str(folder)]).exit_code == 0
    return folder


def examined(home: Path, *words: str) -> tuple[int, dict[str, Any]]:
    outcome = invoke(["doctor", *words, "--data-dir", str(home)])
    return outcome.exit_code, json.loads(outcome.stdout)


def test_the_exit_code_says_whether_something_is_broken(home: Path) -> None:
    code, well = examined(home)
    assert (code, well["status"], well["findings"]) == (0, "ok", [])
    break_it(home / "vestige.db", "UPDATE curve SET w20 = 0.3")
    code, ill = examined(home)
    assert (code, ill["status"]) == (1, "broken")
    code, mended = examined(home, "--repair")
    assert (code, mended["status"]) == (0, "ok")


@pytest.mark.parametrize("damage", [spoilt, overwritten])
def test_a_store_that_cannot_be_opened_is_examined_all_the_same(home: Path, damage: Any) -> None:
    damage(home / "vestige.db")
    before = (home / "vestige.db").read_bytes()
    code, answer = examined(home, "--repair")
    assert (code, answer["status"]) == (1, "broken")
    checks = [one["check"] for one in answer["findings"]]
    assert (checks[:2], checks[-1]) == (["opening", "file"], "backups")
    assert "is intact and holds 1 memories" in answer["findings"][-1]["message"]
    assert (home / "vestige.db").read_bytes() == before


def test_other_commands_refuse_such_a_store_as_before(home: Path) -> None:
    spoilt(home / "vestige.db")
    outcome = invoke(["memory", "list", "--data-dir", str(home)])
    assert outcome.exit_code != 0
    assert json.loads(outcome.stderr)["error"]["code"] == "store_corrupt"


def test_a_person_reads_what_to_do(home: Path) -> None:
    spoilt(home / "vestige.db")
    shown = invoke(["doctor", "--table", "--data-dir", str(home)]).stdout
    assert "broken: opening: The store cannot be opened" in shown
    assert "vestige restore" in shown
