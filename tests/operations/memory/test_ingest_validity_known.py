"""What a text says about its time, and what was known before: states told again, corrections, new words."""

from datetime import timedelta
from typing import Any

from testbed.world import START, World

RED = "The build of the harbour project is red."


def ends(world: World, memory_id: str) -> Any:
    return world.get(memory_id).get("validUntil")


def after(days: float) -> str:
    return (START + timedelta(days=days)).isoformat().replace("+00:00", "Z")


def test_a_state_told_again_lives_on(world: World) -> None:
    memory_id = world.remember(RED, node_type="state")
    world.call("memory", action="tag", id=memory_id, add=["ci"])
    for days in (20, 40):
        world.clock.advance(days=20)
        told = world.call("smart_ingest", content=RED, node_type="state")
        assert (told["nodeId"], told["validUntil"]) == (memory_id, after(days + 30))
        assert ends(world, memory_id) == after(days + 30)


def test_telling_a_state_again_moves_no_end_that_was_given(world: World) -> None:
    short = world.remember(RED, node_type="state", valid_until="2026-03-10")
    long = world.remember(
        "The lease of the harbour office is paid.", node_type="state", valid_until="2027-01-01"
    )
    plain = world.remember("Ada likes tea.")
    world.clock.advance(days=2)
    for content in (RED, "The lease of the harbour office is paid.", "Ada likes tea."):
        world.remember(content, node_type="state")

    assert [ends(world, one) for one in (short, long, plain)] == [
        "2026-03-11T00:00:00Z", "2027-01-02T00:00:00Z", None,
    ]  # fmt: skip


def test_a_new_text_at_the_same_place_is_not_bound_to_the_end_in_the_old_words(world: World) -> None:
    place: dict[str, Any] = {"source": "status.md", "position": 1}
    memory_id = world.remember("Deploys are frozen until Friday.", **place)
    told = world.call("smart_ingest", content="Deploys go through Bob.", **place)

    assert (told["nodeId"], told["decision"]) == (memory_id, "update")
    assert "validUntil" not in told
    world.clock.advance(days=30)
    assert world.find("deploys") == ["Deploys go through Bob."]


def test_a_new_text_at_the_same_place_ends_when_it_says(world: World) -> None:
    place: dict[str, Any] = {"source": "status.md", "position": 1}
    world.remember("Deploys are open.", **place)
    told = world.call("smart_ingest", content="Deploys are frozen until Friday.", **place)

    assert (told["decision"], told["validUntil"]) == ("update", "2026-03-07T00:00:00Z")


def test_editing_the_words_that_gave_an_end_takes_it_away(world: World) -> None:
    worded = world.remember("Deploys are frozen until Friday.")
    given = world.remember("The lift is out of order.", valid_until="2026-03-05")
    world.call("memory", action="edit", id=worded, content="Deploys are open.")
    world.call("memory", action="edit", id=given, content="The lift is being repaired.")

    assert (ends(world, worded), ends(world, given)) == (None, "2026-03-06T00:00:00Z")


def test_a_pinned_memory_gets_no_end_from_words_and_the_answer_says_so(world: World) -> None:
    text = "Deploys are frozen until Friday."
    memory_id = world.remember(text, pinned=True)
    told = world.call("smart_ingest", content=text)

    assert told["nodeId"] == memory_id
    assert {"validUntil", "validityWords"}.isdisjoint(told)


def test_what_holds_since_long_ago_can_correct_what_was_told_yesterday(world: World) -> None:
    old = world.remember("The standup of the harbour team is at 9:30.")
    world.clock.advance(days=1)
    told = world.call(
        "smart_ingest", content="Correction: since January the standup of the harbour team is at 10:30."
    )

    assert (told["decision"], told["supersededId"]) == ("supersede", old)
    assert told["validFrom"] == "2026-01-01T00:00:00Z"


def test_what_begins_on_monday_does_not_end_what_is_true_today(world: World) -> None:
    old = world.remember("The standup of the harbour team is at 9:30.")
    told = world.call("smart_ingest", content="Starting Monday, the standup of the harbour team is at 10:30.")

    assert told["decision"] != "supersede"
    assert ends(world, old) is None
    assert len(world.find("When is the standup of the harbour team?")) == 2
