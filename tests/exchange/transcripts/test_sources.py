"""Where transcripts are, and how a session is resumed."""

import os
from pathlib import Path

import pytest

from tests.exchange.transcripts.homes import folders, found, write_lines
from vestige.exchange.transcripts.folders import LINKED, NO_FILE, NOWHERE, OUTSIDE, FileListing, open_regular
from vestige.exchange.transcripts.sources import CLIENTS, resume_command, sources


def test_an_empty_home_has_no_sources(tmp_path: Path) -> None:
    assert list(sources(folders(tmp_path))) == []


def test_notes_and_journals_of_claude_are_no_sessions(tmp_path: Path) -> None:
    root = tmp_path / ".claude/projects/-w"
    for name in ("s1.jsonl", "s1/subagents/agent-1.jsonl", "s1/subagents/journal.jsonl", "memory/x.jsonl"):
        write_lines(root / name, [])
    assert [source.state["session"] for source in found(tmp_path, "claude")] == ["s1/agent-1", "s1"]


def test_only_regular_files_in_a_clients_folder_are_sources_and_the_rest_is_named(tmp_path: Path) -> None:
    root = tmp_path / ".claude/projects/-w"
    private = write_lines(tmp_path / "private" / "diary.jsonl", [])
    write_lines(root / "s1.jsonl", [])
    links = {
        "out.jsonl": private, "inside.jsonl": root / "s1.jsonl", "nowhere.jsonl": tmp_path / "gone",
        "loop.jsonl": root / "loop.jsonl", "device.jsonl": Path("/dev/zero"),
    }  # fmt: skip
    for name, target in links.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe.jsonl")
    (root / "folder.jsonl").mkdir()
    (root / "around").symlink_to(root)  # a loop of folders
    (tmp_path / ".gemini/tmp").mkdir(parents=True)
    write_lines(tmp_path / "private/chats/session-1.jsonl", [])
    (tmp_path / ".gemini/tmp/p").symlink_to(tmp_path / "private")
    write_lines(tmp_path / "private/sessions/s.jsonl", [])
    (tmp_path / ".openclaw/agents").mkdir(parents=True)
    (tmp_path / ".openclaw/agents/main").symlink_to(tmp_path / "private")
    listing = FileListing()
    read = [source.path for source in sources(folders(tmp_path), listing=listing)]
    assert read == [root / "s1.jsonl"]
    assert {str(Path(path).relative_to(tmp_path)): why for path, why in listing.skipped.items()} == {
        ".claude/projects/-w/out.jsonl": OUTSIDE,
        ".claude/projects/-w/device.jsonl": OUTSIDE,
        ".claude/projects/-w/inside.jsonl": LINKED,
        ".claude/projects/-w/loop.jsonl": NOWHERE,
        ".claude/projects/-w/nowhere.jsonl": NOWHERE,
        ".claude/projects/-w/pipe.jsonl": NO_FILE,
        ".claude/projects/-w/folder.jsonl": NO_FILE,
        ".gemini/tmp/p/chats/session-1.jsonl": OUTSIDE,
        ".openclaw/agents/main/sessions/s.jsonl": OUTSIDE,
    }


def test_a_client_whose_whole_folder_is_a_link_is_read(tmp_path: Path) -> None:
    write_lines(tmp_path / "disk/projects/-w/s1.jsonl", [])
    (tmp_path / ".claude").symlink_to(tmp_path / "disk")
    assert [source.state["session"] for source in found(tmp_path, "claude")] == ["s1"]


def test_settings_of_a_client_that_are_a_pipe_are_not_waited_for(tmp_path: Path) -> None:
    write_lines(tmp_path / ".claude/projects/-w/s1.jsonl", [])
    write_lines(tmp_path / ".gemini/tmp/p/chats/session-1.jsonl", [])
    for name in (".claude/settings.json", ".gemini/projects.json", ".gemini/tmp/p/.project_root"):
        os.mkfifo(tmp_path / name)
    assert found(tmp_path, "claude")[0].expires_days == 30
    assert found(tmp_path, "gemini")[0].state["cwd"] is None


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/"])
def test_only_a_regular_file_is_opened(path: str) -> None:
    with pytest.raises(OSError, match=NO_FILE):
        open_regular(Path(path))


def test_a_link_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "x").symlink_to(write_lines(tmp_path / "y", []))
    with pytest.raises(OSError, match="symbolic"):
        open_regular(tmp_path / "x")


def test_claude_deletes_after_the_days_of_its_settings(tmp_path: Path) -> None:
    write_lines(tmp_path / ".claude/projects/-w/s1.jsonl", [])
    assert found(tmp_path, "claude")[0].expires_days == 30
    (tmp_path / ".claude/settings.json").write_text('{"cleanupPeriodDays": 90}', encoding="utf-8")
    assert found(tmp_path, "claude")[0].expires_days == 90


@pytest.mark.parametrize("client", [one for one in CLIENTS if one != "cursor"])
def test_every_client_but_the_editor_can_resume(client: str) -> None:
    command = resume_command(client, "the-id")
    assert command is not None
    assert command[-1] == "the-id"


def test_the_editor_cannot_resume() -> None:
    assert resume_command("cursor", "x") is None
