"""A Claude export becomes threads of turns, documents of projects, and what it remembered."""

import json
import zipfile
from pathlib import Path
from typing import Any

from testbed.world import World
from tests.exchange.importers.imports import imported, nodes, reasons

TALK: dict[str, Any] = {
    "uuid": "c-1", "name": "Boats", "summary": "About a leak.", "created_at": "2025-06-01T10:00:00Z",
    "updated_at": "2025-06-01T11:00:00Z",
    "chat_messages": [
        {"uuid": "m-1", "sender": "human", "text": "My boat leaks.", "created_at": "2025-06-01T10:00:01Z",
         "content": [{"type": "text", "text": "My boat leaks."}],
         "attachments": [{"file_name": "log.md", "extracted_content": "# Log\n\nWater on Monday."}],
         "files": [{"file_name": "photo.jpg"}]},
        {"uuid": "m-2", "sender": "assistant", "text": "", "created_at": "2025-06-01T10:00:02Z",
         "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "tool_use", "name": "search"},
                     {"type": "text", "text": "Check the seams."}]},
        {"uuid": "m-3", "sender": "assistant", "text": "", "content": [{"type": "tool_result"}]},
        {"uuid": "m-4", "sender": "human", "text": "Thanks."},
        "broken",
    ],
}  # fmt: skip
PROJECT = {"uuid": "p-1", "name": "Harbour", "description": "A map.", "prompt_template": "Be brief.",
           "created_at": "2025-05-01T00:00:00Z",
           "docs": [{"uuid": "d-1", "filename": "piers.md", "content": "## North\n\nThree piers."}],
           }  # fmt: skip
MEMORY = {
    "conversations_memory": "**Work**\n\nRepairs boats.",
    "project_memories": {"p-1": "Knows the piers."},
}


def archive(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("data/conversations.json", json.dumps([TALK]))
        packed.writestr("data/projects.json", json.dumps([PROJECT]))
        packed.writestr("data/memories.json", json.dumps([MEMORY]))
        packed.writestr("data/users.json", json.dumps([{"email_address": "x"}]))
    return path


def test_turns_attachments_projects_and_memories_come_over(world: World, tmp_path: Path) -> None:
    done = imported(world, archive(tmp_path / "export.zip"))

    found = nodes(world)
    leak, seams = found["My boat leaks."], found["Check the seams."]
    assert (done["format"], leak["author"], seams["author"]) == ("claude", "user", "assistant")
    assert (leak["thread"], seams["position"] - leak["position"]) == ("claude:c-1", 1)
    assert leak["occurredAt"].startswith("2025-06-01T10:00:01")
    assert leak["metadata"]["imported"] == {"title": "Boats", "attachments": ["log.md", "photo.jpg"]}
    assert found["About a leak."]["nodeType"] == "summary"
    assert found["log.md › Log\n\nWater on Monday."]["sessionId"] == "c-1"
    piers = found["Harbour › piers.md › North\n\nThree piers."]
    assert (piers["tags"], piers["createdAt"][:10]) == (["Harbour"], "2025-05-01")
    assert "Harbour\n\nBe brief." in found
    assert found["What Claude remembers\n\n**Work**\n\nRepairs boats."]["tags"] == ["saved-memory"]
    assert "What Claude remembers of a project\n\nKnows the piers." in found
    assert reasons(done) == {
        ("message", "it has no text"): 1,
        ("message", "it is not a JSON object"): 1,
        ("file", "a file whose text is not in the export"): 1,
        ("account", "the name and address of the account"): 1,
    }


def test_each_file_of_it_can_be_imported_alone_and_adds_nothing_then(world: World, tmp_path: Path) -> None:
    with zipfile.ZipFile(archive(tmp_path / "export.zip")) as packed:
        packed.extractall(tmp_path / "folder")
    for name in ("conversations", "projects", "memories"):
        done = imported(world, tmp_path / "folder" / "data" / f"{name}.json")
        assert (done["format"], done["imported"] > 0) == ("claude", True)

    assert imported(world, tmp_path / "export.zip")["imported"] == 0
    assert imported(world, tmp_path / "folder")["imported"] == 0


def test_a_project_in_a_file_of_its_own_is_read(world: World, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as packed:
        packed.writestr("conversations.json", json.dumps([TALK]))
        packed.writestr("projects/p-1.json", json.dumps(PROJECT))

    imported(world, tmp_path / "export.zip")

    assert "Harbour › piers.md › North\n\nThree piers." in nodes(world)
