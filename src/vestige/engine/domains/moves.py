"""Moves of memories between domains: revisions that change nothing but their domains and scores."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from vestige.core.models import EVERYTHING, Filter, Memory
from vestige.engine.context import Call
from vestige.engine.domains.catalogue import BATCH, all_domains
from vestige.engine.revise import changed_fields, next_revision
from vestige.store.contract.changes import Revise

Membership = tuple[tuple[str, ...], Mapping[str, float]]
"""The found domains of a memory, and its scores."""
EVERY_MEMBER = Filter(archived=None)


def memories_of(call: Call, ids: Sequence[str]) -> Iterator[Memory]:
    """Those of these memories that exist."""
    for begin in range(0, len(ids), BATCH):
        call.check()
        for record in call.engine.store.get_many(ids[begin : begin + BATCH], access=EVERYTHING):
            yield record.memory


def members_of(call: Call, name: str) -> list[Memory]:
    """All members of a domain: archived, suppressed and ended memories too."""
    where = replace(EVERY_MEMBER, domains=(name,))
    stream = call.engine.store.stream(where, access=EVERYTHING, batch=BATCH)
    return [record.memory for batch in stream for record in batch]


def member_count(call: Call, name: str) -> int:
    """The number of memories in a domain, also of those put there by hand."""
    return call.engine.store.count(Filter(domains=(name,)), access=EVERYTHING)


def membership_changes(call: Call, wanted: Mapping[str, Membership], *, reason: str) -> list[Revise]:
    """The changes that put memories into these found domains. Names that are no found domain stay."""
    found = {name for name, one in all_domains(call.engine.store).items() if one.found}

    def moved(memory: Memory) -> Memory:
        domains, scores = wanted[memory.id]
        others = [name for name in memory.domains if name not in found and name not in domains]
        return replace(memory, domains=(*domains, *others), domain_scores=dict(scores))

    return revisions(call, memories_of(call, sorted(wanted)), moved, reason=reason)


def revisions(
    call: Call,
    memories: Iterator[Memory] | Sequence[Memory],
    change: Callable[[Memory], Memory],
    *,
    reason: str,
) -> list[Revise]:
    """The next revision of each of these memories that the function changes."""
    now = call.engine.now()
    changed = ((memory, change(memory)) for memory in memories)
    return [
        Revise(memory=next_revision(after, now), reason=reason)
        for before, after in changed
        if changed_fields(before, after)
    ]


def without(memory: Memory, name: str) -> Memory:
    return replace(memory, domains=tuple(one for one in memory.domains if one != name))


def exchanged(memory: Memory, old: str, new: str) -> Memory:
    """The memory with another domain in the place of one; at the front if it was not there."""
    if old in memory.domains:
        return replace(
            memory, domains=tuple(dict.fromkeys(new if one == old else one for one in memory.domains))
        )
    return replace(memory, domains=tuple(dict.fromkeys((new, *memory.domains))))
