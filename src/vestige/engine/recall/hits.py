"""Hits: turns ranked candidates into records, folds duplicates, adds linked memories, marks
contradictions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from vestige.cognition.fsrs.strength import retention_of
from vestige.cognition.gate.relation import contradictions_among, statement_words
from vestige.cognition.graph.kinds import SUPERSEDES
from vestige.cognition.graph.spread import Activation
from vestige.cognition.ranking.relevance import SIGNALS, Relevance
from vestige.cognition.ranking.stages import ComparedText, Ranking, fold_duplicates, joining, spread_out
from vestige.cognition.text.analyser import fingerprint, terms
from vestige.cognition.text.form import Form, features, is_threaded
from vestige.core.candidates import CandidatePool
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Filter, Memory, Record
from vestige.engine.context import Call
from vestige.engine.recall.as_known import known_records
from vestige.engine.recall.stage_inputs import NO_LINKS, LinkedFinds, edges_known_at, marked_pairs

SPARE = 5
"""Candidates loaded beyond the limit; they replace duplicates."""
LONG_CHARS = 4_000
"""A longer text is not compared with the others word by word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceSignal:
    """One part of a hit's relevance: `value` times `weight` was added."""

    name: str
    value: float
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A memory that was found, and why it ranks where it does.

    - `keyword` and `semantic` are its BM25 score and cosine (None without one), whichever arm found it;
      `by_words`, `by_meaning` and `by_literal` name the arms that did.
    - `signals` are the parts of its relevance, `stages` its score and rank after each stage.
    - `start` and `end` delimit the piece of its text with the best cosine.
    - `duplicates` say the same, `contradicts` the opposite, among the hits or marked as such.
    - `association` is the link that brought it in, if it ranks lower by itself.
    """

    record: Record
    score: float
    keyword: float | None = None
    semantic: float | None = None
    by_words: bool = False
    by_meaning: bool = False
    by_literal: bool = False
    signals: tuple[RelevanceSignal, ...] = ()
    stages: tuple[tuple[str, float, int], ...] = ()
    start: int = 0
    end: int = 0
    duplicates: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    association: Activation | None = None
    chance: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A pool with its ranking, from which hits are made. `odds` are the log odds of the pair model that a
    candidate answers, by index. `explain` asks for the reasons of each hit."""

    pool: CandidatePool
    relevance: Relevance
    ranking: Ranking
    odds: Mapping[int, float]
    explain: bool
    links: LinkedFinds = NO_LINKS


def best_hits(call: Call, where: Filter, limit: int, ranked: Ranked) -> tuple[Hit, ...]:
    """The best hits; duplicates are folded into the best of them."""
    best = ranked.ranking.best(limit + SPARE)
    linked = _linked_hits(call, where, ranked, best)
    groups = _groups(call, where, ranked, best, linked)
    if len(groups) < limit and len(best) < len(ranked.pool.ids):  # many are duplicates
        groups = _groups(call, where, ranked, ranked.ranking.best(), linked)
    return _mark_contradictions(call, groups[:limit], where)


def _groups(
    call: Call, where: Filter, ranked: Ranked, best: Sequence[int], linked: Sequence[Hit]
) -> list[Hit]:
    """The best candidates that still pass the filter, and the linked hits; each with its duplicates."""
    ids = [ranked.pool.ids[at] for at in best]
    records = {one.memory.id: one for one in known_records(call, ids, where)}
    ranks = _ranks(ranked.ranking) if ranked.explain else None
    there = [(at, records[name]) for at, name in zip(best, ids, strict=True) if name in records]
    hits = [_hit(ranked, ranks, at, record) for at, record in there]
    hits = sorted([*hits, *linked], key=lambda hit: (-hit.score, hit.record.memory.id))
    folded = fold_duplicates([_mark(hit.record.memory) for hit in hits])
    return [
        replace(hits[first], duplicates=tuple(hits[at].record.memory.id for at in others))
        if others
        else hits[first]
        for first, *others in folded
    ]


def _linked_hits(call: Call, where: Filter, ranked: Ranked, best: Sequence[int]) -> list[Hit]:
    """The memories beyond the pool that links bring in."""
    now = where.now or call.engine.now()
    hits = []
    for record in ranked.links.beyond:
        memory, activation = record.memory, ranked.links.brought[record.memory.id]
        is_note = features(memory).form is Form.NOTE
        kept = float(joining(retention_of(record.strength, now), memory.suppression_count, notes=is_note))
        score = float(ranked.ranking.scores[best[0]]) * activation.level * kept
        hits.append(Hit(record=record, score=score, association=activation))
    return hits


