"""The event log of changes: `memory_changelog`."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from vestige.core.errors import InvalidInput
from vestige.core.events import preview
from vestige.core.models import EVERYTHING, Filter, LogEvent, Record
from vestige.engine.context import Call
from vestige.engine.revise import load
from vestige.engine.sleep.runs import CONSOLIDATION, DREAM
from vestige.operations.registry.arguments import EndMoment, IdOf, Moment, SearchedScope, Wire, ZonedArguments
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import searched, searched_scope
from vestige.operations.shared.text import clip, day, short_id, table, with_short_ids
from vestige.store.contract import changes
from vestige.store.contract.answers import LogQuery
from vestige.store.filter_rule import stands

CHANGES = {
    changes.CREATED: "created",
    "memory.deleted": "deleted",
    changes.REMARKED: "remarked",
    changes.CARRIED: "brought along",
    changes.STATE: "state",
    changes.LINKED: "linked",
    changes.UNLINKED: "unlinked",
    changes.PUT: "kept",
    changes.DROPPED: "dropped",
    changes.TUNED: "tuned",
}
"""Names of event kinds in answers; revisions are named by their reason."""
SHOWN = Filter(include_suppressed=False)
"""Hidden memories have no preview."""
SKIPPED = 1_000  # The number of events read at once to find a page of a limited caller.
RUNS = {DREAM: "dreamed", CONSOLIDATION: "consolidated"}
"""Names of documents of these kinds."""


class ChangelogArguments(ZonedArguments):
    """Memory, scope and time range."""

    memory_id: Annotated[str | None, IdOf("memory")] = Field(
        None, min_length=1, max_length=64, description="Only this memory, even if deleted."
    )
    start: Moment | None = Field(None, description="Only changes at or after this time.")
    end: EndMoment | None = Field(
        None, description="Only changes before this time; a bare date includes that day."
    )
    before: int | None = Field(
        None, ge=1, le=2**63 - 1, description="Only changes before these: the `next` of an answer."
    )
    limit: int = Field(20, ge=1, le=100, description="Maximum number of changes, the latest ones.")
    scope: SearchedScope = None


class ChangeView(Wire):
    """One change, with its position in the log, if the caller has access to the whole store.

    The log holds no text: `preview` is the memory's current text, if it is readable. `document` is the kind
    of a record that is not a memory: an insight, an intention, a run.
    """

    position: int | None = None
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
    """The filter of the request."""

    memory_id: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    before: int | None = None


class Changelog(Wire):
    """Changes by log position, latest first; changes from another machine are listed where they arrived.
    `more` means that there are earlier ones: pass `next` as `before`.
    """

    shown: int
    more: bool
    next: int | None = None
    changes: list[ChangeView]
    filter: ChangelogFilter
    scope: str | None = None
    superseded_by: str | None = None


def render_changelog(log: Changelog) -> str:
    rows = (
        (day(one.timestamp), one.change, short_id(one.memory_id or ""), _what(one), clip(one.preview or ""))
        for one in log.changes
    )
    text = table(("at", "change", "memory", "what", "text"), rows) if log.changes else "No changes."
    return f"{text}\n\nThere are earlier changes: pass --before {log.next}." if log.more else text


@registry.operation(
    "memory_changelog",
    permission="read",
    example={"limit": 5},
    positional=("memory_id",),
    command="changelog",
    title="List changes",
    render=render_changelog,
)
def memory_changelog(call: Call, asked: ChangelogArguments) -> Changelog:
    """List changes with their reasons, newest first: of one memory, or of the scope.

    Covers memories created, revised (with fields and reason), superseded, rated, linked, unlinked and
    deleted; changes of state; dreams and consolidations. Pass `next` as `before` for earlier ones. That a
    search merely showed a memory is listed only with `memory_id`. For earlier texts, use `memory` with action
    `history`.
    """
    if asked.start and asked.end and asked.start >= asked.end:
        raise InvalidInput("`start` is not before `end`.", hint="Give an earlier `start`.")
    if asked.memory_id is not None and asked.scope is not None:
        raise InvalidInput("`memory_id` and `scope` cannot be combined.", hint="Give one of them.")
    store, one = call.engine.store, asked.memory_id
    if one is not None and store.tombstone(one, access=call.access) is None:
        load(call, one)
    events = _latest(call, asked)
    listed = events[: asked.limit]
    names = dict.fromkeys(event.memory_id for event in listed if event.memory_id)
    known = {record.memory.id: record for record in store.get_many(list(names), access=call.access)}
    return Changelog(
        shown=len(listed),
        more=len(events) > len(listed),
        next=_next(call, asked, listed) if len(events) > len(listed) else None,
        changes=[_view(call, event, known.get(event.memory_id or "")) for event in listed],
        filter=ChangelogFilter(memory_id=one, start=asked.start, end=asked.end, before=asked.before),
        scope=searched_scope(call, asked.scope) if one is None else None,
        superseded_by=known[one].memory.superseded_by if one in known else None,
    )


def _latest(call: Call, asked: ChangelogArguments) -> list[LogEvent]:
    """The events of the page, and one more if there is one.

    Positions count the events of the whole store. For a caller with limited access `before` is therefore the
    number of changes on the pages before; a change written since then moves the others by one.
    """
    store, query = call.engine.store, _query(call, asked)
    if call.access == EVERYTHING:
        query = replace(query, before=asked.before)
        return store.latest(query, access=call.access, limit=asked.limit + 1)
    skipped = asked.before or 0
    while skipped:
        call.check()
        page = store.latest(query, access=call.access, limit=min(skipped, SKIPPED))
        if not page:
            return []
        skipped -= len(page)
        query = replace(query, before=page[-1].position)
    return store.latest(query, access=call.access, limit=asked.limit + 1)


def _next(call: Call, asked: ChangelogArguments, listed: Sequence[LogEvent]) -> int:
    return listed[-1].position if call.access == EVERYTHING else (asked.before or 0) + len(listed)


def _query(call: Call, asked: ChangelogArguments) -> LogQuery:
    if asked.memory_id is not None:
        return LogQuery(memory_id=asked.memory_id, since=asked.start, until=asked.end)
    where = searched(call, Filter(), asked.scope)
    return LogQuery(
        since=asked.start, until=asked.end, scope=where.scope, inherited=where.inherited, exposures=False
    )


def _view(call: Call, event: LogEvent, record: Record | None) -> ChangeView:
    payload = event.payload
    before, after = _states(event)
    is_link = event.kind in (changes.LINKED, changes.UNLINKED)
    is_document = event.kind in (changes.PUT, changes.DROPPED)
    return ChangeView(
        position=event.position if call.access == EVERYTHING else None,
        timestamp=event.at,
        change=_change(event),
        memory_id=event.memory_id,
        fields=payload.get("fields"),
        reason=payload.get("reason"),
        evidence=payload.get("evidence"),
        target_id=payload.get("target"),
        link=payload.get("kind") if is_link else None,
        weight=payload.get("weight"),
        from_state=before,
        to_state=after,
        document=payload.get("kind") if is_document else None,
        document_id=payload.get("id") if is_document else None,
        details=payload.get("details") or None,
        preview=preview(record.memory.content) if record and stands(record.memory, SHOWN) else None,
    )


def _change(event: LogEvent) -> str:
    if event.kind == "memory.revised":
        reason = event.payload.get("reason")
        return reason if reason in ("superseded", "merged") else "revised"
    if event.kind == changes.PUT and event.payload["kind"] in RUNS:
        return RUNS[event.payload["kind"]]
    return CHANGES.get(event.kind, event.kind)


def _states(event: LogEvent) -> tuple[str | None, str | None]:
    """The states before and after; evidence events include them."""
    if event.kind == changes.STATE:
        return event.payload["from"], event.payload["to"]
    before, after = event.payload.get("state", (None, None))
    return before, after


def _what(change: ChangeView) -> str:
    target = f"{change.link} {change.target_id}" if change.link else None
    moved = f"{change.from_state} → {change.to_state}" if change.to_state else None
    kept = f"{change.document} {change.document_id}" if change.document else None
    parts = (", ".join(change.fields or []), change.reason, change.evidence, moved, target, kept)
    return with_short_ids("; ".join(part for part in parts if part))
