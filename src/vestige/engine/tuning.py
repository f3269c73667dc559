"""Fitting the forgetting curve of a store to the reviews in its log."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from vestige.cognition.strength import Sighting
from vestige.cognition.tuning import NEWEST, RECALLED, TOLERANCE, fit, lacking, reviews_in
from vestige.engine.context import Call
from vestige.engine.replay import Story, story_of
from vestige.errors import Forbidden
from vestige.models import EVERYTHING
from vestige.store.changes import Tune
from vestige.store.logquery import LogQuery


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
    reviews = reviews_in(_histories(call, told)).telling()
    count, failures = len(reviews.recalled), reviews.failures
    why = lacking(reviews)
    if why is not None:
        return Tuned(fitted=False, w20=told.curve, reviews=count, failures=failures, why=why)
    w20 = fit(reviews)
    if abs(w20 - told.curve) <= TOLERANCE:
        return Tuned(fitted=True, w20=told.curve, reviews=count, failures=failures)
    call.engine.store.commit([Tune(w20=w20, at=call.engine.now())], access=EVERYTHING)
    return Tuned(fitted=True, w20=w20, reviews=count, failures=failures)


def _histories(call: Call, told: Story) -> Iterator[tuple[datetime, list[Sighting]]]:
    for memory_id, sightings in told.sightings.items():
        call.check()
        yield told.made_at[memory_id], sightings
