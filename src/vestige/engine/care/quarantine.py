"""Quarantine: a stored memory that gives orders to an agent waits in the review inbox until a person decides.

The memory becomes a waiting text, so that nothing finds it (ADR 0057). Its document keeps everything that is
needed to bring it back: the versions, the strength, the links, and what it had ended. It comes back under a
new id, because a deleted id never does.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from vestige.core.documents import PENDING
from vestige.core.errors import NotFound
from vestige.core.models import Edge, Memory, Record, utc
from vestige.engine.context import Call
from vestige.engine.embedding import vectors_for
from vestige.engine.ingest.inbox import (
    PendingText,
    document_of,
    inbox_access,
    pending_import,
    waiting_event,
    why_flagged,
)
from vestige.engine.memory.delete import ENDING, forget
from vestige.engine.revise import find_document, load, next_revision, retry_on_conflict
from vestige.exchange.portable.versions import decode_versions, encode_versions
from vestige.store.contract.changes import Add, Carry, Change, Link, Put, Revise
from vestige.store.merge.strength_log import carried, carried_strength

WAS_STORED = "It was a memory until a scan found it."
ENDED_AGAIN = "ended again"
"""The reason of the revision of a memory that a restored one ends as before."""


def quarantine(call: Call, found: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Put memories (the kinds of what was found in them, by id) into the review inbox; the ids of those that
    are there now. Pinned ones stay."""
    done = []
    for name, flags in found.items():
        call.check()
        if retry_on_conflict(call, partial(_move, call, name, flags)):
            done.append(name)
    return done


def _move(call: Call, memory_id: str, flags: tuple[str, ...]) -> bool:
    try:
        record = load(call, memory_id)
    except NotFound:
        return False
    if record.memory.pinned:
        return False
    if find_document(call, PENDING, memory_id) is None:
        waiting = _waiting(call, record, flags)
        call.engine.store.commit([Put(document=document_of(waiting))], access=inbox_access(call))
        call.engine.events.emit(waiting_event(waiting, waiting.updated_at))
    # Second: an interrupted quarantine has the text twice, never not at all. The next scan ends it.
    forget(call, memory_id, even_pinned=False)
    return True


def _waiting(call: Call, record: Record, flags: tuple[str, ...]) -> PendingText:
    memory, store = record.memory, call.engine.store
    past = [one.memory for one in store.history(memory.id, access=call.access)]
    edges = store.edges([memory.id], access=call.access)
    ending = [edge.target_id for edge in edges if edge.source_id == memory.id and edge.kind in ENDING]
    ended = store.get_many(ending, access=call.access) if ending else []
    stored: dict[str, Any] = {
        "versions": encode_versions([*past, memory]),
        **carried(record.strength),
        "links": [[edge.source_id, edge.target_id, edge.kind, edge.weight] for edge in edges],
        "ended": {
            one.memory.id: [_plain(one.memory.valid_until), _plain(one.memory.archived_at)]
            for one in ended
            if one.memory.superseded_by == memory.id
        },
    }
    waiting = pending_import(memory, flags, call.engine.now())
    return replace(waiting, reason=f"{WAS_STORED} {why_flagged(flags)}", stored=stored)


def restored(call: Call, text: PendingText, stored: Mapping[str, Any]) -> tuple[Memory, list[Change]]:
    """The memory that a text in quarantine was, as its reviewer left it, and the changes that bring it back
    with its strength and its links."""
    now, store = call.engine.now(), call.engine.store
    last = decode_versions(text.id, stored["versions"])[-1]
    said = text.text
    same = said.content == last.content
    memory = replace(
        last,
        id=call.engine.new_id(),
        scope=text.scope,
        revision=1,
        content=said.content,
        phrasings=last.phrasings if same else (),
        tags=said.tags,
        node_type=said.node_type,
        origin=text.origin,
    )
    made = vectors_for(call, [memory])
    links = [
        Edge(source_id=source, target_id=end, kind=kind, weight=weight, created_at=now)
        for source, end, kind, weight in stored["links"]
    ]
    others = {name for edge in links for name in (edge.source_id, edge.target_id)} - {text.id}
    found = store.get_many(sorted(others), access=call.access) if others else []
    there = {one.memory.id: one.memory for one in found}
    changes: list[Change] = [
        Add(memory=memory, embedded=made[0] if made else None),
        Carry(memory_id=memory.id, strength=carried_strength(stored), at=now),
        *_links(links, text.id, memory.id, there),
        *_endings(stored["ended"], memory.id, there, now),
    ]
    return memory, changes


def _links(links: Iterable[Edge], old: str, new: str, there: Mapping[str, Memory]) -> Iterator[Change]:
    """The links to memories that are still there."""
    for edge in links:
        source, target = (new if end == old else end for end in (edge.source_id, edge.target_id))
        if {source, target} <= {new, *there}:
            yield Link(edge=replace(edge, source_id=source, target_id=target))


def _endings(
    ended: Mapping[str, Sequence[str | None]], new: str, there: Mapping[str, Memory], now: datetime
) -> Iterator[Change]:
    """What the memory had superseded or merged, and what was revived meanwhile, ends again."""
    for name, (until, archived) in ended.items():
        memory = there.get(name)
        if memory is not None and memory.superseded_by is None:
            wanted = replace(
                memory, superseded_by=new, valid_until=_moment(until), archived_at=_moment(archived)
            )
            yield Revise(memory=next_revision(wanted, now), reason=ENDED_AGAIN)


def _plain(value: Any) -> Any:  # Any: a field, as JSON
    return value.isoformat() if isinstance(value, datetime) else value


def _moment(text: str | None) -> datetime | None:
    return None if text is None else utc(datetime.fromisoformat(text))
