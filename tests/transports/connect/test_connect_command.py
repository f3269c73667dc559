"""`vestige connect` in this process: what it says, what it writes, and what it never shows."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.transports.cli.harness import Outcome, invoke
from tests.transports.cli.test_serve import answering
from tests.transports.connect.scratch import SECRET
from vestige.transports.connect.clients import CLIENTS

NOBODY = "http://127.0.0.1:1"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def run(home: Path, *words: str, stdin: str = "", **environ: str) -> Outcome:
    fixed = {"HOME": str(home), "XDG_CONFIG_HOME": "", "PATH": str(home / "bin"), **environ}
    return invoke(["connect", *words], stdin=stdin, environ=fixed)


def answer(outcome: Outcome) -> Any:
    assert outcome.exit_code == 0, outcome.stderr
    return json.loads(outcome.stdout)


def written(home: Path) -> list[str]:
    return sorted(str(one.relative_to(home)) for one in home.rglob("*") if one.is_file())


def test_a_dry_run_shows_the_change_and_writes_nothing(home: Path) -> None:
    before = written(home)
    shown = answer(run(home, "codex", "--dry-run"))
    assert not shown["changed"]
    assert "[mcp_servers.vestige]" in shown["diff"]
    assert written(home) == before


def test_alone_it_lists_the_clients_with_what_was_found(home: Path) -> None:
    (home / ".codex").mkdir()
    run(home, "codex", "--http", "--yes")
    run(home, "cursor", "--scope", "project", "--yes")
    (home / ".gemini").mkdir()
    (home / ".gemini/settings.json").write_text("{", encoding="utf-8")
    found = {one["client"]: one for one in answer(run(home))["clients"]}
    assert list(found) == list(CLIENTS)
    assert found["codex"]["installed"]
    assert found["codex"]["scopes"]["user"]["connected"] == "http"
    assert found["cursor"]["scopes"]["project"]["connected"] == "stdio"
    assert found["cursor"]["scopes"]["user"]["connected"] is None
    assert "cannot be read as JSON" in found["gemini-cli"]["scopes"]["user"]["problem"]
    shown = run(home, "--table").stdout
    header, rule = shown.splitlines()[:2]
    assert header.split()[-1] == "file"
    assert rule[header.index("file") :].strip("─") == ""
    assert max(map(len, shown.split("\n\n")[0].splitlines())) <= 80
    assert "http (user)" in shown
    assert "unreadable (user)" in shown
    row = next(line for line in shown.splitlines() if "stdio (project)" in line)
    assert row.endswith("project/.cursor/mcp.json")


def test_without_a_terminal_and_without_yes_it_only_says_what_it_would_do(home: Path) -> None:
    undone = run(home, "cursor")
    assert undone.exit_code == 1
    told = json.loads(undone.stdout)
    assert not told["changed"]
    assert "Pass --yes" in told["message"]
    assert '+    "vestige": {' in told["diff"]
    assert written(home) == []


def test_the_entry_starts_the_program_of_this_installation_by_its_absolute_path(home: Path) -> None:
    told = answer(run(home, "cursor", "--yes", "--data-dir", "mine"))
    assert told["changed"]
    entry = json.loads((home / ".cursor/mcp.json").read_text(encoding="utf-8"))["mcpServers"]["vestige"]
    assert Path(entry["command"]).is_absolute()
    assert Path(entry["command"]).exists()
    assert entry["args"][-2:] == ["--data-dir", str(home / "project" / "mine")]


def test_a_second_time_there_is_nothing_to_do_and_undo_takes_it_back(home: Path) -> None:
    answer(run(home, "cursor", "--yes"))
    again = answer(run(home, "cursor", "--yes"))
    assert not again["changed"]
    assert again["message"].startswith("Nothing to do")
    refused = run(home, "cursor", "--undo")
    assert (refused.exit_code, json.loads(refused.stdout)["changed"]) == (1, False)
    assert written(home) == [".cursor/mcp.json"]
    undone = answer(run(home, "cursor", "--undo", "--yes"))
    assert (undone["message"], undone["notes"]) == ("Cursor is no longer connected.", [])
    assert written(home) == []
    assert {one["client"]: one["installed"] for one in answer(run(home))["clients"]}["cursor"] is False
    assert "not connected" in answer(run(home, "cursor", "--undo", "--yes"))["message"]


def test_http_means_the_server_of_the_settings_and_a_variable_for_the_key(home: Path) -> None:
    told = answer(run(home, "vscode", "--http", "--yes", VESTIGE_SERVER_BIND="0.0.0.0:4000"))
    entry = json.loads((home / ".config/Code/User/mcp.json").read_text(encoding="utf-8"))["servers"][
        "vestige"
    ]
    assert entry["url"] == "http://127.0.0.1:4000/mcp"
    assert entry["headers"] == {"Authorization": "Bearer ${env:VESTIGE_KEY}"}
    assert any("VESTIGE_KEY" in note for note in told["notes"])
    answer(run(home, "vscode", "--http", "--yes", VESTIGE_AUTH_ENABLED="false"))
    assert "headers" not in (home / ".config/Code/User/mcp.json").read_text(encoding="utf-8")


def test_what_the_entry_alone_does_not_bring_is_told(home: Path) -> None:
    told = answer(run(home, "cursor", "--http", NOBODY, "--yes"))
    assert (told["changed"], told["message"]) == (True, "The entry is written.")
    notes = "\n".join(told["notes"])
    assert "Cursor was not found on this machine." in notes
    assert f"No Vestige server answers at {NOBODY} now." in notes
    assert " keys create --label NAME`, and set it with `export VESTIGE_KEY=vst_…`" in notes
    run(home, "cursor", "--undo", "--yes")
    (home / ".cursor").mkdir()
    notes = "\n".join(answer(run(home, "cursor", "--http", NOBODY, "--yes", VESTIGE_KEY=SECRET))["notes"])
    assert "not found" not in notes
    assert "keys create" not in notes


def test_a_server_that_answers_is_not_complained_about(home: Path) -> None:
    with answering(b'{"status": "ok", "version": "1"}') as place:
        told = answer(run(home, "cursor", "--http", f"http://{place}/behind/mcp/", "--yes"))
    assert not any("No Vestige server answers" in note for note in told["notes"])
    with answering(b'{"status": "ok"}') as place:
        told = answer(run(home, "cursor", "--http", f"http://{place}", "--yes"))
    assert f"No Vestige server answers at http://{place} now." in told["notes"]


def test_a_server_on_another_machine_is_not_asked_offline_and_its_keys_are_made_there(home: Path) -> None:
    notes = " ".join(answer(run(home, "cursor", "--http", "https://memory.example", "--yes"))["notes"])
    assert "No Vestige server answers" not in notes
    assert "`vestige keys create --label NAME`, on the machine of the server" in notes


def test_an_address_gets_the_path_of_mcp_and_another_variable_if_told(home: Path) -> None:
    answer(run(home, "codex", "--http", "https://memory.example", "--key-env", "WORK_KEY", "--yes"))
    text = (home / ".codex/config.toml").read_text(encoding="utf-8")
    assert 'url = "https://memory.example/mcp"' in text
    assert 'bearer_token_env_var = "WORK_KEY"' in text


@pytest.mark.parametrize("form", ["--json", "--table"])
def test_a_key_is_in_the_users_file_and_never_on_the_screen(form: str, home: Path) -> None:
    first = run(
        home, "zed", "--http", "http://10.0.0.9:3927", "--key", "-", "--yes", form, stdin=SECRET + "\n"
    )
    again = run(home, "zed", "--http", "http://10.0.0.9:3927", "--key", "other", "--yes", form)
    undone = run(home, "zed", "--undo", "--yes", form)
    for outcome in (first, again, undone):
        assert outcome.exit_code == 0, outcome.stderr
        assert SECRET not in outcome.stdout + outcome.stderr
        assert "Bearer other" not in outcome.stdout
    assert "unencrypted" in first.stdout
    assert written(home) == []


def test_a_key_for_a_project_is_refused_and_nothing_is_written(home: Path) -> None:
    refused = run(home, "cursor", "--http", "--key", SECRET, "--scope", "project", "--yes")
    assert refused.exit_code == 2
    assert SECRET not in refused.stdout + refused.stderr
    assert written(home) == []


def test_printing_shows_the_whole_entry_and_changes_nothing(home: Path) -> None:
    told = answer(run(home, "windsurf", "--http", "--print"))
    assert json.loads(told["text"])["mcpServers"]["vestige"]["serverUrl"] == "http://127.0.0.1:3927/mcp"
    assert told["file"] == str(home / ".codeium/windsurf/mcp_config.json")
    assert "[mcp_servers.work]" in run(home, "codex", "--print", "--name", "work", "--table").stdout
    assert written(home) == []


def test_claude_code_is_asked_by_its_own_command_when_it_is_there(home: Path) -> None:
    program = home / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    told = answer(run(home, "claude-code", "--http", "--yes"))
    assert not told["changed"]
    assert told["message"].startswith("Nothing was changed: Claude Code manages this file itself. Run this")
    assert shlex.split(told["commands"][0])[-1] == "Authorization: Bearer ${VESTIGE_KEY}"
    assert written(home) == ["bin/claude"]
    entry = {"type": "stdio", "command": "old"}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"vestige": entry}}), encoding="utf-8")
    commands = answer(run(home, "claude-code", "--yes"))["commands"]
    assert [shlex.split(one)[2] for one in commands] == ["remove", "add"]
    assert [shlex.split(one)[2] for one in answer(run(home, "claude-code", "--undo"))["commands"]] == [
        "remove"
    ]
    assert answer(run(home, "claude-code", "--scope", "project", "--yes"))["changed"]


def test_claude_code_without_its_command_gets_an_entry_in_its_file(home: Path) -> None:
    (home / ".claude.json").write_text('{"numStartups": 7, "projects": {"/a": {}}}', encoding="utf-8")
    told = answer(run(home, "claude-code", "--yes"))
    assert told["changed"]
    after = json.loads((home / ".claude.json").read_text(encoding="utf-8"))
    assert after.pop("mcpServers")["vestige"]["type"] == "stdio"
    assert after == {"numStartups": 7, "projects": {"/a": {}}}


def test_the_word_behind_http_may_be_the_client(home: Path) -> None:
    assert answer(run(home, "--http", "cursor", "--yes"))["client"] == "cursor"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("vscod",), "Did you mean `vscode`?"),
        (("--undo",), "needs a CLIENT"),
        (("cursor", "--key", "x"), "need --http"),
        (("cursor", "--http", "--key", "x", "--key-env", "Y"), "not both"),
        (("cursor", "--http", "ftp://a"), "not the URL of a server"),
        (("cursor", "--http", "http://ada:secret@a"), "not the URL of a server"),
        (("cursor", "--http", "--key-env", "A B"), "not a valid variable name"),
        (("cursor", "--name", "a b"), "not a valid name"),
        (("cursor", "--scope", "usr"), "Did you mean 'user'?"),
        (("zed", "--http"), "can only take the key from its settings file"),
        (("zed", "--http", "--key-env", "A"), "does not read environment variables"),
        (("zed", "--scope", "project"), "no settings file for a project"),
        (("claude-desktop", "--http"), "does not support HTTP servers"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_way_out(words: tuple[str, ...], said: str, home: Path) -> None:
    refused = run(home, *words, "--yes")
    assert refused.exit_code == 2
    assert said in refused.stderr
    assert written(home) == []


def test_a_port_that_changes_each_time_cannot_be_connected_to(home: Path) -> None:
    refused = run(home, "cursor", "--http", "--yes", VESTIGE_SERVER_BIND="127.0.0.1:0")
    assert "--http http://127.0.0.1:PORT" in refused.stderr


def test_the_unusual_place_for_settings_is_taken_from_the_environment(home: Path) -> None:
    told = answer(run(home, "zed", "--yes", XDG_CONFIG_HOME=str(home / "xdg")))
    assert told["file"] == str(home / "xdg/zed/settings.json")


def entry_of(home: Path) -> dict[str, Any]:
    text = (home / ".cursor/mcp.json").read_text(encoding="utf-8")
    entry: dict[str, Any] = json.loads(text)["mcpServers"]["vestige"]
    return entry


def test_the_memory_that_variables_name_is_the_one_that_the_entry_leads_to(home: Path) -> None:
    config = home / "my.toml"
    config.write_text("", encoding="utf-8")
    named = {"VESTIGE_DATA_DIR": "elsewhere", "VESTIGE_CONFIG": "~/my.toml"}
    told = answer(run(home, "cursor", "--yes", **named))
    assert entry_of(home)["args"][-4:] == [
        *("--data-dir", str(home / "project" / "elsewhere")),
        *("--config", str(config)),
    ]
    assert not any("variables" in note for note in told["notes"])
    answer(run(home, "cursor", "--yes", "--data-dir", "flag", **named))
    assert str(home / "project" / "flag") in entry_of(home)["args"]


def test_the_usual_place_is_not_in_the_entry(home: Path) -> None:
    told = answer(run(home, "cursor", "--yes", XDG_DATA_HOME=""))
    assert "--data-dir" not in entry_of(home).get("args", [])
    assert not any("variables" in note for note in told["notes"])


def test_a_database_that_a_variable_names_is_told_of_and_its_password_is_not(home: Path) -> None:
    url = "postgresql://ada:hunter2@db.example/memories"
    done = run(home, "cursor", "--yes", VESTIGE_DATABASE_URL=url)
    notes = " ".join(answer(done)["notes"])
    assert "VESTIGE_DATABASE_URL" in notes
    assert "set them where Cursor starts" in notes
    assert "VESTIGE_DATABASE_URL" in " ".join(
        answer(run(home, "cursor", "--print", VESTIGE_DATABASE_URL=url))["notes"]
    )
    assert "hunter2" not in done.stdout + (home / ".cursor/mcp.json").read_text(encoding="utf-8")


def test_undo_says_when_the_entry_is_not_one_of_ours(home: Path) -> None:
    (home / ".cursor").mkdir()
    text = json.dumps({"mcpServers": {"vestige": {"command": "/opt/other/server"}}})
    (home / ".cursor/mcp.json").write_text(text, encoding="utf-8")
    told = json.loads(run(home, "cursor", "--undo").stdout)
    assert "did not write this entry" in told["notes"][0]
    assert (home / ".cursor/mcp.json").read_text(encoding="utf-8") == text
    text = json.dumps({"mcpServers": {"vestige": {"command": "/opt/venv/bin/vestige-mcp"}}})
    (home / ".cursor/mcp.json").write_text(text, encoding="utf-8")
    assert answer(run(home, "cursor", "--undo", "--yes"))["notes"] == []
