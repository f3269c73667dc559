"""Memories of a project: saved with the code they cite, and forgotten without a trace."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.world import World, open_world

SOURCE = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    (folder / "sums.py").write_text(SOURCE, encoding="utf-8")
    return folder


@pytest.fixture
def world(tmp_path: Path, root: Path) -> Iterator[World]:
    with open_world(tmp_path / "data", place=root) as made:
        made.call("project", action="init")
        yield made


def test_a_saved_memory_belongs_to_the_project_and_cites_code(world: World) -> None:
    saved = world.call(
        "project", action="save", content="Sums are never rounded.", kind="constraint", cites=["sums.py:1-2"]
    )
    (citation,) = saved["citations"]
    assert citation.pop("verifiedAt") == world.clock.now.isoformat()
    assert citation == {"cited": "sums.py:1-2", "verdict": "fresh", "symbol": "add"}
    memory = world.get(saved["nodeId"])
    assert (memory["nodeType"], memory["scope"]) == ("constraint", saved["scope"])
    recalled = world.call("project_recall", task="round the sums")
    assert "Sums are never rounded." in recalled["text"]
    assert recalled["memories"][0]["citations"][0]["verdict"] == "fresh"


def test_paths_in_the_text_are_cited_too(world: World, root: Path) -> None:
    saved = world.call("project", action="save", content="See sums.py:5-6 before you touch `add`.")
    assert "sums.py:5-6" in [one["cited"] for one in saved["citations"]]
    (root / "sums.py").write_text("import os\n" + SOURCE, encoding="utf-8")
    found = world.call("project", action="citations")
    assert found["total"] == len(saved["citations"])
    assert {one["now"] for one in found["memories"][0]["citations"] if "now" in one} >= {"sums.py:6-7"}
    (root / "sums.py").unlink()
    assert set(world.call("project", action="citations")["verdicts"]) == {"gone"}
    assert world.get(saved["nodeId"])["content"].startswith("See sums.py")


@pytest.mark.parametrize(
    "place", ["missing.py:1", "sums.py:99", "../sums.py", "/etc/passwd", "sums.py:1-2-3"]
)
def test_a_place_that_is_not_there_is_refused(world: World, place: str) -> None:
    refused = world.refused("project", action="save", content="Sums are exact.", cites=[place])
    assert refused["code"] == "invalid_input"
    assert world.call("project", action="status")["memories"] == 0


def test_a_diary_entry_is_always_a_new_memory(world: World) -> None:
    first = world.call("project", action="diary", summary="Wrote the sums.", subject="sums")
    second = world.call("project", action="diary", summary="Wrote the sums.", subject="sums")
    assert first["nodeId"] != second["nodeId"]
    assert world.get(first["nodeId"])["tags"] == ["diary"]


def test_an_export_keeps_what_a_memory_has(world: World, tmp_path: Path) -> None:
    saved = world.call(
        "project", action="save", content="Sums are never rounded.", kind="decision", tags=["maths"],
        source="ADR 7", cites=["sums.py:1-2"], pinned=True,
    )  # fmt: skip
    other = world.call("project", action="diary", summary="Wrote the sums.")
    world.call("memory", action="link", id=saved["nodeId"], target=other["nodeId"])
    world.call("memory", action="set_validity", id=saved["nodeId"], valid_until="2030-01-01")
    done = world.call("export", format="portable", scope=saved["scope"], path="project.vestige.jsonl")
    assert done["edgesExported"] >= 1
    before = world.get(saved["nodeId"])
    with open_world(tmp_path / "second") as second:
        folder = tmp_path / "second" / "exports"
        folder.mkdir()
        (folder / "project.vestige.jsonl").write_bytes(Path(done["path"]).read_bytes())
        second.call("import", path="project.vestige.jsonl")
        after = second.get(saved["nodeId"])
    for name in ("content", "tags", "source", "nodeType", "scope", "validUntil", "pinned", "metadata"):
        assert after.get(name) == before.get(name), name


def test_what_is_hard_forgotten_is_in_no_file(world: World, root: Path, tmp_path: Path) -> None:
    word = "Quillonberg"
    saved = world.call("project", action="save", content=f"{word} owns the sums.", cites=["sums.py:1-2"])
    world.call("project_recall", task=f"ask {word}", session="one")
    assert (
        world.refused("project", action="forget", id=saved["nodeId"], mode="hard")["code"] == "invalid_input"
    )
    done = world.call("project", action="forget", id=saved["nodeId"], mode="hard", confirm=True)
    assert done["stillIn"] == []
    world.app.close()
    folders = (tmp_path / "data", root / ".vestige")
    stored = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    assert [file.name for file in stored if word.encode() in file.read_bytes()] == []


def test_forgetting_needs_an_id_of_this_project(world: World) -> None:
    elsewhere = world.remember("Tea is green.", scope="/project/other")
    for memory in (elsewhere, "01890000-0000-7000-8000-00000000ffff"):
        assert world.refused("project", action="forget", id=memory)["code"] == "not_found"
    assert world.refused("project", action="forget", query="tea")["code"] == "invalid_input"
    saved = world.call("project", action="save", content="Sums are never rounded.", kind="constraint")
    world.call("project", action="forget", id=saved["nodeId"])
    assert "never rounded" not in world.call("project_recall", task="round the sums")["text"]


def test_a_secret_is_not_saved(world: World) -> None:
    key = "AKIA" + "Q7R2ZK5N3JV8XWTM"
    refused = world.refused("project", action="save", content=f"The key is {key}.")
    assert refused["code"] == "secret_found"


def test_a_session_is_shown_nothing_twice(world: World) -> None:
    world.call("project", action="save", content="Sums are never rounded.", kind="constraint")
    first = world.call("project_recall", task="round the sums", session="one")
    second = world.call("project_recall", task="round the sums", session="one")
    other = world.call("project_recall", task="round the sums", session="two")
    assert first["found"]
    assert not second["found"]
    assert second["repeated"] > 0
    assert other["text"] == first["text"]


def test_only_an_explicit_check_moves_the_time_of_verification(world: World, root: Path) -> None:
    saved = world.call(
        "project", action="save", content="Sums are never rounded.", cites=["sums.py:1-2", "sums.py:5-6"]
    )
    first = world.clock.now.isoformat()
    world.clock.advance(days=1)

    def times(tool: str = "project", **given: object) -> dict[str, str]:
        answer = world.call(tool, **given)
        return {one["cited"]: one["verifiedAt"] for one in answer["memories"][0]["citations"]}

    both = {"sums.py:1-2": first, "sums.py:5-6": first}
    assert times(action="citations") == both
    assert times("project_recall", task="round the sums") == both
    assert world.get(saved["nodeId"])["revision"] == 1

    (root / "sums.py").write_text("import os\n" + SOURCE.replace("a - b", "b - a"), encoding="utf-8")
    done = world.call("project", action="verify")
    second = world.clock.now.isoformat()
    assert done["verified"] == 1
    assert times(action="citations") == {"sums.py:1-2": second, "sums.py:5-6": first}
    # The anchors are the lines of then: what was changed stays changed.
    verdicts = {one["cited"]: one["verdict"] for one in done["memories"][0]["citations"]}
    assert verdicts == {"sums.py:1-2": "moved", "sums.py:5-6": "changed"}
    assert world.call("project", action="citations")["verdicts"] == {"changed": 1, "moved": 1}
