"""Strength and the log: evidence events and imported strengths as payloads, and the fold over them."""

from bisect import bisect
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from vestige.cognition.fsrs.formulas import (
    MAX_DIFFICULTY,
    MAX_STABILITY_DAYS,
    MIN_DIFFICULTY,
    MIN_STABILITY_DAYS,
    W20,
    is_curve,
)
from vestige.cognition.fsrs.strength import MAX_STORAGE, StrengthLine, after_sighting, encode
from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Evidence, LearningState, LogEvent, Strength, utc
from vestige.store.contract.changes import CARRIED, CREATED, REMARKED, STATE, no_curve
from vestige.store.merge.histories import Stamp, stamp

EVIDENCE = (REMARKED, STATE, CARRIED)
"""The kinds of event that strength is folded from."""

FOLDED_FROM = (CREATED, *EVIDENCE)
"""Everything that strength depends on, except the curve."""

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
"""The valid ranges of the numbers of a strength."""


def carried(strength: Strength) -> dict[str, Any]:
    """The payload of an imported strength: numbers, and times as text. The curve belongs to the store."""
    stated = {one.name: getattr(strength, one.name) for one in fields(Strength) if one.name != "curve"}
    for name in TIMES:
        if stated[name] is not None:
            stated[name] = utc(stated[name]).isoformat(timespec="microseconds")
    return {"strength": stated | {"learning_state": strength.learning_state.value}}


def carried_strength(payload: Mapping[str, Any]) -> Strength:
    """The strength of a payload; InvalidInput for an invalid one."""
    try:
        stated = payload["strength"]
        given: dict[str, Any] = {name: _moment(stated[name]) for name in TIMES if stated[name] is not None}
        given |= {name: _within(name, float(stated[name])) for name in RANGES}
        given |= {name: _counted(name, int(stated[name])) for name in COUNTS}
        return Strength(**given, learning_state=LearningState(stated["learning_state"]))
    except (KeyError, TypeError, ValueError) as exc:
        raise InvalidInput(f"A strength consists of numbers and times; this one does not: {exc}.") from exc


def sighting(event: LogEvent, curve: float) -> StrengthLine:
    """An event of a kind in EVIDENCE, as the fold takes it; InvalidInput for one that cannot be folded."""
    if event.kind == CARRIED:
        given = carried_strength(event.payload)
        return StrengthLine(evidence=None, at=event.at, curve=curve, carried=given)
    if event.kind == STATE:
        return StrengthLine(evidence=None, at=event.at, curve=curve)
    try:
        evidence = Evidence(event.payload["evidence"])
        amount = float(event.payload.get("amount", 1.0))
    except (KeyError, TypeError, ValueError) as exc:
        raise InvalidInput(f"An evidence event must have a kind of evidence and an amount: {exc}.") from exc
    if evidence is Evidence.ENCODED or not 0.0 <= amount <= 1.0:
        raise InvalidInput(
            "An evidence event must be about a memory that exists, and its amount between 0 and 1."
        )
    return StrengthLine(evidence=evidence, at=event.at, amount=amount, curve=curve)


def evident(events: Iterable[LogEvent]) -> list[LogEvent]:
    """The events of a memory that its strength is folded from, by stamp. A strength that was imported with
    the memory (its event is the next one of that node) counts only where the memory was created first:
    imported once more, it would undo what happened since."""
    stated = sorted((event for event in events if event.kind == CREATED or event.kind in EVIDENCE), key=stamp)
    made = [event for event in stated if event.kind == CREATED]
    again = {(event.node, event.seq + 1) for event in made[1:]}
    return [
        event
        for event in stated
        if event.kind in EVIDENCE and not (event.kind == CARRIED and (event.node, event.seq) in again)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """The strength after all evidence, and those before and after each evidence event, by node and number."""

    strength: Strength
    around: Mapping[tuple[str, int], tuple[Strength, Strength]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """The curves of forgetting that were in force, each from a stamp on."""

    since: tuple[Stamp, ...] = ()
    w20: tuple[float, ...] = (W20,)

    @classmethod
    def from_events(cls, tuned: Iterable[LogEvent]) -> "Curves":
        """The curves of these events. One out of range, which an older version took in, counts nothing."""
        ordered = sorted((event for event in tuned if is_curve(event.payload.get("w20"))), key=stamp)
        return cls(since=tuple(map(stamp, ordered)), w20=(W20, *map(w20_of, ordered)))

    @property
    def present(self) -> float:
        return self.w20[-1]

    def at(self, moment: Stamp) -> float:
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
    """The curve of a `curve.tuned` event; InvalidInput for an invalid one."""
    w20 = event.payload.get("w20")
    if not is_curve(w20):
        raise no_curve(w20)
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
