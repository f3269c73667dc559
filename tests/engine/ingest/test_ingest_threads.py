"""Turns of a talk through the public tools, on every store: found by their neighbours' words, and nothing of
a turn that is gone, hidden or elsewhere is left with its neighbours."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from testbed.world import World
from vestige.core.models import EVERYTHING
from vestige.store.contract.changes import Revise

TALK = (
    "Shall we go to the theatre?",
    "I booked seats for Nabucco.",
    "Row seven, it was cheap.",
    "See you at the tram stop.",
)


def remember_talk(world: World, said: Sequence[str] = TALK, **shared: Any) -> list[str]:
    """One turn after the other, in the order of arrival."""
    return [world.remember(text, **({"thread": "talk"} | shared)) for text in said]


def by_words(world: World, query: str, **arguments: Any) -> dict[str, float]:
    """The memories that words find, with their scores; what meaning finds has none."""
    answer = world.call("search", query=query, min_confidence=0, record=False, limit=100, **arguments)
    return {hit["id"]: hit["keywordScore"] for hit in answer["results"] if "keywordScore" in hit}


def change(world: World, memory_id: str, **fields: Any) -> None:
    """Revise a memory's fields that no tool changes yet."""
    store = world.app.engine.store
    (record,) = store.get_many([memory_id], access=EVERYTHING)
    memory = replace(record.memory, revision=record.memory.revision + 1, updated_at=world.clock.now, **fields)
    store.commit([Revise(memory=memory, reason="test")], access=EVERYTHING)


def suppress(world: World, memory_id: str) -> None:
    change(world, memory_id, suppression_count=1, suppressed_at=world.clock.now)


# -- neighbours ----------------------------------------------------------------------------------


def test_a_turn_is_found_by_the_words_of_the_turns_beside_it(world: World) -> None:
    first, second, third, fourth = remember_talk(world)

    found = by_words(world, "Nabucco")

    assert set(found) == {first, second, third}
    assert found[second] >= max(found[first], found[third])
    assert fourth not in found


def test_words_spread_over_two_turns_find_the_two_before_all_others(world: World) -> None:
    _, second, third, _ = remember_talk(world)
    world.remember("Nabucco is an opera.")
    world.remember("A row of seven trees.")
    others = [
        f"Text {n} says other things at the length that a turn has with its neighbours" for n in range(30)
    ]
    world.call("smart_ingest", items=[{"content": text, "force_create": True} for text in others])

    found = by_words(world, "Nabucco row seven")

    assert set(sorted(found, key=found.__getitem__, reverse=True)[:2]) == {second, third}


def test_a_turn_is_its_neighbours_neighbour_only_inside_its_own_thread_and_scope(world: World) -> None:
    shared = [remember_talk(world, TALK[:1], thread="a"), remember_talk(world, TALK[1:2], thread="b")]
    apart = [
        remember_talk(world, TALK[:1], thread="c", scope="/one"),
        remember_talk(world, TALK[1:2], thread="c", scope="/two"),
    ]

    assert set(by_words(world, "Nabucco")) == {shared[1][0], apart[1][0]}


def test_turns_stand_in_the_order_of_their_positions_whenever_they_came(world: World) -> None:
    places = {text: position for position, text in enumerate(TALK)}
    ids = {text: remember_talk(world, [text], position=places[text])[0] for text in reversed(TALK)}
    late = world.remember("Who pays?", thread="talk")  # without a position it comes last

    assert set(by_words(world, "Nabucco")) == {ids[text] for text in TALK[:3]}
    assert set(by_words(world, "tram")) == {ids[TALK[2]], ids[TALK[3]], late}


def test_without_positions_turns_stand_in_the_order_of_arrival(world: World) -> None:
    ids = remember_talk(world, TALK[::-1])

    assert set(by_words(world, "tram")) == {ids[0], ids[1]}
    assert set(by_words(world, "Nabucco")) == {ids[1], ids[2], ids[3]}


def test_a_turn_that_comes_between_two_others_parts_them(world: World) -> None:
    first = world.remember(TALK[0], thread="talk", position=1)
    last = world.remember(TALK[1], thread="talk", position=3)
    assert set(by_words(world, "Nabucco")) == {first, last}

    between = world.remember("Hold on a moment.", thread="talk", position=2)

    assert set(by_words(world, "Nabucco")) == {between, last}


