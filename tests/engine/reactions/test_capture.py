"""What an important event captures, and what it leaves alone, on every store."""

import pytest

from testbed.meanwhile import meanwhile
from testbed.world import World
from vestige.cognition.fsrs.capture import CLUSTER, GAIN, MOST

TRIGGER = "Ada prefers TypeScript for new services."
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def captured(world: World, memory_id: str) -> list[float]:
    """What a memory has gained by captures, each time."""
    world.app.settle()
    events = world.call("memory", action="history", id=memory_id)["events"]
    found = (one["details"] for one in events if one["kind"] == "memory.remarked")
    return [one["amount"] for one in found if one["evidence"] == "captured"]


def promote(world: World, memory_id: str) -> None:
    world.call("memory", action="promote", id=memory_id)
    world.app.settle()


def note(world: World, content: str, **arguments: object) -> str:
    """A memory of its own, whatever else is known."""
    return world.remember(content, force_create=True, **arguments)


def test_the_nearer_in_time_the_more_is_gained(world: World) -> None:
    first = note(world, "The staging cluster lives in Frankfurt.")
    world.clock.advance(hours=3)
    second = note(world, "Backups are verified every night.")
    trigger = note(world, TRIGGER)
    promote(world, trigger)
    world.clock.advance(hours=1)
    third = note(world, "Herons are counted in April.")

    assert captured(world, first) == [pytest.approx(GAIN * 0.01 ** (3 / 9), abs=1e-4)]
    assert captured(world, second) == [GAIN]
    assert captured(world, third) == [pytest.approx(GAIN * 0.01 ** (1 / 2), abs=1e-4)]
    assert captured(world, trigger) == []


def test_what_is_out_of_reach_in_time_or_place_is_left_alone(world: World) -> None:
    long_before = note(world, "The staging cluster lives in Frankfurt.", scope="/project/a")
    world.clock.advance(hours=10)
    elsewhere = note(world, "Backups are verified every night.", scope="/project/b")
    above = note(world, "Invoices are sent on Mondays.", scope="/project")
    trigger = note(world, TRIGGER, scope="/project/a")
    promote(world, trigger)
    world.clock.advance(hours=3)
    long_after = note(world, "Herons are counted in April.", scope="/project/a")

    assert [captured(world, one) for one in (long_before, elsewhere, above, long_after)] == [[], [], [], []]


def test_pinned_suppressed_and_superseded_memories_are_left_alone(world: World) -> None:
    pinned = note(world, "The staging cluster lives in Frankfurt.", pinned=True)
    suppressed = note(world, "Backups are verified every night.")
    world.call("suppress", id=suppressed)
    superseded = note(world, "The API listens on port 8080.")
    world.remember("The API listens on port 9090.")
    promote(world, note(world, TRIGGER))
    later = note(world, "Herons are counted in April.", pinned=True)

    assert [captured(world, one) for one in (pinned, suppressed, superseded, later)] == [[], [], [], []]


def test_what_contradicts_the_trigger_is_not_captured(world: World) -> None:
    wrong = world.remember("Feature flags are stored in Redis for the web shop.")
    right = world.remember("Feature flags are not stored in Redis for the shop.")
    promote(world, right)

    assert captured(world, wrong) == []


def test_the_same_trigger_captures_a_memory_once(world: World) -> None:
    other = note(world, "The staging cluster lives in Frankfurt.")
    trigger = note(world, TRIGGER)
    for _ in range(3):
        promote(world, trigger)
        world.clock.advance(hours=0.1)

    assert captured(world, other) == [GAIN]


def test_a_trigger_whose_memories_have_lost_their_tags_begins_anew(world: World) -> None:
    trigger = note(world, TRIGGER)
    promote(world, trigger)
    world.clock.advance(days=3)
    other = note(world, "The staging cluster lives in Frankfurt.")
    promote(world, trigger)

    assert captured(world, other) == [GAIN]


