"""The read path: analyse → gather → rank → stages → answer; then a trace of the hits that were shown."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from vestige.cognition.query.analyse import Asked, analyse
from vestige.cognition.ranking.relevance import confidence, lowered_confidence, relevance
from vestige.cognition.ranking.stages import (
    NOWHERE,
    RERANKED,
    Context,
    Ranking,
    rank,
    reranked,
    stages_without,
)
from vestige.cognition.text.analyser import searchable
from vestige.cognition.time.query_window import NO_TIME, TimeAsked, time_asked
from vestige.core.candidates import CandidatePool
from vestige.core.errors import EmbedderError
from vestige.core.events import EventScope, SearchPerformed, scopes_of
from vestige.core.models import Filter
from vestige.engine.context import Call, visible_scope
from vestige.engine.ingest.secrets import redact_query
from vestige.engine.recall.absent_terms import find_absent_terms
from vestige.engine.recall.as_known import as_known, gather_as_known
from vestige.engine.recall.candidates import Gathered, Mode
from vestige.engine.recall.hits import Hit, Ranked, best_hits
from vestige.engine.recall.stage_inputs import Reinstated, context_match, load_stage_inputs, reinstate
from vestige.engine.recall.testing_effect import leave_trace

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """A search: its text, the filter, and the most hits. `context` is the caller's present context.

    With `asks_time`, a past time that the text asks about replaces `where.valid_at`.
    """

    text: str
    where: Filter
    limit: int
    mode: Mode = Mode.BALANCED
    context: Context = NOWHERE
    min_similarity: float = -1.0
    min_confidence: float = 0.0
    explain: bool = False
    asks_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The answer to a query.

    - `confidence` is the probability that the answer is among the hits. Below the query's `min_confidence`
      there are no hits, and `rejected` is the best candidate.
    - `semantic` says whether vectors took part; if not, `why_not` is the reason.
    - `missing` are the literals and names of the query that no accessible memory mentions.
    - `reinstated` is the context of the best hit, if the query states one or asks for explanations.
    - `overtaken` counts the hits that the stage `competition` moved behind a rival.
    - `unread`: more memories were reworded since `known_at` than a search reads.
    - `time` is the time that the query asks about, without `past` if the caller gave the time of validity.
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
    time: TimeAsked = NO_TIME
    seconds: float = 0.0


def recall(call: Call, query: RecallQuery) -> Recalled:
    """Find the memories that answer a query best. It only reads: `record_shown` leaves the trace."""
    started = call.engine.monotonic()
    asked = analyse(query.text)
    time = time_asked(query.text, call.engine.now())
    if query.asks_time and time.past is not None:
        query = replace(query, where=replace(query.where, valid_at=None))
    elif query.where.valid_at is not None:
        time = replace(time, past=None)
    gathered = gather_as_known(call, asked, query.where, query.mode.depth, least_cosine=query.min_similarity)
    call.check()
    ranked = _rank(call, query, asked, gathered)
    ranked = _run_stages(call, query, asked, time, ranked)
    hits = _hits(call, query, ranked)
    answer = _answer(call, query, asked, gathered, ranked, hits)
    return replace(answer, time=time, seconds=call.engine.monotonic() - started)


def _rank(call: Call, query: RecallQuery, asked: Asked, gathered: Gathered) -> Ranked:
    """Rank the candidates by relevance, then by the reranker if one is configured."""
    pool = gathered.pool
    found = relevance(asked, pool, gathered.matched)
    ranking = Ranking(ids=pool.ids, scores=found.scores).scored("relevance", found.scores)
    ranking = rerank(call, query.text, pool, ranking, query.where.known_at)
    call.check()
    return Ranked(pool=pool, relevance=found, ranking=ranking, explain=query.explain)


def rerank(
    call: Call, text: str, pool: CandidatePool, ranking: Ranking, known_at: datetime | None
) -> Ranking:
    """The ranking after a cross-encoder, if there is one and it works, has scored the best candidates."""
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
        logger.warning("The reranker failed; results keep their order: %s", exc.message)
        return ranking
    return ranking.scored("reranking", reranked(ranking.scores, order, judged))


def _run_stages(call: Call, query: RecallQuery, asked: Asked, time: TimeAsked, ranked: Ranked) -> Ranked:
    """Run the stages of the mechanisms that are switched on: time, context, competition, activation …"""
    pool, ranking, depth = ranked.pool, ranked.ranking, query.mode.depth
    fit = context_match(call, query.context, pool.ids, query.where.known_at)
    inputs, links = load_stage_inputs(call, asked, time, query.where, fit, pool, ranking, depth)
    off = [name for name, on in call.engine.settings.mechanisms if not on]
    return replace(ranked, ranking=rank(ranking, inputs, stages_without(off)), links=links)


def _hits(call: Call, query: RecallQuery, ranked: Ranked) -> tuple[Hit, ...]:
    """The best hits, without those whose score is too small a share of the best one's (see `Depth.share`)."""
    hits = best_hits(call, query.where, query.limit, ranked)
    least = query.mode.depth.share * max((hit.score for hit in hits), default=0.0)
    return tuple(hit for hit in hits if hit.score >= least)


