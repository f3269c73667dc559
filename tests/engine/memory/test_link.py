"""Links that change, on every store: strengthened by use, faded by time, cut when little is left."""

import contextlib
from collections import Counter
from typing import Any

import pytest

from testbed.world import World
from vestige.cognition.graph.kinds import FADE_EVERY_DAYS, HALF_LIFE_DAYS, PRUNE_BELOW, REINFORCEMENT
from vestige.core.errors import Cancelled
from vestige.core.events import ActivationSpread
from vestige.core.models import EVERYTHING, Access, Edge
from vestige.engine.context import Call
from vestige.engine.memory.link import FadedLinks, fade
from vestige.operations.registry.groups import registry
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.changes import Link

NAMES = ("Ada", "Bo", "Cleo", "Dan")


@pytest.fixture
def four(world: World) -> list[str]:
    return [world.remember(name, force_create=True) for name in NAMES]


def calling(world: World, **arguments: Any) -> Call:
    return Call(engine=world.app.engine, **arguments)


def put(world: World, source: str, target: str, kind: str = "semantic", weight: float = 0.8) -> None:
    edge = Edge(source_id=source, target_id=target, kind=kind, weight=weight, created_at=world.clock.now)
    world.app.engine.store.commit([Link(edge=edge)], access=EVERYTHING)


def weights(world: World) -> dict[tuple[str, str, str], float]:
    """Every link: (from, to, kind) by the first letters of the memories."""
    store = world.app.engine.store
    edges = [edge for batch in store.stream_edges(access=EVERYTHING) for edge in batch]
    ids = {end for edge in edges for end in (edge.source_id, edge.target_id)}
    letter = {one.memory.id: one.memory.content[0] for one in store.get_many(sorted(ids), access=EVERYTHING)}
    return {(letter[e.source_id], letter[e.target_id], e.kind): round(e.weight, 4) for e in edges}


def links_logged(world: World) -> int:
    return sum(event.kind.startswith("edge.") for event in world.app.engine.store.log(access=EVERYTHING))


# -- strengthened by use ---------------------------------------------------------------------------


def promote(world: World, memory_id: str) -> None:
    world.call("memory", action="promote", id=memory_id)
    world.app.settle()


def test_a_link_grows_with_use_however_faded_it_is_and_is_never_more_than_full(
    world: World, four: list[str]
) -> None:
    ada, bo, cleo, _ = four
    put(world, ada, bo, "co_access", PRUNE_BELOW)
    put(world, cleo, ada, "semantic", 0.97)
    for _ in range(2):
        promote(world, ada)

    assert weights(world) == {
        ("A", "B", "co_access"): pytest.approx(PRUNE_BELOW + 2 * REINFORCEMENT),
        ("C", "A", "semantic"): 1.0,
    }


def test_a_link_keeps_when_it_was_made_and_the_log_says_when_it_changed(
    world: World, four: list[str]
) -> None:
    ada, bo, *_ = four
    put(world, ada, bo, "co_access")
    made = world.clock.now
    world.clock.advance(days=3)

    promote(world, ada)

    [edge] = world.app.engine.store.edges([ada], access=EVERYTHING)
    assert edge.created_at == made
    linked = world.app.engine.store.latest(LogQuery(kinds=("edge.linked",)), access=EVERYTHING, limit=1)
    assert linked[0].at == world.clock.now


def test_what_is_full_already_is_not_written_again(world: World, four: list[str]) -> None:
    ada, bo, *_ = four
    put(world, ada, bo, "co_access", 1.0)
    before = links_logged(world)

    promote(world, ada)

    assert links_logged(world) == before


