"""How evidence changes the strength of a memory."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from testbed.effort import effort
from testbed.failures import each
from vestige.cognition.fsrs import formulas
from vestige.cognition.fsrs.formulas import Grade
from vestige.cognition.fsrs.strength import (
    EXPOSURE_EVERY,
    MAX_STORAGE,
    MIN_RETRIEVAL,
    StrengthLine,
    accessibility,
    after,
    encode,
    fold,
    moved,
    retention,
    retention_of,
    retrieval_of,
    settled,
    state,
)
from vestige.core.errors import InvalidInput
from vestige.core.models import Evidence, LearningState, MemoryState, Strength

LAW = settings(deadline=None, max_examples=effort(50, nightly=500))
START = datetime(2026, 1, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
CHANGES = tuple(e for e in Evidence if e is not Evidence.ENCODED)

History = list[tuple[Evidence, datetime]]

# Any evidence at any moment, in any order: clocks are set back, too.
moments = st.floats(-10.0, 2_000.0).map(lambda days: START + days * DAY)
histories = st.lists(st.tuples(st.sampled_from(CHANGES), moments), max_size=15)
later = st.floats(0.0, 5_000.0).map(lambda days: days * DAY)


def folded(history: Sequence[tuple[Evidence, datetime]]) -> Strength:
    return fold(START, [StrengthLine(evidence=evidence, at=at) for evidence, at in history])


def after_all(*evidence: Evidence, every: timedelta = DAY) -> Strength:
    return folded([(what, START + every * (n + 1)) for n, what in enumerate(evidence)])


def last_moment(strength: Strength) -> datetime:
    return strength.retention_at


# -- reading -------------------------------------------------------------------------------------


def test_a_new_memory_counts_as_a_first_good_review() -> None:
    new = encode(START)
    assert new.stability == 2.3065
    assert new.difficulty == pytest.approx(2.1181, abs=5e-5)
    assert (new.retrieval, new.storage, new.reps, new.lapses) == (1.0, 1.0, 0, 0)
    assert new.learning_state is LearningState.NEW
    assert new.decay_from == new.last_accessed == new.retention_at == START
    assert new.due_at == START + 2 * DAY
    assert new.retention == pytest.approx(0.73)


@pytest.mark.parametrize(("days", "level"), [(0.77, 0.7), (145.0, 0.4), (1132.0, 0.3)])
def test_an_untouched_memory_fades_as_the_strength_page_says(days: float, level: float) -> None:
    assert retention_of(encode(START), START + days * DAY) == pytest.approx(level, abs=5e-4)


@pytest.mark.parametrize(
    ("happened", "levels"),
    [
        ([], [0.647, 0.572, 0.491, 0.426, 0.351]),
        ([Evidence.GOOD], [0.733, 0.691, 0.620, 0.547, 0.454]),
        ([Evidence.PROMOTED], [0.733, 0.706, 0.652, 0.584, 0.490]),
        ([Evidence.AGAIN], [0.739, 0.518, 0.425, 0.366, 0.303]),
        ([Evidence.DEMOTED], [0.405, 0.348, 0.297, 0.258, 0.214]),
    ],
)
def test_what_happens_on_day_three_shows_later_as_the_strength_page_says(
    happened: list[Evidence], levels: list[float]
) -> None:
    strength = folded([(evidence, START + 3 * DAY) for evidence in happened])
    found = [retention_of(strength, START + days * DAY) for days in (3, 10, 33, 93, 368)]
    assert found == pytest.approx(levels, abs=5e-4)


def test_retention_of_many_is_that_of_each() -> None:
    many = [encode(START), encode(START, 0.4), after_all(Evidence.DEMOTED), after_all(Evidence.EASY)]
    now = START + 10 * DAY
    at_once = retention(
        [s.stability for s in many],
        [s.retrieval for s in many],
        [s.storage for s in many],
        [(now - s.decay_from) / DAY for s in many],
        [s.curve for s in many],
    )
    np.testing.assert_allclose(at_once, [retention_of(s, now) for s in many], rtol=1e-12)


def test_a_clock_before_the_memory_sees_it_fresh() -> None:
    assert retrieval_of(encode(START), START - DAY) == 1.0


@pytest.mark.parametrize(("count", "left"), [(0, 1.0), (1, 0.85), (3, 0.55), (6, 0.2), (100, 0.2)])
def test_suppression_takes_its_share_of_retention(count: int, left: float) -> None:
    assert float(accessibility(0.5, count)) == pytest.approx(0.5 * left)


@each(
    ("level", "expected"),
    [
        (1.0, MemoryState.ACTIVE),
        (0.7, MemoryState.ACTIVE),
        (0.69, MemoryState.DORMANT),
        (0.4, MemoryState.DORMANT),
        (0.39, MemoryState.SILENT),
        (0.1, MemoryState.SILENT),
        (0.09, MemoryState.UNAVAILABLE),
        (0.0, MemoryState.UNAVAILABLE),
    ],
)
def test_a_state_is_a_range_of_accessibility(level: float, expected: MemoryState) -> None:
    assert state(level) is expected


def test_demoting_leads_through_all_four_states() -> None:
    strength, levels = encode(START), []
    for n in range(5):
        levels.append(strength.retention)
        strength = after(strength, Evidence.DEMOTED, START + n * timedelta(minutes=1))
    assert levels == pytest.approx([0.73, 0.52, 0.31, 0.0999, 0.065], abs=5e-4)
    assert [state(level) for level in levels] == [
        MemoryState.ACTIVE,
        MemoryState.DORMANT,
        MemoryState.SILENT,
        MemoryState.UNAVAILABLE,
        MemoryState.UNAVAILABLE,
    ]


def test_suppression_alone_makes_a_faded_memory_unavailable() -> None:
    faded = retention_of(encode(START), START + 365 * DAY)
    assert state(float(accessibility(faded, 0))) is MemoryState.SILENT
    assert state(float(accessibility(faded, 6))) is MemoryState.UNAVAILABLE


# -- reviews -------------------------------------------------------------------------------------


@pytest.mark.parametrize("evidence", [Evidence.HARD, Evidence.GOOD, Evidence.EASY, Evidence.REINFORCED])
def test_a_successful_review_stabilises_refreshes_and_counts(evidence: Evidence) -> None:
    before, now = encode(START), START + 3 * DAY
    reviewed = after(before, evidence, now)
    grade = {"hard": Grade.HARD, "easy": Grade.EASY}.get(evidence, Grade.GOOD)
    chance = float(formulas.retrievability(3.0, before.stability))
    stability = formulas.next_stability(before.stability, before.difficulty, chance, grade, 3.0)
    assert reviewed.stability == stability
    assert reviewed.difficulty == formulas.next_difficulty(before.difficulty, grade)
    assert reviewed.learning_state is LearningState.REVIEW
    assert (reviewed.reps, reviewed.lapses, reviewed.storage) == (1, 0, 1.1)
    assert reviewed.decay_from == reviewed.last_accessed == now
    assert reviewed.due_at == now + DAY * round(reviewed.stability)


def test_forgetting_something_new_is_no_lapse_and_forgetting_something_learned_is() -> None:
    new = after_all(Evidence.AGAIN)
    assert (new.learning_state, new.reps, new.lapses) == (LearningState.NEW, 1, 0)
    learned = after_all(Evidence.GOOD, Evidence.AGAIN)
    assert (learned.learning_state, learned.reps, learned.lapses) == (LearningState.RELEARNING, 2, 1)
    assert after_all(Evidence.GOOD, Evidence.AGAIN, Evidence.AGAIN).lapses == 2
    assert after_all(Evidence.GOOD, Evidence.AGAIN, Evidence.GOOD).learning_state is LearningState.REVIEW


def test_failing_a_review_teaches_but_makes_less_stable() -> None:
    before = after_all(Evidence.GOOD)
    failed = after(before, Evidence.AGAIN, START + 5 * DAY)
    assert failed.storage == pytest.approx(before.storage + 0.3)
    assert failed.stability < before.stability
    assert failed.retrieval == before.retrieval


def test_a_successful_review_restores_what_demoting_took_and_a_failed_one_does_not() -> None:
    demoted = after_all(Evidence.DEMOTED)
    assert demoted.retrieval == pytest.approx(0.7)
    assert after(demoted, Evidence.AGAIN, START + 2 * DAY).retrieval == demoted.retrieval
    assert after(demoted, Evidence.GOOD, START + 2 * DAY).retrieval == 1.0


def test_promoting_is_an_easy_review_that_lifts_the_level_one_step() -> None:
    demoted, now = after_all(Evidence.DEMOTED, Evidence.DEMOTED), START + 3 * DAY
    promoted = after(demoted, Evidence.PROMOTED, now)
    assert promoted.retrieval == pytest.approx(demoted.retrieval + 0.2)
    easy = after(demoted, Evidence.EASY, now)
    assert (promoted.stability, promoted.reps) == (easy.stability, easy.reps)


@LAW
@given(histories, st.lists(st.integers(0, 86_399), min_size=1, max_size=30))
def test_many_promotions_within_a_day_are_worth_one(history: History, seconds: Sequence[int]) -> None:
    """They lift the level and keep it fresh; nothing lasting grows."""
    at = last_moment(folded(history)) + DAY
    once = after(folded(history), Evidence.PROMOTED, at)
    often = once
    for second in sorted(seconds):
        often = after(often, Evidence.PROMOTED, at + timedelta(seconds=second))
    assert (often.stability, often.difficulty, often.storage) == (
        once.stability,
        once.difficulty,
        once.storage,
    )
    assert often.retrieval >= once.retrieval
    assert often.reps == once.reps + len(seconds)


def test_a_first_promotion_of_something_new_counts_at_once() -> None:
    new = encode(START)
    assert after(new, Evidence.PROMOTED, START).stability == after(new, Evidence.EASY, START).stability


def test_demoting_counts_a_lapse_but_neither_refreshes_nor_teaches() -> None:
    before, now = after_all(Evidence.GOOD), START + 4 * DAY
    demoted = after(before, Evidence.DEMOTED, now)
    assert (demoted.lapses, demoted.reps) == (1, 2)
    assert (demoted.decay_from, demoted.last_accessed) == (before.decay_from, before.last_accessed)
    assert demoted.storage == before.storage
    assert demoted.due_at <= before.due_at


def test_encoding_is_not_evidence_about_a_memory_that_exists() -> None:
    with pytest.raises(InvalidInput):
        after(encode(START), Evidence.ENCODED, START)


# -- exposure ------------------------------------------------------------------------------------


def test_a_search_hit_leaves_its_trace_once_a_day_and_is_always_counted() -> None:
    first = after(encode(START), Evidence.EXPOSED, START + 10 * DAY)
    second = after(first, Evidence.EXPOSED, START + 10 * DAY + EXPOSURE_EVERY / 2)
    third = after(second, Evidence.EXPOSED, START + 10 * DAY + EXPOSURE_EVERY)
    assert [s.times_retrieved for s in (first, second, third)] == [1, 2, 3]
    assert [s.storage for s in (first, second, third)] == pytest.approx([1.02, 1.02, 1.04])
    assert second.decay_from == first.decay_from < third.decay_from
    assert second.last_accessed == START + 10 * DAY + EXPOSURE_EVERY / 2
    assert third.reps == 0


def test_a_search_hit_lifts_the_chance_of_recall_by_a_twentieth() -> None:
    before, now = encode(START), START + 30 * DAY
    assert retrieval_of(after(before, Evidence.EXPOSED, now), now) == pytest.approx(
        retrieval_of(before, now) + 0.05
    )


def test_useful_leaves_a_trace_for_each_day_it_was_found_and_is_always_counted() -> None:
    now = START + 30 * DAY
    once = after(encode(START), Evidence.USEFUL, now)
    twice = after(once, Evidence.USEFUL, now)
    assert (twice.times_useful, twice.times_retrieved) == (2, 0)
    assert once.storage == twice.storage == pytest.approx(1.05)
    assert retrieval_of(twice, now) == retrieval_of(once, now) > retrieval_of(encode(START), now)

    found = after_all(Evidence.EXPOSED, Evidence.USEFUL, Evidence.EXPOSED, Evidence.USEFUL, Evidence.USEFUL)
    assert (found.times_useful, found.times_retrieved) == (3, 2)
    assert found.storage == pytest.approx(1 + 2 * 0.02 + 2 * 0.05)


@LAW
@given(histories, st.lists(st.integers(0, 86_399), min_size=1, max_size=30))
def test_many_search_hits_within_a_day_are_worth_one(history: History, seconds: Sequence[int]) -> None:
    before = folded(history)
    first = max(last_moment(before), before.exposed_at or START) + EXPOSURE_EVERY
    once = after(before, Evidence.EXPOSED, first)
    often = once
    for second in sorted(seconds):
        often = after(often, Evidence.EXPOSED, first + timedelta(seconds=second))
    assert (often.decay_from, often.storage, often.stability) == (
        once.decay_from,
        once.storage,
        once.stability,
    )
    assert often.times_retrieved == once.times_retrieved + len(seconds)


# -- laws ----------------------------------------------------------------------------------------


@LAW
@given(histories)
def test_everything_stays_within_bounds_whatever_happens(history: History) -> None:
    strength = folded(history)
    assert formulas.MIN_STABILITY_DAYS <= strength.stability <= formulas.MAX_STABILITY_DAYS
    assert formulas.MIN_DIFFICULTY <= strength.difficulty <= formulas.MAX_DIFFICULTY
    assert MIN_RETRIEVAL <= strength.retrieval <= 1.0
    assert 1.0 <= strength.storage <= MAX_STORAGE
    assert 0.0 <= strength.retention <= 1.0
    assert strength.lapses <= strength.reps <= len(history)
    assert strength.decay_from <= last_moment(strength)
    assert strength.last_accessed <= last_moment(strength)
    assert strength.due_at >= strength.decay_from + DAY


@LAW
@given(histories)
def test_the_snapshot_is_the_retention_at_its_time(history: History) -> None:
    strength = folded(history)
    assert strength.retention_at == max([START, *(at for _, at in history)])
    assert strength.retention == retention_of(strength, strength.retention_at)


@LAW
@given(histories, st.sampled_from(CHANGES), moments)
def test_storage_never_shrinks(history: History, evidence: Evidence, at: datetime) -> None:
    before = folded(history)
    assert after(before, evidence, at).storage >= before.storage


@LAW
@given(histories, later, later)
def test_demoting_lowers_retention_now_and_at_any_later_time(
    history: History, pause: timedelta, wait: timedelta
) -> None:
    before = folded(history)
    assume(before.retrieval > MIN_RETRIEVAL)
    at = last_moment(before) + pause
    demoted = after(before, Evidence.DEMOTED, at)
    assert retention_of(demoted, at) < retention_of(before, at)
    assert retention_of(demoted, at + wait) < retention_of(before, at + wait)


@LAW
@given(histories, later, later)
def test_demoting_at_the_floor_never_helps(history: History, pause: timedelta, wait: timedelta) -> None:
    before = folded([*history, *[(Evidence.DEMOTED, START)] * 4])
    at = last_moment(before) + pause
    assert before.retrieval == MIN_RETRIEVAL
    demoted = after(before, Evidence.DEMOTED, at)
    assert retention_of(demoted, at + wait) <= retention_of(before, at + wait)


@LAW
@given(
    histories,
    later,
    later,
    st.sampled_from(
        [Evidence.PROMOTED, Evidence.GOOD, Evidence.EXPOSED, Evidence.USEFUL, Evidence.REINFORCED]
    ),
)
def test_good_evidence_never_lowers_retention_now_or_later(
    history: History, pause: timedelta, wait: timedelta, evidence: Evidence
) -> None:
    before = folded(history)
    at = last_moment(before) + pause
    helped = after(before, evidence, at)
    assert retention_of(helped, at + wait) >= retention_of(before, at + wait) - 1e-12


@LAW
@given(histories, histories)
def test_folding_in_two_steps_is_folding_at_once(first: History, second: History) -> None:
    strength = folded(first)
    for evidence, at in second:
        strength = after(strength, evidence, at)
    assert strength == folded(first + second)


@LAW
@given(histories, histories, st.floats(0.08, 0.8))
def test_a_new_curve_changes_what_comes_and_nothing_that_was(
    first: History, second: History, curve: float
) -> None:
    before = folded(first)
    on_it = replace(before, curve=curve)
    for evidence, at in second:
        on_it = after(on_it, evidence, at)
    seen = [StrengthLine(evidence=evidence, at=at) for evidence, at in first]
    since = [StrengthLine(evidence=evidence, at=at, curve=curve) for evidence, at in second]
    assert fold(START, [*seen, *since], curve) == on_it
    assert fold(START, seen, curve) == replace(before, curve=curve)


@LAW
@given(histories, st.floats(0.08, 0.8))
def test_a_review_is_due_at_the_same_time_on_every_curve(history: History, curve: float) -> None:
    strength = folded(history)
    assert settled(replace(strength, curve=curve), last_moment(strength)).due_at == strength.due_at
    elapsed = float(formulas.elapsed_at(0.9, strength.stability, curve=curve))
    assert elapsed == pytest.approx(strength.stability)


def test_the_default_curve_is_that_of_fsrs() -> None:
    assert encode(START).curve == Strength.__dataclass_fields__["curve"].default == formulas.W20


@pytest.mark.parametrize("evidence", [Evidence.PROMOTED, Evidence.EXPOSED])
def test_evidence_tells_of_a_state_that_time_had_changed_before_it(evidence: Evidence) -> None:
    """What was last seen active and is dormant after the evidence has moved, whichever of them did it."""
    before = encode(START)
    faded = after(before, evidence, START + 60 * DAY)
    expected = None if evidence is Evidence.PROMOTED else ("active", "dormant")
    assert moved(before, faded, 0) == expected
    assert moved(before, before, 3) is None


@LAW
@given(histories, st.sampled_from(CHANGES), later)
def test_a_clock_set_back_counts_as_no_time(history: History, evidence: Evidence, back: timedelta) -> None:
    strength = folded(history)
    now = last_moment(strength)
    assert after(strength, evidence, now - back) == after(strength, evidence, now)


@LAW
@given(histories)
def test_a_strength_survives_json_unchanged(history: History) -> None:
    strength = folded(history)
    floats = {name: value for name, value in asdict(strength).items() if isinstance(value, float)}
    assert all(type(value) is float for value in floats.values())
    assert replace(strength, **json.loads(json.dumps(floats))) == strength


def test_the_end_of_the_calendar_is_no_error() -> None:
    end = datetime.max.replace(tzinfo=UTC)
    assert fold(end, [StrengthLine(evidence=Evidence.EASY, at=end)]).due_at == end
