"""What an important event gives to memories made before and after it."""

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.fsrs.capture import (
    FORCES,
    GAIN,
    LEAST,
    MOST,
    TAG_LIFE,
    CaptureEvent,
    amounts,
    bounded,
    capture_window,
    event_of,
)

EVENTS = st.sampled_from(list(CaptureEvent))
HOURS = st.floats(-20, 20)


def gained(event: CaptureEvent, hours_after: float) -> float:
    return float(amounts(event, hours_after))


def test_what_is_made_at_the_moment_of_the_event_gains_most() -> None:
    assert gained(CaptureEvent.FLAG, 0) == GAIN
    assert gained(CaptureEvent.NOVELTY, 0) == pytest.approx(0.9 * GAIN)
    assert gained(CaptureEvent.EMOTION, 0) == pytest.approx(0.8 * GAIN)


def test_an_event_reaches_further_back_than_forward() -> None:
    assert gained(CaptureEvent.FLAG, -3) == pytest.approx(GAIN * 0.01 ** (3 / 9))
    assert gained(CaptureEvent.FLAG, 1) == pytest.approx(GAIN * 0.01 ** (1 / 2))
    assert gained(CaptureEvent.FLAG, -8) == gained(CaptureEvent.FLAG, 1.9) == 0.0


def test_a_feeling_reaches_further_than_a_vote_and_novelty_less_far() -> None:
    assert (
        gained(CaptureEvent.EMOTION, -6)
        > gained(CaptureEvent.FLAG, -6)
        > gained(CaptureEvent.NOVELTY, -6)
        == 0.0
    )


@pytest.mark.parametrize("event", CaptureEvent)
def test_nothing_reaches_beyond_the_life_of_a_tag(event: CaptureEvent) -> None:
    back, forward = capture_window(event)
    assert timedelta(0) < forward < back <= TAG_LIFE


@given(event=EVENTS, near=HOURS, far=HOURS)
def test_the_farther_away_the_less_is_gained(event: CaptureEvent, near: float, far: float) -> None:
    if near * far > 0 and abs(near) <= abs(far):
        assert gained(event, near) >= gained(event, far)


@given(event=EVENTS, hours=st.lists(HOURS, max_size=10))
def test_many_at_once_gain_what_each_would_alone(event: CaptureEvent, hours: list[float]) -> None:
    together = amounts(event, hours)
    assert together.tolist() == [gained(event, one) for one in hours]
    assert np.all((together == 0) | ((together >= LEAST) & (together <= GAIN * FORCES[event].strength)))


def test_no_memory_gains_more_than_the_bound_in_all() -> None:
    offered = [("new", 0.3), ("held", 0.3), ("full", 0.3), ("all but full", 0.3)]
    held = {"held": MOST - 0.1, "full": MOST, "all but full": MOST - LEAST / 2}
    assert bounded(offered, held) == {"new": 0.3, "held": pytest.approx(0.1)}


def test_only_what_is_very_important_or_a_flashbulb_is_an_event() -> None:
    assert event_of(0.7, novelty=0.9, arousal=0.3) is None
    assert event_of(0.71, novelty=0.9, arousal=0.3) is CaptureEvent.NOVELTY
    assert event_of(0.6, novelty=0.7, arousal=0.6) is CaptureEvent.EMOTION


def test_without_the_mechanism_of_emotion_a_flashbulb_is_as_much_an_event_as_it_is_important() -> None:
    assert event_of(0.6, novelty=0.7, arousal=0.6, emotion=False) is None
    assert event_of(0.71, novelty=0.7, arousal=0.6, emotion=False) is CaptureEvent.NOVELTY
