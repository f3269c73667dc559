"""The review inbox as shown to callers: texts, lists, decisions."""

from datetime import datetime
from typing import Any

from vestige.engine.context import Call
from vestige.engine.ingest.inbox import PendingText
from vestige.engine.memory.review import is_withheld
from vestige.operations.registry.arguments import Wire
from vestige.operations.shared.text import (
    box,
    count,
    day,
    fields,
    listed_lines,
    row_number,
    short_id,
    styled,
    unmarked,
)

SUMMARY_CHARS = 1_000
"""Longer texts are cut in a list."""


class PendingView(Wire):
    """A text of the inbox, `waiting` or `approved`, `merged` or `rejected`, and why it had to wait.

    `flags` are the kinds of orders or hidden text found in it; such a text is `withheld` from an agent, which
    sees everything but the words. `original` are its words before it was edited. `memory_id` is the memory
    it became or joined, `decision` what the gate decided.
    """

    id: str
    status: str
    content: str | None = None
    content_length: int
    withheld: bool | None = None
    reason: str
    flags: list[str] | None = None
    origin: str
    scope: str
    node_type: str | None = None
    tags: list[str] | None = None
    source: str | None = None
    author: str | None = None
    session_id: str | None = None
    thread: str | None = None
    position: int | None = None
    created_at: datetime
    original: str | None = None
    resolved_at: datetime | None = None
    memory_id: str | None = None
    decision: str | None = None


class Inbox(Wire):
    """Texts of the inbox, the last one changed first, and how many there are in all."""

    status: str
    total: int
    shown: int
    texts: list[PendingView]


class ReviewDecision(Wire):
    """What was decided about a text, and what became of it."""

    id: str
    status: str
    memory_id: str | None = None
    decision: str | None = None
    reason: str | None = None
    message: str


_SHOWN = ("node_type", "source", "author", "session_id", "thread", "position")


def pending_view(call: Call, text: PendingText, *, full: bool) -> PendingView:
    """A text as this caller may see it."""
    withheld = is_withheld(call, text)
    words = text.text.content
    shown = words if full or len(words) <= SUMMARY_CHARS else f"{words[:SUMMARY_CHARS].rstrip()}…"
    given: dict[str, Any] = {} if withheld else {name: getattr(text.text, name) for name in _SHOWN}
    return PendingView(
        id=text.id,
        status=text.status,
        content=None if withheld else shown,
        content_length=len(words),
        withheld=withheld or None,
        reason=text.reason,
        flags=list(text.flags) or None,
        origin=text.origin,
        scope=text.scope,
        tags=None if withheld else list(text.text.tags) or None,
        created_at=text.created_at,
        original=text.original if full and not withheld else None,
        resolved_at=text.resolved_at,
        memory_id=text.memory_id,
        decision=text.decision,
        **given,
    )


def render_inbox(inbox: Inbox) -> str:
    if not inbox.texts:
        return "Nothing waits for a review." if inbox.status == "waiting" else "No such texts."
    lines = [line for one in inbox.texts for line in _lines(one)]
    more = f" of {inbox.total}" if inbox.total > inbox.shown else ""
    said = f"{count(inbox.shown, 'text')}{more}. `vestige review approve ID` stores one; `reject` refuses it."
    return "\n".join([*lines, "", said])


def _lines(one: PendingView) -> list[str]:
    text = unmarked(one.content) if one.content else "(text withheld)"
    facts = [
        short_id(one.id),
        styled("warning", ", ".join(one.flags)) if one.flags else None,
        None if one.status == "waiting" else one.status,
        f"from {one.origin}",
        one.source,
        one.scope,
        day(one.created_at),
        one.reason,
    ]
    return listed_lines(row_number(one.id), text, facts)


def render_pending(one: PendingView) -> str:
    facts = fields(
        (
            ("id", styled("id", one.id)),
            ("status", one.status),
            ("why", one.reason),
            ("found", styled("warning", ", ".join(one.flags or []))),
            ("origin", one.origin),
            ("scope", one.scope),
            ("type", one.node_type),
            ("tags", ", ".join(one.tags or [])),
            ("source", one.source),
            ("author", one.author),
            ("session", one.session_id),
            ("came", day(one.created_at)),
            ("decided", day(one.resolved_at)),
            ("memory", short_id(one.memory_id) if one.memory_id else None),
            ("first wording", unmarked(one.original) if one.original else None),
        )
    )
    return f"{box(unmarked(one.content or '(text withheld)'))}\n{facts}"