def test_promoting_a_memory_strengthens_its_learned_links_and_wakes_what_is_linked_to_it(
    world: World, four: list[str]
) -> None:
    ada, bo, cleo, dan = four
    put(world, ada, bo, "semantic", 0.8)
    put(world, bo, cleo, "semantic", 0.9)
    put(world, dan, ada, "user_defined", 0.7)

    promote(world, ada)

    assert weights(world) == {
        ("A", "B", "semantic"): pytest.approx(0.8 + REINFORCEMENT),
        ("B", "C", "semantic"): 0.9,
        ("D", "A", "user_defined"): 0.7,  # what somebody said stays as they said it
    }
    [spread] = [one for one in world.heard if isinstance(one, ActivationSpread)]
    assert (spread.source_id, spread.activated_ids) == (ada, (bo, dan))


def test_promoting_wakes_nothing_that_was_suppressed_and_nothing_without_links(
    world: World, four: list[str]
) -> None:
    ada, bo, *_ = four
    put(world, ada, bo)
    world.call("suppress", id=bo)
    promote(world, ada)

    assert weights(world) == {("A", "B", "semantic"): 0.8}
    assert not [one for one in world.heard if isinstance(one, ActivationSpread)]


# -- faded by time -----------------------------------------------------------------------------------


def test_learned_links_fade_and_all_others_stay(world: World, four: list[str]) -> None:
    ada, bo, *_ = four
    kept = ("user_defined", "causal", "contradicts", "supersedes", "merges", "from_elsewhere")
    for kind in (*kept, "semantic", "co_access"):
        put(world, ada, bo, kind, 0.8)
    world.clock.advance(days=HALF_LIFE_DAYS)

    assert fade(calling(world)) == FadedLinks(faded=2, pruned=0)

    left = weights(world)
    assert {left["A", "B", kind] for kind in kept} == {0.8}
    assert left["A", "B", "semantic"] == left["A", "B", "co_access"] == pytest.approx(0.4)


def test_what_next_to_nothing_is_left_of_is_cut(world: World, four: list[str]) -> None:
    ada, bo, cleo, _ = four
    put(world, ada, bo, weight=PRUNE_BELOW * 2.1)
    put(world, ada, cleo, weight=PRUNE_BELOW * 1.9)
    world.clock.advance(days=HALF_LIFE_DAYS)

    assert fade(calling(world)) == FadedLinks(faded=1, pruned=1)
    assert weights(world) == {("A", "B", "semantic"): pytest.approx(PRUNE_BELOW * 1.05, abs=1e-4)}


def test_running_often_fades_no_more_than_running_once(world: World, four: list[str]) -> None:
    ada, bo, *_ = four
    put(world, ada, bo, weight=1.0)
    before = links_logged(world)
    for _ in range(int(HALF_LIFE_DAYS)):
        world.clock.advance(days=1)
        fade(calling(world))

    assert weights(world) == {("A", "B", "semantic"): 0.5}
    assert links_logged(world) - before == HALF_LIFE_DAYS / FADE_EVERY_DAYS


def test_a_link_made_since_the_last_run_fades_only_for_its_own_time(world: World, four: list[str]) -> None:
    ada, bo, cleo, _ = four
    put(world, ada, bo, weight=1.0)
    world.clock.advance(days=HALF_LIFE_DAYS - FADE_EVERY_DAYS)
    fade(calling(world))
    put(world, ada, cleo, weight=1.0)
    world.clock.advance(days=FADE_EVERY_DAYS)

    fade(calling(world))

    left = weights(world)
    assert left["A", "B", "semantic"] == pytest.approx(0.5)
    assert left["A", "C", "semantic"] == pytest.approx(2 ** (-FADE_EVERY_DAYS / HALF_LIFE_DAYS), abs=1e-4)


def test_links_of_a_pinned_memory_do_not_fade(world: World, four: list[str]) -> None:
    ada, bo, cleo, dan = four
    put(world, ada, bo)
    put(world, cleo, dan)
    world.call("memory", action="pin", id=bo)
    world.clock.advance(days=10 * HALF_LIFE_DAYS)

    assert fade(calling(world)) == FadedLinks(faded=0, pruned=1)
    assert weights(world) == {("A", "B", "semantic"): 0.8}


