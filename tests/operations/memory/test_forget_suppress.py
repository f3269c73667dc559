"""`suppress`: what it answers, what it refuses, and that nothing else changes."""

from dataclasses import replace
from typing import Any

import pytest

from testbed.meanwhile import meanwhile
from testbed.world import World
from vestige.core.events import MemorySuppressed, MemoryUnsuppressed, Rac1CascadeSwept
from vestige.core.models import EVERYTHING, Access, Edge
from vestige.engine.context import Call
from vestige.engine.memory import suppress as suppression
from vestige.store.contract.changes import Link, Revise

TEXT = "The wedding at Lake Garda was cancelled."


def suppress(world: World, memory_id: str, **arguments: Any) -> dict[str, Any]:
    return world.call("suppress", id=memory_id, **arguments)


def sweep(world: World, access: Access = EVERYTHING) -> suppression.Swept:
    return suppression.sweep(Call(engine=world.app.engine, access=access))


def link(world: World, source: str, target: str, kind: str = "semantic", weight: float = 1.0) -> None:
    edge = Edge(source_id=source, target_id=target, kind=kind, weight=weight, created_at=world.clock.now)
    world.app.engine.store.commit([Link(edge=edge)], access=EVERYTHING)


def stability(world: World, memory_id: str) -> float:
    return float(world.get(memory_id)["stability"])


def test_the_answer_says_how_far_it_is_out_of_mind_and_until_when_that_can_be_taken_back(
    world: World,
) -> None:
    memory_id = world.remember(TEXT)
    kept = world.get(memory_id)

    answer = suppress(world, memory_id, reason="It is over.")

    assert answer["reversibleUntil"] == "2026-03-02T09:00:00Z"
    assert (answer["action"], answer["labileWindowHours"]) == ("suppress", 24)
    assert (answer["suppressionCount"], answer["priorCount"], answer["retrievalPenalty"]) == (1, 0, 0.15)
    assert (answer["retention"], answer["stability"]) == (kept["retentionStrength"], kept["stability"])
    assert answer["accessibility"] == round(0.85 * kept["retentionStrength"], 4)
    (told,) = [one for one in world.heard if isinstance(one, MemorySuppressed)]
    assert (told.id, told.suppression_count, told.estimated_cascade) == (memory_id, 1, 0)


def test_a_list_and_a_bulk_change_can_be_of_suppressed_memories_only(world: World) -> None:
    gone = world.remember(TEXT)
    kept = world.remember("Bo keeps a canoe behind the boathouse.")
    suppress(world, gone)

    listed = world.call("memory", action="list", suppressed=True)
    planned = world.call("memory", action="bulk", change="pin", suppressed=True)

    assert ([one["id"] for one in listed["results"]], listed["total"]) == ([gone], 1)
    assert listed["total"] == world.call("system_status")["suppressed"]
    assert planned["matched"] == 1
    both = world.call("memory", action="list", include_suppressed=True)
    assert {one["id"] for one in both["results"]} == {gone, kept}


def test_the_reason_is_kept_nowhere(world: World) -> None:
    memory_id = world.remember(TEXT)
    suppress(world, memory_id, reason="because of Ottavio")
    assert "Ottavio" not in str(world.call("memory", action="history", id=memory_id))


def test_suppressing_twice_within_the_window_is_refused_and_changes_nothing(world: World) -> None:
    memory_id = world.remember(TEXT)
    suppress(world, memory_id)
    world.clock.advance(hours=23)
    before = world.get(memory_id)

    refused = world.refused("suppress", id=memory_id)

    assert refused["code"] == "conflict"
    assert "suppressed already" in refused["message"]
    assert "2026-03-02 09:00" in refused["hint"]
    assert world.get(memory_id) == before


def test_after_the_window_it_compounds_up_to_a_limit(world: World) -> None:
    memory_id = world.remember(TEXT)
    penalties = []
    for _ in range(7):
        penalties.append(suppress(world, memory_id)["retrievalPenalty"])
        world.clock.advance(hours=24)
    assert penalties == [0.15, 0.3, 0.45, 0.6, 0.75, 0.8, 0.8]


def test_reversing_too_late_is_refused_with_what_to_do_instead(world: World) -> None:
    memory_id = world.remember(TEXT)
    suppress(world, memory_id)
    world.clock.advance(hours=24)
    before = world.get(memory_id)

    refused = world.refused("suppress", id=memory_id, reverse=True)

    assert refused["code"] == "conflict"
    assert "promote" in refused["hint"]
    assert world.get(memory_id) == before


