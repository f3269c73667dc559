"""The part of a history that leaves an installation: all but found domains and their scores.

What comes from an older version, which sent these too, is cut down the same way when it arrives.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from vestige.core.models import LogEvent
from vestige.store.contract.changes import REVISED
from vestige.store.contract.memberships import FOUND_DOMAINS, has_local_part, is_found, without_local_part
from vestige.store.merge.histories import DocumentHistory, EntityHistory, MemoryHistory
from vestige.store.merge.union import name, writes


def portable_parts(histories: Iterable[EntityHistory]) -> Iterator[EntityHistory]:
    """These histories without what belongs to the installation they are from."""
    for history in histories:
        match history:
            case MemoryHistory():
                yield _memory(history)
            case DocumentHistory(kind="domain", id=document_id) if is_found(document_id):
                pass
            case _:
                yield history


def _is_local(event: LogEvent) -> bool:
    """Whether a revision changed nothing but found domains and their scores."""
    return event.kind == REVISED and set(event.payload["fields"]) == {FOUND_DOMAINS}


def _memory(history: MemoryHistory) -> MemoryHistory:
    events = tuple(event for event in history.events if not _is_local(event))
    if len(events) == len(history.events) and not any(map(has_local_part, history.versions)):
        return history
    sent = set(map(name, events))
    kept = [
        version
        for event, version in zip(writes(history.events), history.versions, strict=False)
        if name(event) in sent
    ]
    return replace(
        history,
        events=events,
        versions=tuple(
            replace(without_local_part(one), revision=kept[0].revision + at) for at, one in enumerate(kept)
        ),
    )
