"""Dreams and consolidations of who reaches a part of the store: he keeps nobody else from theirs."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from testbed.world import World
from tests.operations.access.access_world import Answer, asked
from vestige.core.caller import LOCAL_USER, PERMISSIONS, Caller
from vestige.core.events import ConsolidationStarted, DreamProgress, DreamStarted, Event, EventScope
from vestige.core.models import EVERYTHING, Access
from vestige.engine.context import Call
from vestige.engine.sleep.runs import alone
from vestige.operations.registry.groups import registry

DREAM = registry.operations["dream"]
A, B, C, INSIDE_A, BESIDE_A = "/project/a", "/project/b", "/project/c", "/project/a/x", "/project/ab"
PLAYING = (
    "Ada plays the violin in the city orchestra.",
    "The violin orchestra of Ada rehearses in the city.",
    "Ada bought new strings for the violin of the orchestra.",
)
OTHERS = ("Grace maintains the parser.", "Deploys happen on Friday.", "The cat sleeps on the sofa.")
LONG_SECONDS = 60.0
"""A limit no passing test reaches."""


def limited_to(*scopes: str) -> Caller:
    return Caller(name=scopes[0], permissions=frozenset(PERMISSIONS), access=Access(scopes=scopes))


MEANWHILE: Mapping[str, tuple[type[Event], str]] = {
    "dream": (DreamStarted, "dreamId"),
    "consolidate": (ConsolidationStarted, "nodesProcessed"),
}
"""What is told when a run has begun, and what only an answer has that was given."""


@pytest.mark.parametrize("name", MEANWHILE)
@pytest.mark.parametrize(
    ("first", "second", "runs"),
    [
        pytest.param(limited_to(A), LOCAL_USER, True, id="part, whole"),
        pytest.param(limited_to(A), limited_to("/"), True, id="part, whole by its name"),
        pytest.param(limited_to(A), limited_to(C, "/"), True, id="part, whole among others"),
        pytest.param(limited_to(A), limited_to(B), True, id="part, other part"),
        pytest.param(limited_to(A), limited_to(BESIDE_A), True, id="part, part of a similar name"),
        pytest.param(limited_to(A, B), limited_to(C, BESIDE_A), True, id="parts, other parts"),
        pytest.param(limited_to(A), limited_to(A), False, id="same part"),
        pytest.param(limited_to(A, B), limited_to(B), False, id="parts, one of them"),
        pytest.param(limited_to(B), limited_to(A, B), False, id="part, more parts"),
        pytest.param(limited_to(A, B), limited_to(A, C), False, id="parts that share the first"),
        pytest.param(limited_to(B, A), limited_to(C, A), False, id="parts that share the last"),
        pytest.param(limited_to(A), limited_to(INSIDE_A), False, id="part, part of it"),
        pytest.param(limited_to(INSIDE_A), limited_to(A), False, id="part of a part, that part"),
        pytest.param(LOCAL_USER, limited_to(A), False, id="whole, part"),
        pytest.param(limited_to("/"), limited_to(A), False, id="whole by its name, part"),
        pytest.param(LOCAL_USER, LOCAL_USER, False, id="whole"),
        pytest.param(limited_to("/"), LOCAL_USER, False, id="whole by its name, whole"),
        pytest.param(LOCAL_USER, limited_to("/"), False, id="whole, whole by its name"),
    ],
)
def test_who_reaches_a_part_keeps_only_those_of_that_part_from_sleeping(
    world: World, name: str, first: Caller, second: Caller, runs: bool
) -> None:
    operation = registry.operations[name]
    begins, given = MEANWHILE[name]
    arguments = {"scope": "/"} if name == "dream" else {}
    for scope in (INSIDE_A, B, C, BESIDE_A):
        for number in range(5):
            world.remember(f"Lamp {number} of {scope} is lit.", scope=scope, force_create=True)
    others: list[Answer] = []

    def meanwhile(happening: Event) -> None:
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


def told(world: World) -> None:
    """What a dream links and has something to say about, all in one part."""
    for text in PLAYING:
        world.remember(text, scope=A)
        world.clock.advance(days=2)
    for text in OTHERS:
        world.remember(text, scope=A)
    world.app.settle()


def dreamt(world: World, caller: Caller) -> Answer:
    return asked(world, DREAM, {"scope": "/"}, caller)


def commits(happening: Event) -> bool:
    """Whether a dream has read everything and is about to keep what it found."""
    return isinstance(happening, DreamProgress) and happening.phase == "commit"


def check_kept_once(world: World, earlier: Answer, later: Answer) -> None:
    """Both dreams were kept, and what both have found is the earlier one's."""
    assert earlier["connections"]
    assert earlier["insights"]
    assert (later["status"], later["memoriesReplayed"]) == ("dreamed", 6)
    assert (later["connections"], later["insights"]) == ([], [])
    assert len(world.call("insights", action="list", scope="/")["insights"]) == len(earlier["insights"])
    assert len(world.call("insights", action="runs", kind="dream")["runs"]) == 2
    names = {end for one in earlier["connections"] for end in (one["source"], one["target"])}
    kept = world.app.engine.store.edges(list(names), access=EVERYTHING, among=True)
    assert len({frozenset((one.source_id, one.target_id)) for one in kept}) == len(kept)


