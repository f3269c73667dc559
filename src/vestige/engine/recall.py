"""The read path: arms → pool → stages → the best few → a trace of what was shown."""

import logging
from dataclasses import dataclass

import numpy as np

from vestige.cognition.ranking import Candidates, rank
from vestige.cognition.strength import accessibility, retention_of
from vestige.cognition.text import query_terms
from vestige.engine.context import Call
from vestige.engine.embedding import embedder_or_none
from vestige.errors import NotFound, StoreBusy
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
    record: bool = True


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
    candidates: int
    semantic: bool
    why_not: str | None


def recall(call: Call, query: RecallQuery) -> Recalled:
    """The memories that answer the query best."""
    engine = call.engine
    started = engine.monotonic()
    terms = query_terms(query.text)
    lexical = engine.store.lexical(terms, query.where, access=call.access, limit=POOL)
    call.check()
    dense, why_not = _dense(call, query)
    call.check()
    hits = _ranked(call, query, lexical, dense)
    shown = hits[: query.limit]
    _leave_trace(call, query, shown)
    engine.events.emit(
        SearchPerformed(
            timestamp=engine.now(),
            query=query.text,
            result_count=len(shown),
            result_ids=tuple(hit.record.memory.id for hit in shown),
            duration_ms=1000 * (engine.monotonic() - started),
        )
    )
    return Recalled(hits=tuple(shown), candidates=len(hits), semantic=dense is not None, why_not=why_not)


def _dense(call: Call, query: RecallQuery) -> tuple[list[Scored] | None, str | None]:
    """The dense arm, or None and the reason why it is missing."""
    engine = call.engine
    embedder = embedder_or_none(engine)
    if embedder is None:
        status = engine.embedders.status()
        return None, status.detail or f"The embedding model is {status.state}."
    held = engine.store.signature()
    if held is None:
        return None, "No memory has a vector yet."
    if held != embedder.signature:
        return None, (
            f"The store holds vectors of {held.name}, the settings name {embedder.signature.name}; "
            "`vestige rebuild --vectors` changes the store over."
        )
    vector = embedder.embed_query(query.text)
    found = engine.store.nearest(
        vector[np.newaxis, :], embedder.signature, query.where, access=call.access, limit=POOL
    )[0]
    return [near for near in found if near.score >= query.min_similarity], None


def _ranked(call: Call, query: RecallQuery, lexical: list[Scored], dense: list[Scored] | None) -> list[Hit]:
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


def _leave_trace(call: Call, query: RecallQuery, shown: list[Hit]) -> None:
    """The testing effect: being recalled strengthens, weakly and at most once a day."""
    store = call.engine.store
    if not query.record or store.read_only or not shown:
        return
    now = call.engine.now()
    remarks = [Remark(memory_id=hit.record.memory.id, evidence=Evidence.EXPOSED, at=now) for hit in shown]
    try:
        store.commit(remarks, access=call.access)
    except (NotFound, StoreBusy) as exc:
        # Deleted by somebody else after it was found, or the writers are many: an answer is worth
        # more than its trace.
        logger.info("A search left no trace: %s", exc)
