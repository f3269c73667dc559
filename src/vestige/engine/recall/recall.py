"""The read path: analyse → arms → pool → relevance → stages → the best few, or nothing; then a trace of
what was really shown."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from vestige.cognition.query.analyse import Asked, analyse
from vestige.cognition.ranking.confidence import confidence, doubted
from vestige.cognition.ranking.context import NOWHERE, Context
from vestige.cognition.ranking.relevance import relevance
from vestige.cognition.ranking.stages import RERANKED, Ranking, rank, reranked, stages_without
from vestige.cognition.text.analyser import searchable
from vestige.core.candidates import CandidatePool
from vestige.core.errors import EmbedderError
from vestige.core.events import EventScope, SearchPerformed, places_of
from vestige.core.models import ROOT_SCOPE, Filter
from vestige.engine.context import Call, searched
from vestige.engine.ingest.secrets import unsaid
from vestige.engine.recall.absent_terms import missing
from vestige.engine.recall.as_known import as_known, probe_as_known
from vestige.engine.recall.candidates import Depth, Mode, Probed
from vestige.engine.recall.hits import Hit, Ranked, answer
from vestige.engine.recall.stage_inputs import Reinstated, matches, reinstate, situate
from vestige.engine.recall.testing_effect import leave_trace

logger = logging.getLogger(__name__)


# -- The optional second judge: a cross-encoder reads the best candidates beside the query.


def rerank(
    call: Call, text: str, pool: CandidatePool, ranking: Ranking, known_at: datetime | None
) -> Ranking:
    """The ranking after the judge, where there is one; as it was where there is none or it fails."""
    reranker = call.engine.reranker()
    if reranker is None:
        return ranking
    best = ranking.best(RERANKED)
    records = call.engine.store.get_many([pool.ids[at] for at in best], access=call.access)
    records = as_known(call, records, known_at)
    texts = {record.memory.id: searchable(record.memory) for record in records}
    order = [at for at in best if pool.ids[at] in texts]
    pieces = [texts[pool.ids[at]][pool.starts[at] : pool.ends[at] or None] for at in order]
    try:
        judged = reranker.score(text, pieces)
    except EmbedderError as exc:
        logger.warning("The answer goes without the reranker: %s", exc.message)
        return ranking
    return ranking.scored("reranking", reranked(ranking.scores, order, judged))


# -- recall


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """What to look for, among what, and how many. `context` is where the caller is."""

    text: str
    where: Filter
    limit: int
    mode: Mode = Mode.BALANCED
    context: Context = NOWHERE
    min_similarity: float = -1.0
    min_confidence: float = 0.0
    explain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The answer to a query.

    `confidence` is the chance that the answer is among the hits. Below what was asked for there are none,
    and `rejected` is the best that was found. `semantic` says whether meaning took part; if not, `why_not`.
    `missing` are the texts and things of the query that no memory in reach tells of.
    `reinstated` is the context of the best hit, where the caller told his own or asks for reasons.
    `overtaken` counts the hits that competition put behind a rival.
    `unread`: more memories were reworded since the time that was asked about than were read.
    """

    hits: tuple[Hit, ...]
    rejected: tuple[Hit, ...]
    confidence: float
    missing: tuple[str, ...]
    reinstated: Reinstated | None
    overtaken: int
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
    hits, ranking = _ranked(call, query, asked, probed, depth)
    sure = confidence(asked, probed.pool, probed.matched, ranking.best(query.limit))
    gone = missing(call, asked, query.where, [hit.record.memory for hit in hits])
    sure = doubted(sure, asked, gone)
    shown, rejected = ((), hits[:1]) if sure < query.min_confidence else (hits, ())
    lowered = ranking.lowered_by("competition")
    return Recalled(
        hits=shown,
        rejected=rejected,
        confidence=sure,
        missing=gone,
        reinstated=_reinstated(call, query, shown),
        overtaken=sum(hit.record.memory.id in lowered for hit in shown),
        semantic=probed.encoded is not None,
        why_not=probed.why_not,
        unread=unread,
        seconds=call.engine.monotonic() - started,
    )


def _ranked(
    call: Call, query: RecallQuery, asked: Asked, probed: Probed, depth: Depth
) -> tuple[tuple[Hit, ...], Ranking]:
    pool = probed.pool
    found = relevance(asked, pool, probed.matched)
    ranking = Ranking(ids=pool.ids, scores=found.scores).scored("relevance", found.scores)
    ranking = rerank(call, query.text, pool, ranking, query.where.known_at)
    call.check()
    fit = matches(call, query.context, pool.ids, query.where.known_at)
    situation, links = situate(call, query.text, query.where, fit, pool, ranking, depth)
    off = [name for name, on in call.engine.settings.mechanisms if not on]
    ranking = rank(ranking, situation, stages_without(off))
    ranked = Ranked(pool=pool, relevance=found, ranking=ranking, links=links, explain=query.explain)
    hits = answer(call, query.where, query.limit, ranked)
    least = depth.share * max((hit.score for hit in hits), default=0.0)
    return tuple(hit for hit in hits if hit.score >= least), ranking


def _reinstated(call: Call, query: RecallQuery, hits: Sequence[Hit]) -> Reinstated | None:
    """The context of the best hit, for a caller who tells of his own or wants to know why."""
    wanted = query.explain or query.context.is_known
    if not (hits and wanted and call.engine.settings.mechanisms.context):
        return None
    return reinstate(call, hits[0].record.memory, query.where)


def show(call: Call, query: RecallQuery, recalled: Recalled, shown: Sequence[Hit], *, record: bool) -> None:
    """Leave the trace of these hits, if it is to be recorded, and tell that they were shown."""
    if record:
        leave_trace(call, [hit.record for hit in shown])
    tell(call, query, recalled, shown, recorded=record)


def tell(call: Call, query: RecallQuery, recalled: Recalled, shown: Sequence[Hit], *, recorded: bool) -> None:
    """Tell that these hits were shown: where it was searched, and where they are."""
    scope = searched(call, query.where.scope or ROOT_SCOPE)
    call.engine.events.emit(
        SearchPerformed(
            timestamp=call.engine.now(),
            places=(EventScope(scope=scope), *places_of(*(hit.record.memory for hit in shown))),
            query=unsaid(call, query.text),
            result_count=len(shown),
            result_ids=tuple(hit.record.memory.id for hit in shown),
            duration_ms=round(1000 * recalled.seconds, 1),
            scope=scope,
            topics=tuple(unsaid(call, topic) for topic in query.context.topics),
            recorded=recorded,
        )
    )
