"""When an edit is a correction, on every store."""

import pytest

from testbed.meanwhile import meanwhile
from testbed.world import World
from vestige.cognition.fsrs.capture import MOST_CORRECTIONS
from vestige.core.models import EVERYTHING

TEXT = "The importer was written by Grace in March."
MINUTE = 1 / 60


@pytest.fixture
def known(world: World) -> str:
    """A memory of three days ago."""
    memory_id = world.remember(TEXT)
    world.clock.advance(days=3)
    return memory_id


def corrects(world: World, memory_id: str, content: str = "Grace wrote it.") -> bool:
    answer = world.call("memory", action="edit", id=memory_id, content=content)
    return bool(answer["reconsolidated"])


def test_a_review_opens_the_window_and_reading_by_id_does_not(world: World, known: str) -> None:
    world.get(known)
    assert not corrects(world, known, "Grace wrote the importer.")
    world.call("mark_reviewed", id=known, rating=3)
    assert corrects(world, known)


def test_the_start_of_a_session_opens_the_window(world: World, known: str) -> None:
    world.call("session_context", queries=[TEXT])
    world.app.settle()
    assert corrects(world, known)


def test_a_new_memory_was_not_recalled(world: World) -> None:
    assert not corrects(world, world.remember(TEXT))


def test_an_edit_that_changes_nothing_corrects_nothing(world: World, known: str) -> None:
    world.call("mark_reviewed", id=known, rating=3)
    before = world.get(known)
    assert not corrects(world, known, TEXT)
    assert world.get(known) == before


def test_only_so_many_corrections_strengthen_within_one_window(world: World, known: str) -> None:
    world.call("mark_reviewed", id=known, rating=3)
    texts = [f"Grace wrote version {number}." for number in range(MOST_CORRECTIONS + 1)]
    assert [corrects(world, known, text) for text in texts] == [True] * MOST_CORRECTIONS + [False]


def test_a_correction_keeps_the_window_open_for_what_was_forgotten_in_it(world: World, known: str) -> None:
    world.call("mark_reviewed", id=known, rating=3)
    world.clock.advance(hours=4 * MINUTE)
    assert corrects(world, known, "Grace wrote the importer.")
    world.clock.advance(hours=4 * MINUTE)
    assert corrects(world, known)


def test_a_pinned_memory_is_corrected_like_any_other(world: World) -> None:
    memory_id = world.remember(TEXT, pinned=True)
    world.clock.advance(days=3)
    world.call("mark_reviewed", id=memory_id, rating=3)
    assert corrects(world, memory_id)


def test_being_found_again_and_again_is_written_to_the_minute(world: World, known: str) -> None:
    for _ in range(3):
        world.call("search", query=TEXT, min_confidence=0)
        world.app.settle()
        world.clock.advance(hours=0.5 * MINUTE)
    kept = world.app.engine.store.documents("recall", access=EVERYTHING, ids=[known], limit=5)
    assert [one.version for one in kept] == [1]


def test_what_was_shown_beside_a_memory_deleted_meanwhile_is_labile_all_the_same(
    world: World, known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = world.remember("The importer was tested by Ada in May.")
    for _ in range(2):  # the first time of a day it is written otherwise
        world.app.settle()
        world.clock.advance(hours=1)
        assert len(world.find("importer written tested", min_confidence=0)) == 2
    meanwhile(monkeypatch, world, "recall", lambda: world.call("memory", action="delete", id=gone))
    world.app.settle()

    assert corrects(world, known)
    assert world.app.autopilot.status().failed == 0
