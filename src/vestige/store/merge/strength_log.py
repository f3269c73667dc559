"""What the log tells about strength, there and back: remarks, looks, and strengths brought along."""

from bisect import bisect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from math import isfinite
from typing import Any

from vestige.cognition.fsrs.fsrs import (
    MAX_DIFFICULTY,
    MAX_STABILITY_DAYS,
    MIN_DIFFICULTY,
    MIN_STABILITY_DAYS,
    W20,
)
from vestige.cognition.fsrs.strength import MAX_STORAGE, StrengthLine, after_sighting, encode
from vestige.core.checks import utc
from vestige.core.errors import InvalidInput
from vestige.core.models import Evidence, LearningState, LogEvent, Strength
from vestige.store.contract.changes import CARRIED, CREATED, REMARKED, STATE
from vestige.store.merge.histories import Stamp, stamp

EVIDENCE = (REMARKED, STATE, CARRIED)
"""The kinds of event that strength is folded from."""

FOLDED_FROM = (CREATED, *EVIDENCE)
"""All that strength depends on, but for the curve."""

TIMES = ("decay_from", "due_at", "last_accessed", "retention_at", "exposed_at")
COUNTS = ("reps", "lapses", "times_retrieved", "times_useful")
MOST_COUNTED = 2**31
RANGES = {
    "stability": (MIN_STABILITY_DAYS, MAX_STABILITY_DAYS),
    "difficulty": (MIN_DIFFICULTY, MAX_DIFFICULTY),
    "retention": (0.0, 1.0),
    "retrieval": (0.0, 1.0),
    "storage": (0.0, MAX_STORAGE),
}
"""What the numbers of a strength may be, whoever brings it."""


def carried(strength: Strength) -> dict[str, Any]:
    """The payload that tells a strength: numbers, and times as text. The curve is the store's."""
    told = {one.name: getattr(strength, one.name) for one in fields(Strength) if one.name != "curve"}
    for name in TIMES:
        if told[name] is not None:
            told[name] = utc(told[name]).isoformat(timespec="microseconds")
    return {"strength": told | {"learning_state": strength.learning_state.value}}


def carried_strength(payload: Mapping[str, Any]) -> Strength:
    """The strength back from its payload; InvalidInput for what is none."""
    try:
        told = payload["strength"]
        given: dict[str, Any] = {name: _moment(told[name]) for name in TIMES if told[name] is not None}
        given |= {name: _within(name, float(told[name])) for name in RANGES}
        given |= {name: _counted(name, int(told[name])) for name in COUNTS}
        return Strength(**given, learning_state=LearningState(told["learning_state"]))
    except (KeyError, TypeError, ValueError) as exc:
        raise InvalidInput(f"A strength is told with numbers and times; this one is not: {exc}.") from exc


def sighting(event: LogEvent, curve: float) -> StrengthLine:
    """One of the events in EVIDENCE, as the fold takes it; InvalidInput for what cannot be folded."""
    if event.kind == CARRIED:
        given = carried_strength(event.payload)
        return StrengthLine(evidence=None, at=event.at, curve=curve, carried=given)
    if event.kind == STATE:
        return StrengthLine(evidence=None, at=event.at, curve=curve)
    try:
        evidence = Evidence(event.payload["evidence"])
        amount = float(event.payload.get("amount", 1.0))
    except (KeyError, TypeError, ValueError) as exc:
        raise InvalidInput(f"A remark tells its evidence and its amount; this one does not: {exc}.") from exc
    if evidence is Evidence.ENCODED or not 0.0 <= amount <= 1.0:
        raise InvalidInput("A remark is about a memory that exists, and its amount is between 0 and 1.")
    return StrengthLine(evidence=evidence, at=event.at, amount=amount, curve=curve)


def evident(events: Iterable[LogEvent]) -> list[LogEvent]:
    """Those of a memory's events that its strength is folded from, by stamp.

    A strength that was brought along with the memory (its event is the next one of that node) counts only
    where the memory was made first: brought along once more, it would undo what happened since.
    """
    told = sorted((event for event in events if event.kind == CREATED or event.kind in EVIDENCE), key=stamp)
    made = [event for event in told if event.kind == CREATED]
    again = {(event.node, event.seq + 1) for event in made[1:]}
    return [
        event
        for event in told
        if event.kind in EVIDENCE and not (event.kind == CARRIED and (event.node, event.seq) in again)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """The strength that all evidence makes, and what it was before and after each remark, by the node and
    number of its event."""

    strength: Strength
    around: Mapping[tuple[str, int], tuple[Strength, Strength]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """The curves of forgetting that were in force, each from a stamp on."""

    since: tuple[Stamp, ...] = ()
    w20: tuple[float, ...] = (W20,)

    @classmethod
    def told(cls, tuned: Iterable[LogEvent]) -> "Curves":
        """What the `curve.tuned` events tell."""
        ordered = sorted(tuned, key=stamp)
        return cls(since=tuple(map(stamp, ordered)), w20=(W20, *map(w20_of, ordered)))

    @property
    def present(self) -> float:
        """The one in force now."""
        return self.w20[-1]

    def at(self, moment: Stamp) -> float:
        """The one in force when something happened."""
        return self.w20[bisect(self.since, moment)]

    def sightings(self, events: Iterable[LogEvent]) -> list[StrengthLine]:
        """The evidence among these events of a memory, in the order of their stamps."""
        return [sighting(event, self.at(stamp(event))) for event in evident(events)]

    def folded(self, made_at: datetime, events: Iterable[LogEvent]) -> Folded:
        """The strength of a memory made at a time, after the evidence among these events."""
        strength = encode(made_at)
        around: dict[tuple[str, int], tuple[Strength, Strength]] = {}
        for event in evident(events):
            before, strength = strength, after_sighting(strength, sighting(event, self.at(stamp(event))))
            if event.kind == REMARKED:
                around[event.node, event.seq] = (before, strength)
        return Folded(strength=replace(strength, curve=self.present), around=around)


def w20_of(event: LogEvent) -> float:
    """The curve that a `curve.tuned` event tells; InvalidInput for what is none."""
    w20 = event.payload.get("w20")
    if not isinstance(w20, int | float) or not (isfinite(w20) and w20 > 0):
        raise InvalidInput("The w20 of a curve is a finite number above 0.", details={"w20": w20})
    return float(w20)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return utc(moment)


def _within(name: str, number: float) -> float:
    low, high = RANGES[name]
    if not low <= number <= high:
        raise ValueError(f"{name} is not between {low:g} and {high:g}")
    return number


def _counted(name: str, number: int) -> int:
    if not 0 <= number <= MOST_COUNTED:
        raise ValueError(f"{name} is not a count")
    return number
