"""A ChatGPT export becomes threads of turns, and what it remembered of the user."""

import json
import zipfile
from pathlib import Path
from typing import Any

from testbed.world import World
from tests.exchange.importers.imports import imported, nodes, reasons

T = 1_750_000_000.0


def message(key: str, role: str, *parts: object, kind: str = "text", **fields: Any) -> dict[str, Any]:
    return {
        "id": key, "author": {"role": role}, "create_time": T + 10, "recipient": "all", "metadata": {},
        "content": {"content_type": kind, "parts": list(parts)}, **fields,
    }  # fmt: skip


def chain(*messages: dict[str, Any], title: str = "Beans") -> dict[str, Any]:
    """A conversation of these messages, one after the other."""
    mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None}}
    last = "root"
    for one in messages:
        mapping[one["id"]] = {"id": one["id"], "message": one, "parent": last}
        last = one["id"]
    return {
        "title": title,
        "create_time": T,
        "mapping": mapping,
        "current_node": last,
        "conversation_id": "c-1",
    }


BEANS = chain(
    message("s", "system", ""),
    message("p", "user", kind="user_editable_context", content={
        "content_type": "user_editable_context", "user_profile": "I am a gardener."}),
    message("m", "system", content={
        "content_type": "model_editable_context",
        "model_set_context": "1. [2025-03-04]. Grows beans.\n\n2. [2025-03-05]. Has a greenhouse."}),
    message("u1", "user", "When do I sow beans?"),
    message("t", "assistant", content={"content_type": "thoughts", "text": "Thinking."}),
    message("b", "assistant", "Wants to sow beans.", recipient="bio"),
    message("c", "assistant", "search('beans')", recipient="browser"),
    message("x", "tool", "A long page.", kind="tether_quote"),
    message("a1", "assistant", "In May, after the frost.", metadata={"model_slug": "gpt-x"}),
    message("u2", "user", {"asset_pointer": "file://1"}, "And these?", kind="multimodal_text"),
    message("u3", "user", {"asset_pointer": "file://2"}, kind="multimodal_text"),
)  # fmt: skip


def archive(path: Path, *conversations: object, **files: str) -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("conversations.json", json.dumps(conversations))
        packed.writestr("user.json", "{}")
        packed.writestr("chat.html", "<html>")
        for name, text in files.items():
            packed.writestr(f"{name}.json", text)
    return path


def test_turns_follow_their_title_in_a_thread_with_author_time_and_model(
    world: World, tmp_path: Path
) -> None:
    done = imported(world, archive(tmp_path / "export.zip", BEANS))

    found = nodes(world)
    title, question, answer = found["Beans"], found["When do I sow beans?"], found["In May, after the frost."]
    assert done["format"] == "chatgpt"
    assert {one["thread"] for one in (title, question, answer)} == {"chatgpt:c-1"}
    assert title["position"] < question["position"] < answer["position"]
    assert (title["nodeType"], question["author"], answer["author"]) == ("conversation", "user", "assistant")
    assert question["occurredAt"].startswith("2025-06-15T15:06:50")
    assert answer["metadata"]["imported"] == {"title": "Beans", "model": "gpt-x"}
    assert found["And these?"]["metadata"]["imported"]["pictures_left_out"] == 1


def test_what_it_remembered_comes_once_with_its_date(world: World, tmp_path: Path) -> None:
    saved = json.dumps(["Grows beans.", {"content": "Likes rain.", "created_at": "2025-01-02"}])
    imported(world, archive(tmp_path / "export.zip", BEANS, memories=saved))

    found = nodes(world)
    for text, day in (("Grows beans.", "2025-03-04"), ("Likes rain.", "2025-01-02")):
        assert (found[text]["tags"], found[text]["createdAt"][:10]) == (["saved-memory"], day)
    assert found["Wants to sow beans."]["tags"] == ["saved-memory"]
    assert found["I am a gardener."]["nodeType"] == "profile"


def test_what_is_not_said_in_the_conversation_is_counted(world: World, tmp_path: Path) -> None:
    done = imported(world, archive(tmp_path / "export.zip", BEANS, "broken"))

    assert reasons(done) == {
        ("message", "a thought of the model"): 1,
        ("message", "a call of a tool"): 1,
        ("message", "the output of a tool"): 1,
        ("message", "it has no text"): 1,
        ("message", "it is not a conversation"): 1,
        ("account", "the address and phone of the account"): 1,
        ("file", "pictures, sounds, feedback and the page that shows the same conversations"): 1,
    }


def test_only_the_branch_that_is_shown_is_imported(world: World, tmp_path: Path) -> None:
    talk = chain(message("u", "user", "How are you?"), message("new", "assistant", "Fine."), title="")
    talk["mapping"]["old"] = {"id": "old", "message": message("old", "assistant", "Tired."), "parent": "u"}

    done = imported(world, archive(tmp_path / "export.zip", talk))

    assert set(nodes(world)) == {"How are you?", "Fine."}
    assert reasons(done)["message", "another version of a message"] == 1


def test_a_broken_tree_ends(world: World, tmp_path: Path) -> None:
    ring = chain(message("a", "user", "One."), message("b", "user", "Two."))
    ring["mapping"]["a"]["parent"] = "b"
    lost = {**chain(message("c", "user", "Three.")), "current_node": "nowhere", "conversation_id": "c-2"}
    odd = {"mapping": {"x": None, "y": {"message": {"content": 5}}}, "current_node": "y"}

    done = imported(world, archive(tmp_path / "export.zip", ring, lost, odd))

    assert {"One.", "Two.", "Three."} <= set(nodes(world))
    assert done["left"] >= 2


def test_a_single_file_and_an_unpacked_folder_are_the_same(world: World, tmp_path: Path) -> None:
    path = archive(tmp_path / "export.zip", BEANS)
    first = imported(world, path)
    with zipfile.ZipFile(path) as packed:
        packed.extractall(tmp_path / "folder")

    for other in (tmp_path / "folder", tmp_path / "folder" / "conversations.json"):
        done = imported(world, other)
        assert (done["format"], done["imported"], done["present"]) == ("chatgpt", 0, first["imported"])
