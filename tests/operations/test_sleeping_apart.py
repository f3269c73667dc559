"""Dreams and consolidations of who reaches a part of the store: he keeps nobody else from theirs."""

from collections.abc import Mapping

import pytest

from tests.operations.reach_world import Answer, asked
from tests.world import World
from vestige.callers import LOCAL_USER, PERMISSIONS, Caller
from vestige.events import ConsolidationStarted, DreamStarted, Happening
from vestige.models import EVERYTHING, Access
from vestige.operations.all import registry


def limited_to(scope: str) -> Caller:
    return Caller(name=scope, permissions=frozenset(PERMISSIONS), access=Access(scopes=(scope,)))


MEANWHILE: Mapping[str, tuple[type[Happening], str]] = {
    "dream": (DreamStarted, "dreamId"),
    "consolidate": (ConsolidationStarted, "nodesProcessed"),
}
"""What is told when a run has begun, and what only an answer has that was given."""


@pytest.mark.parametrize("name", MEANWHILE)
@pytest.mark.parametrize(
    ("first", "second", "runs"),
    [
        (limited_to("/project/a"), LOCAL_USER, True),
        (limited_to("/project/a"), limited_to("/project/b"), True),
        (limited_to("/project/a"), limited_to("/project/a"), False),
        (LOCAL_USER, limited_to("/project/a"), False),
        (LOCAL_USER, LOCAL_USER, False),
    ],
    ids=["part, whole", "part, other part", "same part", "whole, part", "whole"],
)
def test_who_reaches_a_part_keeps_only_those_of_that_part_from_sleeping(
    world: World, name: str, first: Caller, second: Caller, runs: bool
) -> None:
    operation = registry.operations[name]
    begins, given = MEANWHILE[name]
    arguments = {"scope": "/"} if name == "dream" else {}
    for scope in ("/project/a", "/project/b"):
        for number in range(6):
            world.remember(f"Lamp {number} of {scope} is lit.", scope=scope, force_create=True)
    others: list[Answer] = []

    def meanwhile(happening: Happening) -> None:
        if isinstance(happening, begins) and not others:
            others.append({})  # the other one begins too
            others.append(asked(world, operation, arguments, second))

    with world.app.engine.events.listening(meanwhile):
        answer = asked(world, operation, arguments, first)
    assert given in answer
    if runs:
        assert given in others[1]
    else:
        assert others[1]["error"]["code"] == "conflict"
        assert (
            f"A {begins.__name__.removesuffix('Started').lower()} has been" in others[1]["error"]["message"]
        )
    assert given in asked(world, operation, arguments, second)


def test_leases_of_parts_are_not_kept_for_ever(world: World) -> None:
    for number in range(5):
        asked(world, registry.operations["consolidate"], {}, limited_to(f"/project/{number}"))
    world.clock.advance(days=2)
    world.call("consolidate")
    left = world.app.engine.store.documents("running", access=EVERYTHING, limit=100)
    assert {one.id for one in left} <= {"consolidation", "dream"}
