"""`vestige uninstall`: the plan, what is removed, and what stays."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.transports.cli.harness import Outcome, invoke
from vestige import Memory
from vestige.settings.settings import load_settings
from vestige.transports.cli.commands.clients.uninstall import own_removal
from vestige.transports.cli.short_ids import last_list_file
from vestige.transports.http.auth.cookies import secret_of

OWN_FILE = '{\n  // mine\n  "mcpServers": {"other": {"command": "x"}}\n}\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with two connected clients, a model and a memory."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text(OWN_FILE, encoding="utf-8")
    for words in (
        ("connect", "cursor", "--yes"),
        ("connect", "codex", "--name", "work", "--yes"),
        ("ingest", "The gate is locked at ten."),
    ):
        assert run(tmp_path, *words).exit_code == 0
    (models(tmp_path) / "all-MiniLM-L6-v2-int8").mkdir(parents=True)
    (models(tmp_path) / "all-MiniLM-L6-v2-int8/model.onnx").write_bytes(b"x" * 2_000_000)
    return tmp_path


def models(home: Path) -> Path:
    return home / ".cache" / "vestige" / "models"


def data(home: Path) -> Path:
    return home / ".local" / "share" / "vestige" / "core"


def run(home: Path, *words: str, **environ: str) -> Outcome:
    usual = {"HOME": str(home), "PATH": str(home / "bin")}
    empty = dict.fromkeys(("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"), "")
    return invoke(words, environ={**usual, **empty, **environ})


def answer(outcome: Outcome) -> Any:
    assert outcome.exit_code == 0, outcome.stderr
    return json.loads(outcome.stdout)


def everything(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_without_a_terminal_it_only_shows_what_it_would_remove(home: Path) -> None:
    before = everything(home)
    plan = answer(run(home, "uninstall"))
    assert everything(home) == before
    assert plan["removed"] is False
    assert {(one["client"], one["name"]) for one in plan["clients"]} == {
        ("cursor", "vestige"),
        ("codex", "work"),
    }
    assert (plan["models"], plan["modelBytes"]) == ([str(models(home))], 2_000_000)
    assert (plan["memories"], plan["dataDirectory"]) == ("keep", str(data(home)))
    assert plan["program"].endswith("-m pip uninstall vestige")
    shown = run(home, "uninstall", "--table").stdout
    assert shown.startswith("This would be removed:")
    assert "(2 MB)" in shown
    # A path that is longer than the column is broken anywhere.
    assert f"stay in {data(home)}, with API keys and backups".replace(" ", "") in "".join(shown.split())


def test_it_removes_entries_and_models_and_leaves_the_memories(home: Path) -> None:
    memories = {name: text for name, text in everything(home).items() if name.startswith(".local/")}
    assert answer(run(home, "uninstall", "--yes"))["removed"] is True
    assert everything(home) == {".cursor/mcp.json": OWN_FILE.encode(), **memories}
    assert not (home / ".codex").exists()
    assert not (home / ".cache" / "vestige").exists()
    found = answer(run(home, "search", "gate"))["results"]
    assert [hit["content"] for hit in found] == ["The gate is locked at ten."]


def test_a_second_time_there_is_nothing_left_to_remove(home: Path) -> None:
    run(home, "uninstall", "--yes")
    again = answer(run(home, "uninstall", "--yes"))
    assert (again["clients"], again["models"], again["notes"]) == ([], [], [])


def test_memories_are_deleted_only_when_their_directory_is_named(home: Path) -> None:
    (home / ".local/share/other").mkdir()
    wrong = run(home, "uninstall", "--yes", "--delete-memories", str(home))
    assert wrong.exit_code == 2
    assert "is not the data directory" in wrong.stderr
    assert (models(home)).exists()
    done = answer(run(home, "uninstall", "--yes", "--delete-memories", "~/.local/share/vestige/core"))
    assert done["memories"] == "delete"
    assert everything(home) == {".cursor/mcp.json": OWN_FILE.encode()}
    assert not (home / ".local/share/vestige").exists()


def test_memories_that_another_process_uses_are_not_deleted(home: Path) -> None:
    before = everything(home)
    with Memory(data(home), settings={"embeddings.provider": "hashing"}):
        refused = run(home, "uninstall", "--yes", "--delete-memories", str(data(home)))
        kept = {name for name in everything(home) if name in before}

    assert refused.exit_code == 1
    assert f"(pid {os.getpid()}, since " in refused.stderr
    assert "then uninstall again" in refused.stderr
    assert kept == set(before)


def test_the_last_list_and_the_secret_of_logins_are_deleted_with_the_memories(home: Path) -> None:
    run(home, "ls", "--table")
    assert last_list_file(data(home)).exists()
    last_list_file(data(home)).with_suffix(".7.tmp").touch()  # left by a process that was killed
    secret_of(load_settings({"data_dir": str(data(home))}), os.urandom)
    done = answer(run(home, "uninstall", "--yes", "--delete-memories", str(data(home))))
    assert not [note for note in done["notes"] if "did not write" in note]
    assert not data(home).exists()


def test_files_that_vestige_did_not_write_stay_beside_deleted_memories(home: Path) -> None:
    (data(home) / "thesis.txt").write_text("mine", encoding="utf-8")
    (data(home) / "last-list-of-books.json").write_text("mine", encoding="utf-8")
    done = answer(run(home, "uninstall", "--yes", "--delete-memories", str(data(home))))
    assert {path.name for path in data(home).iterdir()} == {"thesis.txt", "last-list-of-books.json"}
    assert any("did not write" in note for note in done["notes"])


def test_a_shared_folder_of_models_loses_only_what_vestige_put_there(home: Path) -> None:
    shared = home / "models"
    (shared / "all-MiniLM-L6-v2-int8").mkdir(parents=True)
    (shared / "mine.gguf").write_bytes(b"x")
    run(home, "uninstall", "--yes", VESTIGE_EMBEDDINGS_CACHE_DIR=str(shared))
    assert [path.name for path in shared.iterdir()] == ["mine.gguf"]
    assert models(home).exists()


def test_claude_code_is_asked_to_remove_the_entry_itself(home: Path) -> None:
    run(home, "connect", "claude-code", "--yes")
    (home / "bin").mkdir()
    (home / "bin/claude").write_text("#!/bin/sh\n", encoding="utf-8")
    (home / "bin/claude").chmod(0o755)
    before = (home / ".claude.json").read_bytes()
    done = answer(run(home, "uninstall", "--yes"))
    assert (home / ".claude.json").read_bytes() == before
    assert any("claude mcp remove --scope user vestige" in note for note in done["notes"])


def test_a_file_that_cannot_be_read_is_named_and_left(home: Path) -> None:
    (home / ".gemini").mkdir()
    (home / ".gemini/settings.json").write_text("{", encoding="utf-8")
    done = answer(run(home, "uninstall", "--yes"))
    assert any("cannot be read as JSON" in note for note in done["notes"])
    assert (home / ".gemini/settings.json").read_text(encoding="utf-8") == "{"


def test_memories_in_postgresql_are_not_deleted_from_here(home: Path) -> None:
    url = "postgresql://nobody@127.0.0.1:1/x"
    named = ("uninstall", "--yes", "--delete-memories", str(data(home)))
    refused = run(home, *named, VESTIGE_DATABASE_URL=url)
    assert refused.exit_code != 0
    assert "PostgreSQL" in refused.stderr
    assert (data(home) / "vestige.db").exists()


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/ada/.local/share/uv/tools/vestige", "uv tool uninstall vestige"),
        ("/home/ada/.local/share/pipx/venvs/vestige", "pipx uninstall vestige"),
        ("/home/uv/project/.venv", "/home/uv/project/.venv/bin/python -m pip uninstall vestige"),
    ],
)
def test_the_program_is_removed_by_the_installer_that_brought_it(prefix: str, command: str) -> None:
    assert " ".join(own_removal(Path(prefix), f"{prefix}/bin/python")) == command
