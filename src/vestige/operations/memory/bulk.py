"""One change of many memories: `memory bulk`, with a dry run first, and a way back."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from vestige.core.documents import Document
from vestige.core.errors import InvalidInput
from vestige.core.models import ROOT_SCOPE
from vestige.engine.context import Call
from vestige.engine.ingest.secrets import screen_fields
from vestige.engine.memory import bulk
from vestige.engine.memory.bulk import BulkChange
from vestige.operations.memory.read import SelectionArguments
from vestige.operations.registry.arguments import IdOf, Scope, Switch, Tags, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.memory_view import MemoryView, memory_lines, view
from vestige.operations.shared.secrets import Secrets
from vestige.operations.shared.text import count, day, row_number, short_id, table

EXAMPLE_RUN = "01890000-0000-7000-8000-0000000000b1"
"""Id of the bulk change that examples undo; the parity tests make it."""
DONE = {
    BulkChange.PIN: "Pinned",
    BulkChange.UNPIN: "Unpinned",
    BulkChange.TAG: "Tagged",
    BulkChange.MOVE: "Moved",
    BulkChange.SUPPRESS: "Suppressed",
    BulkChange.ARCHIVE: "Archived",
    BulkChange.DELETE: "Deleted",
}


class BulkResult(Wire):
    """A bulk change, or what it would do (`dry_run`).

    `matched` memories were selected. `changed` are or would be changed; `unchanged` were as wanted already;
    `refused` counts others by the reason. Of those that change, `text_bytes` is the size of their texts and
    `links` the number of their links. `undo_id` takes the change back.
    """

    action: str = "bulk"
    success: bool = True
    change: BulkChange
    dry_run: bool
    matched: int
    changed: int
    unchanged: int
    refused: dict[str, int]
    text_bytes: int | None = None
    links: int | None = None
    sample: list[MemoryView] | None = None
    undo_id: str | None = None
    message: str


class BulkRunView(Wire):
    """A bulk change that was made: what, when, and of how many memories."""

    id: str
    change: BulkChange
    at: datetime
    memories: int
    undone_at: datetime | None = None


class BulkRuns(Wire):
    """Bulk changes, latest first."""

    action: str = "bulk_runs"
    runs: list[BulkRunView]


class BulkUndoneView(Wire):
    """A bulk change that was undone. `skipped` memories were deleted or changed again since."""

    action: str = "bulk_undo"
    success: bool = True
    id: str
    change: BulkChange
    restored: list[str]
    skipped: int
    message: str


class BulkArguments(SelectionArguments):
    """A change, and which memories it is for."""

    change: BulkChange = Field(description="pin, unpin, tag, move, suppress, archive or delete.")
    ids: Annotated[list[str], Field(min_length=1, max_length=1000), IdOf("memory")] | None = Field(
        None, description="Ids of the memories, instead of a filter."
    )
    add: Tags = Field([], description="Tags to add.")
    remove: Tags = Field([], description="Tags to remove.")
    to: Scope | None = Field(None, description="The scope to move to.")
    dry_run: Switch = Field(True, description="Only show what would change (default true).")
    expected: int | None = Field(
        None, ge=0, description="`matched` of the dry run; a run refuses if another number matches now."
    )
    secrets: Secrets = None


def _render_result(done: BulkResult) -> str:
    if not done.dry_run:
        return done.message
    message = done.message.replace("`dry_run: false`", "`--no-dry-run`").replace(
        "`expected: ", "`--expected "
    )
    return f"{memory_lines(done.sample or [])}\n\n{message}" if done.sample else message


def _render_runs(answer: BulkRuns) -> str:
    if not answer.runs:
        return "There is no bulk change to undo."
    rows = (
        (row_number(one.id), short_id(one.id), day(one.at), one.change, one.memories, day(one.undone_at))
        for one in answer.runs
    )
    return table(("#", "id", "at", "change", "memories", "undone"), rows)


@registry.operation(
    "memory.bulk",
    permission="write",
    effect="delete",
    example={"change": "pin", "tags": ["preference"], "dry_run": True},
    long=True,
    title="Change many memories",
    render=_render_result,
)
def memory_bulk(call: Call, asked: BulkArguments) -> BulkResult:
    """Change many memories at once: pin, unpin, tag, move to a scope, suppress, archive or delete them.

    These are all that `memory list` lists for the same filter. With `dry_run` (the default) it only shows how
    many match and would change. To run it, pass `dry_run: false` and `expected`, the `matched` of the dry
    run. It never suppresses, archives or deletes pinned
    memories. It runs in portions: if it is interrupted, run it again. All but a deletion can be undone.
    """
    _check(asked)
    clean = screen_fields(call, {"add": asked.add, "to": asked.to or ""}, asked.secrets)
    request = bulk.BulkRequest(
        change=asked.change,
        ids=None if asked.ids is None else tuple(asked.ids),
        where=asked.where(call),
        add=tuple(clean.get("add", asked.add)),
        remove=tuple(asked.remove),
        to=clean.get("to", asked.to) or ROOT_SCOPE,
    )
    if asked.dry_run:
        return _shown(call, asked, bulk.preview(call, request))
    return _done(asked, bulk.run(call, request, expected=asked.expected))


def _check(asked: BulkArguments) -> None:
    if (asked.change is BulkChange.TAG) != bool(asked.add or asked.remove):
        raise InvalidInput(
            "`add` and `remove` are for the change `tag`, which needs one of them.",
            hint="Give the tags to add or remove with `change: tag`.",
            details={"argument": "add"},
        )
    if (asked.change is BulkChange.MOVE) != (asked.to is not None):
        raise InvalidInput(
            "`to` is for the change `move`, which needs it.",
            hint="Give the scope with `change: move`, for example `to: /project/garden`.",
            details={"argument": "to"},
        )
    both = [tag for tag in asked.add if tag in asked.remove]
    if both:
        raise InvalidInput(
            f"`add` and `remove` both name {', '.join(both)}.",
            hint="Name a tag in one of them only.",
            details={"tags": both},
        )
    filters = asked.model_fields_set & set(SelectionArguments.model_fields) - {"timezone"}
    if asked.ids is not None and filters:
        raise InvalidInput(
            f"`ids` cannot be combined with {', '.join(sorted(filters))}.",
            hint="Give ids, or a filter.",
            details={"argument": "ids"},
        )
    if not asked.dry_run and asked.expected is None:
        raise InvalidInput(
            "A bulk change needs `expected`, the number of memories that a dry run matched.",
            hint="Run it with `dry_run: true` first.",
            details={"argument": "expected"},
        )


def _shown(call: Call, asked: BulkArguments, there: bulk.BulkPreview) -> BulkResult:
    now, changed = call.engine.now(), len(there.ids)
    refused = "".join(
        f" {number} {'is' if number == 1 else 'are'} {why}." for why, number in there.refused.items()
    )
    how = f" `dry_run: false` with `expected: {there.matched}` does it." if changed else ""
    return BulkResult(
        change=asked.change,
        dry_run=True,
        matched=there.matched,
        changed=changed,
        unchanged=there.unchanged,
        refused=dict(there.refused),
        text_bytes=there.text_bytes,
        links=there.links,
        sample=[view(record, now, "summary") for record in there.sample],
        message=f"{changed} of {count(there.matched, 'memory')} would change.{refused}{how}",
    )


def _done(asked: BulkArguments, run: bulk.BulkRun) -> BulkResult:
    changed = len(run.changed)
    back = f" `memory bulk_undo {run.run_id}` takes it back." if run.run_id else ""
    return BulkResult(
        change=asked.change,
        dry_run=False,
        matched=run.matched,
        changed=changed,
        unchanged=max(0, run.matched - changed - sum(run.refused.values())),
        refused=dict(run.refused),
        undo_id=run.run_id,
        message=f"{DONE[asked.change]} {count(changed, 'memory')}.{back}",
    )


@registry.operation(
    "memory.bulk_runs",
    permission="read",
    example={"limit": 5},
    command="memory bulk-runs",
    render=_render_runs,
)
def memory_bulk_runs(
    call: Call, limit: Annotated[int, Field(ge=1, le=100, description="Maximum number of changes.")] = 20
) -> BulkRuns:
    """List the bulk changes that were made, with the ids that undo them."""
    return BulkRuns(runs=[_run_view(call, one) for one in bulk.runs(call, limit=limit)])


def _run_view(call: Call, run: Document) -> BulkRunView:
    portions = bulk.portions_of(call, run)
    ends: list[str] = [one.body["undoneAt"] for one in portions if "undoneAt" in one.body]
    return BulkRunView(
        id=run.id,
        change=BulkChange(run.body["change"]),
        at=run.created_at,
        memories=sum(len(one.body["memories"]) for one in portions),
        undone_at=datetime.fromisoformat(max(ends)) if len(ends) == len(portions) else None,
    )


@registry.operation("memory.bulk_undo", permission="write", example={"id": EXAMPLE_RUN})
def memory_bulk_undo(
    call: Call,
    id: Annotated[
        str, Field(min_length=1, max_length=64, description="Id of the bulk change."), IdOf("bulk")
    ],
) -> BulkUndoneView:
    """Take a bulk change back. Memories that were changed again since stay as they are."""
    done = bulk.undo(call, id)
    rest = f" {done.skipped} had been changed again or deleted." if done.skipped else ""
    return BulkUndoneView(
        id=id,
        change=done.change,
        restored=list(done.ids),
        skipped=done.skipped,
        message=f"{count(len(done.ids), 'memory')} restored.{rest}",
    )
