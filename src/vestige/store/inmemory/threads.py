"""Which memories follow each other: threads and neighbours, straight from the contract."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime
from itertools import pairwise

from vestige.models import Memory
from vestige.store.inmemory.state import Held, State

Thread = tuple[Held, ...]


def threads(state: State) -> list[Thread]:
    """Every thread with its members in order."""
    shared: dict[Hashable, list[Held]] = defaultdict(list)
    for held in state.held.values():
        place = _place(held.memory)
        if place is not None:
            shared[place].append(held)
    return [tuple(sorted(part, key=_order)) for members in shared.values() for part in _by_source(members)]


def neighbours(every: Iterable[Thread]) -> dict[str, tuple[str | None, str | None]]:
    """By id, the memory before and the memory after in its thread."""
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    members = [held.memory.id for thread in every for held in thread]
    for thread in every:
        for one, other in pairwise(thread):
            after[one.memory.id], before[other.memory.id] = other.memory.id, one.memory.id
    return {name: (before.get(name), after.get(name)) for name in members}


def _place(memory: Memory) -> Hashable | None:
    """What the members of a thread have in common; None outside any."""
    if memory.suppression_count > 0 or memory.archived_at is not None:
        return None
    visible = (memory.scope, frozenset(memory.domains), memory.valid_from, memory.valid_until)
    if memory.thread is not None:
        return ("thread", memory.thread, *visible)
    if memory.source is not None and memory.position is not None:
        return ("source", memory.source, *visible)
    return None


def _by_source(members: Sequence[Held]) -> list[list[Held]]:
    """The members apart by source, where sources have at least two members on average."""
    parts: dict[str | None, list[Held]] = defaultdict(list)
    for held in members:
        parts[held.memory.source].append(held)
    return list(parts.values()) if len(members) >= 2 * len(parts) else [list(members)]


def _order(held: Held) -> tuple[bool, int, datetime, int]:
    position = held.memory.position
    return position is None, position or 0, held.memory.created_at, held.arrival
