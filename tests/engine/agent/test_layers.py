"""The layers in the store: what is in the files is there once, follows them, survives a lost database."""

from pathlib import Path

from testbed.world import HandClock, World, open_world
from tests.engine.agent.agent_world import files_of, new_agent


def written(world: World) -> None:
    """An agent with something in every layer."""
    files = new_agent(world)
    files.memory.write_text("# Memory\n\n## About Me\n\n- Ada, a botanist.\n", encoding="utf-8")
    world.call(
        "agent",
        action="log",
        session="Parser",
        summary="Wrote the parser.",
        decisions=["Pratt, because precedence is easy"],
        open_threads=["error messages"],
    )
    world.call("agent", action="reflect", content="Run the fast tests first.", type="pattern")
    (files.knowledge / "Roses.md").write_text(
        "---\ntags: [garden]\n---\nRoses need [[Compost]] and [[Water]].\n", encoding="utf-8"
    )
    (files.knowledge / "Compost.md").write_text("Compost ripens in a year.\n", encoding="utf-8")
    files.setup.write_text("The door code is on the setup page.\n", encoding="utf-8")
    files.credentials.write_text("The canary credential flow.\n", encoding="utf-8")


def contents(world: World) -> set[str]:
    listed = world.call("memory", action="list", limit=100)["results"]
    return {one["content"] for one in listed}


def test_a_second_rebuild_adds_nothing(world: World) -> None:
    written(world)
    first = world.call("agent", action="rebuild")
    again = world.call("agent", action="rebuild")
    assert first["imported"] == 3  # the log line and the reflection are there since they were written
    assert (again["imported"], again["present"], again["links"]) == (0, 5, 0)
    assert (first["links"], first["future"]) == (1, 1)


def test_a_lost_database_is_rebuilt_from_the_files(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path / "data", clock=clock) as world:
        written(world)
        world.call("agent", action="rebuild")
        before = contents(world)
    for file in (tmp_path / "data").glob("vestige.db*"):
        file.unlink()
    with open_world(tmp_path / "data", clock=clock) as world:
        assert not contents(world)
        world.call("agent", action="rebuild")
        assert contents(world) == before
        assert len(before) == 5
        (log,) = (one for one in before if one.startswith("Session"))
        assert "Pratt, because precedence is easy" in log
        assert "error messages" in log


def test_files_on_demand_are_neither_read_nor_found(world: World) -> None:
    written(world)
    files = files_of(world)
    files.credentials.chmod(0)
    world.call("agent", action="rebuild")
    assert not [one for one in contents(world) if "canary" in one or "door code" in one]
    assert "canary" not in world.call("agent", action="context")["context"]


def test_a_section_that_leaves_its_file_ends_in_the_store_and_can_come_back(world: World) -> None:
    written(world)
    world.call("agent", action="rebuild")
    files = files_of(world)
    old = files.memory.read_text(encoding="utf-8")
    files.memory.write_text(old.replace("a botanist", "a chemist"), encoding="utf-8")
    done = world.call("agent", action="rebuild")
    assert (done["imported"], done["retired"]) == (1, 1)
    assert [text for text in world.find("Who is Ada, a botanist or a chemist?") if "botanist" in text] == []
    files.memory.write_text(old, encoding="utf-8")
    done = world.call("agent", action="rebuild")
    assert (done["imported"], done["retired"], done["revived"]) == (0, 1, 1)
    assert [text for text in world.find("Who is Ada, a botanist?") if "botanist" in text]


def test_identity_is_of_the_user_and_logs_are_of_the_assistant(world: World) -> None:
    written(world)
    world.call("agent", action="rebuild")
    listed = world.call("memory", action="list", limit=100, detail_level="full")["results"]
    origins = {one["source"].partition("/")[0]: one["origin"] for one in listed}
    assert origins == {
        "MEMORY.md": "user", "sessions": "assistant", "reflections.jsonl": "assistant", "knowledge": "import",
    }  # fmt: skip


def test_equal_lines_are_equal_memories_each(world: World) -> None:
    files = new_agent(world)
    files.reflections.write_text('{"type":"idea","content":"Same."}\n' * 3, encoding="utf-8")
    assert world.call("agent", action="rebuild")["imported"] == 3
    assert world.call("agent", action="rebuild")["imported"] == 0


def test_lines_of_others_are_read_although_fields_are_missing_or_wrong(world: World) -> None:
    files = new_agent(world)
    day = files.sessions / "2026-02-08.jsonl"
    day.write_text(
        '{"session":"A","summary":"One."}\n{"date":7,"time":"late","summary":"Two.","decisions":"why"}\n'
        '{"unknown":true}\nbroken\n{"date":"2026-02-08","time":"14:05","session":"C","summary":"Three."}\n',
        encoding="utf-8",
    )
    done = world.call("agent", action="rebuild")
    assert (done["imported"], done["broken"]) == (3, {"sessions/2026-02-08.jsonl": [4]})
    listed = world.call("memory", action="list", limit=9, detail_level="full")["results"]
    (dated,) = (one for one in listed if "Three" in one["content"])
    assert dated["occurredAt"].startswith("2026-02-08T14:05")
