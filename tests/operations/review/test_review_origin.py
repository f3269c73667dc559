"""The origin of memories: set at the door, lowered by what is derived, kept by every copy."""

import json
from pathlib import Path
from typing import Any

from testbed.world import HandClock, World, open_world
from vestige.core.origin import Origin
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry


def by_user(world: World, content: str, **arguments: Any) -> str:
    """Store a text as the user at the command line does."""
    call = Call(engine=world.app.engine, origin=Origin.USER, local=True)
    answer = registry.operations["smart_ingest"].call(call, {"content": content, **arguments})
    return str(answer["nodeId"])


def origin(world: World, memory_id: str) -> str | None:
    return world.get(memory_id).get("origin")


def test_the_door_sets_the_origin_and_a_caller_can_only_lower_it(world: World) -> None:
    assert origin(world, by_user(world, "Ada drinks tea.")) == "user"
    assert origin(world, by_user(world, "Bo drinks milk.", origin="document")) == "document"
    assert origin(world, world.remember("Cleo drinks water.")) == "assistant"
    assert origin(world, world.remember("Dan drinks juice.", origin="tool")) == "tool"
    assert origin(world, world.remember("Eve drinks cocoa.", origin="user")) == "assistant"
    assert world.refused("smart_ingest", content="x", origin="king")["code"] == "invalid_input"


def test_memories_can_be_filtered_by_origin(world: World) -> None:
    by_user(world, "Ada drinks tea at the harbour.")
    page = world.remember("The harbour page says tea is served.", origin="document")
    assert world.find("tea harbour", origin="document") == ["The harbour page says tea is served."]
    listed = world.call("memory", action="list", origin="document")["results"]
    assert [one["id"] for one in listed] == [page]
    assert world.find("tea harbour", origin="connector") == []


def test_what_is_merged_or_joined_has_the_lowest_origin_of_its_sources(world: World) -> None:
    first = by_user(world, "The harbour database is backed up every night.", force_create=True)
    text = "The harbour database is backed up every night. Backups are kept for a month."
    second = world.remember(text, origin="document", force_create=True)
    plan = world.call("dedup", action="plan", ids=[first, second])
    merged = world.call("dedup", action="apply", ids=[first, second], plan_id=plan["planId"])
    assert origin(world, merged["id"] if "id" in merged else merged["node"]["id"]) == "document"

    mine = by_user(world, "Ada likes tea.")
    waits = world.call("smart_ingest", content="Tea is what Ada likes.", origin="tool", review=True)
    world.call("review", action="merge", id=waits["nodeId"], into=mine)
    assert origin(world, mine) == "tool"


def test_an_edit_by_an_agent_lowers_the_origin_and_one_by_the_user_never_raises_it(world: World) -> None:
    mine, page = by_user(world, "Ada likes tea."), world.remember("Bo likes milk.", origin="document")
    user = Call(engine=world.app.engine, origin=Origin.USER)
    edit = registry.operations["memory.edit"]
    edit.call(user, {"id": mine, "content": "Ada likes green tea."})
    edit.call(user, {"id": page, "content": "Bo likes oat milk."})
    assert (origin(world, mine), origin(world, page)) == ("user", "document")
    world.call("memory", action="tag", id=mine, add=["tea"])
    assert origin(world, mine) == "user"
    world.call("memory", action="edit", id=mine, content="Ada likes black tea.")
    assert origin(world, mine) == "assistant"


def test_an_approved_text_keeps_its_origin(world: World) -> None:
    waits = world.call("smart_ingest", content="The page says tea.", origin="document", review=True)
    user = Call(engine=world.app.engine, origin=Origin.USER)
    done = registry.operations["review.approve"].call(user, {"id": waits["nodeId"]})
    assert origin(world, done["memoryId"]) == "document"


def test_copies_keep_the_origin_and_foreign_files_have_their_own(tmp_path: Path) -> None:
    with open_world(tmp_path / "one") as world:
        mine = by_user(world, "Ada drinks tea.")
        portable = Path(world.call("export", format="portable")["path"]).read_bytes()
        plain = Path(world.call("export", format="jsonl")["path"]).read_bytes()
        assert json.loads(plain.splitlines()[0])["origin"] == "user"
    with open_world(tmp_path / "two", clock=HandClock(first=1000)) as other:
        exports = tmp_path / "two" / "exports"
        exports.mkdir(parents=True)
        (exports / "all.jsonl").write_bytes(portable)
        (exports / "foreign.jsonl").write_text('{"content": "Bo drinks milk."}\n', encoding="utf-8")
        other.call("import", path="all.jsonl")
        other.call("import", path="foreign.jsonl")
        assert origin(other, mine) == "user"
        (found,) = other.call("memory", action="list", origin="import")["results"]
        assert found["content"] == "Bo drinks milk."
