"""The read path: analyse → gather → rank → stages → answer; then a trace of the hits that were shown."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import isnan

import numpy as np

from vestige.cognition.query.analyse import Asked, analyse, could_answer, is_question
from vestige.cognition.query.contrast import Contrast, contrast
from vestige.cognition.query.literals import inside_compound
from vestige.cognition.ranking.confidence import (
    CERTAIN,
    WORTH_A_LOOK,
    HitEvidence,
    capped_confidence,
    chance_to_answer,
    confidence,
    confidence_when_read,
    holds_all,
    lowered_confidence,
    nearness,
    related,
    without_literals,
)
from vestige.cognition.ranking.relevance import relevance
from vestige.cognition.ranking.stages import (
    NOWHERE,
    RERANKED,
    Context,
    Ranking,
    rank,
    reranked,
    stages_without,
)
from vestige.cognition.text.analyser import searchable, terms
from vestige.cognition.text.form import Form, features
from vestige.cognition.time.query_window import NO_TIME, TimeAsked, time_asked
from vestige.core.candidates import CandidatePool
from vestige.core.errors import EmbedderError
from vestige.core.events import EventScope, SearchPerformed, preview, scopes_of
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Filter, Memory
from vestige.core.pair_model import PairModelState
from vestige.engine.context import Call, visible_scope
from vestige.engine.embedding import embedder_or_none
from vestige.engine.ingest.secrets import redact_query
from vestige.engine.recall.absent_terms import find_absent_terms
from vestige.engine.recall.as_known import as_known, gather_as_known
from vestige.engine.recall.candidates import Gathered, Mode, RequiredConfidence
from vestige.engine.recall.hits import Hit, Ranked, best_hits
from vestige.engine.recall.stage_inputs import Reinstated, context_match, load_stage_inputs, reinstate
from vestige.engine.recall.testing_effect import leave_trace

logger = logging.getLogger(__name__)

NO_CONFIDENCE = RequiredConfidence(matched=0.0, read=0.0)
READ, READ_AT_LEAST, READ_MORE = 3, 2, 5
"""The number of the best notes that the pair model reads with the query; fewer if one of the first almost
certainly answers, more if none rather answers than not."""
READ_CHARS, READ_TERMS = 600, 10  # The longest note, and the most terms of a query, that it reads.
LINKS = 2  # The most links in a row that lead from one hit to another.
NO_ANSWER = -3.0
"""The most log odds of a note that has nothing of the type that the question asks for, or that is about
another thing."""
IN_OTHER_WORDS = 3.0
"""What a note loses that has another common word in the place of one of the question."""
READING = 0.3  # The weight of what the pair model says, beside relevance.


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """A search: its text, the filter, and the most hits. `context` is the caller's present context.

    With `asks_time`, a past time that the text asks about replaces `where.valid_at`. With `show_all`, hits
    that have nothing to do with the query are kept. Without `reinstate`, the context of the best hit is not
    looked up.
    """

    text: str
    where: Filter
    limit: int
    mode: Mode = Mode.BALANCED
    context: Context = NOWHERE
    min_similarity: float = -1.0
    min_confidence: RequiredConfidence = NO_CONFIDENCE
    explain: bool = False
    asks_time: bool = False
    show_all: bool = False
    reinstate: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The answer to a query.

    - `confidence` is the probability that the answer is among the hits. Below the query's `min_confidence`
      there are no hits, and `rejected` is the best candidate.
    - `weaker` counts the hits that are not shown because they have little to do with the query.
    - `semantic` says whether vectors took part; if not, `why_not` is the reason.
    - `missing` are the literals and names of the query that no accessible memory mentions.
    - `contrast` is what the best hit has in place of what the query names.
    - `reinstated` is the context of the best hit, if the query states one or asks for explanations.
    - `overtaken` counts the hits that the stage `competition` moved behind a rival.
    - `unread`: more memories were reworded since `known_at` than a search reads.
    - `time` is the time that the query asks about, without `past` if the caller gave the time of validity.
    """

    hits: tuple[Hit, ...]
    rejected: tuple[Hit, ...]
    weaker: int
    confidence: float
    required: float
    missing: tuple[str, ...]
    contrast: Contrast | None
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
    time = time_asked(query.text, call.local_now())
    asked = _without_past(analyse(query.text), time)
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


def _without_past(asked: Asked, time: TimeAsked) -> Asked:
    """The query with a subject that lacks the words for a past time: "Who taught Jonah before Mr. Tanaka?"
    has its answer in a note without Mr. Tanaka. A single day stays: it may name what happened on it."""
    past = time.past
    if past is None or (time.window is not None and time.window.end - time.window.start <= timedelta(days=1)):
        return asked
    at = asked.text.casefold().find(past.words.casefold())
    if at < 0:
        return asked
    subject = analyse(f"{asked.text[:at]}{asked.text[at + len(past.words) :]}")
    return replace(asked, subject=subject.text, distinctive=subject.particulars)