def test_a_run_that_is_cut_short_has_faded_a_part_of_the_links_and_none_of_them_twice(world: World) -> None:
    items = [{"content": f"memory {number}", "force_create": True} for number in range(20)]
    made = [
        str(one["nodeId"]) for _ in range(3) for one in world.call("smart_ingest", items=items)["results"]
    ]
    pairs = [(one, other) for at, one in enumerate(made) for other in made[at + 1 :]][:1_200]
    now = world.clock.now
    edges = [Edge(source_id=a, target_id=b, kind="co_access", weight=0.8, created_at=now) for a, b in pairs]
    world.app.engine.store.commit([Link(edge=edge) for edge in edges], access=EVERYTHING)
    world.clock.advance(days=HALF_LIFE_DAYS)
    told: list[float] = []

    with pytest.raises(Cancelled):
        fade(calling(world, progress=lambda done, *_: told.append(done), cancelled=lambda: len(told) == 2))

    assert told == [500, 1_000]
    assert Counter(weights_of(world, made)) == {0.4: 1_000, 0.8: 200}
    assert fade(calling(world)) == FadedLinks(faded=0, pruned=0)
    world.clock.advance(days=HALF_LIFE_DAYS)
    fade(calling(world))
    assert Counter(weights_of(world, made)) == {0.2: 1_000, 0.4: 200}


def test_a_memory_that_is_deleted_meanwhile_does_not_keep_the_other_links_from_fading(
    world: World, four: list[str]
) -> None:
    ada, bo, cleo, _ = four
    put(world, ada, bo)
    put(world, ada, cleo)
    world.clock.advance(days=HALF_LIFE_DAYS)

    def delete() -> bool:  # asked when links were read and are not yet saved
        world.call("memory", action="delete", id=cleo)
        return False

    assert fade(calling(world, cancelled=delete)) == FadedLinks(faded=1, pruned=0)
    assert fade(calling(world)) == FadedLinks(faded=0, pruned=0)
    assert weights(world) == {("A", "B", "semantic"): 0.4}


def test_links_fade_once_though_the_run_is_cut_short_right_after(world: World, four: list[str]) -> None:
    ada, bo, *_ = four
    put(world, ada, bo)
    world.clock.advance(days=HALF_LIFE_DAYS)

    def gone(done: float, total: float | None, what: str | None) -> None:
        if what == "Fading links":  # told when they are saved
            raise Cancelled

    for _ in range(2):
        with contextlib.suppress(Cancelled):
            fade(calling(world, progress=gone))
    world.call("consolidate")

    assert weights(world) == {("A", "B", "semantic"): 0.4}


def test_links_do_not_fade_again_for_each_part_of_the_memory_that_is_consolidated(world: World) -> None:
    ada, bo = (world.remember(name, force_create=True, scope="/a") for name in NAMES[:2])
    put(world, ada, bo)
    world.clock.advance(days=HALF_LIFE_DAYS)

    part = calling(world, access=Access(scopes=("/a",)), scope="/a")
    steps = registry.operations["consolidate"].call(part, {})["steps"]
    world.call("consolidate")

    assert "whole store" in next(one["note"] for one in steps if one["step"] == "links")
    assert weights(world) == {("A", "B", "semantic"): 0.4}


def weights_of(world: World, ids: list[str]) -> list[float]:
    edges = world.app.engine.store.edges(ids, access=EVERYTHING)
    return [round(edge.weight, 4) for edge in edges if edge.kind == "co_access"]


def test_a_clock_that_went_back_fades_nothing(world: World, four: list[str]) -> None:
    ada, bo, *_ = four
    put(world, ada, bo)
    world.clock.advance(days=HALF_LIFE_DAYS)
    fade(calling(world))
    world.clock.advance(days=-40)

    assert fade(calling(world)) == FadedLinks(faded=0, pruned=0)
    world.clock.advance(days=40)
    assert fade(calling(world)) == FadedLinks(faded=0, pruned=0)
