"""From ranked candidates to hits: records, duplicates folded, what links add, contradictions marked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from vestige.cognition.activation import Activation
from vestige.cognition.answers import Worded, fold_duplicates, spread_out
from vestige.cognition.ranking import Ranking
from vestige.cognition.relevance import SIGNALS, Relevance
from vestige.cognition.strength import retention_of
from vestige.cognition.text import terms
from vestige.engine.context import Call
from vestige.engine.history import as_known
from vestige.engine.situating import SEEDS, SUPERSEDES, Links
from vestige.models import Edge, Filter, Memory, Record
from vestige.pool import Pool
from vestige.store.judging import passes

SPARE = 5
"""Candidates loaded beyond the limit, to take the place of duplicates."""
CONTRADICTS = "contradicts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One part of a hit's relevance: `value` times `weight` was added."""

    name: str
    value: float
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A memory found, with why it ranks where it does.

    `keyword` and `semantic` are the arms' own scores (None where an arm has none), `signals` what its
    relevance is made of, `stages` the score and the rank after each stage, `start`/`end` the piece of its
    text that matched the meaning best. `duplicates` say the same, `contradicts` the opposite.
    `association` tells which link brought it in, when no arm found it.
    """

    record: Record
    score: float
    keyword: float | None = None
    semantic: float | None = None
    literal: bool = False
    signals: tuple[Signal, ...] = ()
    stages: tuple[tuple[str, float, int], ...] = ()
    start: int = 0
    end: int = 0
    duplicates: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    association: Activation | None = None


def answer(
    call: Call,
    where: Filter,
    limit: int,
    pool: Pool,
    found: Relevance,
    ranking: Ranking,
    links: Links,
    *,
    explain: bool,
) -> tuple[Hit, ...]:
    """The best hits, duplicates folded into their best; why each ranks where it does, if asked for."""
    best = ranking.best(limit + SPARE)
    hits = _hits(call, where, limit, best, pool, found, ranking, links, explain=explain)
    if len(hits) < limit and len(best) < len(pool.ids):  # many say the same
        best = ranking.best()
        hits = _hits(call, where, limit, best, pool, found, ranking, links, explain=explain)
    return hits


def _hits(
    call: Call,
    where: Filter,
    limit: int,
    best: Sequence[int],
    pool: Pool,
    found: Relevance,
    ranking: Ranking,
    links: Links,
    *,
    explain: bool,
) -> tuple[Hit, ...]:
    top = float(ranking.scores[best[0]]) if best else 0.0
    wanted = [*(pool.ids[at] for at in best), *links.beyond]
    records = {one.memory.id: one for one in call.engine.store.get_many(wanted, access=call.access)}
    ranks = _ranks(ranking) if explain else None
    hits = [
        _hit(pool, found, ranking, ranks, at, records[pool.ids[at]]) for at in best if pool.ids[at] in records
    ]
    hits += [
        Hit(record=records[memory_id], score=top * activation.level, association=activation)
        for memory_id, activation in _joining(call, links, records, where)
    ]
    hits = [_as_known(call, hit, where.known_at) for hit in hits]
    hits.sort(key=lambda hit: (-hit.score, hit.record.memory.id))
    edges = _edges_among(call, hits, limit, links)
    return _marked(_folded(hits, limit, edges), edges)


def _as_known(call: Call, hit: Hit, known_at: datetime | None) -> Hit:
    """The hit as the store knew it then; which piece matched is told of its present text only."""
    known = as_known(call, hit.record, known_at)
    return hit if known is hit.record else replace(hit, record=known, start=0, end=0)


def _joining(
    call: Call, links: Links, records: dict[str, Record], where: Filter
) -> list[tuple[str, Activation]]:
    """What links bring in: the most active that pass the filter, as many as may join."""
    there = [
        (memory_id, activation)
        for memory_id, activation in links.beyond.items()
        if memory_id in records and _passes(call, records[memory_id], where)
    ]
    return sorted(there, key=lambda one: (-one[1].level, one[0]))[: links.quota]


def _passes(call: Call, record: Record, where: Filter) -> bool:
    """Whether a record would have been found by the arms, had they looked for it."""
    if where.known_at is not None and record.memory.created_at > where.known_at:
        return False
    level = retention_of(record.strength, where.now or call.engine.now())
    if where.min_retention is not None and level < where.min_retention:
        return False
    return passes(as_known(call, record, where.known_at).memory, where, call.access)


def _hit(
    pool: Pool,
    found: Relevance,
    ranking: Ranking,
    ranks: Sequence[Sequence[int]] | None,
    at: int,
    record: Record,
) -> Hit:
    cosine = float(pool.cosine[at])
    hit = Hit(
        record=record,
        score=float(ranking.scores[at]),
        keyword=float(pool.window[at]) if pool.window[at] > 0 else None,
        semantic=None if cosine != cosine else cosine,
        literal=bool(pool.literals[at] > 0),
        start=int(pool.starts[at]),
        end=int(pool.ends[at]),
    )
    if ranks is None:
        return hit
    return replace(
        hit,
        signals=tuple(
            Signal(name=name, value=float(value), weight=float(weight))
            for name, value, weight in zip(SIGNALS, found.signals[at], found.weights[at], strict=True)
            if weight
        ),
        stages=tuple(
            (name, float(scores[at]), places[at])
            for (name, scores), places in zip(ranking.steps, ranks, strict=True)
        ),
    )


def _ranks(ranking: Ranking) -> list[list[int]]:
    """Each candidate's place after each stage, from 1."""
    ranks = []
    for _, scores in ranking.steps:
        places = [0] * len(ranking.ids)
        for place, at in enumerate(Ranking(ids=ranking.ids, scores=scores).best(), 1):
            places[at] = place
        ranks.append(places)
    return ranks