def test_promoting_ends_a_suppression_that_is_final(world: World) -> None:
    memory_id = world.remember(TEXT)
    suppress(world, memory_id)
    world.clock.advance(days=2)

    world.call("memory", action="promote", id=memory_id)

    node = world.get(memory_id)
    assert (node["suppressionCount"], "suppressedAt" in node) == (0, False)
    assert [one for one in world.heard if isinstance(one, MemoryUnsuppressed)]


def test_reversing_what_is_not_suppressed_is_refused(world: World) -> None:
    memory_id = world.remember(TEXT)
    assert "is not suppressed" in world.refused("suppress", id=memory_id, reverse=True)["message"]
    assert world.refused("suppress", id="nobody")["code"] == "not_found"


def test_a_reversal_keeps_what_was_edited_meanwhile(world: World) -> None:
    memory_id = world.remember(TEXT)
    suppress(world, memory_id)
    world.call("memory", action="edit", id=memory_id, content="The wedding was moved to May.")

    answer = suppress(world, memory_id, reverse=True)

    node = world.get(memory_id)
    assert (node["content"], node["suppressionCount"]) == ("The wedding was moved to May.", 0)
    assert (answer["action"], answer["priorCount"], "reversibleUntil" in answer) == ("reverse", 1, False)
    (told,) = [one for one in world.heard if isinstance(one, MemoryUnsuppressed)]
    assert told.remaining_count == 0


def test_only_what_nothing_else_happened_to_is_told_to_be_as_it_was(world: World) -> None:
    alone, edited, voted, told, shown = (
        world.remember(f"{TEXT[:-1]}, version {number}.", force_create=True) for number in range(5)
    )
    for memory_id in (alone, edited, voted, told, shown):
        suppress(world, memory_id)
    world.call("memory", action="edit", id=edited, content="The wedding took place.")
    world.call("memory", action="demote", id=voted)
    world.remember(f"{TEXT[:-1]}, version 3.")
    world.call("memory", action="useful", id=shown)

    messages = {
        one: suppress(world, one, reverse=True)["message"] for one in (alone, edited, voted, told, shown)
    }

    assert [one for one, said in messages.items() if "unchanged" in said] == [alone]
    assert [one for one, said in messages.items() if "Other changes since then stay" in said] == [
        edited,
        voted,
        told,
        shown,
    ]


def test_a_memory_that_came_here_suppressed_can_be_freed_within_its_window(world: World) -> None:
    memory_id = world.remember(TEXT)
    store = world.app.engine.store
    memory = store.get_many([memory_id], access=EVERYTHING)[0].memory
    there = replace(memory, suppression_count=2, suppressed_at=world.clock.now, revision=2)
    store.commit([Revise(memory=there, reason="import")], access=EVERYTHING)

    assert suppress(world, memory_id, reverse=True)["suppressionCount"] == 1
    assert "suppressedAt" not in world.get(memory_id)


def test_a_pinned_memory_is_not_suppressed(world: World) -> None:
    memory_id = world.remember(TEXT)
    world.call("memory", action="pin", id=memory_id)

    refused = world.refused("suppress", id=memory_id)

    assert (refused["code"], "Unpin" in refused["hint"]) == ("conflict", True)
    assert world.get(memory_id)["suppressionCount"] == 0


def test_a_change_of_state_by_suppression_is_logged(world: World) -> None:
    memory_id = world.remember(TEXT)
    assert world.get(memory_id)["state"] == "active"

    assert suppress(world, memory_id)["state"] == "dormant"
    suppress(world, memory_id, reverse=True)

    events = world.call("memory", action="history", id=memory_id)["events"]
    told = [one["details"] for one in events if one["kind"] == "memory.state"]
    assert told == [
        {"from": "active", "to": "dormant", "reason": "suppressed"},
        {"from": "dormant", "to": "active", "reason": "unsuppressed"},
    ]


