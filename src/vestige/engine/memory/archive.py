"""The archive: puts faded memories aside, and restores them. Nothing is deleted, and no space is saved.

An archived memory is found only by its id, so that faded memories do not crowd out the others. Each run
writes a document with the ids that it archived, by which it can be undone.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from functools import partial

from vestige.cognition.fsrs.suppression import ABSURD_RETENTION, WINDOW, accessibility_of, collectable
from vestige.cognition.text.analyser import fingerprint
from vestige.core.documents import Document
from vestige.core.errors import Conflict, InvalidInput, NotFound
from vestige.core.events import MemoriesArchived, MemoriesRestored, scopes_of
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Filter, Memory, Order, Record
from vestige.engine.context import Call
from vestige.engine.revise import find_document, next_revision, put_document, retry_on_conflict, with_body
from vestige.store.contract.changes import Change, Revise

ARCHIVE = "archive"
"""The kind of the documents that list what a run archived."""
ARCHIVED, RESTORED = "archived", "restored"
"""The reasons of the revisions."""
LEAST = 0.1
"""A memory with lower accessibility is unavailable (cognition/fsrs/strength.py) and archived by default."""
MOST = 1_000
"""The most memories that one run archives: a transaction holds up every other writer."""
EVERY = 1_000_000
FEW = 50
"""Memories that are read first when one faded memory is enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GcQuery:
    """What to archive: accessibility below `below`, in a scope, stored more than `max_age_days` ago."""

    scope: str
    below: float = LEAST
    max_age_days: float | None = None
    even_most: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FadedMemories:
    """The memories that may be archived, least accessible first, and how many memories the scope has."""

    candidates: tuple[Record, ...]
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveRun:
    """A run of `gc`: the ids it archived, how many faded memories are left for the next run, and its id."""

    archive_id: str | None
    taken: tuple[str, ...]
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredMemories:
    """The memories that were restored, and from which archive; `missing` were deleted or restored before.
    `duplicates` maps a restored memory to one that has stated exactly the same since."""

    archive_id: str | None
    ids: tuple[str, ...]
    missing: int = 0
    duplicates: Mapping[str, str] = field(default_factory=dict)


def find_faded(call: Call, asked: GcQuery) -> FadedMemories:
    """The memories that may be archived now; InvalidInput for a threshold above ABSURD_RETENTION."""
    if asked.below > ABSURD_RETENTION:
        raise InvalidInput(
            f"`min_retention` {asked.below:g} would archive memories that are well remembered.",
            hint=f"Give at most {ABSURD_RETENTION:g}; {LEAST:g} archives memories that are almost forgotten.",
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
        candidates=tuple(sorted(found.values(), key=lambda one: (accessibility_of(one, now), one.memory.id))),
        memories=store.count(Filter(scope=asked.scope), access=call.access),
    )


def _low(asked: GcQuery, now: datetime) -> tuple[Filter, Filter]:
    """Filters for faded memories: those with low retention, and the few that are suppressed, which lowers
    accessibility without lowering retention."""
    where = Filter(scope=asked.scope, pinned=False, due_by=now, now=now)
    if asked.max_age_days is not None:
        where = replace(where, created_to=now - timedelta(days=asked.max_age_days))
    return replace(where, max_retention=asked.below), replace(where, suppressed_by=now - WINDOW)


def archive(call: Call, asked: GcQuery) -> ArchiveRun:
    """Archive faded memories in one transaction. Raises Conflict if that is most of the scope."""

    def attempt() -> ArchiveRun:
        now, there = call.engine.now(), find_faded(call, asked)
        _check_share(there, asked)
        taken = there.candidates[:MOST]
        if not taken:
            return ArchiveRun(archive_id=None, taken=(), left=0)
        call.progress(0, len(taken), "archiving")
        memories = [record.memory for record in taken]
        ids, name, scopes = tuple(one.id for one in memories), call.engine.new_id(), scopes_of(*memories)
        body = {"ids": list(ids), "minRetention": asked.below, "maxAgeDays": asked.max_age_days}
        # The document by which the run is undone cites no memory: deleting one must not strand the others.
        document = put_document(ARCHIVE, name, None, now, body=body, scope=asked.scope, logged=True)
        call.engine.store.commit([*_archive_changes(memories, now, now), document], access=call.access)
        call.engine.events.emit(MemoriesArchived(timestamp=now, scopes=scopes, ids=ids, archive_id=name))
        return ArchiveRun(archive_id=name, taken=ids, left=len(there.candidates) - len(taken))

    return retry_on_conflict(call, attempt)


