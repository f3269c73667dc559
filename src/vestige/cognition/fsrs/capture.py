"""Synaptic tagging and capture: something important strengthens what was learned shortly before and after.

A weak experience leaves a tag that fades within hours. A strong one, even an unrelated one, sets off what
makes memories last, and tagged ones capture it (Frey & Morris 1997; in behaviour: Moncada & Viola 2007).
Here every memory carries a tag from its creation on, so that the tag needs no state of its own.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import ArrayLike

from vestige.cognition.english.emotion import is_flashbulb
from vestige.core.candidates import Floats

TAG_LIFE = timedelta(hours=12)
"""So long after its creation a memory can be captured."""
BACK, FORWARD = timedelta(hours=9), timedelta(hours=2)
"""How far an event reaches to what was learned before it, and to what is learned after it …"""
FADES = float(np.log(100.0))
"""… and the exponent at the end of its reach: a hundredth is left there."""
GAIN = 0.3
"""What an event of full strength adds to the stability of a memory made at the same moment, as a share."""
LEAST = 0.01
"""What would gain less is left alone."""
MOST = 0.5
"""What one memory can gain by captures in all."""
CLUSTER = 50
"""So many memories are captured by one event."""
IMPORTANT = 0.7
"""Above this composite importance a new memory is such an event."""


class CaptureEvent(enum.StrEnum):
    """What makes a memory capture others."""

    FLAG = "user_flag"
    NOVELTY = "novelty_spike"
    EMOTION = "emotional_content"


@dataclass(frozen=True, slots=True, kw_only=True)
class Force:
    """How strong a kind of event is, and how much further or less far than others it reaches."""

    strength: float
    reach: float


FORCES: Mapping[CaptureEvent, Force] = {
    CaptureEvent.FLAG: Force(strength=1.0, reach=1.0),
    CaptureEvent.NOVELTY: Force(strength=0.9, reach=0.7),
    CaptureEvent.EMOTION: Force(strength=0.8, reach=1.5),
}


def event_of(
    composite: float, novelty: float, arousal: float, *, emotion: bool = True
) -> CaptureEvent | None:
    """The event that a new memory of this importance is, or None when it is an ordinary one. Without the
    mechanism of emotion there are no flashbulbs."""
    if emotion and is_flashbulb(novelty, arousal):
        return CaptureEvent.EMOTION
    return CaptureEvent.NOVELTY if composite > IMPORTANT else None


def reach(event: CaptureEvent) -> tuple[timedelta, timedelta]:
    """How far an event reaches back, never beyond the life of a tag, and forward."""
    factor = FORCES[event].reach
    return min(BACK * factor, TAG_LIFE), FORWARD * factor


def amounts(event: CaptureEvent, hours_after: ArrayLike) -> Floats:
    """What memories made so many hours after the event (negative: before it) gain by it; 0 out of reach."""
    apart = np.asarray(hours_after, dtype=np.float64)
    back, forward = (end / timedelta(hours=1) for end in reach(event))
    share = np.abs(apart) / np.where(apart < 0, back, forward)
    gained = GAIN * FORCES[event].strength * np.exp(-FADES * share)
    return np.where((share <= 1.0) & (gained >= LEAST), gained, 0.0)


def bounded(offered: Iterable[tuple[str, float]], held: Mapping[str, float]) -> dict[str, float]:
    """What of the offered amounts the memories take, each up to `MOST` with what it holds already."""
    left = {memory_id: min(amount, MOST - held.get(memory_id, 0.0)) for memory_id, amount in offered}
    return {memory_id: amount for memory_id, amount in left.items() if amount >= LEAST}


# -- Reconsolidation: a memory that was just recalled can be changed, and is stored anew with the change.

LABILE = timedelta(minutes=5)
"""So long after its recall a memory is labile."""
MOST_CORRECTIONS = 10
"""Corrections that count within that time: editing again and again is no practice."""


def is_labile(recalled: Iterable[datetime], corrected: Iterable[datetime], now: datetime) -> bool:
    """Whether a memory that was recalled and corrected at these moments takes a correction now."""
    since = now - LABILE
    if not any(since <= at <= now for at in recalled):
        return False
    return sum(since <= at <= now for at in corrected) < MOST_CORRECTIONS
