"""The read path: analyse → arms → pool → relevance → stages → the best few, or nothing; then a trace of
what was really shown."""

from collections.abc import Sequence
from dataclasses import dataclass

from vestige.cognition.confidence import confidence, doubted
from vestige.cognition.query import Asked, analyse
from vestige.cognition.ranking import Ranking, rank
from vestige.cognition.relevance import relevance
from vestige.engine.answering import Hit, Ranked, answer
from vestige.engine.context import Call
from vestige.engine.exposure import leave_trace
from vestige.engine.missing import missing
from vestige.engine.probing import Depth, Mode, Probed
from vestige.engine.reranking import rerank
from vestige.engine.rewording import probe_as_known
from vestige.engine.situating import situate
from vestige.events import SearchPerformed
from vestige.models import Filter


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
    `missing` are the texts and things of the query that no memory in reach tells of.
    `unread`: more memories were reworded since the time that was asked about than were read.
    """

    hits: tuple[Hit, ...]
    rejected: tuple[Hit, ...]
    confidence: float
    missing: tuple[str, ...]
    semantic: bool
    why_not: str | None
    unread: bool
    seconds: float


def recall(call: Call, query: RecallQuery) -> Recalled:
    """The memories that answer the query best."""
    started = call.engine.monotonic()
    asked = analyse(query.text)
    depth = query.mode.depth
    probed, unread = probe_as_known(call, asked, query.where, depth, least_cosine=query.min_similarity)
    call.check()
    hits, sure = _ranked(call, query, asked, probed, depth)
    gone = missing(call, asked, query.where, [hit.record.memory for hit in hits])
    sure = doubted(sure, asked, gone)
    abstains = sure < query.min_confidence
    return Recalled(
        hits=() if abstains else hits,
        rejected=hits[:1] if abstains else (),
        confidence=sure,
        missing=gone,
        semantic=probed.encoded is not None,
        why_not=probed.why_not,
        unread=unread,
        seconds=call.engine.monotonic() - started,
    )


def _ranked(
    call: Call, query: RecallQuery, asked: Asked, probed: Probed, depth: Depth
) -> tuple[tuple[Hit, ...], float]:
    pool = probed.pool
    found = relevance(asked, pool, probed.matched)
    ranking = Ranking(ids=pool.ids, scores=found.scores).scored("relevance", found.scores)
    ranking = rerank(call, query.text, pool, ranking, query.where.known_at)
    call.check()
    situation, links = situate(call, query.text, query.where, query.topics, pool, ranking, depth)
    ranking = rank(ranking, situation)
    ranked = Ranked(pool=pool, relevance=found, ranking=ranking, links=links, explain=query.explain)
    hits = answer(call, query.where, query.limit, ranked)
    least = depth.share * max((hit.score for hit in hits), default=0.0)
    hits = tuple(hit for hit in hits if hit.score >= least)
    return hits, confidence(asked, pool, probed.matched, ranking.best(query.limit))


def show(call: Call, query: RecallQuery, recalled: Recalled, shown: Sequence[Hit], *, record: bool) -> None:
    """Tell that these hits were shown, and leave their trace."""
    if record:
        leave_trace(call, [hit.record for hit in shown])
    call.engine.events.emit(
        SearchPerformed(
            timestamp=call.engine.now(),
            query=query.text,
            result_count=len(shown),
            result_ids=tuple(hit.record.memory.id for hit in shown),
            duration_ms=1000 * recalled.seconds,
        )
    )