def _edges_among(call: Call, hits: Sequence[Hit], limit: int, links: Links) -> list[Edge]:
    """The edges between hits; those of the seeds tell whether there can be any among the first few."""
    there = {hit.record.memory.id for hit in hits}
    if not links.edges and limit <= SEEDS and not any(hit.association for hit in hits):
        return []
    edges = call.engine.store.edges(sorted(there), access=call.access)
    return [edge for edge in edges if {edge.source_id, edge.target_id} <= there]


def _worded(memory: Memory) -> Worded:
    is_turn = memory.thread is not None
    return Worded(terms=() if is_turn else tuple(terms(memory.content)), is_turn=is_turn)


def _folded(hits: Sequence[Hit], limit: int, edges: Sequence[Edge]) -> list[Hit]:
    worded = [_worded(hit.record.memory) for hit in hits]
    groups = fold_duplicates(worded)[:limit]
    leaders = [
        replace(hits[first], duplicates=tuple(hits[at].record.memory.id for at in others))
        for first, *others in groups
    ]
    places = {leader.record.memory.id: place for place, leader in enumerate(leaders)}
    rivals = {
        frozenset((places[edge.source_id], places[edge.target_id]))
        for edge in edges
        if edge.kind in (CONTRADICTS, SUPERSEDES) and {edge.source_id, edge.target_id} <= places.keys()
    }
    return [leaders[at] for at in spread_out([worded[first] for first, *_ in groups], rivals)]


def _marked(hits: Sequence[Hit], edges: Sequence[Edge]) -> tuple[Hit, ...]:
    """The hits, each with those among them that contradict it."""
    shown = {hit.record.memory.id for hit in hits}
    pairs = {
        pair
        for edge in edges
        if edge.kind == CONTRADICTS and {edge.source_id, edge.target_id} <= shown
        for pair in ((edge.source_id, edge.target_id), (edge.target_id, edge.source_id))
    }
    return tuple(
        replace(hit, contradicts=tuple(sorted(two for one, two in pairs if one == hit.record.memory.id)))
        for hit in hits
    )
