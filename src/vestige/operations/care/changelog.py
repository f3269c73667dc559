"""What changed, from the event log: `memory_changelog`."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from vestige.core.errors import InvalidInput
from vestige.core.events import preview
from vestige.core.models import Filter, LogEvent, Record
from vestige.engine.context import Call
from vestige.engine.revise import load
from vestige.engine.sleep.runs import CONSOLIDATION, DREAM
from vestige.operations.registry.arguments import Arguments, EndMoment, Moment, Scope, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import used
from vestige.operations.shared.text import day, table
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.changes import (
    CARRIED,
    CREATED,
    DROPPED,
    LINKED,
    PUT,
    REMARKED,
    STATE,
    TUNED,
    UNLINKED,
)
from vestige.store.filter_rule import stands

CHANGES = {
    CREATED: "created",
    "memory.deleted": "deleted",
    REMARKED: "remarked",
    CARRIED: "brought along",
    STATE: "state",
    LINKED: "linked",
    UNLINKED: "unlinked",
    PUT: "kept",
    DROPPED: "dropped",
    TUNED: "tuned",
}
"""What a kind of event is called here; a revision is told apart by its reason."""
SHOWN = Filter(include_suppressed=False)
"""Of what else stands aside no text is told."""
RUNS = {DREAM: "dreamed", CONSOLIDATION: "consolidated"}
"""What it is called that a document of these kinds was kept."""


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

    The log holds no text: `preview` is of the memory as it is now, while it can be read. `document` is the
    kind of what was kept beside the memories: an insight, an intention, a run.
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
    from_state: str | None = None
    to_state: str | None = None
    document: str | None = None
    document_id: str | None = None
    details: dict[str, Any] | None = None
    preview: str | None = None


class ChangelogFilter(Wire):
    """What was asked for."""

    memory_id: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    before: int | None = None


class Changelog(Wire):
    """Changes, the last one logged here first: what came from another machine stands where it arrived. `more`
    says that there are earlier ones, which `next` as `before` shows."""

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

    Memories created, revised (with the fields and the reason), superseded, remarked on, linked, unlinked and
    deleted; their changes of state; dreams and consolidations. `next`, given as `before`, shows the earlier
    ones. That a memory was merely shown by a search is told for one memory only. Use `memory` with the action
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
    before, after = _states(event)
    is_link = event.kind in (LINKED, UNLINKED)
    is_document = event.kind in (PUT, DROPPED)
    return ChangeView(
        position=event.position,
        timestamp=event.at,
        change=_change(event),
        memory_id=event.memory_id,
        fields=told.get("fields"),
        reason=told.get("reason"),
        evidence=told.get("evidence"),
        target_id=told.get("target"),
        link=told.get("kind") if is_link else None,
        weight=told.get("weight"),
        from_state=before,
        to_state=after,
        document=told.get("kind") if is_document else None,
        document_id=told.get("id") if is_document else None,
        details=told.get("details") or None,
        preview=preview(record.memory.content) if record and stands(record.memory, SHOWN) else None,
    )


def _change(event: LogEvent) -> str:
    if event.kind == "memory.revised":
        reason = event.payload.get("reason")
        return reason if reason in ("superseded", "merged") else "revised"
    if event.kind == PUT and event.payload["kind"] in RUNS:
        return RUNS[event.payload["kind"]]
    return CHANGES.get(event.kind, event.kind)


def _states(event: LogEvent) -> tuple[str | None, str | None]:
    """From which state to which a memory went; evidence tells it along with itself."""
    if event.kind == STATE:
        return event.payload["from"], event.payload["to"]
    before, after = event.payload.get("state", (None, None))
    return before, after


def _what(change: ChangeView) -> str:
    target = f"{change.link} {change.target_id}" if change.link else None
    moved = f"{change.from_state} → {change.to_state}" if change.to_state else None
    kept = f"{change.document} {change.document_id}" if change.document else None
    parts = (", ".join(change.fields or []), change.reason, change.evidence, moved, target, kept)
    return "; ".join(part for part in parts if part)
