"""The read path: analyse → arms → pool → relevance → stages → the best few, or nothing; then a trace of
what was really shown."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from vestige.cognition.confidence import confidence
from vestige.cognition.query import Asked, analyse
from vestige.cognition.ranking import Ranking, rank
from vestige.cognition.relevance import relevance
from vestige.cognition.strength import exposable
from vestige.engine.answering import Hit, Ranked, answer
from vestige.engine.context import Call
from vestige.engine.probing import Depth, Mode, Probed, probe
from vestige.engine.reranking import rerank
from vestige.engine.situating import situate
from vestige.errors import NotFound, StoreError
from vestige.events import SearchPerformed
from vestige.models import Evidence, Filter
from vestige.store.protocol import Remark

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """What to look for, among what, and how many. `topics` are what the caller is busy with."""

    text: str
    where: Filter
    limit: int
    mode: Mode = Mode.BALANCED
    topics: tuple[str, ...] = ()
    min_similarity: float = -1.0
    min_confidence: float = 0.0
    explain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The answer to a query.

    `confidence` is the chance that the answer is among the hits. Below what was asked for there are none,
    and `rejected` is the best that was found. `semantic` says whether meaning took part; if not, `why_not`.
    """

    hits: tuple[Hit, ...]
    rejected: tuple[Hit, ...]
    confidence: float
    semantic: bool
    why_not: str | None
    seconds: float


def recall(call: Call, query: RecallQuery) -> Recalled:
    """The memories that answer the query best."""
    started = call.engine.monotonic()
    asked = analyse(query.text)
    depth = query.mode.depth
    probed = probe(call, asked, query.where, depth, least_cosine=query.min_similarity)
    call.check()
    hits, sure = _ranked(call, query, asked, probed, depth)
    abstains = sure < query.min_confidence
    return Recalled(
        hits=() if abstains else hits,
        rejected=hits[:1] if abstains else (),
        confidence=sure,
        semantic=probed.encoded is not None,
        why_not=probed.why_not,
        seconds=call.engine.monotonic() - started,
    )


def _ranked(
    call: Call, query: RecallQuery, asked: Asked, probed: Probed, depth: Depth
) -> tuple[tuple[Hit, ...], float]:
    pool = probed.pool
    found = relevance(asked, pool, probed.matched)
    ranking = Ranking(ids=pool.ids, scores=found.scores).scored("relevance", found.scores)
    ranking = rerank(call, query.text, pool, ranking)
    call.check()
    situation, links = situate(call, query.text, query.where, query.topics, pool, ranking, depth)
    ranking = rank(ranking, situation)
    ranked = Ranked(pool=pool, relevance=found, ranking=ranking, links=links, explain=query.explain)
    hits = answer(call, query.where, query.limit, ranked)
    return hits, confidence(asked, pool, probed.matched, ranking.best(query.limit))


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
