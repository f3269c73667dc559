"""Putting aside what has faded, and bringing it back. Nothing is deleted, and no space is saved.

An archived memory comes back through nothing but its id, so that what has faded does not crowd out what has
not. Each run is a document with the ids it took, by which it can be undone.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from vestige.cognition.fsrs.forgetting import ABSURD_RETENTION, WINDOW, collectable, reach
from vestige.cognition.text.analyser import fingerprint
from vestige.core.documents import Document
from vestige.core.errors import Conflict, InvalidInput, NotFound
from vestige.core.events import MemoriesArchived, MemoriesRestored, places_of
from vestige.core.models import Filter, Memory, Order, Record
from vestige.engine.context import Call
from vestige.engine.revise import next_revision, retry_on_conflict
from vestige.store.contract.changes import Change, Put, Revise

ARCHIVE = "archive"
"""The kind of the documents that say what a run took."""
ARCHIVED, RESTORED = "archived", "restored"
"""Why revisions end."""
LEAST = 0.1
"""What is less accessible than this is unavailable (cognition/strength.py), and put aside by default."""
MOST = 1_000
"""How many memories one run takes: a transaction holds up every other writer."""
EVERY = 1_000_000
FEW = 50
"""Memories that are read first where one that has faded is enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GcQuery:
    """What to put aside: less accessible than `below`, in a scope, stored before so many days."""

    scope: str
    below: float = LEAST
    max_age_days: float | None = None
    even_most: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FadedMemories:
    """What may be put aside, the least accessible first, and among how many memories that is."""

    candidates: tuple[Record, ...]
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of `gc`: what it took, what has faded but was left for another run, and under which id."""

    archive_id: str | None
    taken: tuple[str, ...]
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredMemories:
    """What came back, and from which archive; `missing` were deleted or restored before.

    `duplicates` names, for each that says exactly what another one has said since, that one.
    """

    archive_id: str | None
    ids: tuple[str, ...]
    missing: int = 0
    duplicates: Mapping[str, str] = field(default_factory=dict)


def find_faded(call: Call, asked: GcQuery) -> FadedMemories:
    """What may be put aside now. InvalidInput for a threshold that would take what is still known."""
    if asked.below > ABSURD_RETENTION:
        raise InvalidInput(
            f"`min_retention` {asked.below:g} would put aside what is well remembered.",
            hint=f"Give at most {ABSURD_RETENTION:g}; {LEAST:g} takes what is as good as forgotten.",
            details={"argument": "min_retention"},
        )
    now, store = call.engine.now(), call.engine.store
    found = {
        record.memory.id: record
        for one in _low(asked, now)
        for record in store.find(one, access=call.access, limit=EVERY)
        if collectable(record, below=asked.below, now=now)
    }
    return FadedMemories(
        candidates=tuple(sorted(found.values(), key=lambda one: (reach(one, now), one.memory.id))),
        memories=store.count(Filter(scope=asked.scope), access=call.access),
    )


def _low(asked: GcQuery, now: datetime) -> tuple[Filter, Filter]:
    """Where to look for what has faded: among what is hardly retained, and among what is suppressed.

    Suppression takes from accessibility what retention does not show; few are suppressed.
    """
    where = Filter(scope=asked.scope, pinned=False, due_by=now, now=now)
    if asked.max_age_days is not None:
        where = replace(where, created_to=now - timedelta(days=asked.max_age_days))
    return replace(where, max_retention=asked.below), replace(where, suppressed_by=now - WINDOW)


def archive(call: Call, asked: GcQuery) -> Run:
    """Put aside what has faded, in one transaction; Conflict where that is most of what there is."""

    def attempt() -> Run:
        now, there = call.engine.now(), find_faded(call, asked)
        _check_share(there, asked)
        taken = there.candidates[:MOST]
        if not taken:
            return Run(archive_id=None, taken=(), left=0)
        call.progress(0, len(taken), "archiving")
        document = _document(call, asked, taken, now)
        changes = _archive_changes([record.memory for record in taken], now, now)
        call.engine.store.commit([*changes, Put(document=document)], access=call.access)
        ids = tuple(record.memory.id for record in taken)
        places = places_of(*(record.memory for record in taken))
        call.engine.events.emit(
            MemoriesArchived(timestamp=now, places=places, ids=ids, archive_id=document.id)
        )
        return Run(archive_id=document.id, taken=ids, left=len(there.candidates) - len(taken))

    return retry_on_conflict(call, attempt)


def undo(call: Call, name: str) -> RestoredMemories:
    """Bring back what a run put aside, or one archived memory, as it was."""

    def attempt() -> RestoredMemories:
        runs = call.engine.store.documents(ARCHIVE, access=call.access, ids=[name], limit=1)
        return _undo_run(call, runs[0]) if runs else _undo_one(call, name)

    return retry_on_conflict(call, attempt)


def archives(call: Call, scope: str, *, limit: int) -> list[Document]:
    """The runs in a scope and below it, the latest first."""
    return call.engine.store.documents(ARCHIVE, access=call.access, scope=scope, limit=limit)


def worth_archiving(call: Call) -> bool:
    """Whether `gc` would put aside any memory of the caller's scope. It stops at the first one."""
    asked, now = GcQuery(scope=call.scope), call.engine.now()
    found = (record for where in _low(asked, now) for record in _longest_due(call, where))
    return any(collectable(record, below=asked.below, now=now) for record in found)


