"""Filters, orders and the two search arms, by brute force over everything that is held."""

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.strength import retention_of
from vestige.embed.protocol import Signature
from vestige.errors import InvalidInput
from vestige.models import Access, Filter, Order, covers
from vestige.store.inmemory.changes import require_signature
from vestige.store.inmemory.state import Held, State
from vestige.store.protocol import Scored

K1 = 1.2
B = 0.75
LEAST_IDF = 1e-6
EQUAL_FIELDS = ("source", "author", "agent_id", "session_id", "thread", "position")


def select(state: State, where: Filter, access: Access) -> list[Held]:
    """What matches the filter within the access, in the order of arrival."""
    if (where.min_retention, where.max_retention) != (None, None) and where.now is None:
        raise InvalidInput("A filter by retention needs `now`, the moment to judge it at.")
    return [held for held in state.within(access) if all(passes(held, where) for passes in CHECKS)]


def sort(held: Iterable[Held], where: Filter, order: Order) -> list[Held]:
    """The memories in the order asked for; ties by id."""
    by_id = sorted(held, key=lambda one: one.memory.id)
    match order:
        case Order.NEWEST:
            return sorted(by_id, key=lambda one: one.memory.created_at, reverse=True)
        case Order.OLDEST:
            return sorted(by_id, key=lambda one: one.memory.created_at)
        case Order.DUE:
            return sorted(by_id, key=lambda one: one.strength.due_at)
        case Order.RETENTION:
            now = where.now
            if now is None:
                raise InvalidInput("An order by retention needs `now`, the moment to judge it at.")
            return sorted(by_id, key=lambda one: retention_of(one.strength, now))


def lexical(state: State, terms: Sequence[str], where: Filter, *, access: Access, limit: int) -> list[Scored]:
    """BM25 as the contract defines it, with the statistics of the whole store."""
    wanted = select(state, where, access)
    lengths = {one.memory.id: sum(one.words.values()) for one in state.held.values()}
    scores: dict[str, float] = {}
    for term in dict.fromkeys(terms):
        counts = {one.memory.id: _occurrences(term, one) for one in state.held.values()}
        found = sum(count > 0 for count in counts.values())
        idf = max(LEAST_IDF, math.log((len(counts) - found + 0.5) / (found + 0.5)))
        for one in wanted:
            tf = counts[one.memory.id]
            if tf:
                average = sum(lengths.values()) / len(lengths)
                norm = K1 * (1 - B + B * lengths[one.memory.id] / average)
                gained = idf * tf * (K1 + 1) / (tf + norm)
                scores[one.memory.id] = scores.get(one.memory.id, 0.0) + gained
    return best((Scored(memory_id=key, score=score) for key, score in scores.items()), limit)


def nearest(
    state: State,
    vectors: NDArray[np.float32],
    signature: Signature,
    where: Filter,
    *,
    access: Access,
    limit: int,
) -> list[list[Scored]]:
    """The best piece of every matching memory, by its cosine with each query."""
    require_signature(state, signature)
    queries = np.asarray(vectors, dtype=np.float64)
    if queries.ndim != 2 or queries.shape[1] != signature.dimension or not np.isfinite(queries).all():
        raise InvalidInput(f"Queries of {signature.name} are rows of {signature.dimension} finite numbers.")
    embedded = [held for held in select(state, where, access) if held.pieces]
    return [best((_closest(held, query) for held in embedded), limit) for query in queries]


def best(scored: Iterable[Scored], limit: int) -> list[Scored]:
    """The `limit` highest scores, ties by id."""
    return sorted(scored, key=lambda one: (-one.score, one.memory_id))[: at_least_none(limit)]


def at_least_none(count: int) -> int:
    """A limit or offset as given; InvalidInput when it is negative."""
    if count < 0:
        raise InvalidInput("A limit or offset cannot be negative.", details={"given": count})
    return count


def _closest(held: Held, query: NDArray[np.float64]) -> Scored:
    cosines = np.array([piece.vector for piece in held.pieces], dtype=np.float64) @ query
    at = int(np.argmax(cosines))
    piece = held.pieces[at]
    return Scored(memory_id=held.memory.id, score=float(cosines[at]), start=piece.start, end=piece.end)


def _occurrences(term: str, held: Held) -> int:
    if not term.endswith("*"):
        return held.words.get(term, 0)
    stem = term[:-1]
    return sum(count for word, count in held.words.items() if stem and word.startswith(stem))


def _in_place(held: Held, where: Filter) -> bool:
    memory = held.memory
    if where.scope is not None and not covers(where.scope, memory.scope):
        return False
    return all(getattr(where, name) in (None, getattr(memory, name)) for name in EQUAL_FIELDS)


def _labelled(held: Held, where: Filter) -> bool:
    tags, domains = set(held.memory.tags), set(held.memory.domains)
    if where.domains and domains.isdisjoint(where.domains):
        return False
    if where.tags_any and tags.isdisjoint(where.tags_any):
        return False
    return tags.issuperset(where.tags_all)


def _of_type(held: Held, where: Filter) -> bool:
    kind = held.memory.node_type
    return (not where.node_types or kind in where.node_types) and kind not in where.exclude_types


def _in_time(held: Held, where: Filter) -> bool:
    memory = held.memory
    if where.created_from is not None and memory.created_at < where.created_from:
        return False
    if where.created_to is not None and memory.created_at >= where.created_to:
        return False
    return where.valid_at is None or memory.valid_at(where.valid_at)


def _in_standing(held: Held, where: Filter) -> bool:
    if where.pinned is not None and held.memory.pinned != where.pinned:
        return False
    return where.include_suppressed or held.memory.suppression_count == 0


def _remembered(held: Held, where: Filter) -> bool:
    if where.due_by is not None and held.strength.due_at > where.due_by:
        return False
    if where.now is None or (where.min_retention, where.max_retention) == (None, None):
        return True
    retention = retention_of(held.strength, where.now)
    if where.min_retention is not None and retention < where.min_retention:
        return False
    return where.max_retention is None or retention <= where.max_retention


CHECKS: tuple[Callable[[Held, Filter], bool], ...] = (
    _in_place,
    _labelled,
    _of_type,
    _in_time,
    _in_standing,
    _remembered,
)
"""What a memory has to pass; each looks at a few fields of the filter."""
