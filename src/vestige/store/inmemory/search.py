"""Filters, orders, nearest vectors and threads, by brute force over everything that is held."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.fsrs.strength import retention_of
from vestige.cognition.text.analyser import searchable
from vestige.core.errors import InvalidInput
from vestige.core.models import Access, Filter, Memory, Order, Record, non_negative
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import Scored
from vestige.store.filter_rule import passed, passes, stands
from vestige.store.inmemory.profiles import require_signature
from vestige.store.inmemory.state import MemoryEntry, StoreState, apart


def select(state: StoreState, where: Filter, access: Access) -> list[MemoryEntry]:
    """The memories that match the filter within the access, in the order of arrival."""
    if (where.min_retention, where.max_retention) != (None, None) and where.now is None:
        raise InvalidInput("A filter by retention needs `now`, the moment to compute it at.")
    return [
        held for held in state.within(access) if _passes(held, where, access) and _remembered(held, where)
    ]


def select_worded(state: StoreState, where: Filter, access: Access) -> list[MemoryEntry]:
    """The matching memories whose text at `known_at` is the present one: the arms may find them."""
    return [held for held in select(state, where, access) if _earlier_wording(held, where) is None]


def reworded(state: StoreState, where: Filter, access: Access, limit: int) -> list[Record]:
    """The matching memories that had another text, in the state at that time, the one revised last first."""
    found = [
        (held, known)
        for held in select(state, where, access)
        if (known := _earlier_wording(held, where)) is not None
    ]
    found.sort(key=lambda pair: pair[0].memory.id)
    found.sort(key=lambda pair: pair[0].memory.updated_at, reverse=True)
    return [replace(held.record(), memory=apart(known)) for held, known in found[: non_negative(limit)]]


def _earlier_wording(held: MemoryEntry, where: Filter) -> Memory | None:
    """The state of a memory at `known_at`, if its text was another one."""
    known = None if where.known_at is None else held.known_at(where.known_at)
    return known if known is not None and searchable(known) != searchable(held.memory) else None


def sort(held: Iterable[MemoryEntry], where: Filter, order: Order) -> list[MemoryEntry]:
    """The memories in the requested order; ties by id."""
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
                raise InvalidInput("An order by retention needs `now`, the moment to compute it at.")
            return sorted(by_id, key=lambda one: retention_of(one.strength, now))


def check_queries(
    state: StoreState, vectors: NDArray[np.float32], signature: Signature
) -> NDArray[np.float64]:
    """The queries as rows of the store's own space, or an error."""
    require_signature(state, signature)
    queries = np.asarray(vectors, dtype=np.float64)
    if queries.ndim != 2 or queries.shape[1] != signature.dimension or not np.isfinite(queries).all():
        raise InvalidInput(f"A query of {signature.name} must have {signature.dimension} finite numbers.")
    return queries


def best(scored: Iterable[Scored], limit: int) -> list[Scored]:
    """The `limit` highest scores, ties by id."""
    return sorted(scored, key=lambda one: (-one.score, one.memory_id))[: non_negative(limit)]


def page(limit: int, offset: int) -> slice:
    start = non_negative(offset)
    return slice(start, start + non_negative(limit))


def closest(held: MemoryEntry, query: NDArray[np.float64]) -> Scored:
    cosines = np.array([piece.vector for piece in held.pieces], dtype=np.float64) @ query
    at = int(np.argmax(cosines))
    piece = held.pieces[at]
    return Scored(memory_id=held.memory.id, score=float(cosines[at]), start=piece.start, end=piece.end)


def _passes(held: MemoryEntry, where: Filter, access: Access) -> bool:
    """Whether a memory matches, now or at `known_at`."""
    if where.known_at is None:
        return passes(held.memory, where, access)
    known = held.known_at(where.known_at)
    return known is not None and passed(known, where, access) and stands(held.memory, where)


def _remembered(held: MemoryEntry, where: Filter) -> bool:
    if where.due_by is not None and held.strength.due_at > where.due_by:
        return False
    if where.recalled not in (None, held.strength.recalled):
        return False
    if where.now is None or (where.min_retention, where.max_retention) == (None, None):
        return True
    retention = retention_of(held.strength, where.now)
    if where.min_retention is not None and retention < where.min_retention:
        return False
    return where.max_retention is None or retention <= where.max_retention


# -- Which memories follow each other: threads and neighbours, straight from the contract

Thread = tuple[MemoryEntry, ...]
Neighbours = dict[str, tuple[str | None, str | None]]


def threads(state: StoreState) -> list[Thread]:
    """Every thread with its members in order."""
    shared: dict[Hashable, list[MemoryEntry]] = defaultdict(list)
    for held in state.held.values():
        place = _place(held.memory)
        if place is not None:
            shared[place].append(held)
    return [tuple(sorted(part, key=_order)) for members in shared.values() for part in _by_source(members)]


def neighbours(every: Iterable[Thread]) -> Neighbours:
    """By id, the memory before and the memory after in its thread."""
    found: Neighbours = {}
    for thread in every:
        ids = [held.memory.id for held in thread]
        found |= dict(zip(ids, zip([None, *ids[:-1]], [*ids[1:], None], strict=True), strict=True))
    return found


def _place(memory: Memory) -> Hashable | None:
    """The key that the members of a thread share; None outside any."""
    if memory.suppression_count > 0 or memory.archived_at is not None:
        return None
    visible = (memory.scope, frozenset(memory.domains), memory.valid_from, memory.valid_until)
    if memory.thread is not None:
        return ("thread", memory.thread, *visible)
    if memory.source is not None and memory.position is not None:
        return ("source", memory.source, *visible)
    return None


def _by_source(members: Sequence[MemoryEntry]) -> list[list[MemoryEntry]]:
    """The members grouped by source, where sources have at least two members on average."""
    parts: dict[str | None, list[MemoryEntry]] = defaultdict(list)
    for held in members:
        parts[held.memory.source].append(held)
    return list(parts.values()) if len(members) >= 2 * len(parts) else [list(members)]


def _order(held: MemoryEntry) -> tuple[bool, int, datetime, int]:
    position = held.memory.position
    return position is None, position or 0, held.memory.created_at, held.arrival
