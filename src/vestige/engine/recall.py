"""The read path: arms → pool → stages → the best few; then a trace of what was really shown."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from vestige.cognition.ranking import Candidates, rank
from vestige.cognition.strength import accessibility, exposable, retention_of
from vestige.cognition.text import query_terms
from vestige.engine.context import Call
from vestige.engine.embedding import embedder_or_none
from vestige.engine.health import why_no_model
from vestige.errors import EmbedderError, NotFound, StoreError
from vestige.events import SearchPerformed
from vestige.models import Evidence, Filter, Record
from vestige.store.protocol import Remark, Scored

logger = logging.getLogger(__name__)

POOL = 100
"""Candidates taken from each arm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """What to look for, among what, and how many."""

    text: str
    where: Filter
    limit: int
    min_similarity: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A memory found, with why it ranks where it does.

    `keyword` and `semantic` are the arms' own scores (None where the arm missed it), `stages` the
    score after each stage, `start`/`end` the piece of its text that matched the meaning best.
    """

    record: Record
    score: float
    retention: float
    accessibility: float
    keyword: float | None
    semantic: float | None
    stages: tuple[tuple[str, float], ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The answer to a query. `semantic` says whether meaning took part; if not, `why_not`."""

    hits: tuple[Hit, ...]
    semantic: bool
    why_not: str | None
    seconds: float


def recall(call: Call, query: RecallQuery) -> Recalled:
    """The memories that answer the query best."""
    started = call.engine.monotonic()
    terms = query_terms(query.text)
    lexical = call.engine.store.lexical(terms, query.where, access=call.access, limit=POOL)
    call.check()
    dense, why_not = _dense(call, query)
    call.check()
    hits = _ranked(call, lexical, dense)
    return Recalled(
        hits=tuple(hits[: query.limit]),
        semantic=dense is not None,
        why_not=why_not,
        seconds=call.engine.monotonic() - started,
    )


def show(call: Call, query: RecallQuery, recalled: Recalled, shown: Sequence[Hit], *, record: bool) -> None:
    """Tell that these hits were shown, and leave their trace."""
    if record:
        _leave_trace(call, shown)
    call.engine.events.emit(
        SearchPerformed(
            timestamp=call.engine.now(),
            query=query.text,
            result_count=len(shown),
            result_ids=tuple(hit.record.memory.id for hit in shown),
            duration_ms=1000 * recalled.seconds,
        )
    )


def _dense(call: Call, query: RecallQuery) -> tuple[list[Scored] | None, str | None]:
    """The dense arm, or None and the reason why it is missing."""
    engine = call.engine
    embedder = embedder_or_none(engine)
    if embedder is None:
        return None, f"{why_no_model(engine.embedders.status())}."
    held = engine.store.signature()
    if held is None:
        return None, "No memory has a vector yet."
    if held != embedder.signature:
        return None, (
            f"The store holds vectors of {held.name}, the settings name {embedder.signature.name}; "
            "`vestige rebuild --vectors` changes the store over."
        )
    try:
        vector = embedder.embed_query(query.text)
    except EmbedderError as exc:
        return None, exc.message
    found = engine.store.nearest(
        vector[np.newaxis, :], embedder.signature, query.where, access=call.access, limit=POOL
    )[0]
    return [near for near in found if near.score >= query.min_similarity], None


def _ranked(call: Call, lexical: list[Scored], dense: list[Scored] | None) -> list[Hit]:
    now = call.engine.now()
    by_words = {found.memory_id: found for found in lexical}
    by_meaning = {found.memory_id: found for found in dense or ()}
    ids = sorted(by_words.keys() | by_meaning.keys())
    records = {r.memory.id: r for r in call.engine.store.get_many(ids, access=call.access)}
    ids = [memory_id for memory_id in ids if memory_id in records]
    retention = {i: retention_of(records[i].strength, now) for i in ids}
    ages = [(now - records[i].memory.created_at).total_seconds() / 86_400 for i in ids]
    access = [accessibility(retention[i], records[i].memory.suppression_count) for i in ids]
    pool = rank(
        Candidates(
            ids=tuple(ids),
            lexical=np.array([by_words[i].score if i in by_words else 0.0 for i in ids]),
            dense=None
            if dense is None
            else np.array([by_meaning[i].score if i in by_meaning else 0.0 for i in ids]),
            age_days=np.array(ages),
            accessibility=np.array(access, dtype=np.float64),
            scores=np.zeros(len(ids)),
        )
    )
    return [
        Hit(
            record=records[ids[at]],
            score=float(pool.scores[at]),
            retention=retention[ids[at]],
            accessibility=float(pool.accessibility[at]),
            keyword=by_words[ids[at]].score if ids[at] in by_words else None,
            semantic=by_meaning[ids[at]].score if ids[at] in by_meaning else None,
            stages=tuple((name, float(scores[at])) for name, scores in pool.steps),
            start=by_meaning[ids[at]].start if ids[at] in by_meaning else 0,
            end=by_meaning[ids[at]].end if ids[at] in by_meaning else 0,
        )
        for at in pool.best(len(ids))
    ]


def _leave_trace(call: Call, shown: Sequence[Hit]) -> None:
    """The testing effect: being recalled strengthens, weakly and at most once a day."""
    store, now = call.engine.store, call.engine.now()
    due = [hit.record.memory.id for hit in shown if exposable(hit.record.strength, now)]
    if store.read_only or not due:
        return
    try:
        try:
            store.commit(_exposures(due, now), access=call.access)
        except NotFound:
            # Some were deleted since they were found; the others still get theirs.
            left = [record.memory.id for record in store.get_many(due, access=call.access)]
            store.commit(_exposures(left, now), access=call.access)
    except (NotFound, StoreError) as exc:
        # A full disk, many writers: an answer is worth more than its trace.
        logger.warning("A search left no trace: %s", exc)


def _exposures(memory_ids: Sequence[str], now: datetime) -> list[Remark]:
    return [Remark(memory_id=one, evidence=Evidence.EXPOSED, at=now) for one in memory_ids]
