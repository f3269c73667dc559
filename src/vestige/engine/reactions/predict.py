"""Foretelling what is needed next, from what was learned of earlier searches (`engine.patterns`)."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from vestige.cognition.fsrs.strength import retention_of
from vestige.cognition.prediction.forecast import (
    ForecastSituation,
    Foretold,
    MadePrediction,
    foretell,
    session_of,
    waiting,
)
from vestige.cognition.prediction.habits import SESSION, Habit, asked_terms, habit_from, interests
from vestige.core.errors import Conflict, StoreError
from vestige.core.models import Filter, Order, Record
from vestige.engine.context import Call
from vestige.engine.reactions.searches import PATTERN, forecast, put_forecast, searches
from vestige.engine.revise import persistently
from vestige.store.filter_rule import passes

logger = logging.getLogger(__name__)

MOST_PATTERNS = 500
"""Habits that are looked at, those that changed last: the others are old."""
RECENT = 50
"""Of so many of the newest memories the strongest are named where there is no history."""
COLD = 0.2
"""The most that is expected of a memory when nothing is known of anybody's habits."""
MOST_INTERESTS = 10
LIKELY_QUERIES = 3
QUERY_WORDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """What the caller is busy with, as far as he says."""

    file: str | None = None
    topics: tuple[str, ...] = ()
    codebase: str | None = None

    def named(self) -> dict[str, frozenset[str]]:
        """Each of them, with its terms."""
        given = (self.file, *self.topics, self.codebase)
        return {name: frozenset(asked_terms((name,))) for name in given if name}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A memory that is likely to be needed, how sure that is, and why."""

    record: Record
    confidence: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelyQuery:
    """What is likely to be asked for next: its words, and the memories that would answer it."""

    words: tuple[str, ...]
    memory_ids: tuple[str, ...]
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What is likely to be needed next.

    `accuracy` is the share of the last `measured` predictions of which something was needed within the hour.
    `degraded` says why these are no real predictions but the newest strong memories.
    """

    predictions: tuple[Prediction, ...]
    speculative: tuple[LikelyQuery, ...]
    interests: tuple[tuple[str, float], ...]
    accuracy: float | None
    measured: int
    degraded: str | None = None


def predict(
    call: Call, busy: Busy, limit: int, *, within: Filter | None = None, record: bool = True
) -> Predicted:
    """What is likely to be needed next. With `record`, it is looked at later whether that came true."""
    now = call.engine.now()
    where = within or Filter(scope=call.scope, inherited=True)
    where = replace(where, valid_at=now, include_suppressed=False)
    scope = where.scope or call.scope
    asked = searches(call, scope)
    situation = ForecastSituation(
        now=now,
        session=session_of(asked, now),
        found=frozenset(one.shown[0] for one in asked if one.shown and now - one.at < SESSION),
        about=busy.named(),
    )
    habits = _habits(call, where, situation.session) if call.engine.settings.mechanisms.prediction else {}
    foretold = foretell(habits, situation)
    predictions = _living(call, foretold, where, limit)
    degraded = None if predictions else _why_not(call, habits)
    if predictions and record:
        _keep(call, scope, MadePrediction(at=now, ids=tuple(one.record.memory.id for one in predictions)))
    made, _ = forecast(call, scope)
    words = {term: word for one in reversed(asked) for term, word in one.terms.items()}
    return Predicted(
        predictions=predictions or _cold(call, where, limit, now),
        speculative=_likely(predictions, habits, words),
        interests=_named(interests(asked, now), words),
        accuracy=made.accuracy,
        measured=len(made.outcomes),
        degraded=degraded,
    )


def _habits(call: Call, where: Filter, session: Collection[str]) -> dict[str, Habit]:
    found = call.engine.store.documents(
        PATTERN, access=call.access, scope=where.scope, inherited=where.inherited, limit=MOST_PATTERNS
    )
    return {document.id: habit_from(document.body, session) for document in found}


def _living(call: Call, foretold: Sequence[Foretold], where: Filter, limit: int) -> tuple[Prediction, ...]:
    """The likeliest that are there, true and not suppressed."""
    living: list[Prediction] = []
    for at in range(0, len(foretold), limit):
        some = foretold[at : at + limit]
        records = call.engine.store.get_many([one.memory_id for one in some], access=call.access)
        there = {one.memory.id: one for one in records if passes(one.memory, where, call.access)}
        living += [_prediction(there[one.memory_id], one) for one in some if one.memory_id in there]
        if len(living) >= limit:
            break
    return tuple(living[:limit])


def _prediction(record: Record, one: Foretold) -> Prediction:
    reasons = tuple(f"{sign.channel}: {sign.reason}" for sign in one.signs)
    return Prediction(record=record, confidence=one.confidence, reasons=reasons)


def _why_not(call: Call, habits: Mapping[str, Habit]) -> str:
    if not call.engine.settings.mechanisms.prediction:
        return "Prediction is switched off (mechanisms.prediction)."
    if habits:
        return "Nothing that was met before fits this moment; these are the newest strong memories."
    return "No search has been learned from yet; these are the newest strong memories."


def _cold(call: Call, where: Filter, limit: int, now: datetime) -> tuple[Prediction, ...]:
    """The strongest of the newest memories, for want of anything better."""
    found = call.engine.store.find(where, access=call.access, order=Order.NEWEST, limit=RECENT)
    kept = sorted(found, key=lambda one: -retention_of(one.strength, now))[:limit]
    return tuple(
        Prediction(record=one, confidence=COLD * level, reasons=(f"recent: new and strong ({level:.2f})",))
        for one in kept
        for level in [retention_of(one.strength, now)]
    )


def _keep(call: Call, scope: str, made: MadePrediction) -> None:
    """Remember what was predicted. It never fails: an answer is worth more than its trace."""
    store = call.engine.store
    # What cites nothing is out of reach for an access that is limited to domains.
    if store.read_only or call.access.domains is not None:
        return

    def attempt() -> None:
        present, document = forecast(call, scope)
        store.commit([put_forecast(scope, waiting(present, made), document, made.at)], access=call.access)

    try:
        persistently(call, attempt)
    except (Conflict, StoreError) as exc:
        logger.warning("A prediction was not kept: %s", exc)


def _likely(
    predictions: Sequence[Prediction], habits: Mapping[str, Habit], words: Mapping[str, str]
) -> tuple[LikelyQuery, ...]:
    """What is likely to be asked for next, by the words under which the likeliest memories were met."""
    groups: dict[tuple[str, ...], list[Prediction]] = {}
    for one in predictions:
        counts = habits[one.record.memory.id].terms
        best = sorted(counts, key=lambda term: (-counts[term], term))
        said = tuple(dict.fromkeys(words.get(term, term) for term in best))[:QUERY_WORDS]
        if said:
            groups.setdefault(said, []).append(one)
    return tuple(
        LikelyQuery(
            words=said,
            memory_ids=tuple(one.record.memory.id for one in group),
            confidence=max(one.confidence for one in group),
        )
        for said, group in list(groups.items())[:LIKELY_QUERIES]
    )


def _named(liked: Mapping[str, float], words: Mapping[str, str]) -> tuple[tuple[str, float], ...]:
    """The words somebody asks for most, each with its weight; of a word's terms the strongest counts."""
    weights: dict[str, float] = {}
    for term, weight in liked.items():
        word = words.get(term, term)
        weights[word] = max(weights.get(word, 0.0), weight)
    best = sorted(weights, key=lambda word: (-weights[word], word))[:MOST_INTERESTS]
    return tuple((word, weights[word]) for word in best)
