"""An intention waits, comes up, is told a few times, rests, ends, and begins again."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.intentions.intention import (
    APART,
    REMINDERS,
    Intention,
    IntentionStatus,
    Priority,
    armed,
    cancelled,
    completed,
    in_force,
    look,
    outlived,
    reminder_before,
    resumed,
    snoozed,
)
from vestige.cognition.intentions.recurrence import Daily, Recurrence
from vestige.cognition.intentions.triggers import (
    ContextTrigger,
    Manual,
    Recurring,
    Time,
    Trigger,
    TriggerSituation,
)

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAILY = Recurring(rule=Recurrence(pattern=Daily(), start=NOW, at=600))


def intention(trigger: Trigger, deadline: datetime | None = None) -> Intention:
    return Intention(
        id="i",
        scope="/",
        created_at=NOW,
        updated_at=NOW,
        armed_at=NOW,
        description="Do it.",
        trigger=trigger,
        deadline=deadline,
    )


def at(minutes: float, codebase: str | None = None) -> TriggerSituation:
    return TriggerSituation(now=NOW + minutes * MINUTE, codebase=codebase)


def test_a_time_comes_up_at_its_moment_and_not_before() -> None:
    one = intention(Time(at=NOW + 10 * MINUTE))

    assert not look(one, at(9.99)).shown
    looked = look(one, at(10))
    assert (looked.shown, looked.fresh, looked.counted) == (True, True, True)
    assert looked.after.status_at(NOW) is IntentionStatus.TRIGGERED
    assert looked.unshown == one


def test_a_reminder_is_counted_at_most_every_half_hour_and_at_most_five_times() -> None:
    one = intention(Time(at=NOW))
    counted, told = [], []
    for minute in range(0, 600, 10):
        looked = look(one, at(minute))
        one = looked.after
        counted += [minute] * looked.counted
        told += [minute] * looked.shown

    assert counted == [0, 30, 60, 90, 120]
    assert told == list(range(0, 150, 10))
    assert one.firing is not None
    assert one.firing.reminders == REMINDERS


@given(minutes=st.lists(st.integers(0, 500), max_size=40))
def test_no_way_of_looking_gets_more_reminders_than_there_are(minutes: list[int]) -> None:
    one, counted = intention(Time(at=NOW)), []
    for minute in sorted(minutes):
        looked = look(one, at(minute))
        one = looked.after
        counted += [NOW + minute * MINUTE] * looked.counted

    assert len(counted) <= REMINDERS
    assert all(later - earlier >= APART for earlier, later in pairwise(counted))


def test_looking_again_within_half_an_hour_changes_nothing() -> None:
    after = look(intention(Time(at=NOW)), at(0)).after

    assert look(after, at(29)).after == after
    assert look(after, at(30)).after != after


def test_a_context_is_told_only_where_it_holds() -> None:
    one = intention(ContextTrigger(codebase="shop"))
    after = look(one, at(0, "shop")).after

    assert not look(one, at(0, "web")).shown
    assert not look(after, at(1, "web")).shown
    assert look(after, at(1, "shop")).shown


def test_a_rule_comes_up_anew_whether_or_not_it_was_done() -> None:
    one = look(intention(DAILY), at(60)).after
    assert one.firing is not None
    assert one.firing.due_at == NOW + 60 * MINUTE
    for settled in (one, completed(one, NOW + 70 * MINUTE)):
        tomorrow = look(settled, at(25 * 60))
        assert tomorrow.fresh
        assert tomorrow.after.firing is not None
        assert tomorrow.after.firing.missed == 0


def test_what_was_missed_comes_up_once_with_how_often() -> None:
    looked = look(intention(DAILY), at(3 * 24 * 60 + 60))

    assert looked.after.firing is not None
    assert (looked.after.firing.missed, looked.after.firing.reminders) == (3, 1)
    assert not look(looked.after, at(3 * 24 * 60 + 61)).fresh


def test_a_deadline_brings_it_up_and_does_so_again_after_it_came_up_before() -> None:
    waiting = intention(Manual(), deadline=NOW + 60 * MINUTE)
    seen = look(intention(Time(at=NOW), deadline=NOW + 60 * MINUTE), at(0)).after

    assert not look(waiting, at(29)).shown
    ahead = look(waiting, at(30)).after
    assert not look(ahead, at(59)).fresh
    assert look(ahead, at(60)).fresh
    assert look(waiting, at(60)).fresh
    missed = look(waiting, at(60)).after.firing
    assert missed is not None
    assert (missed.due_at, missed.missed) == (NOW + 60 * MINUTE, 0)
    assert not look(seen, at(59)).fresh
    assert look(seen, at(60)).fresh
    assert not look(look(seen, at(60)).after, at(61)).fresh


@pytest.mark.parametrize(
    ("deadline", "reminder"),
    [
        ("2026-03-06T00:00", "2026-03-05T09:00"),  # before Friday
        ("2026-03-07T00:00", "2026-03-06T09:00"),  # by Friday
        ("2026-03-06T17:00", "2026-03-06T09:00"),
        ("2026-03-06T12:59", "2026-03-05T09:00"),  # four hours are left at least
        ("2026-03-01T17:00", "2026-03-01T13:00"),  # the same day: half of the time
        ("2026-03-02T09:00", "2026-03-01T21:00"),
    ],
)
def test_a_deadline_reminds_on_the_last_morning_before_it_or_at_half_time(
    deadline: str, reminder: str
) -> None:
    by = datetime.fromisoformat(f"{deadline}:00+00:00")
    ahead = datetime.fromisoformat(f"{reminder}:00+00:00")
    waiting = intention(Manual(), deadline=by)

    assert waiting.next_at(NOW) == ahead
    assert waiting.next_at(ahead) == by
    assert not look(waiting, TriggerSituation(now=ahead - MINUTE)).shown
    assert look(waiting, TriggerSituation(now=ahead)).shown


@given(hours=st.floats(0.01, 1000))
def test_a_deadline_always_reminds_ahead(hours: float) -> None:
    by = NOW + timedelta(hours=hours)

    assert NOW < reminder_before(by, NOW) < by


def test_snoozed_it_rests_and_then_comes_up_again() -> None:
    came = look(intention(Time(at=NOW)), at(0)).after
    rests = snoozed(came, NOW + 60 * MINUTE)

    assert not look(rests, at(59)).shown
    woken = look(rests, at(60))
    assert (woken.fresh, woken.counted) == (True, True)
    assert woken.after.firing is not None
    assert woken.after.firing.reminders == 1


def test_snoozed_before_its_time_it_waits_for_both() -> None:
    early = snoozed(intention(Time(at=NOW + 60 * MINUTE)), NOW + 10 * MINUTE)
    late = snoozed(intention(Time(at=NOW + 10 * MINUTE)), NOW + 60 * MINUTE)

    assert [look(early, at(minute)).shown for minute in (10, 59, 60)] == [False, False, True]
    assert [look(late, at(minute)).shown for minute in (10, 59, 60)] == [False, False, True]
    assert (early.next_at(NOW), late.next_at(NOW)) == (NOW + 60 * MINUTE, NOW + 60 * MINUTE)


def test_done_or_given_up_it_is_not_told_and_is_kept_for_thirty_days() -> None:
    came = look(intention(Time(at=NOW)), at(0)).after
    for ended in (completed(came, NOW), cancelled(came, NOW)):
        assert not look(ended, at(1)).shown
        assert not outlived(ended, NOW + timedelta(days=30))
        assert outlived(ended, NOW + timedelta(days=31))


def test_a_rule_that_is_over_ends_when_it_is_done() -> None:
    over = replace(DAILY.rule, until=NOW + 24 * 60 * MINUTE)
    came = look(intention(Recurring(rule=over)), at(60)).after

    assert completed(came, NOW + 70 * MINUTE).ended is IntentionStatus.FULFILLED


def test_resumed_it_is_as_if_it_had_just_been_set() -> None:
    done = completed(look(intention(Time(at=NOW)), at(0)).after, NOW)
    rule_done = cancelled(look(intention(DAILY), at(60)).after, NOW)
    later = NOW + timedelta(days=5)

    assert look(resumed(done, NOW), at(1)).fresh
    again = look(resumed(rule_done, later), TriggerSituation(now=later + timedelta(days=1)))
    assert again.after.firing is not None
    assert again.after.firing.missed == 0


def test_another_trigger_forgets_what_came_up_before() -> None:
    came = look(intention(Time(at=NOW)), at(0)).after
    changed = armed(came, Time(at=NOW + 60 * MINUTE), NOW)

    assert changed.status_at(NOW) is IntentionStatus.ACTIVE
    assert [look(changed, at(minute)).fresh for minute in (1, 60)] == [False, True]


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        (25, Priority.LOW),
        (24, Priority.NORMAL),
        (1.01, Priority.NORMAL),
        (1, Priority.HIGH),
        (0.01, Priority.HIGH),
        (0, Priority.CRITICAL),
        (-9, Priority.CRITICAL),
    ],
)
def test_a_deadline_raises_the_priority_as_it_nears(hours: float, expected: Priority) -> None:
    assert in_force(Priority.LOW, NOW + timedelta(hours=hours), NOW) is expected


@given(priority=st.sampled_from(Priority), hours=st.floats(-100, 100))
def test_a_deadline_never_lowers_the_priority(priority: Priority, hours: float) -> None:
    assert in_force(priority, NOW + timedelta(hours=hours), NOW) >= priority
    assert in_force(priority, None, NOW) is priority