@pytest.fixture
def circle(world: World) -> dict[str, str]:
    """A seed with five neighbours, of which only `near` and `far` can be weakened."""
    ids = {name: world.remember(f"Note {name}.", force_create=True) for name in
           ("seed", "near", "far", "pinned", "hushed", "replaced", "loose")}  # fmt: skip
    link(world, ids["seed"], ids["near"], weight=1.0)
    link(world, ids["near"], ids["seed"], "user_defined", weight=0.2)
    link(world, ids["far"], ids["seed"], weight=0.5)
    for name in ("pinned", "hushed"):
        link(world, ids["seed"], ids[name])
    link(world, ids["seed"], ids["replaced"], "supersedes")
    world.call("memory", action="pin", id=ids["pinned"])
    return ids


def test_only_neighbours_that_may_change_are_weakened_by_the_weight_of_their_link(
    world: World, circle: dict[str, str]
) -> None:
    suppress(world, circle["hushed"])
    before = {name: stability(world, one) for name, one in circle.items()}
    suppress(world, circle["seed"])
    assert sweep(world) == suppression.Swept(seeds=0, neighbors=0)
    world.clock.advance(hours=24)

    assert sweep(world) == suppression.Swept(seeds=2, neighbors=2)

    lost = {name: round(stability(world, one) / before[name], 3) for name, one in circle.items()}
    assert lost == {**dict.fromkeys(circle, 1.0), "near": 0.7, "far": 0.85}
    assert sweep(world) == suppression.Swept(seeds=0, neighbors=0)
    assert len([one for one in world.heard if isinstance(one, Rac1CascadeSwept)]) == 1


def test_what_was_taken_back_reaches_no_neighbour(world: World, circle: dict[str, str]) -> None:
    suppress(world, circle["seed"])
    world.clock.advance(hours=1)
    suppress(world, circle["seed"], reverse=True)
    world.clock.advance(days=3)
    assert sweep(world) == suppression.Swept(seeds=0, neighbors=0)


def test_each_suppression_reaches_the_neighbours_once_even_when_the_next_one_comes_first(
    world: World, circle: dict[str, str]
) -> None:
    before = stability(world, circle["near"])
    suppress(world, circle["seed"])
    world.clock.advance(hours=24)
    suppress(world, circle["seed"])
    world.clock.advance(hours=24)
    sweep(world)
    assert stability(world, circle["near"]) == pytest.approx(0.49 * before, rel=1e-3)


def test_a_sweep_stays_within_its_access(world: World) -> None:
    seed = world.remember("Here.", scope="/mine", force_create=True)
    outside = world.remember("There.", scope="/theirs", force_create=True)
    link(world, seed, outside)
    before = stability(world, outside)
    suppress(world, seed)
    world.clock.advance(days=2)

    assert sweep(world, Access(scopes=("/theirs",))) == suppression.Swept(seeds=0, neighbors=0)
    assert sweep(world, Access(scopes=("/mine",))) == suppression.Swept(seeds=1, neighbors=0)
    assert stability(world, outside) == before


@pytest.mark.parametrize("suppressed_anew", [False, True])
def test_a_suppression_that_ends_while_others_are_swept_reaches_no_neighbour(
    world: World, suppressed_anew: bool
) -> None:
    memory_id, other = world.remember(TEXT), world.remember("Ottavio plays the cello.")
    link(world, memory_id, other)
    suppress(world, memory_id)
    world.clock.advance(hours=25)
    before = stability(world, other)

    def wanted_again() -> bool:
        """Somebody else promotes it when the sweep has seen it and is asked whether to go on."""
        world.call("memory", action="promote", id=memory_id)
        if suppressed_anew:
            suppress(world, memory_id)
        return False

    swept = suppression.sweep(Call(engine=world.app.engine, cancelled=wanted_again))

    assert swept == suppression.Swept(seeds=0, neighbors=0)
    assert stability(world, other) == before
    assert world.get(memory_id)["suppressionCount"] == suppressed_anew


def test_a_neighbour_deleted_meanwhile_does_not_save_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = world.remember(TEXT)
    gone, other = world.remember("Ottavio plays the cello."), world.remember("Herons are counted in April.")
    link(world, memory_id, gone)
    link(world, memory_id, other)
    suppress(world, memory_id)
    world.clock.advance(hours=25)
    before = stability(world, other)
    meanwhile(monkeypatch, world, "cascade", lambda: world.call("memory", action="delete", id=gone))

    assert sweep(world) == suppression.Swept(seeds=1, neighbors=1)
    assert stability(world, other) == pytest.approx(0.7 * before, rel=1e-3)
