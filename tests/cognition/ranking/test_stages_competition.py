"""Which candidates are about the same thing and were told later."""

from datetime import UTC, datetime
from typing import Any

import numpy as np

from tests.cognition.ranking.pools import NOW, pool, traits
from vestige.cognition.ranking.stages import (
    ALIKE,
    INHIBITED_AT_MOST,
    INHIBITED_EVERY,
    STATEMENT_CHARS,
    is_inhibited,
    later_rivals,
)


def rivals(scores: list[float], *, likeness: float = 1.0, **about: Any) -> list[tuple[int, int]]:
    """The rivals of two short notes of this likeness, the second told a second later."""
    vectors = [[1.0, 0.0], [likeness, float(np.sqrt(1 - likeness**2))]]
    length = about.pop("length", 50)
    told = {"created": [NOW, NOW + 1], **about}
    given: dict[str, Any] = {"vectors": vectors, "cosine": [0.5, 0.5], "ends": [length, length]}
    return later_rivals(pool(2, about=traits(2, **told), **given), np.array(scores))


def test_of_two_notes_about_the_same_thing_the_older_one_has_a_newer_rival() -> None:
    assert rivals([1.0, 0.9]) == [(0, 1)]
    assert rivals([0.9, 1.0]) == [(0, 1)]


def test_what_answers_much_less_well_is_no_rival() -> None:
    assert rivals([1.0, 0.5]) == []


def test_what_is_not_alike_told_at_once_long_or_a_turn_is_no_rival() -> None:
    assert rivals([1.0, 0.9], likeness=ALIKE - 0.01) == []
    assert rivals([1.0, 0.9], created=[NOW, NOW]) == []
    assert rivals([1.0, 0.9], length=STATEMENT_CHARS + 1) == []
    assert rivals([1.0, 0.9], thread=[3, 3]) == []


def test_memories_of_two_projects_are_no_rivals() -> None:
    assert rivals([1.0, 0.9], scope=["/project/a", "/project/b"]) == []
    assert rivals([1.0, 0.9], scope=["/project/a", "/project/a"]) == [(0, 1)]
    assert rivals([1.0, 0.9], scope=["/project/a", "/project"]) == [(0, 1)]


def test_what_happened_on_two_days_are_two_events() -> None:
    assert rivals([1.0, 0.9], happened=[NOW, NOW + 5]) == []


def test_a_rival_inhibits_once_a_day_and_not_for_ever() -> None:
    now = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
    assert is_inhibited(0, None, now)
    assert not is_inhibited(1, now - INHIBITED_EVERY / 2, now)
    assert is_inhibited(1, now - INHIBITED_EVERY, now)
    assert not is_inhibited(INHIBITED_AT_MOST, now - 9 * INHIBITED_EVERY, now)