def _rank(call: Call, query: RecallQuery, asked: Asked, gathered: Gathered) -> Ranked:
    """Rank the candidates by relevance, then by a reranker, if there is one, then by reading."""
    pool, known_at = gathered.pool, query.where.known_at
    found = relevance(asked, pool, gathered.matched)
    ranking = Ranking(ids=pool.ids, scores=found.scores).scored("relevance", found.scores)
    ranking = rerank(call, query.text, pool, ranking, known_at)
    call.check()
    odds = _read(call, asked, pool, ranking, known_at)
    if odds:
        judged = 1 / (1 + np.exp(-np.array(list(odds.values()))))
        ranking = ranking.scored("reading", reranked(ranking.scores, list(odds), judged, READING))
    return Ranked(pool=pool, relevance=found, ranking=ranking, odds=odds, explain=query.explain)


def rerank(
    call: Call, text: str, pool: CandidatePool, ranking: Ranking, known_at: datetime | None
) -> Ranking:
    """The ranking after a cross-encoder, if there is one and it works, has scored the best candidates."""
    if call.engine.settings.search.reranker == "off":
        return ranking
    reranker = call.engine.reranker()
    if reranker is None:
        return ranking
    memories = _memories(call, pool, ranking.best(RERANKED), known_at)
    pieces = [searchable(one)[pool.starts[at] : pool.ends[at] or None] for at, one in memories.items()]
    try:
        judged = reranker.score(text, pieces)
    except EmbedderError as exc:
        logger.warning("The reranker failed; results keep their order: %s", exc.message)
        return ranking
    return ranking.scored("reranking", reranked(ranking.scores, list(memories), judged))


def _read(
    call: Call, asked: Asked, pool: CandidatePool, ranking: Ranking, known_at: datetime | None
) -> dict[int, float]:
    """The log odds that the best notes answer the query, as the pair model judges that has read them. A query
    that is only a literal is no question, and one with many terms asks for more than one note answers."""
    embedder = embedder_or_none(call.engine)
    if (
        asked.concrete
        or len(asked.terms) > READ_TERMS
        or embedder is None
        or embedder.pair_model_state is not PairModelState.READY
    ):
        return {}
    best = ranking.best(READ_MORE)
    notes = _memories(call, pool, best, known_at)
    texts = {at: _text(memory, asked.terms) for at, memory in notes.items()}
    # Beside a part of a conversation, code or a long text, which it does not read, what it says is unfair.
    if any(pool.traits.form[at] != Form.NOTE or not _is_readable(texts.get(at, "")) for at in best[:READ]):
        return {}
    odds: dict[int, float] = {}
    for at, text in texts.items():
        enough = CERTAIN if len(odds) < READ else 0.0
        if len(odds) >= READ_AT_LEAST and max(odds.values()) >= enough:
            break
        if pool.traits.form[at] != Form.NOTE or not _is_readable(text):
            break
        if (found := embedder.answer(asked.text, text)) is not None:
            odds[at] = _odds(asked, notes[at], found)
    return odds


def _odds(asked: Asked, memory: Memory, found: float) -> float:
    """The log odds that a note answers, given those of the pair model."""
    if _is_beside(asked, memory):
        return min(found, NO_ANSWER)
    return found if contrast(asked.subject, memory) is None else found - IN_OTHER_WORDS


def _is_beside(asked: Asked, memory: Memory) -> bool:
    """Whether a note answers another question: it lacks the type of answer, or is about another thing."""
    other = contrast(asked.subject, memory)
    return not could_answer(asked.wanted, memory) or (other is not None and other.certain)


def _is_readable(text: str) -> bool:
    """Whether the pair model can judge a text: a short statement, not lines of code."""
    return len(text) <= READ_CHARS and "\n" not in text.strip()


def _memories(
    call: Call, pool: CandidatePool, best: Sequence[int], known_at: datetime | None
) -> dict[int, Memory]:
    """Those of these candidates that are still there."""
    records = call.engine.store.get_many([pool.ids[at] for at in best], access=call.access)
    memories = {one.memory.id: one.memory for one in as_known(call, records, known_at)}
    return {at: memories[pool.ids[at]] for at in best if pool.ids[at] in memories}