def test_a_dream_of_a_part_is_not_lost_when_a_dream_of_everything_was_kept_first(world: World) -> None:
    told(world)
    others: list[Answer] = []

    def meanwhile(happening: Event) -> None:
        if commits(happening) and not others:
            others.append({})
            others.append(dreamt(world, LOCAL_USER))

    with world.app.engine.events.listening(meanwhile):
        part = dreamt(world, limited_to(A))

    check_kept_once(world, others[1], part)


def test_a_dream_of_everything_is_not_lost_when_a_dream_of_a_part_was_kept_first(world: World) -> None:
    told(world)
    has_read, go_on, parts = threading.Event(), threading.Event(), list[Answer]()
    dreamer = threading.Thread(target=lambda: parts.append(dreamt(world, limited_to(A))))

    def meanwhile(happening: Event) -> None:
        if not commits(happening):
            return
        if threading.current_thread() is dreamer:
            has_read.set()
            go_on.wait(LONG_SECONDS)
        else:
            go_on.set()
            dreamer.join(LONG_SECONDS)

    with world.app.engine.events.listening(meanwhile):
        dreamer.start()
        assert has_read.wait(LONG_SECONDS)
        whole = dreamt(world, LOCAL_USER)

    check_kept_once(world, parts[0], whole)


def hanging(world: World, caller: Caller, meanwhile: Callable[[], object]) -> Answer:
    """A dream that does not get on for twelve minutes, in which something else is done."""
    hung: list[bool] = []

    def hang(happening: Event) -> None:
        if isinstance(happening, DreamProgress) and happening.phase == "insight" and not hung:
            hung.append(True)
            world.clock.advance(hours=0.2)
            meanwhile()

    # Work of no time that anybody has to rest for.
    engine = replace(world.app.engine, monotonic=lambda: 0.0)
    with world.app.engine.events.listening(hang):
        return DREAM.call(Call(engine=engine, access=caller.access), {"scope": "/"})


@pytest.mark.parametrize("who", [LOCAL_USER, limited_to(A)], ids=["whole", "part"])
def test_a_run_that_hung_is_not_ended_by_one_that_could_have_run_beside_it(world: World, who: Caller) -> None:
    told(world)
    for number in range(6):
        world.remember(f"Lamp {number} is lit.", scope=B, force_create=True)
    others: list[Answer] = []

    done = hanging(world, who, lambda: others.append(dreamt(world, limited_to(B))))

    assert others[0]["status"] == done["status"] == "dreamed"


def test_runs_of_other_parts_that_come_and_go_leave_a_run_its_right(world: World) -> None:
    told(world)
    for scope in (B, C):
        for number in range(6):
            world.remember(f"Lamp {number} of {scope} is lit.", scope=scope, force_create=True)
    answers: list[Answer] = []

    def meanwhile(happening: Event) -> None:
        if isinstance(happening, DreamProgress) and happening.scopes == (EventScope(scope=A),):
            world.clock.advance(hours=0.1)  # more than half of what a lease lasts
            answers.extend(dreamt(world, limited_to(scope)) for scope in (B, C, A))

    engine = replace(world.app.engine, monotonic=lambda: 0.0)
    with world.app.engine.events.listening(meanwhile):
        DREAM.call(Call(engine=engine, access=Access(scopes=(A,))), {"scope": "/"})

    assert len(answers) == 3 * 4
    assert ["error" in one for one in answers] == [False, False, True] * 4


def test_a_lease_is_written_down_when_a_minute_has_passed_and_not_at_every_step(world: World) -> None:
    told(world)

    def meanwhile(happening: Event) -> None:
        if isinstance(happening, DreamStarted):
            world.clock.advance(hours=0.1)

    engine = replace(world.app.engine, monotonic=lambda: 0.0)
    with world.app.engine.events.listening(meanwhile):
        DREAM.call(Call(engine=engine), {})

    (left,) = world.app.engine.store.documents("running", access=EVERYTHING, limit=9)
    assert left.version == 3  # taken, renewed, given back


def test_runs_of_many_parts_at_once_are_not_in_each_others_way(world: World) -> None:
    engine, done = world.app.engine, list[str]()

    def run(scope: str) -> None:
        for _ in range(20):
            with alone(Call(engine=engine, access=Access(scopes=(scope,))), "dream"):
                done.append(scope)

    threads = [threading.Thread(target=run, args=(scope,)) for scope in (A, B, C, BESIDE_A)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_SECONDS)

    assert len(done) == 4 * 20
    (left,) = engine.store.documents("running", access=EVERYTHING, limit=9)
    assert left.body == {"holds": []}


def test_runs_of_parts_leave_nothing_behind(world: World) -> None:
    for number in range(5):
        asked(world, registry.operations["consolidate"], {}, limited_to(f"/project/{number}"))
    left = world.app.engine.store.documents("running", access=EVERYTHING, limit=100)
    assert {one.id: one.body for one in left} == {"consolidation": {"holds": []}}
