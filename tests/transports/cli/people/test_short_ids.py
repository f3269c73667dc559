"""Short ids: the end or beginning of an id, and rows of the last list, on every command that takes an id."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from tests.transports.cli.harness import Outcome, invoke
from vestige.app.app import open_app, open_database, open_ends, open_server
from vestige.transports.cli.main import root_command
from vestige.transports.cli.session import CliSession
from vestige.transports.cli.short_ids import MOST_LISTS, keep_list, last_list, last_list_file


@pytest.fixture
def here(tmp_path: Path) -> list[str]:
    return ["--data-dir", str(tmp_path / "data")]


def added(text: str, here: list[str]) -> str:
    stored: str = json.loads(invoke(["add", text, *here]).stdout)["nodeId"]
    return stored


def error(outcome: Outcome) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(outcome.stderr)["error"]
    return value


def test_the_end_and_the_beginning_of_an_id_stand_for_it(here: list[str]) -> None:
    first = added("Ada prefers tea.", here)
    for part in (first[-8:], first[-4:], first[:30], first[-8:].upper()):
        shown = json.loads(invoke(["show", part, *here]).stdout)
        assert shown["node"]["id"] == first


def test_a_table_shows_the_short_id_that_a_command_takes(here: list[str]) -> None:
    first = added("Ada prefers tea.", here)
    table = invoke(["ls", "--table", *here]).stdout
    assert first[-8:] in table
    assert first not in table
    assert invoke(["pin", first[-8:], *here]).exit_code == 0
    assert invoke(["rm", first[-8:], "--yes", "--even-pinned", *here]).exit_code == 0


def test_part_of_several_ids_is_refused_with_the_candidates(here: list[str]) -> None:
    both = sorted([added("Ada prefers tea.", here), added("Ben runs on Fridays.", here)])
    refused = invoke(["show", both[0][:4], *here])
    assert refused.exit_code == 2
    assert error(refused)["details"]["candidates"] == both
    assert all(one in error(refused)["hint"] for one in both)


def test_a_part_that_fits_nothing_is_reported_as_it_was_typed(here: list[str]) -> None:
    added("Ada prefers tea.", here)
    assert error(invoke(["show", "no-such-id", *here]))["message"] == "There is no memory no-such-id."


def test_rows_of_the_last_list_can_be_named(here: list[str]) -> None:
    older, newer = added("Ada prefers tea.", here), added("Ben runs on Fridays.", here)
    invoke(["ls", "--table", *here])
    assert json.loads(invoke(["show", "@1", *here]).stdout)["node"]["id"] == newer
    assert json.loads(invoke(["memory", "get-batch", "@2", "@1", *here]).stdout)["found"] == 2
    linked = json.loads(invoke(["memory", "link", "@1", "@2", *here]).stdout)["edge"]
    assert (linked["source"], linked["target"]) == (newer, older)


def test_an_answer_in_json_leaves_the_last_list_alone(here: list[str]) -> None:
    added("Ada prefers tea.", here)
    assert last_list(Path(here[1])) == []
    invoke(["ls", "--table", *here])
    assert len(last_list(Path(here[1]))) == 1


def test_the_file_of_the_last_list_has_no_text_and_only_its_user_reads_it(here: list[str]) -> None:
    added("Ada prefers tea.", here)
    invoke(["search", "tea", "--table", *here])
    file = last_list_file(Path(here[1]))
    assert b"tea" not in file.read_bytes()
    assert file.stat().st_mode & 0o077 == 0


def test_a_list_in_another_terminal_leaves_the_rows_of_this_one(
    here: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    older = added("Ada prefers tea.", here)
    invoke(["ls", "--table", *here])
    newer = added("Ben runs on Fridays.", here)
    with monkeypatch.context() as other:
        other.setattr(os, "getsid", lambda _process: 4_000_000)
        assert "No list was shown" in error(invoke(["show", "@1", *here]))["message"]
        invoke(["ls", "--table", *here])
        assert json.loads(invoke(["show", "@1", *here]).stdout)["node"]["id"] == newer
    assert json.loads(invoke(["show", "@1", *here]).stdout)["node"]["id"] == older


def test_the_lists_of_the_last_terminals_are_kept(here: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    data = Path(here[1])
    data.mkdir()
    (data / "last-list-of-books.json").touch()
    files = []
    for session in range(MOST_LISTS + 3):
        monkeypatch.setattr(os, "getsid", lambda _process, session=session: session)
        keep_list(data, ["a"])
        files.append(last_list_file(data))
        os.utime(files[-1], (session, session))
    assert [file.exists() for file in files] == [False] * 3 + [True] * MOST_LISTS
    assert (data / "last-list-of-books.json").exists()


@pytest.mark.parametrize("row", ["@0", "@3", "@99999999999999999999"])
def test_a_row_that_is_not_there_is_refused(row: str, here: list[str]) -> None:
    added("Ada prefers tea.", here)
    invoke(["ls", "--table", *here])
    assert (
        error(invoke(["show", row, *here]))["message"] == f"There is no row {row}. The last list has 1 row."
    )


def test_a_damaged_file_of_the_last_list_counts_as_none(here: list[str]) -> None:
    added("Ada prefers tea.", here)
    last_list_file(Path(here[1])).write_bytes(b"\xff{")
    assert "No list was shown in this terminal yet." in error(invoke(["show", "@1", *here]))["message"]


@pytest.mark.parametrize(("typed", "offered"), [("@", {"@1", "@2"}), ("", {"@1", "@2"})])
def test_rows_and_short_ids_are_completed(typed: str, offered: set[str], here: list[str]) -> None:
    ids = [added("Ada prefers tea.", here), added("Ben runs on Fridays.", here)]
    invoke(["ls", "--table", *here])
    session = CliSession(
        open_app=open_app, open_server=open_server, open_database=open_database, open_ends=open_ends
    )
    session.flags["data_dir"] = here[1]
    shell = ShellComplete(root_command(), {"obj": session}, "vestige", "_VESTIGE_COMPLETE")
    completed = {item.value for item in shell.get_completions(["show"], typed)}
    assert offered <= completed
    if not typed:
        assert {one[-8:] for one in ids} <= completed


def test_reminders_are_named_by_short_ids_too(here: list[str]) -> None:
    made = json.loads(invoke(["remind", "rotate the keys", *here]).stdout)["intentionId"]
    done = invoke(["intention", "update", made[-8:], "complete", *here])
    assert json.loads(done.stdout)["intentionId"] == made