def _answer(
    call: Call, query: RecallQuery, asked: Asked, gathered: Gathered, ranked: Ranked, hits: tuple[Hit, ...]
) -> Recalled:
    """The answer: the hits with their confidence, or no hits if that is too low."""
    ranking = ranked.ranking
    sure = confidence(asked, gathered.pool, gathered.matched, ranking.best(query.limit))
    absent = find_absent_terms(call, asked, query.where, [hit.record.memory for hit in hits])
    sure = lowered_confidence(sure, asked, absent)
    shown, rejected = ((), hits[:1]) if sure < query.min_confidence else (hits, ())
    lowered = ranking.lowered_by("competition")
    return Recalled(
        hits=shown,
        rejected=rejected,
        confidence=sure,
        missing=absent,
        reinstated=_reinstated(call, query, shown),
        overtaken=sum(hit.record.memory.id in lowered for hit in shown),
        semantic=gathered.encoded is not None,
        why_not=gathered.why_not,
        unread=gathered.unread,
    )


def _reinstated(call: Call, query: RecallQuery, hits: Sequence[Hit]) -> Reinstated | None:
    """The context of the best hit, if the query states a context or asks for explanations."""
    wanted = query.explain or query.context.is_known
    if not (hits and wanted and call.engine.settings.mechanisms.context):
        return None
    return reinstate(call, hits[0].record.memory, query.where)


# -- Trace of a search: strengthened hits, and the event `SearchPerformed`


def record_shown(
    call: Call, query: RecallQuery, recalled: Recalled, shown: Sequence[Hit], *, record: bool
) -> None:
    """Record that these hits were shown: strengthen them if `record` is set, and emit `SearchPerformed`."""
    if record:
        leave_trace(call, [hit.record for hit in shown])
    emit_search(call, query, recalled, shown, recorded=record)


def emit_search(
    call: Call, query: RecallQuery, recalled: Recalled, shown: Sequence[Hit], *, recorded: bool
) -> None:
    """Emit `SearchPerformed` to the scope that was searched (of a search of everything: the caller's own) and
    to the scopes of the hits."""
    scope = visible_scope(call, query.where.scope or call.scope)
    call.engine.events.emit(
        SearchPerformed(
            timestamp=call.engine.now(),
            scopes=(EventScope(scope=scope), *scopes_of(*(hit.record.memory for hit in shown))),
            query=redact_query(call, query.text),
            result_count=len(shown),
            result_ids=tuple(hit.record.memory.id for hit in shown),
            duration_ms=round(1000 * recalled.seconds, 1),
            scope=scope,
            topics=tuple(redact_query(call, topic) for topic in query.context.topics),
            recorded=recorded,
        )
    )
