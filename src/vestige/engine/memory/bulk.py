"""One change of many memories: tag, move, suppress or delete what a filter selects, for example; and undo.

A change runs in portions: each is one transaction that also writes a document with the ids it changed, by
which it is undone. Memories that are as wanted already are not touched, so a run that was interrupted is
completed by running it again. Deleting cannot be undone.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from itertools import count

from vestige.cognition.fsrs.suppression import MOST_NEIGHBOURS, WINDOW, is_reversible, neighbours
from vestige.core.documents import Document
from vestige.core.errors import Conflict, Forbidden, InvalidInput, NotFound, nearest_name
from vestige.core.events import (
    Event,
    MemoriesArchived,
    MemoriesRestored,
    MemorySuppressed,
    MemoryUnsuppressed,
    scopes_of,
)
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ROOT_SCOPE, Access, Filter, Memory, Record, check_label, covers
from vestige.engine.context import Call, require_writable
from vestige.engine.memory.archive import ARCHIVED, RESTORED
from vestige.engine.memory.delete import forget
from vestige.engine.memory.states import transition
from vestige.engine.memory.suppress import REVERSED, SUPPRESSED
from vestige.engine.revise import (
    changed_fields,
    documents_by_id,
    find_document,
    next_revision,
    put_document,
    retry_on_conflict,
    updated_event,
    with_body,
)
from vestige.store.contract.changes import Change, Revise

# -- Renaming a tag


def rename_tag(call: Call, tag: str, to: str, where: Filter) -> int:
    """Rename a tag on every memory that passes the filter; returns how many memories changed."""
    check_label("to", to)
    if tag == to:
        raise InvalidInput("The new name equals the old one.", hint="Give another name.")
    return retry_on_conflict(call, lambda: _rename(call, tag, to, where))


def _rename(call: Call, tag: str, to: str, where: Filter) -> int:
    now, store = call.engine.now(), call.engine.store
    tagged = replace(where, tags_any=(tag,))
    renamed = [
        next_revision(_renamed(record.memory, tag, to), now)
        for records in store.stream(tagged, access=call.access)
        for record in records
    ]
    if not renamed:
        close = nearest_name(tag, store.tag_counts(access=call.access))
        raise NotFound(f"No memory has the tag {tag!r}.", hint=f"Did you mean {close!r}?" if close else None)
    store.commit([Revise(memory=memory, reason="tag") for memory in renamed], access=call.access)
    call.engine.events.emit(*(updated_event(memory, now, ("tags",)) for memory in renamed))
    return len(renamed)


def _renamed(memory: Memory, tag: str, to: str) -> Memory:
    return replace(memory, tags=tuple(dict.fromkeys(to if one == tag else one for one in memory.tags)))


# -- Moving to another scope

MOVED = "move"
"""The reason of the revision."""
IN_A_FILE = "read from a file"
"""Why a memory is not moved: a change of the file would not reach it, or would bring it again."""


def moved_to(memory: Memory, scope: str) -> Memory | str:
    """The memory in a scope, or why it stays."""
    from vestige.engine.agent.vendors import is_followed  # brings the reading of files
    from vestige.engine.project.memory.team_file import SHARED

    return IN_A_FILE if SHARED in memory.metadata or is_followed(memory) else replace(memory, scope=scope)


# -- One change of many memories

BULK = "bulk"
"""The kind of the documents that list what a portion of a run changed."""
FIRST = "first"
"""The term of the first portion of a run."""
PORTION = 500
"""Memories in one transaction: a longer one holds up every other writer."""
SAMPLE = 8


class BulkChange(StrEnum):
    """What can be done to many memories at once."""

    PIN = "pin"
    UNPIN = "unpin"
    TAG = "tag"
    MOVE = "move"
    SUPPRESS = "suppress"
    ARCHIVE = "archive"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkRequest:
    """A change, and the memories that it is for: these ids, or what passes the filter."""

    change: BulkChange
    ids: tuple[str, ...] | None = None
    where: Filter = Filter()
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    to: str = ROOT_SCOPE
    """The scope to move to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkPreview:
    """What a change would do: how many memories match, would change, or are refused for a reason. The others
    are as wanted already. `links` are those of the memories that would change."""

    matched: int
    by_scope: Mapping[str, Sequence[str]]
    """The ids of those that would change, by the part of the caller's access that they are in."""
    refused: Mapping[str, int]
    text_bytes: int
    links: int
    sample: tuple[Record, ...]

    @property
    def ids(self) -> list[str]:
        return [one for ids in self.by_scope.values() for one in ids]

    @property
    def unchanged(self) -> int:
        return self.matched - len(self.ids) - sum(self.refused.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkRun:
    """What a change did. It can be undone by its id; a deletion has none."""

    run_id: str | None
    matched: int
    changed: tuple[str, ...]
    refused: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkUndone:
    """The memories that are as before. `skipped` were changed, deleted or promoted since."""

    run_id: str
    change: BulkChange
    ids: tuple[str, ...]
    skipped: int


def preview(call: Call, asked: BulkRequest) -> BulkPreview:
    """What a change would do, without doing it."""
    now, matched, size = call.engine.now(), 0, 0
    if asked.change is BulkChange.MOVE:
        require_writable(call, asked.to)
    found: defaultdict[str, list[str]] = defaultdict(list)
    refused: Counter[str] = Counter()
    sample: list[Record] = []
    for records in _selected(call, asked):
        call.check()
        matched += len(records)
        for record in records:
            wanted = _wanted(asked, record.memory, now)
            if isinstance(wanted, str):
                refused[wanted] += 1
            elif wanted is None or changed_fields(record.memory, wanted):
                found[_root(call.access, record.memory)].append(record.memory.id)
                size += len(record.memory.content.encode())
                if len(sample) < SAMPLE:
                    sample.append(record)
    return BulkPreview(
        matched=matched,
        by_scope=found,
        refused=dict(refused),
        text_bytes=size,
        links=_links(call, [one for ids in found.values() for one in ids]),
        sample=tuple(sample),
    )


def run(call: Call, asked: BulkRequest, *, expected: int | None) -> BulkRun:
    """Change the memories; Conflict if another number than the expected one matches."""
    there = preview(call, asked)
    if expected is not None and expected != there.matched:
        raise Conflict(
            f"{there.matched} memories match now, and not {expected}.",
            hint="Look at a dry run again, and pass its `matched` as `expected`.",
            details={"matched": there.matched, "expected": expected},
        )
    if asked.change is BulkChange.DELETE:
        return _delete(call, there)
    if call.access.domains is not None:
        raise Forbidden(
            "A key that is limited to domains cannot make bulk changes, because it could not undo them.",
            hint="Use a key for scopes, or change the memories one by one.",
        )
    run_id, changed, written = call.engine.new_id(), list[str](), 0
    portions = [
        (scope, ids[first : first + PORTION])
        for scope, ids in there.by_scope.items()
        for first in range(0, len(ids), PORTION)
    ]
    for scope, portion in portions:
        call.check()
        call.progress(len(changed), len(there.ids), asked.change.value)
        name = _portion_id(run_id, written)
        done = retry_on_conflict(call, partial(_change_portion, call, asked, portion, name, scope))
        changed += done
        written += bool(done)
    return BulkRun(
        run_id=run_id if changed else None,
        matched=there.matched,
        changed=tuple(changed),
        refused=there.refused,
    )


def undo(call: Call, run_id: str) -> BulkUndone:
    """Take a change back, portion by portion; what was changed again since stays as it is."""
    portions = list(_portions(call, run_id))
    if not portions:
        raise NotFound(
            f"There is no bulk change {run_id}.",
            hint="`memory bulk_runs` lists those that can be undone.",
            details={"id": run_id},
        )
    if all("undoneAt" in one.body for one in portions):
        raise Conflict(f"The bulk change {run_id} was undone already.", details={"id": run_id})
    restored, total = list[str](), 0
    for portion in portions:
        if "undoneAt" not in portion.body:
            call.check()
            total += len(portion.body["memories"])
            restored += retry_on_conflict(call, partial(_undo_portion, call, portion.id))
    change = BulkChange(portions[0].body["change"])
    return BulkUndone(run_id=run_id, change=change, ids=tuple(restored), skipped=total - len(restored))


def runs(call: Call, *, limit: int) -> list[Document]:
    """The first portions of the latest runs."""
    return call.engine.store.documents(BULK, access=call.access, terms=[FIRST], limit=limit)


def portions_of(call: Call, run: Document) -> list[Document]:
    return list(_portions(call, run.id))


def _selected(call: Call, asked: BulkRequest) -> Iterator[list[Record]]:
    store = call.engine.store
    if asked.ids is None:
        yield from store.stream(asked.where, access=call.access, batch=PORTION)
        return
    ids = list(dict.fromkeys(asked.ids))
    for first in range(0, len(ids), PORTION):
        found = store.get_many(ids[first : first + PORTION], access=call.access)
        yield [record for record in found if record.memory.archived_at is None]


def _wanted(asked: BulkRequest, memory: Memory, now: datetime) -> Memory | str | None:
    """The memory after the change, a reason why it is refused, or None for one to be deleted."""
    match asked.change:
        case BulkChange.PIN | BulkChange.UNPIN:
            return replace(memory, pinned=asked.change is BulkChange.PIN)
        case BulkChange.TAG:
            kept = (tag for tag in memory.tags if tag not in asked.remove)
            return replace(memory, tags=tuple(dict.fromkeys((*kept, *asked.add))))
        case BulkChange.MOVE:
            return moved_to(memory, asked.to)
    if memory.pinned:
        return "pinned"
    match asked.change:
        case BulkChange.SUPPRESS:
            hidden = replace(memory, suppression_count=1, suppressed_at=now)
            return memory if memory.suppression_count else hidden
        case BulkChange.ARCHIVE:
            return replace(memory, archived_at=now)
        case _:
            return None


def _links(call: Call, ids: Sequence[str]) -> int:
    """How many links these memories have, each counted once."""
    met = set[tuple[str, str, str]]()
    for first in range(0, len(ids), PORTION):
        for edge in call.engine.store.edges(ids[first : first + PORTION], access=call.access):
            met.add((edge.source_id, edge.target_id, edge.kind))
    return len(met)


def _delete(call: Call, there: BulkPreview) -> BulkRun:
    """Delete one memory after the other, each from every surface."""
    deleted = list[str]()
    for number, memory_id in enumerate(there.ids):
        call.check()
        call.progress(number, len(there.ids), BulkChange.DELETE.value)
        try:
            deleted += forget(call, memory_id, even_pinned=False).deleted
        except (NotFound, Conflict):  # deleted or pinned since
            continue
    return BulkRun(run_id=None, matched=there.matched, changed=tuple(deleted), refused=there.refused)


# -- One portion

_REASONS = {
    BulkChange.PIN: "pin",
    BulkChange.UNPIN: "unpin",
    BulkChange.TAG: "tag",
    BulkChange.MOVE: MOVED,
    BulkChange.SUPPRESS: SUPPRESSED,
    BulkChange.ARCHIVE: ARCHIVED,
}
_BACK = {
    BulkChange.PIN: "unpin",
    BulkChange.UNPIN: "pin",
    BulkChange.TAG: "tag",
    BulkChange.MOVE: MOVED,
    BulkChange.SUPPRESS: REVERSED,
    BulkChange.ARCHIVE: RESTORED,
}
_FIELDS = {
    BulkChange.PIN: "pinned",
    BulkChange.UNPIN: "pinned",
    BulkChange.TAG: "tags",
    BulkChange.MOVE: "scope",
}
"""The field that an event about a change names."""


def _change_portion(call: Call, asked: BulkRequest, ids: Sequence[str], name: str, scope: str) -> list[str]:
    now, changes, after = call.engine.now(), list[Change](), list[Memory]()
    for record in call.engine.store.get_many(ids, access=call.access):
        wanted = _wanted(asked, record.memory, now)
        if isinstance(wanted, Memory) and changed_fields(record.memory, wanted):
            changes += _revision(record, wanted, _REASONS[asked.change], now)
            after.append(next_revision(wanted, now))
    if not after:
        return []
    # It has no text, so that a deleted memory leaves none; and it cites no memory, so that deleting one does
    # not strand the others.
    body = {
        "change": asked.change.value,
        "memories": {memory.id: memory.revision for memory in after},
        "at": now.isoformat(),
        "terms": {} if " " in name else {FIRST: True},
    }
    document = put_document(BULK, name, None, now, body=body, scope=scope)
    call.engine.store.commit([*changes, document], access=call.access)
    call.engine.events.emit(*_events(call, asked.change, after, now, name))
    return [memory.id for memory in after]


def _revision(record: Record, wanted: Memory, reason: str, now: datetime) -> Iterator[Change]:
    yield Revise(memory=next_revision(wanted, now), reason=reason)
    if wanted.suppression_count != record.memory.suppression_count:
        moved = transition(record, now, reason, suppressions=wanted.suppression_count)
        if moved:
            yield moved


def _events(
    call: Call, change: BulkChange, memories: Sequence[Memory], now: datetime, name: str
) -> Iterator[Event]:
    if change is BulkChange.ARCHIVE:
        ids = tuple(memory.id for memory in memories)
        yield MemoriesArchived(timestamp=now, scopes=scopes_of(*memories), ids=ids, archive_id=name)
        return
    edges = call.engine.store.edges([one.id for one in memories], access=call.access)
    for memory in memories:
        if change is BulkChange.SUPPRESS:
            yield MemorySuppressed(
                timestamp=now,
                scopes=scopes_of(memory),
                id=memory.id,
                suppression_count=memory.suppression_count,
                estimated_cascade=min(MOST_NEIGHBOURS, len(neighbours(memory.id, edges))),
                reversible_until=now + WINDOW,
            )
        else:
            yield updated_event(memory, now, (_FIELDS[change],))


def _undo_portion(call: Call, name: str) -> list[str]:
    """Take a portion back where its memories are still as it left them."""
    portion = find_document(call, BULK, name)
    if portion is None or "undoneAt" in portion.body:
        return []
    now, change = call.engine.now(), BulkChange(portion.body["change"])
    records = call.engine.store.get_many(list(portion.body["memories"]), access=call.access)
    changes, after = list[Change](), list[Memory]()
    for record in records:
        wanted = _before(call, portion, record.memory, now)
        if wanted is not None:
            changes += _revision(record, wanted, _BACK[change], now)
            after.append(wanted)
    if change is BulkChange.MOVE and not after:
        return []  # whoever sees where the memories are now can still take it back
    done = with_body(portion, {**portion.body, "undoneAt": now.isoformat()}, now, logged=False)
    call.engine.store.commit([*changes, done], access=call.access)
    ids = tuple(memory.id for memory in after)
    if change is BulkChange.ARCHIVE:
        scopes = scopes_of(*after)
        call.engine.events.emit(MemoriesRestored(timestamp=now, scopes=scopes, ids=ids, archive_id=name))
    elif change is BulkChange.SUPPRESS:
        call.engine.events.emit(
            *(
                MemoryUnsuppressed(timestamp=now, scopes=scopes_of(one), id=one.id, remaining_count=0)
                for one in after
            )
        )
    else:
        call.engine.events.emit(*(updated_event(memory, now, (_FIELDS[change],)) for memory in after))
    return list(ids)


def _before(call: Call, portion: Document, memory: Memory, now: datetime) -> Memory | None:
    """The memory as it was before the change; None if something else has changed that since."""
    at = datetime.fromisoformat(portion.body["at"])
    match BulkChange(portion.body["change"]):
        case BulkChange.PIN:
            return replace(memory, pinned=False) if memory.pinned else None
        case BulkChange.UNPIN:
            return None if memory.pinned else replace(memory, pinned=True)
        case BulkChange.TAG:
            return _retagged(call, memory, portion.body["memories"][memory.id])
        case BulkChange.MOVE:
            return _moved_back(call, memory, portion.body["memories"][memory.id])
        case BulkChange.SUPPRESS:
            mine = memory.suppression_count == 1 and memory.suppressed_at == at
            lifted = replace(memory, suppression_count=0, suppressed_at=None)
            return lifted if mine and is_reversible(memory, now) else None
        case _:
            return replace(memory, archived_at=None) if memory.archived_at == at else None


def _retagged(call: Call, memory: Memory, revision: int) -> Memory | None:
    """The memory without the tags that this revision gave it and with those that it took; others stay."""
    had, got = _around(call, memory, revision)
    if had is None:
        return None
    kept = [tag for tag in memory.tags if tag in had.tags or tag not in got.tags]
    back = [tag for tag in had.tags if tag not in got.tags and tag not in kept]
    return replace(memory, tags=(*kept, *back)) if [*kept, *back] != list(memory.tags) else None


def _moved_back(call: Call, memory: Memory, revision: int) -> Memory | None:
    """The memory in the scope where it was before this revision; None if it was moved again."""
    had, got = _around(call, memory, revision)
    return replace(memory, scope=had.scope) if had and had.scope != memory.scope == got.scope else None


def _around(call: Call, memory: Memory, revision: int) -> tuple[Memory | None, Memory]:
    """A memory before and after a revision. None if the caller must not see what it was."""
    past = {
        one.memory.revision: one.memory for one in call.engine.store.history(memory.id, access=call.access)
    }
    return past.get(revision - 1), past.get(revision, memory)


# -- Documents of a run


def _portion_id(run_id: str, number: int) -> str:
    return f"{run_id} {number}" if number else run_id


def _portions(call: Call, run_id: str) -> Iterator[Document]:
    for number in count():
        name = _portion_id(run_id, number)
        found = documents_by_id(call, BULK, [name])
        if name not in found:
            return
        yield found[name]


def _root(access: Access, memory: Memory) -> str:
    """The scope of the document that lists a memory: a part of the caller's access, who can then undo it."""
    return next((one for one in access.scopes or () if covers(one, memory.scope)), ROOT_SCOPE)
