"""`insights`: listed while their sources stand, dismissed for good, told along with the evidence."""

from typing import Any

import pytest

from testbed.meanwhile import meanwhile
from testbed.world import World
from tests.operations.reasoning.test_sleep import OTHERS, told
from vestige.core.models import EVERYTHING, Access
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry


def listed(world: World, **arguments: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.call("insights", action="list", **arguments)["insights"]
    return found


def test_insights_are_listed_with_their_sources(world: World) -> None:
    ids = told(world)
    assert listed(world) == []

    made = world.call("dream")["insights"]

    assert listed(world) == made
    assert listed(world)[0]["source_memories"] == ids


def test_a_dismissed_insight_is_gone_and_does_not_come_back(world: World) -> None:
    told(world)
    (insight,) = world.call("dream")["insights"]

    gone = world.call("insights", action="dismiss", id=insight["id"])

    assert gone == {"id": insight["id"], "insight_type": "RecurringPattern", "dismissed": True}
    assert listed(world) == []
    world.clock.advance(days=3)
    assert world.call("dream")["insights"] == []
    assert world.call("insights", action="dismiss", id=insight["id"]) == gone
    assert world.refused("insights", action="dismiss", id="nothing")["code"] == "not_found"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("suppress", {}),
        ("memory", {"action": "edit", "content": "Something else."}),
        ("memory", {"action": "delete"}),
        ("memory", {"action": "set_validity", "valid_until": "2026-03-03"}),
    ],
)
def test_an_insight_is_no_way_round_the_fate_of_its_source(
    world: World, tool: str, arguments: dict[str, Any]
) -> None:
    ids = told(world)
    world.call("dream")

    world.call(tool, id=ids[0], **arguments)

    assert listed(world) == []
    answer = world.call("deep_reference", query="Who plays the violin in the orchestra?")
    assert answer["relatedInsights"] == []


def test_an_insight_comes_back_when_its_source_is_wanted_again(world: World) -> None:
    ids = told(world)
    world.call("dream")
    world.call("suppress", id=ids[0])
    world.call("consolidate")

    world.call("suppress", id=ids[0], reverse=True)

    assert len(listed(world)) == 1


def test_an_insight_whose_source_was_edited_is_dropped_by_consolidation(world: World) -> None:
    ids = told(world)
    world.call("dream")
    world.call("memory", action="edit", id=ids[0], content="Something else.")

    done = world.call("consolidate")

    assert {one["step"]: one["count"] for one in done["steps"]}["insights"] == 1


def test_deep_reference_tells_what_dreams_noticed_about_its_evidence(world: World) -> None:
    told(world)
    before = world.clock.now
    world.clock.advance(hours=1)
    (insight,) = world.call("dream")["insights"]

    answer = world.call("deep_reference", query="Who plays the violin in the city orchestra?")

    assert answer["relatedInsights"] == [insight]
    then = world.call(
        "deep_reference", query="Who plays the violin in the city orchestra?", known_at=before.isoformat()
    )
    assert then["relatedInsights"] == []


def test_insights_of_a_project_are_not_told_elsewhere(world: World) -> None:
    told(world, scope="/project/a")
    for text in OTHERS:
        world.remember(text, scope="/project/a")
    world.call("dream", scope="/project/a")

    assert len(listed(world, scope="/project/a")) == 1
    assert listed(world, scope="/project/b") == []
    call = Call(engine=world.app.engine, access=Access(scopes=("/project/b",)))
    assert registry.operations["insights.list"].call(call, {"scope": "/"})["insights"] == []


def test_runs_tell_when_the_memory_slept_and_what_that_did(world: World) -> None:
    told(world)
    world.call("dream")
    world.clock.advance(hours=1)
    world.call("consolidate")

    runs = world.call("insights", action="runs")["runs"]

    assert [one["kind"] for one in runs] == ["consolidation", "dream"]
    assert runs[1]["counts"]["replayed"] == 6
    assert runs[0]["counts"]["memories"] == 6
    only = world.call("insights", action="runs", kind="dream")["runs"]
    assert [one["id"] for one in only] == [runs[1]["id"]]


def test_resources_show_insights_and_the_log_of_consolidations(world: World) -> None:
    told(world)
    world.call("dream")
    world.call("consolidate")

    def read(uri: str) -> dict[str, Any]:
        operation, given = registry.match_resource(uri)
        return operation.call(Call(engine=world.app.engine), given)

    assert len(read("memory://insights")["insights"]) == 1
    assert [one["kind"] for one in read("memory://consolidation-log")["runs"]] == ["consolidation"]


def test_an_insight_that_is_outlived_and_goes_with_its_source_meanwhile_is_no_error(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = told(world)
    world.call("dream")
    world.call("memory", action="edit", id=ids[0], content="Something else.")
    meanwhile(monkeypatch, world, "insight", lambda: world.call("memory", action="delete", id=ids[0]))

    notes = [str(step.get("note")) for step in world.call("consolidate")["steps"]]

    assert world.refused("memory", action="get", id=ids[0])["code"] == "not_found"
    assert [note for note in notes if note.startswith("not done")] == []
    assert world.app.engine.store.documents("insight", access=EVERYTHING, limit=5) == []
