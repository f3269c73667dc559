"""Predicting what is needed next, from what was learned of earlier searches (`engine.reactions.searches`)."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

import numpy as np

from vestige.cognition.fsrs.strength import retention_of
from vestige.cognition.prediction.forecast import (
    Forecast,
    ForecastSituation,
    Foretold,
    MadePrediction,
    foretell,
    session_of,
    waiting,
)
from vestige.cognition.prediction.habits import NO_HABIT, SESSION, Habit, asked_terms, habit_from, interests
from vestige.cognition.ranking.stages import AT_HOME, nearness
from vestige.core.documents import Document
from vestige.core.errors import Conflict, StoreError
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Filter, Order, Record
from vestige.engine.context import Call
from vestige.engine.reactions.searches import PATTERN, forecast, put_forecast, searches
from vestige.engine.revise import load_passing, retry_on_conflict

logger = logging.getLogger(__name__)

MOST_PATTERNS = 500
"""Habits that are read, last changed first; the others are old."""
RECENT = 50
"""Without a history, the strongest of this many newest memories are returned."""
COLD = 0.2
"""The highest confidence of a prediction without any learned habits."""
MOST_INTERESTS = 10
LIKELY_QUERIES = 3
QUERY_WORDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentWork:
    """What the caller works on, as far as it says."""

    file: str | None = None
    topics: tuple[str, ...] = ()
    codebase: str | None = None

    def named(self) -> dict[str, frozenset[str]]:
        """Each given file, topic and codebase with its terms."""
        given = (self.file, *self.topics, self.codebase)
        return {name: frozenset(asked_terms((name,))) for name in given if name}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A memory that is likely to be needed, with confidence and reasons."""

    record: Record
    confidence: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelyQuery:
    """A likely next query: its words, and the memories that would answer it."""

    words: tuple[str, ...]
    memory_ids: tuple[str, ...]
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What is likely to be needed next. `accuracy` is the share of the last `measured` predictions of which
    something was needed within the hour; `degraded` says why these are only the newest strong memories."""

    predictions: tuple[Prediction, ...]
    speculative: tuple[LikelyQuery, ...]
    interests: tuple[tuple[str, float], ...]
    accuracy: float | None
    measured: int
    degraded: str | None = None


def predict(
    call: Call,
    work: CurrentWork,
    limit: int,
    *,
    within: Filter | None = None,
    record: bool = True,
    fall_back: bool = True,
) -> Predicted:
    """What is likely to be needed next. With `record`, the prediction is kept and later checked; with
    `fall_back`, without any prediction, the newest strong memories take its place."""
    now = call.engine.now()
    where = within or Filter(scope=call.scope, inherited=True)
    where = replace(where, valid_at=now, include_suppressed=False)
    scope = where.scope or call.scope
    asked = searches(call, scope)
    situation = ForecastSituation(
        now=now,
        session=session_of(asked, now),
        found=frozenset(one.shown[0] for one in asked if one.shown and now - one.at < SESSION),
        about=work.named(),
    )
    patterns = _patterns(call, where) if call.engine.settings.mechanisms.prediction else []
    habits = {one.id: _HABITS.of(one) for one in patterns}
    foretold = foretell(habits, situation)
    if where.scope is None:
        foretold = _home_first(foretold, patterns, call.scope)
    predictions = _accessible(call, foretold, where, limit)
    degraded = None if predictions else _why_not(call, habits)
    kept = None
    if predictions and record:
        ids = tuple(one.record.memory.id for one in predictions)
        kept = _keep(call, scope, MadePrediction(at=now, ids=ids))
    made = kept or forecast(call, scope)[0]
    words = {term: word for one in reversed(asked) for term, word in one.terms.items()}
    return Predicted(
        predictions=predictions or (_fallback(call, where, limit, now) if fall_back else ()),
        speculative=_likely(predictions, habits, words),
        interests=_by_word(interests(asked, now), words),
        accuracy=made.accuracy,
        measured=len(made.outcomes),
        degraded=degraded,
    )


class _ReadHabits:
    """The habits of documents that were read before: a store returns the same object for an unchanged row."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Document, Habit]] = {}

    def of(self, document: Document) -> Habit:
        document_before, habit = self._held.get(document.id, (None, NO_HABIT))
        if document_before is not document:
            habit = habit_from(document.body)
            if len(self._held) >= 2 * MOST_PATTERNS:
                self._held.clear()
            self._held[document.id] = document, habit
        return habit