def _text(memory: Memory, named: Sequence[str]) -> str:
    """The text of a memory, after those of its tags that are `named`."""
    return ": ".join([*(tag for tag in memory.tags if set(terms(tag)) & set(named)), searchable(memory)])


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
    ranking, pool = ranked.ranking, gathered.pool
    best = ranking.best(query.limit)
    evidence = _evidence(asked, gathered, ranked, hits)
    read_odds = [hit.odds for hit in evidence.values() if hit.odds is not None]
    answered = max(read_odds) >= 0 if read_odds else None
    memories = [hit.record.memory for hit in hits]
    absent = find_absent_terms(call, asked, query.where, memories, answered=answered)
    judged = tuple(_with_chance(hit, evidence) for hit in hits)
    known = [evidence[hit.record.memory.id] for hit in hits if hit.record.memory.id in evidence]
    read, question = confidence_when_read(known), is_question(query.text)
    if read is None:
        sure = lowered_confidence(confidence(asked, pool, gathered.matched, best), asked, absent)
        required = query.min_confidence.matched
    else:
        sure = without_literals(asked, pool, read)
        required = query.min_confidence.read if question else query.min_confidence.matched
    sure = capped_confidence(sure, known, question=question)
    if not asked.literals and any(hit.holds_literal for hit in known):  # the word is there, inside of another
        sure = max(sure, WORTH_A_LOOK)
    refused = sure < required
    shown = () if refused else judged if query.show_all else _related(judged, evidence, asked)
    lowered = ranking.lowered_by("competition")
    return Recalled(
        hits=shown,
        rejected=judged[:1] if refused else (),
        weaker=len(judged) - len(shown),
        confidence=sure,
        required=required,
        missing=absent,
        contrast=_contrast_of_best(asked, judged),
        reinstated=_reinstated(call, query, shown),
        overtaken=sum(hit.record.memory.id in lowered for hit in shown),
        semantic=gathered.encoded is not None,
        why_not=gathered.why_not,
        unread=gathered.unread,
    )


def _contrast_of_best(asked: Asked, hits: Sequence[Hit]) -> Contrast | None:
    """What the best hit, if it is a note, has in place of what the query names."""
    memory = hits[0].record.memory if hits else None
    if memory is None or features(memory).form is not Form.NOTE:
        return None
    return contrast(asked.subject, memory)


def _evidence(
    asked: Asked, gathered: Gathered, ranked: Ranked, hits: Sequence[Hit]
) -> dict[str, HitEvidence]:
    """What is known of each hit as an answer, by id, best first; nothing of linked ones."""
    pool, matched = gathered.pool, gathered.matched
    here = {memory_id: at for at, memory_id in enumerate(pool.ids)}
    scores = ranked.ranking.scores  # after the stages, which know the time and context asked about
    top = float(scores.max(initial=0.0)) or 1.0
    matches = ranked.ranking.after("reading")
    nearest = float(matches.max(initial=0.0)) or 1.0
    memories = [hit.record.memory for hit in hits if hit.record.memory.id in here]
    places = [here[memory.id] for memory in memories]
    context, own = (None, None) if matched is None else (matched.context, matched.own)
    evidence = {}
    for at, memory in zip(places, memories, strict=True):
        silent = pool.traits.form[at] == Form.NOTE and _is_beside(asked, memory)
        cosine, match = float(pool.cosine[at]), np.nan if own is None else float(own[at])
        around = 0.0 if context is None else float(context[at])
        evidence[memory.id] = HitEvidence(
            form=int(pool.traits.form[at]),
            odds=ranked.odds.get(at),
            share=float(scores[at]) / top,
            match=float(matches[at]) / nearest,
            cosine=0.0 if isnan(cosine) else cosine,
            context=0.0 if isnan(around) else around,
            near=None if isnan(match) or isnan(cosine) else nearness(cosine, match),
            has_vector=not isnan(cosine),
            covered=float(pool.covered[at]),
            kin=float(np.einsum("i,i->", pool.vectors[at], pool.vectors[places[0]])),
            holds_literal=bool(pool.literals[at]) or inside_compound(asked.text.strip(), memory.content),
            lacks=silent or not all(named.mentioned_in(memory) for named in asked.distinctive),
            holds_all=not silent and holds_all(asked, pool, at),
        )
    return evidence


def _with_chance(hit: Hit, evidence: Mapping[str, HitEvidence]) -> Hit:
    known = evidence.get(hit.record.memory.id)
    return hit if known is None else replace(hit, chance=chance_to_answer(known))


def _related(hits: Sequence[Hit], evidence: Mapping[str, HitEvidence], asked: Asked) -> tuple[Hit, ...]:
    """The hits that have to do with the query; with each of them what it is linked to, and what contradicts
    it."""
    flags = related(list(evidence.values()), len(asked.terms))
    kept = {memory_id for memory_id, stays in zip(evidence, flags, strict=True) if stays}
    for _ in range(LINKS):
        kept |= {hit.record.memory.id for hit in hits if _belongs(hit, kept)}
    return tuple(hit for hit in hits if hit.record.memory.id in kept)


def _belongs(hit: Hit, kept: Collection[str]) -> bool:
    """Whether a hit is there because of others that are kept."""
    if hit.association is not None and (hit.association.via is None or hit.association.via in kept):
        return True
    return any(one in kept for one in hit.contradicts)


def _reinstated(call: Call, query: RecallQuery, hits: Sequence[Hit]) -> Reinstated | None:
    """The context of the best hit, if the query states a context or asks for explanations."""
    wanted = query.explain or query.context.is_known
    if not (hits and wanted and query.reinstate and call.engine.settings.mechanisms.context):
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
            session=preview(redact_query(call, query.context.session_id or "")) or None,
        )
    )