def _longest_due(call: Call, where: Filter) -> Iterator[Record]:
    """Records by when they were due, a few at first: most often one of those will do."""
    find = partial(call.engine.store.find, where, access=call.access, order=Order.DUE)
    first = find(limit=FEW)
    yield from first
    if len(first) == FEW:
        yield from find(limit=EVERY, offset=FEW)


def _check_share(there: FadedMemories, asked: GcQuery) -> None:
    """Refuse to empty a memory by mistake."""
    found = len(there.candidates)
    if 2 * found > there.memories and not asked.even_most:
        raise Conflict(
            f"That would put aside {found} of all {there.memories} in {asked.scope}: most of what is there.",
            hint="Give a lower `min_retention`, or say `even_most` if you mean it.",
            details={"candidates": found, "memories": there.memories},
        )


def _document(call: Call, asked: GcQuery, taken: Sequence[Record], now: datetime) -> Document:
    """What a run can be undone by. It cites nothing: deleting one memory must not strand the others."""
    return Document(
        kind=ARCHIVE,
        id=call.engine.new_id(),
        body={
            "ids": [record.memory.id for record in taken],
            "minRetention": asked.below,
            "maxAgeDays": asked.max_age_days,
        },
        scope=asked.scope,
        created_at=now,
        updated_at=now,
    )


def restore_changes(memory: Memory, now: datetime) -> list[Change]:
    """What takes a memory out of the archive; nothing for one that is not in it."""
    return [] if memory.archived_at is None else _archive_changes([memory], None, now)


def _archive_changes(memories: Sequence[Memory], archived_at: datetime | None, now: datetime) -> list[Change]:
    """The revisions that put memories into the archive, or (None) take them out."""
    reason = RESTORED if archived_at is None else ARCHIVED
    return [
        Revise(memory=next_revision(replace(memory, archived_at=archived_at), now), reason=reason)
        for memory in memories
    ]


def _undo_run(call: Call, run: Document) -> RestoredMemories:
    if "restoredAt" in run.body:
        raise Conflict(
            f"The archive {run.id} was undone already.",
            hint="`archive list` tells which runs were not; what was archived since is in a later one.",
            details={"id": run.id},
        )
    now, ids = call.engine.now(), run.body["ids"]
    records = call.engine.store.get_many(ids, access=call.access)
    # One that was restored by itself and archived again belongs to a later run.
    held = [record.memory for record in records if record.memory.archived_at == run.created_at]
    body = {**run.body, "restoredAt": now.isoformat()}
    after = replace(run, body=body, version=run.version + 1, updated_at=max(now, run.updated_at))
    same = _restated_since(call, held, now)
    call.engine.store.commit([*_archive_changes(held, None, now), Put(document=after)], access=call.access)
    restored = tuple(memory.id for memory in held)
    call.engine.events.emit(
        MemoriesRestored(timestamp=now, places=places_of(*held), ids=restored, archive_id=run.id)
    )
    return RestoredMemories(
        archive_id=run.id, ids=restored, missing=len(ids) - len(restored), duplicates=same
    )


def _undo_one(call: Call, memory_id: str) -> RestoredMemories:
    now = call.engine.now()
    records = call.engine.store.get_many([memory_id], access=call.access)
    if not records:
        raise NotFound(
            f"There is no archive and no memory {memory_id}.",
            hint="`archive list` tells the ids of the archives.",
            details={"id": memory_id},
        )
    memory = records[0].memory
    if memory.archived_at is None:
        raise Conflict(
            f"The memory {memory_id} is not archived.",
            hint="There is nothing to bring back.",
            details={"id": memory_id},
        )
    same = _restated_since(call, [memory], now)
    call.engine.store.commit(restore_changes(memory, now), access=call.access)
    call.engine.events.emit(
        MemoriesRestored(timestamp=now, places=places_of(memory), ids=(memory_id,), archive_id="")
    )
    return RestoredMemories(archive_id=None, ids=(memory_id,), duplicates=same)


def _restated_since(call: Call, memories: Sequence[Memory], now: datetime) -> dict[str, str]:
    """For each of these archived memories the one in use that says exactly the same, where there is one."""
    by_scope: dict[str, list[Memory]] = defaultdict(list)
    for memory in memories:
        if memory.thread is None and memory.valid_at(now):  # a turn is said more than once
            by_scope[memory.scope].append(memory)
    found: dict[str, str] = {}
    for scope, members in by_scope.items():
        marks = {memory.id: fingerprint(memory.content) for memory in members}
        same = call.engine.store.same_text(
            list(marks.values()), scope=scope, valid_at=now, access=call.access
        )
        found |= {name: same[mark] for name, mark in marks.items() if mark in same}
    return found