def test_pieces_of_one_source_with_positions_are_a_thread(world: World) -> None:
    first, second = (world.remember(text, source="book.txt", position=n) for n, text in enumerate(TALK[:2]))
    assert set(by_words(world, "Nabucco")) == {first, second}


# -- nothing leaks -------------------------------------------------------------------------------


def test_after_a_turn_is_deleted_its_words_find_nothing_and_its_neighbours_are_neighbours(
    world: World,
) -> None:
    first, second, third, fourth = remember_talk(world)

    world.call("memory", action="delete", id=second)

    assert by_words(world, "Nabucco seats booked") == {}
    assert set(by_words(world, "theatre")) == {first, third}
    assert set(by_words(world, "tram")) == {third, fourth}


def test_after_a_turn_is_edited_its_old_words_find_nothing(world: World) -> None:
    first, second, third, _ = remember_talk(world)

    world.call("memory", action="edit", id=second, content="I booked seats for Tosca.")

    assert by_words(world, "Nabucco") == {}
    assert set(by_words(world, "Tosca")) == {first, second, third}


def test_a_suppressed_turn_is_found_by_itself_only_and_not_at_all_unless_that_is_asked(world: World) -> None:
    first, second, third, _ = remember_talk(world)

    suppress(world, second)

    assert set(by_words(world, "Nabucco", include_suppressed=True)) == {second}
    assert by_words(world, "Nabucco") == {}
    assert set(by_words(world, "theatre")) == {first, third}


def test_a_suppressed_turn_ranks_far_lower(world: World) -> None:
    remember_talk(world)
    other = world.remember("Nabucco was written by Verdi.")
    hidden = world.remember("Nabucco was composed by Verdi.", force_create=True)

    def score(memory_id: str) -> float:
        asked = {"query": "Nabucco Verdi", "min_confidence": 0, "include_suppressed": True}
        hits = world.call("search", **asked, record=False)["results"]
        return next(float(hit["combinedScore"]) for hit in hits if hit["id"] == memory_id)

    before = score(hidden)
    suppress(world, hidden)

    assert score(hidden) < 0.9 * before
    assert score(other) > score(hidden)


def test_a_turn_that_moved_to_another_scope_takes_its_words_along(world: World) -> None:
    first, second, third, _ = remember_talk(world, scope="/home")

    change(world, second, scope="/office")

    assert by_words(world, "Nabucco", scope="/home") == {}
    assert set(by_words(world, "Nabucco")) == {second}
    assert set(by_words(world, "theatre", scope="/home")) == {first, third}
    assert by_words(world, "theatre", scope="/office") == {}


def test_a_turn_that_is_not_true_any_more_lends_no_words(world: World) -> None:
    _, second, _, _ = remember_talk(world)
    world.clock.advance(days=30)

    world.call("memory", action="set_validity", id=second, valid_until="2026-03-10")

    assert by_words(world, "Nabucco") == {}
    assert set(by_words(world, "Nabucco", as_of="2026-03-05")) == {second}


def test_nothing_of_a_deleted_turn_is_left_in_how_the_others_are_explained(world: World) -> None:
    remember_talk(world)
    before = world.call("search", query="seven", explain=True, min_confidence=0, record=False)
    gone = world.remember("Nabucco Nabucco seven seven", thread="talk", position=0)
    world.call("memory", action="delete", id=gone)

    assert world.call("search", query="seven", explain=True, min_confidence=0, record=False) == before


@pytest.mark.parametrize("way", ["delete", "suppress", "move"])
def test_what_left_a_thread_is_gone_from_the_threads_own_words(world: World, way: str) -> None:
    ids = remember_talk(world, [*TALK, "And a late supper after it?", "Fine."], scope="/home")
    far = ids[-1]

    def thread_signal() -> float:
        hits = world.call(
            "search", query="Nabucco fine", explain=True, min_confidence=0, scope="/home", record=False
        )["results"]
        signals = next(hit["explain"]["signals"] for hit in hits if hit["id"] == far)
        return next(float(one["value"]) for one in signals if one["signal"] == "thread")

    assert thread_signal() == 1.0
    remember_talk(world, ["Nabucco, fine."], thread="other", scope="/home")
    with_it = thread_signal()
    if way == "delete":
        world.call("memory", action="delete", id=ids[1])
    elif way == "suppress":
        suppress(world, ids[1])
    else:
        change(world, ids[1], scope="/office")

    assert thread_signal() < with_it
