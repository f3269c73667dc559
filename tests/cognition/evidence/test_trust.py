"""Trust varies with what happened to a memory."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from vestige.cognition.evidence.trust import REPLACED_SHARE, origin, trust
from vestige.cognition.fsrs.strength import after, encode, retention_of
from vestige.core.models import Evidence, Memory, Record

AT = datetime(2026, 3, 1, tzinfo=UTC)
LATER = AT + timedelta(days=10)


def remembered(*evidence: Evidence) -> Record:
    strength = encode(AT)
    for day, one in enumerate(evidence, 1):
        strength = after(strength, one, AT + timedelta(days=day))
    memory = Memory(id="m", content="Tea is at four.", created_at=AT, updated_at=AT)
    return Record(memory=memory, strength=strength)


def level(record: Record, *, corroborations: int = 0) -> float:
    return trust(record, LATER, corroborations=corroborations)


def test_a_memory_nobody_has_judged_stands_in_the_middle() -> None:
    kept = retention_of(remembered().strength, LATER)
    assert level(remembered()) == pytest.approx(0.5 * (0.8 + 0.2 * kept))


def test_being_shown_is_no_reason_to_trust() -> None:
    assert level(remembered(Evidence.EXPOSED)) == pytest.approx(level(remembered()), rel=0.02)


def test_what_held_and_helped_is_trusted_more_and_what_failed_less() -> None:
    levels = [
        level(remembered(Evidence.DEMOTED, Evidence.DEMOTED)),
        level(remembered(Evidence.DEMOTED)),
        level(remembered()),
        level(remembered(Evidence.USEFUL)),
        level(remembered(Evidence.GOOD, Evidence.GOOD)),
        level(remembered(Evidence.GOOD, Evidence.GOOD, Evidence.USEFUL, Evidence.PROMOTED)),
    ]
    assert levels == sorted(levels)
    assert len(set(levels)) == len(levels)
    assert all(0 < level < 1 for level in levels)


def test_what_was_replaced_is_trusted_half_as_much() -> None:
    record = remembered(Evidence.GOOD)
    replaced = replace(record, memory=replace(record.memory, superseded_by="n", valid_until=AT))

    assert level(replaced) == pytest.approx(REPLACED_SHARE * level(record))


def test_trust_fades_with_the_memory_but_never_by_more_than_a_fifth() -> None:
    record = remembered()
    fresh, year, decade = (trust(record, AT + timedelta(days=days)) for days in (0, 365, 3650))

    assert fresh > year > decade > 0.8 * 0.5


def test_a_pin_a_known_origin_and_independent_sources_speak_for_a_memory() -> None:
    plain = remembered()
    sourced = replace(plain, memory=replace(plain.memory, source="minutes.md"))
    pinned = replace(sourced, memory=replace(sourced.memory, pinned=True))

    levels = [level(plain), level(sourced), level(sourced, corroborations=1), level(pinned, corroborations=1)]
    assert levels == sorted(levels)
    assert len(set(levels)) == len(levels)
    assert level(plain, corroborations=3) == level(plain, corroborations=30) < 1


def test_what_was_replaced_later_was_trusted_in_full_before() -> None:
    record = remembered()
    ended = replace(record.memory, superseded_by="n", valid_until=AT + timedelta(days=10))
    replaced = replace(record, memory=ended)

    assert trust(replaced, AT) == trust(record, AT)
    assert trust(replaced, AT + timedelta(days=10)) == pytest.approx(
        REPLACED_SHARE * trust(record, AT + timedelta(days=10))
    )


def test_two_memories_of_one_source_have_one_origin() -> None:
    memory = remembered().memory

    assert origin(memory) is None
    assert origin(replace(memory, source="a.md", author="Ada")) == origin(replace(memory, source="a.md"))
    assert origin(replace(memory, author="Ada")) != origin(replace(memory, author="Bob"))
