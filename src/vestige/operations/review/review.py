"""The review inbox: the tool `review`."""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from vestige.engine.context import Call
from vestige.engine.ingest.inbox import PendingText
from vestige.engine.memory import review
from vestige.operations.memory.read import EXAMPLE_ID
from vestige.operations.registry.arguments import Arguments, IdOf, MemoryId, ScopeTree, Tags
from vestige.operations.registry.registry import registry
from vestige.operations.review.view import (
    Inbox,
    PendingView,
    ReviewDecision,
    pending_view,
    render_inbox,
    render_pending,
)
from vestige.operations.shared.text import short_id

EXAMPLES = {
    name: f"01890000-0000-7000-8000-0000000000c{number}"
    for number, name in enumerate(("show", "approve", "edit", "merge", "reject", "undo", "delete"))
}
"""Ids of texts in the inbox by the action whose example is about them; the parity tests create them."""

PendingId = Annotated[
    str, Field(min_length=1, max_length=64, description="Id of a text in the inbox."), IdOf("review")
]


class InboxArguments(Arguments):
    """Which texts to list."""

    status: Literal["waiting", "approved", "merged", "rejected", "all"] = Field(
        "waiting", description="Only texts with this status."
    )
    scope: ScopeTree = None
    limit: int = Field(20, ge=1, le=100, description="Maximum number of texts.")
    offset: int = Field(0, ge=0, le=1_000_000, description="Texts to skip.")


class EditArguments(Arguments):
    """What to change in a waiting text; an omitted argument changes nothing."""

    id: PendingId
    content: str | None = Field(None, description="The new text.")
    tags: Tags | None = Field(None, description="All its labels.")
    node_type: str | None = Field(None, min_length=1, max_length=200, description="Its type.")


def render_decided(done: ReviewDecision) -> str:
    became = f"\nMemory: {short_id(done.memory_id)}" if done.memory_id else ""
    reason = f"\n{done.reason}" if done.reason else ""
    return f"{done.message}{reason}{became}"


def _decided(text: PendingText, message: str, reason: str | None = None) -> ReviewDecision:
    return ReviewDecision(
        id=text.id,
        status=text.status,
        memory_id=text.memory_id,
        decision=text.decision,
        reason=reason,
        message=message,
    )


@registry.operation(
    "review.list",
    permission="read",
    effect="none",
    example={"limit": 5},
    title="List the review inbox",
    render=render_inbox,
)
def list_inbox(call: Call, asked: InboxArguments) -> Inbox:
    """List texts that wait for a review, or that had one, the last one changed first.

    They are not memories: nothing else finds them. Of a text that may give orders to an agent, a tool shows
    everything but the words; the user reads it at the command line.
    """
    status = None if asked.status == "all" else asked.status
    found = review.inbox(call, status, asked.scope, limit=asked.limit, offset=asked.offset)
    shown = [pending_view(call, one, full=False) for one in found.texts]
    return Inbox(status=asked.status, total=found.total, shown=len(shown), texts=shown)


@registry.operation(
    "review.show",
    permission="read",
    effect="none",
    example={"id": EXAMPLES["show"]},
    title="Show a text of the inbox",
    render=render_pending,
)
def show(call: Call, id: PendingId) -> PendingView:
    """Show a text of the inbox in full, with its origin and the reason why it waits."""
    return pending_view(call, review.find(call, id), full=True)


@registry.operation(
    "review.approve",
    permission="write",
    example={"id": EXAMPLES["approve"]},
    title="Approve a text",
    render=render_decided,
)
def approve(call: Call, id: PendingId) -> ReviewDecision:
    """Store a waiting text as if it came now: it may become a new memory, strengthen or correct one."""
    done = review.approve(call, id)
    decision = done.result.decision
    return _decided(done.text, f"Approved: {type(decision).__name__.lower()}.", decision.reason)


@registry.operation(
    "review.edit",
    permission="write",
    example={"id": EXAMPLES["edit"], "content": "Ada prefers green tea."},
    title="Edit a waiting text",
    render=render_pending,
)
def edit(call: Call, asked: EditArguments) -> PendingView:
    """Change a waiting text before it is approved. It keeps waiting, and its first wording is kept."""

    def change(before: PendingText) -> PendingText:
        text, given = before.text, set(before.text.given)
        if asked.content is not None:
            text = replace(text, content=asked.content)
        if asked.tags is not None:
            text = replace(text, tags=tuple(asked.tags))
            given.add("tags")
        if asked.node_type is not None:
            text = replace(text, node_type=asked.node_type)
            given.add("node_type")
        return replace(before, text=replace(text, given=frozenset(given)))

    return pending_view(call, review.edit(call, asked.id, change), full=True)


@registry.operation(
    "review.merge",
    permission="write",
    example={"id": EXAMPLES["merge"], "into": EXAMPLE_ID},
    title="Merge a text into a memory",
    render=render_decided,
)
def merge(
    call: Call,
    id: PendingId,
    into: Annotated[MemoryId, Field(description="The memory that the text joins.")],
    content: Annotated[
        str | None, Field(description="The memory's new text. Default: it gets another wording.")
    ] = None,
) -> ReviewDecision:
    """Join a waiting text to a memory, as another wording of it or as a new text that says both.

    The memory gets a revision and is strengthened; its earlier text stays in its history.
    """
    text, memory = review.merge(call, id, into, content)
    return _decided(text, f"Merged into the memory {memory.id}.")


@registry.operation(
    "review.reject",
    permission="write",
    example={"id": EXAMPLES["reject"]},
    title="Reject a text",
    render=render_decided,
)
def reject(call: Call, id: PendingId) -> ReviewDecision:
    """Refuse a waiting text. It is not stored, and stays in the inbox as rejected; `undo` lets it wait."""
    return _decided(review.reject(call, id), "Rejected; `review undo` lets it wait again.")


@registry.operation(
    "review.undo",
    permission="write",
    example={"id": EXAMPLES["undo"]},
    title="Undo a review",
    render=render_decided,
)
def undo(call: Call, id: PendingId) -> ReviewDecision:
    """Let a rejected or approved text wait again.

    A memory that the approval added is deleted, and what that had superseded is valid again. A text that
    joined another memory cannot be taken out: edit that memory.
    """
    return _decided(review.undo(call, id), "The text waits for a review again.")


@registry.operation(
    "review.delete",
    permission="write",
    effect="delete",
    example={"id": EXAMPLES["delete"]},
    title="Erase a text of the inbox",
    render=render_decided,
)
def delete(call: Call, id: PendingId) -> ReviewDecision:
    """Erase a text from the inbox for good. A memory that it became stays."""
    return _decided(review.delete(call, id), "Erased from the inbox.")
