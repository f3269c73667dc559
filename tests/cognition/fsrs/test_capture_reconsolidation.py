"""When a memory can be corrected."""

from datetime import UTC, datetime, timedelta

from vestige.cognition.fsrs.capture import LABILE, MOST_CORRECTIONS, is_labile

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_a_memory_is_labile_from_its_recall_on_for_five_minutes() -> None:
    assert is_labile([NOW], [], NOW)
    assert is_labile([NOW], [], NOW + LABILE)
    assert not is_labile([NOW], [], NOW + LABILE + SECOND)
    assert not is_labile([], [], NOW)


def test_a_recall_that_is_yet_to_come_opens_nothing() -> None:
    assert not is_labile([NOW + SECOND], [], NOW)


def test_any_of_several_recalls_will_do() -> None:
    assert is_labile([NOW - timedelta(days=1), NOW - SECOND], [], NOW)


def test_only_so_many_corrections_count_within_the_window() -> None:
    often = [NOW - SECOND] * (MOST_CORRECTIONS - 1)
    assert is_labile([NOW], often, NOW)
    assert not is_labile([NOW], [*often, NOW], NOW)
    assert is_labile([NOW], [NOW - LABILE - SECOND] * MOST_CORRECTIONS, NOW)
