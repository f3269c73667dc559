"""Synaptic tagging and capture: an important event strengthens memories made shortly before and after it.

A weak experience leaves a tag that fades within hours. A strong one, even an unrelated one, starts what makes
memories last, and tagged memories capture it (Frey & Morris 1997; in behaviour: Moncada & Viola 2007). Here
every memory carries a tag from its creation, so the tag needs no state. The module also holds
reconsolidation: a memory that was just recalled can be corrected.
"""

import enum
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from vestige.cognition.english.emotion import is_flashbulb
from vestige.core.candidates import Floats
from vestige.core.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


TAG_LIFE = timedelta(hours=12)  # How long after its creation a memory can be captured.
BACK, FORWARD = timedelta(hours=9), timedelta(hours=2)
"""The range of an event: to memories made before it, and to memories made after it …"""
FADES = float(np.log(100.0))
"""… and the exponent at the end of its range, where a hundredth of the effect is left."""
GAIN = 0.3
"""The share that an event of full strength adds to the stability of a memory made at the same moment."""
LEAST = 0.01  # A smaller gain is ignored.
MOST = 0.5  # The limit of what one memory can gain by captures in all.
CLUSTER = 50  # The limit of memories captured by one event.
IMPORTANT = 0.7  # The composite importance above which a new memory is such an event.


class CaptureEvent(enum.StrEnum):
    """The kinds of event that make a memory capture others."""

    FLAG = "user_flag"
    NOVELTY = "novelty_spike"
    EMOTION = "emotional_content"


@dataclass(frozen=True, slots=True, kw_only=True)
class Force:
    """The strength of a kind of event, and a factor for its range."""

    strength: float
    range: float


FORCES: Mapping[CaptureEvent, Force] = {
    CaptureEvent.FLAG: Force(strength=1.0, range=1.0),
    CaptureEvent.NOVELTY: Force(strength=0.9, range=0.7),
    CaptureEvent.EMOTION: Force(strength=0.8, range=1.5),
}


def event_of(
    composite: float, novelty: float, arousal: float, *, emotion: bool = True
) -> CaptureEvent | None:
    """The event that a new memory of this importance is, or None. Without the emotion mechanism there are no
    flashbulbs."""
    if emotion and is_flashbulb(novelty, arousal):
        return CaptureEvent.EMOTION
    return CaptureEvent.NOVELTY if composite > IMPORTANT else None


def capture_window(event: CaptureEvent) -> tuple[timedelta, timedelta]:
    """The range of an event backward, never beyond the life of a tag, and forward."""
    factor = FORCES[event].range
    return min(BACK * factor, TAG_LIFE), FORWARD * factor


def amounts(event: CaptureEvent, hours_after: "ArrayLike") -> Floats:
    """The gain of memories made these hours after the event (negative: before it); 0 outside its range."""
    apart = np.asarray(hours_after, dtype=np.float64)
    back, forward = (end / timedelta(hours=1) for end in capture_window(event))
    share = np.abs(apart) / np.where(apart < 0, back, forward)
    gained = GAIN * FORCES[event].strength * np.exp(-FADES * share)
    return np.where((share <= 1.0) & (gained >= LEAST), gained, 0.0)


def bounded(offered: Iterable[tuple[str, float]], held: Mapping[str, float]) -> dict[str, float]:
    """The offered amounts, limited so that no memory gains more than `MOST` in all."""
    left = {memory_id: min(amount, MOST - held.get(memory_id, 0.0)) for memory_id, amount in offered}
    return {memory_id: amount for memory_id, amount in left.items() if amount >= LEAST}


# -- Reconsolidation

LABILE = timedelta(minutes=5)  # How long after its recall a memory is labile.
MOST_CORRECTIONS = 10
"""The limit of corrections that count within that time: repeated editing is not practice."""


def is_labile(recalled: Iterable[datetime], corrected: Iterable[datetime], now: datetime) -> bool:
    """Whether a memory that was recalled and corrected at these times accepts a correction now."""
    since = now - LABILE
    if not any(since <= at <= now for at in recalled):
        return False
    return sum(since <= at <= now for at in corrected) < MOST_CORRECTIONS