def test_many_events_together_give_a_memory_no_more_than_the_bound(world: World) -> None:
    other = note(world, "The staging cluster lives in Frankfurt.")
    for number in NUMBERS:
        promote(world, note(world, f"Locker {number} is empty."))

    assert sum(captured(world, other)) == pytest.approx(MOST)


def test_an_event_captures_so_many_and_those_of_its_session_first(world: World) -> None:
    items = [
        {"content": f"Locker {at} of {number} is empty.", "force_create": True, "session_id": session}
        for session, numbers in (("ours", NUMBERS[:3]), ("theirs", NUMBERS[3:]))
        for number in numbers
        for at in range(CLUSTER // 5)
    ]
    ids = [one["nodeId"] for one in world.call("smart_ingest", items=items)["results"]]
    promote(world, note(world, TRIGGER, session_id="ours"))

    gained = [bool(captured(world, one)) for one in ids]
    assert sum(gained) == CLUSTER
    assert all(gained[: 3 * CLUSTER // 5])


def test_deleting_the_trigger_ends_its_event(world: World) -> None:
    trigger = note(world, TRIGGER)
    promote(world, trigger)
    world.call("memory", action="delete", id=trigger)
    other = note(world, "The staging cluster lives in Frankfurt.")

    assert captured(world, other) == []


def test_a_memory_made_while_two_events_go_on_is_captured_by_both(world: World) -> None:
    for number in NUMBERS[:2]:
        promote(world, note(world, f"Locker {number} is empty."))
    world.clock.advance(hours=0.5)
    other = note(world, "The staging cluster lives in Frankfurt.")

    assert captured(world, other) == [pytest.approx(GAIN * 0.01**0.25, abs=1e-4)] * 2


@pytest.mark.parametrize(("session", "of_ours", "of_theirs"), [("ours", 3, 2), (None, 0, 5)])
def test_an_event_that_is_repeated_takes_those_of_its_session_first_and_then_the_latest(
    world: World, session: str | None, of_ours: int, of_theirs: int
) -> None:
    trigger = note(world, TRIGGER, session_id=session)
    for number in range(CLUSTER - 5):
        note(world, f"Shelf {number} is full.")
    promote(world, trigger)
    world.clock.advance(hours=3)
    ours = [note(world, f"Drawer {number} is shut.", session_id=session) for number in range(3)]
    world.clock.advance(hours=0.1)
    theirs = [note(world, f"Locker {number} is empty.", session_id="theirs") for number in range(6)]
    promote(world, trigger)

    assert sum(len(captured(world, one)) for one in ours) == of_ours
    assert sum(len(captured(world, one)) for one in theirs) == of_theirs


def test_a_superseded_memory_captures_nothing(world: World) -> None:
    old = world.remember("The API listens on port 8080.")
    world.clock.advance(hours=1)
    world.remember("The API listens on port 9090.")
    other = note(world, "The staging cluster lives in Frankfurt.")
    assert world.get(old)["supersededBy"] is not None
    promote(world, old)

    assert captured(world, other) == []


def test_a_memory_deleted_meanwhile_does_not_keep_the_others_from_being_captured(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = note(world, "Backups are verified every night.")
    other = note(world, "The staging cluster lives in Frankfurt.")
    trigger = note(world, TRIGGER)
    world.app.settle()
    meanwhile(monkeypatch, world, "capture", lambda: world.call("memory", action="delete", id=gone))
    promote(world, trigger)

    assert captured(world, other) == [GAIN]
    assert world.app.autopilot.status().failed == 0


def test_of_two_events_one_whose_trigger_is_deleted_meanwhile_captures_nothing_new(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, stays = (note(world, f"Locker {number} is empty.") for number in NUMBERS[:2])
    promote(world, gone)
    promote(world, stays)
    world.clock.advance(hours=0.5)
    meanwhile(monkeypatch, world, "capture", lambda: world.call("memory", action="delete", id=gone))
    other = note(world, "The staging cluster lives in Frankfurt.")

    assert captured(world, other) == [pytest.approx(GAIN * 0.01**0.25, abs=1e-4)]
    assert world.app.autopilot.status().failed == 0
