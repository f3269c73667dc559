"""Counts over what an access reaches."""

from collections import Counter
from datetime import datetime

from vestige.cognition.strength import accessibility, retention_of, retrieval_of
from vestige.models import Access, StoreStats
from vestige.store.inmemory.state import State


def stats(state: State, access: Access, now: datetime) -> StoreStats:
    """Counts of what is in reach and not archived."""
    every = state.within(access)
    reached = [held for held in every if held.memory.archived_at is None]
    memories = [held.memory for held in reached]
    created = [memory.created_at for memory in memories]
    retentions = [retention_of(held.strength, now) for held in reached]
    suppressions = [memory.suppression_count for memory in memories]
    return StoreStats(
        memories=len(memories),
        embedded=sum(bool(held.pieces) for held in reached),
        pinned=sum(memory.pinned for memory in memories),
        suppressed=sum(memory.suppression_count > 0 for memory in memories),
        archived=len(every) - len(reached),
        superseded=sum(memory.superseded_by is not None for memory in memories),
        edges=len(state.edges_within(access)),
        due=sum(held.strength.due_at <= now and held.memory.valid_at(now) for held in reached),
        retentions=tuple(sorted(retentions)),
        retrievals=tuple(sorted(retrieval_of(held.strength, now) for held in reached)),
        accessibilities=tuple(sorted(accessibility(retentions, suppressions).tolist())),
        oldest=min(created, default=None),
        newest=max(created, default=None),
        by_type=Counter(memory.node_type for memory in memories),
        by_scope=Counter(memory.scope for memory in memories),
    )