_HABITS = _ReadHabits()


def _patterns(call: Call, where: Filter) -> Sequence[Document]:
    return call.engine.store.documents(
        PATTERN, access=call.access, scope=where.scope, inherited=where.inherited, limit=MOST_PATTERNS
    )


def _home_first(foretold: Sequence[Foretold], patterns: Sequence[Document], home: str) -> list[Foretold]:
    """The same predictions, those of the current project first among equals, as in a search."""
    near = nearness(np.array([one.scope for one in patterns], dtype=np.object_), home)
    gains = {one.id: 1 + AT_HOME * float(level) for one, level in zip(patterns, near, strict=True)}
    return sorted(foretold, key=lambda one: (-one.confidence * gains[one.memory_id], one.memory_id))


def _accessible(
    call: Call, foretold: Sequence[Foretold], where: Filter, limit: int
) -> tuple[Prediction, ...]:
    """The likeliest memories that exist, are valid and not suppressed."""
    found: list[Prediction] = []
    for at in range(0, len(foretold), limit):
        some = foretold[at : at + limit]
        there = {one.memory.id: one for one in load_passing(call, [one.memory_id for one in some], where)}
        found += [_prediction(there[one.memory_id], one) for one in some if one.memory_id in there]
        if len(found) >= limit:
            break
    return tuple(found[:limit])


def _prediction(record: Record, one: Foretold) -> Prediction:
    reasons = tuple(f"{sign.channel}: {sign.reason}" for sign in one.signs)
    return Prediction(record=record, confidence=one.confidence, reasons=reasons)


def _why_not(call: Call, habits: Mapping[str, Habit]) -> str:
    if not call.engine.settings.mechanisms.prediction:
        return "Prediction is switched off (mechanisms.prediction)."
    if habits:
        return "No learned habit fits this moment; these are the newest strong memories."
    return "No search has been learned from yet; these are the newest strong memories."


def _fallback(call: Call, where: Filter, limit: int, now: datetime) -> tuple[Prediction, ...]:
    """The strongest of the newest memories, of the current project if it has any, without a prediction."""
    find = partial(call.engine.store.find, access=call.access, order=Order.NEWEST, limit=RECENT)
    home = where if where.scope else replace(where, scope=call.scope, inherited=True)
    found = find(home) or find(where)
    kept = sorted(found, key=lambda one: -retention_of(one.strength, now))[:limit]
    return tuple(
        Prediction(record=one, confidence=COLD * level, reasons=(f"recent: new and strong ({level:.2f})",))
        for one in kept
        for level in [retention_of(one.strength, now)]
    )


def _keep(call: Call, scope: str, made: MadePrediction) -> Forecast | None:
    """Store what was predicted; the predictions of the scope with it, None if it was not stored. It never
    raises: the answer matters more than its trace."""
    store = call.engine.store
    # A document that cites nothing is not accessible to a caller that is limited to domains.
    if store.read_only or call.access.domains is not None:
        return None

    def attempt() -> Forecast:
        present, document = forecast(call, scope)
        after = waiting(present, made)
        store.commit([put_forecast(scope, after, document, made.at)], access=call.access)
        return after

    try:
        return retry_on_conflict(call, attempt)
    except (Conflict, StoreError) as exc:
        logger.warning("A prediction was not stored: %s", exc)
        return None


def _likely(
    predictions: Sequence[Prediction], habits: Mapping[str, Habit], words: Mapping[str, str]
) -> tuple[LikelyQuery, ...]:
    """Likely next queries, by the words under which the likeliest memories were found."""
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


def _by_word(liked: Mapping[str, float], words: Mapping[str, str]) -> tuple[tuple[str, float], ...]:
    """The words searched for most, each with its weight; of a word's terms the strongest counts."""
    weights: dict[str, float] = {}
    for term, weight in liked.items():
        word = words.get(term, term)
        weights[word] = max(weights.get(word, 0.0), weight)
    best = sorted(weights, key=lambda word: (-weights[word], word))[:MOST_INTERESTS]
    return tuple((word, weights[word]) for word in best)
