"""How activation goes from memory to memory, on every store."""

from itertools import pairwise

import pytest

from testbed.world import World
from vestige.cognition.graph.spread import CROSSING, DECAY, Activation
from vestige.core.models import EVERYTHING, Edge
from vestige.engine.context import Call
from vestige.engine.recall.stage_inputs import MOST_ACTIVE, spread
from vestige.store.contract.changes import Link


def remember(world: World, *names: str, scope: str = "/") -> list[str]:
    return [world.remember(name, force_create=True, scope=scope) for name in names]


def link(world: World, *pairs: tuple[str, str], weight: float = 1.0) -> None:
    now = world.clock.now
    edges = [Edge(source_id=a, target_id=b, kind="semantic", weight=weight, created_at=now) for a, b in pairs]
    world.app.engine.store.commit([Link(edge=edge) for edge in edges], access=EVERYTHING)


def levels(world: World, seeds: dict[str, float], steps: int) -> dict[str, float]:
    """How active each memory is after so many steps."""
    start = {memory_id: Activation(level=level) for memory_id, level in seeds.items()}
    active, _ = spread(Call(engine=world.app.engine), start, steps=steps)
    return {memory_id: one.level for memory_id, one in active.items()}


def test_activation_goes_as_many_links_far_as_it_has_steps(world: World) -> None:
    row = remember(world, "Ada", "Bo", "Cleo", "Dan", "Eve")
    link(world, *pairwise(row))

    for steps in range(4):
        expected = [DECAY**hop for hop in range(steps + 1)]
        assert levels(world, {row[0]: 1.0}, steps) == pytest.approx(dict(zip(row, expected, strict=False)))


def test_a_memory_that_became_more_active_passes_that_on(world: World) -> None:
    ada, bo, cleo = remember(world, "Ada", "Bo", "Cleo")
    link(world, (ada, bo), (bo, cleo))
    seeds = {ada: 1.0, bo: 0.4}

    assert levels(world, seeds, 1) == pytest.approx({ada: 1.0, bo: DECAY, cleo: 0.4 * DECAY})
    assert levels(world, seeds, 2) == pytest.approx({ada: 1.0, bo: DECAY, cleo: DECAY**2})


def test_a_ring_ends_where_it_began(world: World) -> None:
    ring = remember(world, "Ada", "Bo", "Cleo")
    link(world, *pairwise([*ring, ring[0]]))

    assert levels(world, {ring[0]: 1.0}, 10) == pytest.approx({ring[0]: 1.0, ring[1]: DECAY, ring[2]: DECAY})


def test_a_link_into_another_scope_carries_less(world: World) -> None:
    here, near = remember(world, "Ada", "Bo", scope="/project/here")
    [far] = remember(world, "Cleo", scope="/project/there")
    link(world, (here, near), (here, far))

    assert levels(world, {here: 1.0}, 1) == pytest.approx({here: 1.0, near: DECAY, far: DECAY * CROSSING})


def test_of_many_links_the_strongest_count(world: World) -> None:
    [hub] = remember(world, "hub")
    strong = remember(world, *(f"strong {number}" for number in range(MOST_ACTIVE)))
    weak = remember(world, *(f"weak {number}" for number in range(10)))
    link(world, *((hub, one) for one in weak), weight=0.6)
    link(world, *((hub, one) for one in strong), weight=0.9)

    assert levels(world, {hub: 1.0}, 1).keys() == {hub, *strong}
