"""Trust varies with what happened to a memory."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from vestige.cognition.strength import after, encode
from vestige.cognition.trust import REPLACED_SHARE, trust
from vestige.models import Evidence, Memory, Record

AT = datetime(2026, 3, 1, tzinfo=UTC)


def remembered(*evidence: Evidence) -> Record:
    strength = encode(AT)
    for day, one in enumerate(evidence, 1):
        strength = after(strength, one, AT + timedelta(days=day))
    memory = Memory(id="m", content="Tea is at four.", created_at=AT, updated_at=AT)
    return Record(memory=memory, strength=strength)


def test_a_memory_nobody_has_judged_stands_in_the_middle() -> None:
    assert trust(remembered()) == pytest.approx(0.5)


def test_being_shown_is_no_reason_to_trust() -> None:
    assert trust(remembered(Evidence.EXPOSED)) == pytest.approx(0.5)


def test_what_held_and_helped_is_trusted_more_and_what_failed_less() -> None:
    levels = [
        trust(remembered(Evidence.DEMOTED, Evidence.DEMOTED)),
        trust(remembered(Evidence.DEMOTED)),
        trust(remembered()),
        trust(remembered(Evidence.USEFUL)),
        trust(remembered(Evidence.GOOD, Evidence.GOOD)),
        trust(remembered(Evidence.GOOD, Evidence.GOOD, Evidence.USEFUL, Evidence.PROMOTED)),
    ]
    assert levels == sorted(levels)
    assert len(set(levels)) == len(levels)
    assert all(0 < level < 1 for level in levels)


def test_what_was_replaced_is_trusted_half_as_much() -> None:
    record = remembered(Evidence.GOOD)
    replaced = replace(record, memory=replace(record.memory, superseded_by="n"))

    assert trust(replaced) == pytest.approx(REPLACED_SHARE * trust(record))
