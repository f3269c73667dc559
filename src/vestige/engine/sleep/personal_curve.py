"""The personal forgetting curve: fitted to the reviews in the store's log.

The log is first read as a history of each memory's strength.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime

from vestige.cognition.fsrs.personal_curve import NEWEST, RECALLED, TOLERANCE, fit, lacking, reviews_in
from vestige.cognition.fsrs.strength import StrengthLine
from vestige.core.errors import Forbidden
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, LogEvent
from vestige.engine.context import Call
from vestige.engine.recall.as_known import log_events
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.changes import CREATED, TUNED, Tune
from vestige.store.merge.histories import stamp
from vestige.store.merge.strength_log import EVIDENCE, Curves

# -- The history of strengths, from the log

ALL = 2**31
"""A limit that is never met: the curve changes a few times a day at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrengthHistory:
    """When memories, also deleted ones, were created, and their evidence since, in an order that all stores
    share. `curve` is the one in force at the end, `position` that of the last event (0 without any)."""

    made_at: dict[str, datetime]
    sightings: dict[str, list[StrengthLine]]
    curve: float
    position: int


def strength_history(call: Call, *, after: int = 0) -> StrengthHistory:
    """The history after a position of the log, for the whole store: it does not depend on the caller."""
    return _history_from(log_events(call, access=EVERYTHING, after=after))


def strength_history_of(call: Call, memory_ids: Iterable[str]) -> StrengthHistory:
    """The history of some memories, and of the curve."""
    tuned = call.engine.store.latest(LogQuery(kinds=(TUNED,)), access=EVERYTHING, limit=ALL)
    about = (event for one in memory_ids for event in log_events(call, access=EVERYTHING, memory_id=one))
    return _history_from([*tuned, *about])


def _history_from(events: Iterable[LogEvent]) -> StrengthHistory:
    """The history that these events make. In a merged store they are not logged in their own order."""
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
    return StrengthHistory(
        # A memory that was created in two stores has the earlier time.
        made_at={one.memory_id or "": one.at for one in sorted(created, key=stamp, reverse=True)},
        sightings={memory_id: curves.sightings(events_about) for memory_id, events_about in about.items()},
        curve=curves.present,
        position=position,
    )


# -- Fitting the curve


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveFit:
    """The forgetting curve: fitted to a number of reviews, or left as it was, and why."""

    fitted: bool
    w20: float
    reviews: int
    failures: int
    why: str | None = None


def tune(call: Call) -> CurveFit:
    """Fit the curve to the reviews in the log, if there are enough.

    If the fit has not changed, nothing is written. Raises Forbidden for a caller with limited access: the
    curve and the reviews belong to the whole store.
    """
    if call.access != EVERYTHING:
        raise Forbidden("Fitting the forgetting curve needs access to the whole store.")
    newest = LogQuery(evidence=tuple(RECALLED))
    events = call.engine.store.latest(newest, access=EVERYTHING, limit=NEWEST)
    history = strength_history_of(
        call, sorted({event.memory_id for event in events if event.memory_id is not None})
    )
    reviews = reviews_in(_histories(call, history)).usable()
    count, failures = len(reviews.recalled), reviews.failures
    why = lacking(reviews)
    if why is not None:
        return CurveFit(fitted=False, w20=history.curve, reviews=count, failures=failures, why=why)
    w20 = fit(reviews)
    if abs(w20 - history.curve) <= TOLERANCE:
        return CurveFit(fitted=True, w20=history.curve, reviews=count, failures=failures)
    call.engine.store.commit([Tune(w20=w20, at=call.engine.now())], access=EVERYTHING)
    return CurveFit(fitted=True, w20=w20, reviews=count, failures=failures)


def _histories(call: Call, history: StrengthHistory) -> Iterator[tuple[datetime, list[StrengthLine]]]:
    for memory_id, sightings in history.sightings.items():
        call.check()
        yield history.made_at[memory_id], sightings
