"""Memories that came without domains: from a file, or before there was a model for their vectors."""

from collections.abc import Sequence
from functools import partial

from vestige.core.errors import StoreBusy, StoreReadOnly
from vestige.core.events import MemoryClassified, scopes_of
from vestige.core.models import EVERYTHING, Memory
from vestige.engine.context import Call
from vestige.engine.domains.catalogue import (
    BATCH,
    active_domains,
    by_hand,
    centres,
    memory_vectors,
    refresh_centres,
)
from vestige.engine.domains.classify import Classifier
from vestige.engine.domains.moves import EVERY_MEMBER, memories_of, revisions
from vestige.engine.revise import retry_on_conflict

ASSIGNED = "assigned to domains"
"""The reason of revisions."""


def catch_up(call: Call) -> int:
    """Compute centroids again, and assign the memories that have never been compared with them; returns how
    many got a domain. What has domains or scores stays as it is."""
    if not active_domains(call.engine.store):
        return 0
    try:
        refresh_centres(call)
        return assign_unscored(call)
    except (StoreBusy, StoreReadOnly):  # the next discovery does it
        return 0


def assign_unscored(call: Call) -> int:
    """Assign every memory without domains and scores by the present centroids."""
    store = call.engine.store
    if not call.engine.settings.domains.enabled or not centres(store):
        return 0
    decided = by_hand(store)
    waiting: list[str] = []
    for batch in store.stream(EVERY_MEMBER, access=EVERYTHING, batch=BATCH):
        call.check()
        waiting += [one.memory.id for one in batch if _unscored(one.memory) and one.memory.id not in decided]
    done = 0
    for begin in range(0, len(waiting), BATCH):
        call.check()
        some = waiting[begin : begin + BATCH]
        done += retry_on_conflict(call, partial(_assign, call, some))
    return done


def _unscored(memory: Memory) -> bool:
    return not memory.domains and not memory.domain_scores


def _assign(call: Call, ids: Sequence[str]) -> int:
    memories = [one for one in memories_of(call, ids) if _unscored(one)]
    vectors, classifier = memory_vectors(call, memories), Classifier(call)

    changes = revisions(
        call, memories, lambda one: classifier.classified(one, vectors.get(one.id)), reason=ASSIGNED
    )
    if changes:
        call.engine.store.commit(changes, access=EVERYTHING)
    now = call.engine.now()
    for memory in [one.memory for one in changes if one.memory.domains]:
        call.engine.events.emit(
            MemoryClassified(timestamp=now, scopes=scopes_of(memory), id=memory.id, domains=memory.domains)
        )
    return sum(bool(one.memory.domains) for one in changes)
