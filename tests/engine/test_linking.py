"""Links that change, on every store: strengthened by use, faded by time, cut when little is left."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.world import World
from vestige.cognition.links import FADE_EVERY_DAYS, HALF_LIFE_DAYS, PRUNE_BELOW
from vestige.engine.context import Call
from vestige.engine.linking import REINFORCEMENT, Faded, fade, reinforce
from vestige.errors import Cancelled
from vestige.events import ActivationSpread, ConnectionDiscovered
from vestige.models import EVERYTHING, Access, Edge
from vestige.store.changes import Link

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


def test_a_link_is_made_by_use_grows_with_it_and_is_never_more_than_full(
    world: World, four: list[str]
) -> None:
    ada, bo, *_ = four
    for _ in range(3):
        reinforce(calling(world), [(ada, bo)], 0.4, "co_access")

    assert weights(world) == {("A", "B", "co_access"): 1.0}
    told = [one for one in world.heard if isinstance(one, ConnectionDiscovered)]
    assert [(one.connection_type, one.weight) for one in told] == [("co_access", 0.4)]


def test_use_in_the_other_direction_strengthens_the_same_link_and_leaves_other_kinds(
    world: World, four: list[str]
) -> None:
    ada, bo, cleo, _ = four
    put(world, ada, bo, "co_access", 0.5)
    put(world, ada, bo, "semantic", 0.5)

    reinforce(calling(world), [(bo, ada), (bo, cleo)], 0.1, "co_access")

    assert weights(world) == {
        ("A", "B", "co_access"): 0.6,
        ("A", "B", "semantic"): 0.5,
        ("B", "C", "co_access"): 0.1,
    }


def test_a_link_keeps_when_it_was_made_and_the_log_says_when_it_changed(
    world: World, four: list[str]
) -> None:
    ada, bo, *_ = four
    put(world, ada, bo, "co_access")
    made = world.clock.now
    world.clock.advance(days=3)

    reinforce(calling(world), [(ada, bo)], 0.1, "co_access")

    [edge] = world.app.engine.store.edges([ada], access=EVERYTHING)
    assert edge.created_at == made
    assert world.app.engine.store.log(access=EVERYTHING)[-1].at == world.clock.now


def test_what_is_full_already_and_what_names_nobody_writes_nothing(world: World, four: list[str]) -> None:
    ada, bo, *_ = four
    put(world, ada, bo, "co_access", 1.0)
    before = links_logged(world)

    assert reinforce(calling(world), [(ada, bo)], 0.1, "co_access") == []
    assert reinforce(calling(world), [], 0.1, "co_access") == []
    assert links_logged(world) == before


def test_a_memory_that_was_deleted_meanwhile_does_not_keep_the_others_from_being_linked(
    world: World, four: list[str]
) -> None:
    ada, bo, cleo, _ = four
    world.call("memory", action="delete", id=cleo)

    reinforce(calling(world), [(ada, bo), (ada, cleo)], 0.3, "co_access")

    assert weights(world) == {("A", "B", "co_access"): 0.3}


def test_what_is_out_of_reach_is_not_linked(world: World) -> None:
    here, there = (world.remember(name, scope=f"/{name}") for name in ("Ada", "Bo"))

    reinforce(calling(world, access=Access(scopes=("/Ada",))), [(here, there)], 0.3, "co_access")

    assert weights(world) == {}


def test_promoting_a_memory_strengthens_its_learned_links_and_wakes_what_is_near(
    world: World, four: list[str]
) -> None:
    ada, bo, cleo, dan = four
    put(world, ada, bo, "semantic", 0.8)
    put(world, bo, cleo, "semantic", 0.9)
    put(world, dan, ada, "user_defined", 0.7)

    world.call("memory", action="promote", id=ada)
    world.app.settle()

    assert weights(world) == {
        ("A", "B", "semantic"): pytest.approx(0.8 + REINFORCEMENT),
        ("B", "C", "semantic"): 0.9,
        ("D", "A", "user_defined"): 0.7,  # what somebody said stays as they said it
    }
    [spread] = [one for one in world.heard if isinstance(one, ActivationSpread)]
    assert (spread.source_id, spread.activated_ids) == (ada, (bo, dan, cleo))


def test_promoting_wakes_nothing_that_was_suppressed_and_nothing_without_links(
    world: World, four: list[str]
) -> None:
    ada, bo, *_ = four
    put(world, ada, bo)
    world.call("suppress", id=bo)
    world.call("memory", action="promote", id=ada)
    world.app.settle()

    assert weights(world) == {("A", "B", "semantic"): 0.8}
    assert not [one for one in world.heard if isinstance(one, ActivationSpread)]


# -- faded by time -----------------------------------------------------------------------------------


def age(world: World, days: float) -> datetime:
    """Let time pass; when it began."""
    before = world.clock.now
    world.clock.advance(days=days)
    return before


def test_learned_links_fade_and_all_others_stay(world: World, four: list[str]) -> None:
    ada, bo, *_ = four
    kept = ("user_defined", "causal", "contradicts", "supersedes", "merges", "from_elsewhere")
    for kind in (*kept, "semantic", "co_access"):
        put(world, ada, bo, kind, 0.8)
    since = age(world, HALF_LIFE_DAYS)

    assert fade(calling(world), since) == Faded(faded=2, pruned=0)

    left = weights(world)
    assert {left["A", "B", kind] for kind in kept} == {0.8}
    assert left["A", "B", "semantic"] == left["A", "B", "co_access"] == pytest.approx(0.4)


def test_what_next_to_nothing_is_left_of_is_cut(world: World, four: list[str]) -> None:
    ada, bo, cleo, _ = four
    put(world, ada, bo, weight=PRUNE_BELOW * 2.1)
    put(world, ada, cleo, weight=PRUNE_BELOW * 1.9)
    since = age(world, HALF_LIFE_DAYS)

    assert fade(calling(world), since) == Faded(faded=1, pruned=1)
    assert weights(world) == {("A", "B", "semantic"): pytest.approx(PRUNE_BELOW * 1.05, abs=1e-4)}


def test_running_often_fades_no_more_than_running_once(world: World, four: list[str]) -> None:
    ada, bo, *_ = four
    put(world, ada, bo, weight=1.0)
    before, since = links_logged(world), None
    for _ in range(int(HALF_LIFE_DAYS)):
        world.clock.advance(days=1)
        fade(calling(world), since)
        since = world.clock.now

    assert weights(world) == {("A", "B", "semantic"): 0.5}
    assert links_logged(world) - before == HALF_LIFE_DAYS / FADE_EVERY_DAYS


def test_a_link_made_since_the_last_run_fades_only_for_its_own_time(world: World, four: list[str]) -> None:
    ada, bo, cleo, _ = four
    put(world, ada, bo, weight=1.0)
    since = age(world, HALF_LIFE_DAYS - FADE_EVERY_DAYS)
    put(world, ada, cleo, weight=1.0)
    world.clock.advance(days=FADE_EVERY_DAYS)

    fade(calling(world), since)

    left = weights(world)
    assert left["A", "B", "semantic"] == pytest.approx(0.5)
    assert left["A", "C", "semantic"] == pytest.approx(2 ** (-FADE_EVERY_DAYS / HALF_LIFE_DAYS), abs=1e-4)


def test_links_of_a_pinned_memory_do_not_fade(world: World, four: list[str]) -> None:
    ada, bo, cleo, dan = four
    put(world, ada, bo)
    put(world, cleo, dan)
    world.call("memory", action="pin", id=bo)
    since = age(world, 10 * HALF_LIFE_DAYS)

    assert fade(calling(world), since) == Faded(faded=0, pruned=1)
    assert weights(world) == {("A", "B", "semantic"): 0.8}


def test_many_links_fade_in_small_transactions_and_a_caller_who_left_stops_it(world: World) -> None:
    items = [{"content": f"memory {number}", "force_create": True} for number in range(20)]
    made = [
        str(one["nodeId"]) for _ in range(3) for one in world.call("smart_ingest", items=items)["results"]
    ]
    pairs = [(one, other) for at, one in enumerate(made) for other in made[at + 1 :]][:1_200]
    reinforce(calling(world), pairs, 0.5, "co_access")
    since = age(world, HALF_LIFE_DAYS)
    told: list[float] = []

    with pytest.raises(Cancelled):
        fade(
            calling(world, progress=lambda done, *_: told.append(done), cancelled=lambda: len(told) == 2),
            since,
        )

    assert told == [500, 1_000]
    assert sorted(set(weights_of(world, made))) == [0.25, 0.5]


def weights_of(world: World, ids: list[str]) -> list[float]:
    edges = world.app.engine.store.edges(ids, access=EVERYTHING)
    return [round(edge.weight, 4) for edge in edges if edge.kind == "co_access"]


def test_a_clock_that_went_back_fades_nothing(world: World, four: list[str]) -> None:
    ada, bo, *_ = four
    put(world, ada, bo)

    assert fade(calling(world), world.clock.now + timedelta(days=400)) == Faded(faded=0, pruned=0)