def _hit(ranked: Ranked, ranks: Sequence[Sequence[int]] | None, at: int, record: Record) -> Hit:
    pool, found, ranking = ranked.pool, ranked.relevance, ranked.ranking
    cosine = float(pool.cosine[at])
    hit = Hit(
        record=record,
        score=float(ranking.scores[at]),
        keyword=float(pool.window[at]) if pool.window[at] > 0 else None,
        semantic=None if cosine != cosine else cosine,
        by_words=bool(pool.by_words[at]),
        by_meaning=bool(pool.by_meaning[at]),
        by_literal=bool(pool.by_literal[at]),
        start=int(pool.starts[at]),
        end=int(pool.ends[at]),
        association=ranked.links.brought.get(record.memory.id),
    )
    if ranks is None:
        return hit
    return replace(
        hit,
        signals=tuple(
            RelevanceSignal(name=name, value=float(value), weight=float(weight))
            for name, value, weight in zip(SIGNALS, found.signals[at], found.weights[at], strict=True)
            if weight
        ),
        stages=tuple(
            (name, float(scores[at]), places[at])
            for (name, scores), places in zip(ranking.steps, ranks, strict=True)
        ),
    )


def _ranks(ranking: Ranking) -> list[list[int]]:
    """Each candidate's rank after each stage, from 1."""
    ranks = []
    for _, scores in ranking.steps:
        places = [0] * len(ranking.ids)
        for place, at in enumerate(Ranking(ids=ranking.ids, scores=scores).best(), 1):
            places[at] = place
        ranks.append(places)
    return ranks


def _mark(memory: Memory) -> str | None:
    """What duplicates share; None for a turn of a conversation, where "yes" is said often."""
    return None if is_threaded(memory) else fingerprint(memory.content)


def _mark_contradictions(call: Call, hits: Sequence[Hit], where: Filter) -> tuple[Hit, ...]:
    """The hits in the order they are shown, each with what contradicts it: other hits, and memories beyond
    them that are marked as contradicting."""
    leader = {held: hit.record.memory.id for hit in hits for held in (hit.record.memory.id, *hit.duplicates)}
    edges = edges_known_at(call.engine.store.edges(sorted(leader), access=call.access), where.known_at)
    edges = [
        replace(
            edge,
            source_id=leader.get(edge.source_id, edge.source_id),
            target_id=leader.get(edge.target_id, edge.target_id),
        )
        for edge in edges
    ]
    marked = marked_pairs(call, [hit.record for hit in hits], edges, where)
    memories = [*(hit.record.memory for hit in hits), *(record.memory for record in marked.beyond)]
    words = [statement_words(memory) for memory in memories]
    against = contradictions_among(
        memories, words, marked.places(memories), compared=len(hits), at_one_time=where.valid_at is not None
    )
    opposed = {frozenset((memories[one.newer].id, memories[one.older].id)) for one in against}
    places = {memory.id: at for at, memory in enumerate(memories[: len(hits)])}
    followed = {frozenset((edge.source_id, edge.target_id)) for edge in edges if edge.kind == SUPERSEDES}
    rivals = {frozenset(places[one] for one in pair) for pair in opposed | followed if pair <= places.keys()}
    shown = spread_out(
        [_compared_text(one, said) for one, said in zip(memories, words[: len(hits)], strict=False)], rivals
    )
    if not opposed:
        return tuple(hits[at] for at in shown)
    return tuple(replace(hits[at], contradicts=_opposed(memories[at].id, opposed)) for at in shown)


def _opposed(memory_id: str, pairs: Collection[frozenset[str]]) -> tuple[str, ...]:
    return tuple(sorted(other for pair in pairs if memory_id in pair for other in pair - {memory_id}))


def _compared_text(memory: Memory, words: frozenset[str]) -> ComparedText:
    """A text for comparison; `words` are its terms, or none if it is too long for a statement."""
    if is_threaded(memory) or len(memory.content) > LONG_CHARS:
        return ComparedText(terms=frozenset(), is_turn=is_threaded(memory))
    return ComparedText(terms=words or frozenset(terms(memory.content)), is_turn=False)