def undo(call: Call, name: str) -> RestoredMemories:
    """Restore what a run archived, or one archived memory."""

    def attempt() -> RestoredMemories:
        run = find_document(call, ARCHIVE, name)
        return _undo_run(call, run) if run else _undo_one(call, name)

    return retry_on_conflict(call, attempt)


def archives(call: Call, scope: str, *, limit: int) -> list[Document]:
    """The runs in a scope and below it, latest first."""
    return call.engine.store.documents(ARCHIVE, access=call.access, scope=scope, limit=limit)


def worth_archiving(call: Call) -> bool:
    """Whether `gc` would archive any memory of the caller's scope. It stops at the first one."""
    asked, now = GcQuery(scope=call.scope), call.engine.now()
    found = (record for where in _low(asked, now) for record in _longest_due(call, where))
    return any(collectable(record, below=asked.below, now=now) for record in found)


def _longest_due(call: Call, where: Filter) -> Iterator[Record]:
    """Records by due date, a few first: usually one of those is enough."""
    find = partial(call.engine.store.find, where, access=call.access, order=Order.DUE)
    first = find(limit=FEW)
    yield from first
    if len(first) == FEW:
        yield from find(limit=EVERY, offset=FEW)


def _check_share(there: FadedMemories, asked: GcQuery) -> None:
    """Raise Conflict if a run would archive most of a scope, unless the caller asked for that."""
    found = len(there.candidates)
    if 2 * found > there.memories and not asked.even_most:
        raise Conflict(
            f"This would archive {found} of the {there.memories} memories in {asked.scope}.",
            hint="Give a lower `min_retention`, or set `even_most` to do it anyway.",
            details={"candidates": found, "memories": there.memories},
        )


def restore_changes(memory: Memory, now: datetime) -> list[Change]:
    """The changes that restore a memory from the archive; none if it is not archived."""
    return [] if memory.archived_at is None else _archive_changes([memory], None, now)


def _archive_changes(memories: Sequence[Memory], archived_at: datetime | None, now: datetime) -> list[Change]:
    """The revisions that archive memories or, with None, restore them."""
    reason = RESTORED if archived_at is None else ARCHIVED
    return [
        Revise(memory=next_revision(replace(memory, archived_at=archived_at), now), reason=reason)
        for memory in memories
    ]


def _undo_run(call: Call, run: Document) -> RestoredMemories:
    if "restoredAt" in run.body:
        raise Conflict(
            f"The archive {run.id} was undone already.",
            hint="`archive` with action `list` shows runs that can still be undone. Memories archived again "
            "are in a later run.",
            details={"id": run.id},
        )
    now, ids = call.engine.now(), run.body["ids"]
    records = call.engine.store.get_many(ids, access=call.access)
    # A memory that was restored alone and archived again belongs to a later run.
    held = [record.memory for record in records if record.memory.archived_at == run.created_at]
    after = with_body(run, {**run.body, "restoredAt": now.isoformat()}, now)
    same = _restated_since(call, held, now)
    call.engine.store.commit([*_archive_changes(held, None, now), after], access=call.access)
    restored = tuple(memory.id for memory in held)
    call.engine.events.emit(
        MemoriesRestored(timestamp=now, scopes=scopes_of(*held), ids=restored, archive_id=run.id)
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
            hint="`archive` with action `list` shows the ids of the archives.",
            details={"id": memory_id},
        )
    memory = records[0].memory
    if memory.archived_at is None:
        raise Conflict(
            f"The memory {memory_id} is not archived.",
            hint="There is nothing to restore.",
            details={"id": memory_id},
        )
    same = _restated_since(call, [memory], now)
    call.engine.store.commit(restore_changes(memory, now), access=call.access)
    call.engine.events.emit(
        MemoriesRestored(timestamp=now, scopes=scopes_of(memory), ids=(memory_id,), archive_id="")
    )
    return RestoredMemories(archive_id=None, ids=(memory_id,), duplicates=same)


def _restated_since(call: Call, memories: Sequence[Memory], now: datetime) -> dict[str, str]:
    """For each of these archived memories the active one with exactly the same text, if there is one."""
    by_scope: dict[str, list[Memory]] = defaultdict(list)
    for memory in memories:
        if memory.thread is None and memory.valid_at(now):  # a turn is said more than once
            by_scope[memory.scope].append(memory)
    found: dict[str, str] = {}
    for scope, members in by_scope.items():
        marks = {memory.id: fingerprint(memory.content) for memory in members}
        wanted = list(marks.values())
        same = call.engine.store.same_text(wanted, scope=scope, valid_at=now, access=call.access)
        found |= {name: same[mark] for name, mark in marks.items() if mark in same}
    return found
