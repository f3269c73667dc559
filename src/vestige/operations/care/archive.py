"""Garbage collection: `gc` archives faded memories, `archive` lists and restores them."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from vestige.cognition.fsrs.strength import retention_of
from vestige.cognition.fsrs.suppression import accessibility_of
from vestige.core.documents import Document
from vestige.core.models import Record
from vestige.engine.context import Call
from vestige.engine.memory import archive
from vestige.operations.registry.arguments import Arguments, IdOf, ScopeTree, Switch, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import used
from vestige.operations.shared.text import clip, count, day, percent, row_number, short_id, table

SAMPLE = 10
PREVIEW_CHARS = 120
EXAMPLE_ARCHIVED = "01890000-0000-7000-8000-0000000000a1"
"""Id of the archived memory that examples restore; the parity tests create it."""


class FadedView(Wire):
    """A memory that `gc` would archive. The text of a suppressed one is not shown."""

    id: str
    content_preview: str | None = None
    node_type: str
    tags: list[str]
    source: str | None = None
    author: str | None = None
    created_at: datetime
    retention: float
    accessibility: float


class Collected(Wire):
    """Faded memories and those that were archived (`archive_id`). `left` memories need another run."""

    action: str = "gc"
    success: bool = True
    dry_run: bool
    scope: str
    min_retention: float
    max_age_days: float | None = None
    memories: int | None = None
    candidate_count: int
    sample: list[FadedView] | None = None
    archived: int
    archive_id: str | None = None
    left: int | None = None
    message: str


class ArchiveView(Wire):
    """A run of `gc`: when, with which threshold, and which memories it archived."""

    id: str
    archived_at: datetime
    scope: str
    min_retention: float
    max_age_days: float | None = None
    count: int
    ids: list[str]
    restored_at: datetime | None = None


class ArchivesView(Wire):
    """Runs of `gc`, newest first."""

    action: str = "list"
    scope: str
    archives: list[ArchiveView]


class RestoredView(Wire):
    """Restored memories. `missing` memories of the run were deleted or restored before.

    `duplicates` maps a restored memory to another one with exactly the same text, stored in the meantime.
    """

    action: str = "undo"
    success: bool = True
    archive_id: str | None = None
    restored: list[str]
    missing: int | None = None
    duplicates: dict[str, str] | None = None
    message: str


class GcArguments(Arguments):
    """Which memories to archive, and whether to do it."""

    min_retention: float = Field(
        archive.LEAST,
        ge=0,
        le=1,
        description="Archive memories with an accessibility below this: retention reduced by suppression.",
    )
    max_age_days: float | None = Field(
        None, ge=0, le=100_000, description="Only memories older than this many days."
    )
    dry_run: Switch = Field(True, description="Only show what would be archived (default true).")
    scope: ScopeTree = None
    even_most: Switch = Field(
        False, description="Proceed even if it would archive more than half of the memories there."
    )


def _render_collected(done: Collected) -> str:
    message = done.message
    if done.dry_run:
        # On the command line it is an option, not an argument.
        message = _found(done.candidate_count, done.memories or 0, done.scope, by="--no-dry-run")
    if not done.sample:
        return message
    rows = (
        (
            row_number(one.id),
            short_id(one.id),
            percent(one.accessibility),
            day(one.created_at),
            clip(one.content_preview or "(suppressed)"),
        )
        for one in done.sample
    )
    return f"{table(('#', 'memory', 'strength', 'stored', 'text'), rows)}\n\n{message}"


def _render_archives(answer: ArchivesView) -> str:
    if not answer.archives:
        return "Nothing is archived."
    rows = (
        (row_number(one.id), short_id(one.id), day(one.archived_at), one.count, day(one.restored_at))
        for one in answer.archives
    )
    return table(("#", "archive", "archived", "memories", "undone"), rows)


@registry.operation(
    "gc",
    permission="write",
    example={"min_retention": 0.1, "dry_run": True},
    long=True,
    title="Archive faded memories",
    render=_render_collected,
)
def gc(call: Call, asked: GcArguments) -> Collected:
    """Archive memories that have faded below a threshold. Nothing is deleted: `archive undo` restores them.

    With `dry_run` (the default) it only shows the candidates. It never archives pinned memories, memories
    retrieved in the last 30 days or not yet due for review, or memories whose suppression can still be
    reversed. An archived memory can only be read by its id.
    """
    wanted = archive.GcQuery(
        scope=used(call, asked.scope),
        below=asked.min_retention,
        max_age_days=asked.max_age_days,
        even_most=asked.even_most,
    )
    if asked.dry_run:
        return _shown(call, wanted, archive.find_faded(call, wanted))
    return _collected(wanted, archive.archive(call, wanted))


def _shown(call: Call, asked: archive.GcQuery, there: archive.FadedMemories) -> Collected:
    now, found = call.engine.now(), len(there.candidates)
    return Collected(
        dry_run=True,
        **_asked(asked),
        memories=there.memories,
        candidate_count=found,
        sample=[_faded_view(record, now) for record in there.candidates[:SAMPLE]],
        archived=0,
        message=_found(found, there.memories, asked.scope),
    )


def _found(found: int, memories: int, scope: str, *, by: str = "dry_run: false") -> str:
    if not found:
        return f"No memory in {scope} has faded enough; there is nothing to archive."
    return f"{found} of {count(memories, 'memory')} in {scope} can be archived; `{by}` archives them."


def _collected(asked: archive.GcQuery, run: archive.ArchiveRun) -> Collected:
    taken = len(run.taken)
    back = f"`archive undo {run.archive_id}` restores {'it' if taken == 1 else 'them'}"
    more = (
        (f" {run.left} more {'has' if run.left == 1 else 'have'} faded: run `gc` again.") if run.left else ""
    )
    return Collected(
        dry_run=False,
        **_asked(asked),
        candidate_count=len(run.taken) + run.left,
        archived=len(run.taken),
        archive_id=run.archive_id,
        left=run.left or None,
        message=f"Archived {count(taken, 'memory')}; {back}.{more}" if taken else _found(0, 0, asked.scope),
    )


def _asked(asked: archive.GcQuery) -> dict[str, Any]:  # Any: fields of the answer
    return {"scope": asked.scope, "min_retention": asked.below, "max_age_days": asked.max_age_days}


def _faded_view(record: Record, now: datetime) -> FadedView:
    memory = record.memory
    return FadedView.of(
        memory,
        content_preview=None if memory.suppression_count else clip(memory.content, PREVIEW_CHARS),
        retention=round(retention_of(record.strength, now), 4),
        accessibility=round(accessibility_of(record, now), 4),
    )


@registry.operation("archive.list", permission="read", example={"limit": 5}, render=_render_archives)
def archive_list(
    call: Call,
    scope: ScopeTree = None,
    limit: Annotated[int, Field(ge=1, le=100, description="Maximum number of runs.")] = 20,
) -> ArchivesView:
    """List the runs of `gc` with the ids they archived; read one with `memory get`."""
    in_scope = used(call, scope)
    runs = archive.archives(call, in_scope, limit=limit)
    return ArchivesView(scope=in_scope, archives=[_archive_view(run) for run in runs])


def _archive_view(run: Document) -> ArchiveView:
    body, restored = run.body, run.body.get("restoredAt")
    return ArchiveView(
        id=run.id,
        archived_at=run.created_at,
        scope=run.scope,
        min_retention=body["minRetention"],
        max_age_days=body["maxAgeDays"],
        count=len(body["ids"]),
        ids=list(body["ids"]),
        restored_at=datetime.fromisoformat(restored) if restored else None,
    )


@registry.operation("archive.undo", permission="write", example={"id": EXAMPLE_ARCHIVED})
def archive_undo(
    call: Call,
    id: Annotated[
        str,
        Field(min_length=1, max_length=64, description="Id of a gc run (archive) or of a memory."),
        IdOf("archive"),
    ],
) -> RestoredView:
    """Restore everything that a run of `gc` archived, or one memory.

    A text that was stored again in the meantime then exists twice; `duplicates` in the answer names both ids.
    """
    done = archive.undo(call, id)
    return RestoredView(
        archive_id=done.archive_id,
        restored=list(done.ids),
        missing=done.missing or None,
        duplicates=dict(done.duplicates) or None,
        message=f"{count(len(done.ids), 'memory')} restored from the archive.{_duplicates_note(done)}",
    )


def _duplicates_note(done: archive.RestoredMemories) -> str:
    twice = len(done.duplicates)
    if not twice:
        return ""
    there = (
        "was stored again in the meantime and exists twice"
        if twice == 1
        else "were stored again in the meantime and exist twice"
    )
    return f" {twice} of them {there}: `find_duplicates` shows them, `dedup` merges them."
