"""What changed, from the event log: `memory_changelog`."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from vestige.engine.context import Call
from vestige.engine.revising import load
from vestige.errors import InvalidInput
from vestige.events import preview
from vestige.models import LogEvent, Record
from vestige.operations.catalog import registry
from vestige.operations.fields import EndMoment, Moment, Scope
from vestige.operations.prose import day, table
from vestige.operations.registry import Arguments, Wire
from vestige.operations.scoping import used
from vestige.store.logquery import LogQuery
from vestige.store.protocol import LINKED, REMARKED

CHANGES = {"memory.created": "created", REMARKED: "remarked", LINKED: "linked", "memory.deleted": "deleted"}
"""What a kind of event is called here; a revision is told apart by its reason."""


class ChangelogArguments(Arguments):
    """Whose changes, and when."""

    memory_id: Annotated[
        str | None, Field(min_length=1, max_length=64, description="Only this memory; it may be deleted.")
    ] = None
    start: Annotated[Moment | None, Field(description="Not before this.")] = None
    end: Annotated[EndMoment | None, Field(description="Before this; a date includes that day.")] = None
    before: Annotated[
        int | None,
        Field(ge=1, le=2**63 - 1, description="Only what was logged before this position: `next`."),
    ] = None
    limit: Annotated[int, Field(ge=1, le=100, description="Most changes to return: the latest ones.")] = 20
    scope: Annotated[
        Scope | None,
        Field(description="Where to look; default is the caller's own scope and what it inherits."),
    ] = None


class ChangeView(Wire):
    """One change, at its position in the log.

    The log holds no text: `preview` is of the memory as it is now, while it can be read.
    """

    position: int
    timestamp: datetime
    change: str
    memory_id: str | None
    fields: list[str] | None = None
    reason: str | None = None
    evidence: str | None = None
    target_id: str | None = None
    link: str | None = None
    weight: float | None = None
    details: dict[str, Any] | None = None
    preview: str | None = None


class ChangelogFilter(Wire):
    """What was asked for."""

    memory_id: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    before: int | None = None


class Changelog(Wire):
    """Changes, newest first; `more` says that there are earlier ones, which `next` as `before` shows."""

    shown: int
    more: bool
    next: int | None = None
    changes: list[ChangeView]
    filter: ChangelogFilter
    scope: str | None = None
    superseded_by: str | None = None


def render_changelog(log: Changelog) -> str:
    """Changes for a person."""
    rows = ((day(one.timestamp), one.change, one.memory_id, _what(one), one.preview) for one in log.changes)
    text = table(("at", "change", "memory", "what", "text"), rows) if log.changes else "Nothing changed."
    return f"{text}\n\nThere are earlier changes: before {log.next}." if log.more else text


@registry.operation(
    "memory_changelog",
    permission="read",
    effect="none",
    example={"limit": 5},
    positional=("memory_id",),
    command="changelog",
    title="What changed",
    render=render_changelog,
)
def memory_changelog(call: Call, asked: ChangelogArguments) -> Changelog:
    """Show what changed and why, newest first: in one memory, or everywhere in the scope.

    Memories created, revised (with the fields and the reason), superseded, remarked on, linked and deleted.
    `next`, given as `before`, shows the earlier ones.
    That a memory was merely shown by a search is told for one memory only. Use `memory` with the action
    `history` for earlier texts.
    """
    if asked.start and asked.end and asked.start >= asked.end:
        raise InvalidInput("`start` is not before `end`.", hint="Give an earlier `start`.")
    if asked.memory_id is not None and asked.scope is not None:
        raise InvalidInput("`memory_id` and `scope` exclude each other.", hint="Give one of them.")
    store, one = call.engine.store, asked.memory_id
    if one is not None and store.tombstone(one, access=call.access) is None:
        load(call, one)
    events = store.latest(_query(call, asked), access=call.access, limit=asked.limit + 1)
    told = events[: asked.limit]
    names = dict.fromkeys(event.memory_id for event in told if event.memory_id)
    known = {record.memory.id: record for record in store.get_many(list(names), access=call.access)}
    return Changelog(
        shown=len(told),
        more=len(events) > len(told),
        next=told[-1].position if len(events) > len(told) else None,
        changes=[_view(event, known.get(event.memory_id or "")) for event in told],
        filter=ChangelogFilter(memory_id=one, start=asked.start, end=asked.end, before=asked.before),
        scope=used(call, asked.scope) if one is None else None,
        superseded_by=known[one].memory.superseded_by if one in known else None,
    )


def _query(call: Call, asked: ChangelogArguments) -> LogQuery:
    if asked.memory_id is not None:
        return LogQuery(memory_id=asked.memory_id, since=asked.start, until=asked.end, before=asked.before)
    return LogQuery(
        since=asked.start,
        until=asked.end,
        before=asked.before,
        scope=used(call, asked.scope),
        inherited=asked.scope is None,
        exposures=False,
    )


def _view(event: LogEvent, record: Record | None) -> ChangeView:
    told = event.payload
    reason = told.get("reason")
    revised = reason if reason in ("superseded", "merged") else "revised"
    return ChangeView(
        position=event.position,
        timestamp=event.at,
        change=CHANGES.get(event.kind, revised if event.kind == "memory.revised" else event.kind),
        memory_id=event.memory_id,
        fields=told.get("fields"),
        reason=told.get("reason"),
        evidence=told.get("evidence"),
        target_id=told.get("target"),
        link=told.get("kind"),
        weight=told.get("weight"),
        details=told.get("details") or None,
        preview=preview(record.memory.content) if record else None,
    )


def _what(change: ChangeView) -> str:
    target = f"{change.link} {change.target_id}" if change.link else None
    parts = (", ".join(change.fields or []), change.reason, change.evidence, target)
    return "; ".join(part for part in parts if part)
