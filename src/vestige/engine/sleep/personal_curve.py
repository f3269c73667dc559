"""Fitting the forgetting curve of a store to the reviews in its log."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from vestige.cognition.fsrs.personal_curve import NEWEST, RECALLED, TOLERANCE, fit, lacking, reviews_in
from vestige.cognition.fsrs.strength import StrengthLine
from vestige.core.errors import Forbidden
from vestige.core.models import EVERYTHING, LogEvent
from vestige.engine.context import Call
from vestige.engine.recall.as_known import logged
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.changes import CREATED, TUNED, Tune
from vestige.store.merge.histories import stamp
from vestige.store.merge.strength_log import EVIDENCE, Curves

# -- The log, read as what happened to the strength of memories.

ALL = 2**31
"""More than there will ever be: the curve changes a few times a day at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """When memories were made, and what was seen of them since, in the order that all stores share; deleted
    ones too.

    `curve` is the one in force at the end, `position` that of the last event (0 without any).
    """

    made_at: dict[str, datetime]
    sightings: dict[str, list[StrengthLine]]
    curve: float
    position: int


def story(call: Call, *, after: int = 0) -> Story:
    """What the log tells after a position. The whole store's: strength does not depend on who asks."""
    return _told(logged(call, access=EVERYTHING, after=after))


def story_of(call: Call, memory_ids: Iterable[str]) -> Story:
    """What the log tells about some memories, and about the curve."""
    tuned = call.engine.store.latest(LogQuery(kinds=(TUNED,)), access=EVERYTHING, limit=ALL)
    about = (event for one in memory_ids for event in logged(call, access=EVERYTHING, memory_id=one))
    return _told([*tuned, *about])


def _told(events: Iterable[LogEvent]) -> Story:
    """Events are logged in the order of their arrival, which is another one where stores were united."""
    tuned: list[LogEvent] = []
    created: list[LogEvent] = []
    about: dict[str, list[LogEvent]] = defaultdict(list)
    position = 0
    for event in events:
        position = max(position, event.position)
        if event.kind == TUNED:
            tuned.append(event)
        elif event.memory_id is not None and event.kind in (CREATED, *EVIDENCE):
            about[event.memory_id].append(event)
            created.extend([event] if event.kind == CREATED else ())
    curves = Curves.from_events(tuned)
    return Story(
        # A memory that was made in two places was made when that happened first.
        made_at={one.memory_id or "": one.at for one in sorted(created, key=stamp, reverse=True)},
        sightings={memory_id: curves.sightings(told) for memory_id, told in about.items()},
        curve=curves.present,
        position=position,
    )


# -- tuning


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """How forgetting is curved here: fitted to so many reviews, or left as it was, and why."""

    fitted: bool
    w20: float
    reviews: int
    failures: int
    why: str | None = None


def tune(call: Call) -> Tuned:
    """Let the memories of this store fade as the reviews in its log say, if there are enough.

    Where the reviews say what they said before, nothing is written. Forbidden for a caller who does not
    reach everything: the curve is the whole store's, and so are the reviews.
    """
    if call.access != EVERYTHING:
        raise Forbidden("Only a caller who reaches the whole store may fit its curve.")
    newest = LogQuery(evidence=tuple(RECALLED))
    events = call.engine.store.latest(newest, access=EVERYTHING, limit=NEWEST)
    told = story_of(call, sorted({event.memory_id for event in events if event.memory_id is not None}))
    reviews = reviews_in(_histories(call, told)).usable()
    count, failures = len(reviews.recalled), reviews.failures
    why = lacking(reviews)
    if why is not None:
        return Tuned(fitted=False, w20=told.curve, reviews=count, failures=failures, why=why)
    w20 = fit(reviews)
    if abs(w20 - told.curve) <= TOLERANCE:
        return Tuned(fitted=True, w20=told.curve, reviews=count, failures=failures)
    call.engine.store.commit([Tune(w20=w20, at=call.engine.now())], access=EVERYTHING)
    return Tuned(fitted=True, w20=w20, reviews=count, failures=failures)


def _histories(call: Call, told: Story) -> Iterator[tuple[datetime, list[StrengthLine]]]:
    for memory_id, sightings in told.sightings.items():
        call.check()
        yield told.made_at[memory_id], sightings
