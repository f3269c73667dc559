"""Changing memories: the writing half of the tool `memory`, and `mark_reviewed`."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Annotated

from pydantic import Field

from vestige.core.errors import InvalidInput
from vestige.core.models import Evidence, Filter, Memory, Record
from vestige.engine.context import Call
from vestige.engine.ingest.secrets import screen_fields, screen_text
from vestige.engine.memory.feedback import FeedbackResult, give_feedback
from vestige.engine.memory.tags import rename_tag
from vestige.engine.reactions.reconsolidation import edit
from vestige.engine.revise import revise
from vestige.operations.memory.read import EXAMPLE_ID
from vestige.operations.registry.arguments import (
    Arguments,
    EndMoment,
    MemoryId,
    Moment,
    Reason,
    Scope,
    Tags,
    Wire,
    check_some_time,
)
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import used
from vestige.operations.shared.memory_view import MemoryView, memory_card, view
from vestige.operations.shared.secrets import Secrets
from vestige.operations.shared.text import count, percent

GRADES = {1: Evidence.AGAIN, 2: Evidence.HARD, 3: Evidence.GOOD, 4: Evidence.EASY}


class Changed(Wire):
    """A memory after a change.

    `reconsolidated`: it had just been recalled, so that the new text corrects it and is remembered better.
    `message` says what else there is to know: that it is archived.
    """

    action: str
    success: bool = True
    changed: bool
    reconsolidated: bool | None = None
    message: str | None = None
    node: MemoryView


class Strengthened(Wire):
    """A memory's strength before and after."""

    action: str
    success: bool = True
    id: str
    before: dict[str, float]
    after: dict[str, float]
    next_review: datetime
    message: str


class Renamed(Wire):
    """A renamed tag."""

    action: str = "rename_tag"
    success: bool = True
    tag: str
    renamed_to: str
    memories: int
    scope: str


def _render_changed(result: Changed) -> str:
    head = "Changed." if result.changed else "Nothing to change: it was so already."
    if result.reconsolidated:
        head = "Corrected, and remembered better: it had just been recalled."
    return f"{' '.join(filter(None, (head, result.message)))}\n\n{memory_card(result.node)}"


def archived_note(memory: Memory) -> str | None:
    """What to say to whoever changes a memory that nothing finds."""
    if memory.archived_at is None:
        return None
    return f"It is archived, so that nothing finds it: `archive undo {memory.id}` brings it back."


def _render_strengthened(result: Strengthened) -> str:
    return result.message


@registry.operation(
    "memory.edit",
    permission="write",
    effect="write",
    example={"id": EXAMPLE_ID, "content": "Ada prefers TypeScript 5 over JavaScript."},
    positional=("id", "content"),
    render=_render_changed,
)
def memory_edit(
    call: Call,
    id: MemoryId,
    content: Annotated[str, Field(description="The new text.")],
    secrets: Secrets = None,
) -> Changed:
    """Replace a memory's text; the old text stays in its history as a revision.

    Links and other wordings are kept. A window that the old words gave ends with them. Within five minutes
    after the memory was recalled (found, reviewed, promoted, called useful) an edit is a correction:
    `reconsolidated` is true, and it counts as a successful review. At any other time its strength is kept.
    """
    record, changed, reconsolidated = edit(call, id, screen_text(call, content, policy=secrets))
    return Changed(
        action="edit",
        changed=changed,
        reconsolidated=reconsolidated,
        message=archived_note(record.memory),
        node=view(record, call.engine.now()),
    )


@registry.operation(
    "memory.tag",
    permission="write",
    effect="write",
    example={"id": EXAMPLE_ID, "add": ["language"], "remove": ["draft"]},
    positional=("id",),
    render=_render_changed,
)
def memory_tag(
    call: Call,
    id: MemoryId,
    add: Annotated[Tags, Field(description="Tags to add.")] = [],  # noqa: B006  pydantic copies defaults
    remove: Annotated[Tags, Field(description="Tags to remove.")] = [],  # noqa: B006  pydantic copies defaults
    secrets: Secrets = None,
) -> Changed:
    """Add tags to a memory, or take them off."""
    if not add and not remove:
        raise InvalidInput("Neither `add` nor `remove` is given.", hint="Say which tags to change.")
    both = [tag for tag in add if tag in remove]
    if both:
        raise InvalidInput(
            f"`add` and `remove` both name {', '.join(both)}.",
            hint="Name a tag in one of them only.",
            details={"tags": both},
        )

    added = screen_fields(call, {"add": add}, secrets).get("add", add)

    def retagged(memory: Memory) -> Memory:
        kept = [tag for tag in memory.tags if tag not in remove]
        return replace(memory, tags=tuple(dict.fromkeys((*kept, *added))))

    return _revised(call, "tag", id, retagged, reason="tag")


@registry.operation(
    "memory.rename_tag",
    permission="write",
    effect="write",
    example={"tag": "preference", "to": "preferences"},
    positional=("tag", "to"),
    render=lambda r: f"{r.tag} is now {r.renamed_to} on {count(r.memories, 'memory')}.",
)
def memory_rename_tag(
    call: Call,
    tag: Annotated[str, Field(min_length=1, description="The tag as it is.")],
    to: Annotated[str, Field(min_length=1, description="What it shall be called.")],
    scope: Annotated[
        Scope | None, Field(description="This scope and what is below it; / is everything. Default: yours.")
    ] = None,
    secrets: Secrets = None,
) -> Renamed:
    """Rename a tag on every memory here that carries it; a tag that exists already is joined."""
    place = used(call, scope)
    name = str(screen_fields(call, {"to": to}, secrets).get("to", to)).strip()
    changed = rename_tag(call, tag, name, Filter(scope=place, archived=None))
    return Renamed(tag=tag, renamed_to=name, memories=changed, scope=place)


@registry.operation(
    "memory.pin",
    permission="write",
    effect="write",
    example={"id": EXAMPLE_ID},
    positional=("id",),
    render=_render_changed,
)
def memory_pin(call: Call, id: MemoryId) -> Changed:
    """Pin a memory: no automatic path changes, supersedes or removes it."""
    return _revised(call, "pin", id, lambda memory: replace(memory, pinned=True), reason="pin")


@registry.operation(
    "memory.unpin",
    permission="write",
    effect="write",
    example={"id": EXAMPLE_ID},
    positional=("id",),
    render=_render_changed,
)
def memory_unpin(call: Call, id: MemoryId) -> Changed:
    """Unpin a memory."""
    return _revised(call, "unpin", id, lambda memory: replace(memory, pinned=False), reason="unpin")


class ValidityArguments(Arguments):
    """A memory, and the ends of its validity to change."""

    id: MemoryId
    valid_from: Annotated[Moment | None, Field(description="From when on it is true; null: always was.")] = (
        None
    )
    valid_until: Annotated[
        EndMoment | None,
        Field(description="Until when it is true (a date includes that day); null: still is."),
    ] = None


@registry.operation(
    "memory.set_validity",
    permission="write",
    effect="write",
    example={"id": EXAMPLE_ID, "valid_from": "2026-01-01", "valid_until": "2026-12-31"},
    positional=("id",),
    render=_render_changed,
)
def memory_set_validity(call: Call, told: ValidityArguments) -> Changed:
    """Say from when until when a memory is true.

    An end that is left out stays as it is, and null opens it; with neither, both are open: it holds again.
    """
    ends = ("valid_from", "valid_until")
    given = {name: getattr(told, name) for name in ends if name in told.model_fields_set}
    given = given or dict.fromkeys(ends)

    def limited(memory: Memory) -> Memory:
        until = given.get("valid_until", memory.valid_until)
        check_some_time(given.get("valid_from", memory.valid_from), until)
        # A memory that is true again is not superseded any more.
        return replace(memory, **given, superseded_by=memory.superseded_by if until is not None else None)

    return _revised(call, "set_validity", told.id, limited, reason="validity")


def _revised(
    call: Call, action: str, memory_id: str, change: Callable[[Memory], Memory], *, reason: str
) -> Changed:
    record, changed = revise(call, memory_id, change, reason=reason)
    note, node = archived_note(record.memory), view(record, call.engine.now())
    return Changed(action=action, changed=changed, message=note, node=node)


@registry.operation(
    "memory.promote",
    permission="write",
    effect="write",
    example={"id": EXAMPLE_ID, "reason": "It solved the problem."},
    positional=("id",),
    render=_render_strengthened,
)
def memory_promote(call: Call, id: MemoryId, reason: Reason = None) -> Strengthened:
    """Say that a memory was right or helpful: it is remembered longer and ranks higher.

    That ends its suppression and brings it back from the archive.
    """
    return _strengthened(call, id, Evidence.PROMOTED)


@registry.operation(
    "memory.demote",
    permission="write",
    effect="write",
    example={"id": EXAMPLE_ID, "reason": "It was out of date."},
    positional=("id",),
    render=_render_strengthened,
)
def memory_demote(call: Call, id: MemoryId, reason: Reason = None) -> Strengthened:
    """Say that a memory was wrong or unhelpful: it fades sooner and ranks lower. It is not deleted."""
    return _strengthened(call, id, Evidence.DEMOTED)


@registry.operation(
    "memory.useful",
    permission="write",
    effect="write",
    example={"id": EXAMPLE_ID},
    positional=("id",),
    render=_render_strengthened,
)
def memory_useful(call: Call, id: MemoryId) -> Strengthened:
    """Say that a memory that was shown was used."""
    return _strengthened(call, id, Evidence.USEFUL)


@registry.operation(
    "mark_reviewed",
    permission="write",
    effect="write",
    example={"id": EXAMPLE_ID, "rating": 3},
    positional=("id", "rating"),
    command="review",
    title="Review a memory",
    render=_render_strengthened,
)
def mark_reviewed(
    call: Call,
    id: MemoryId,
    rating: Annotated[int, Field(ge=1, le=4, description="1 again, 2 hard, 3 good, 4 easy.")],
) -> Strengthened:
    """Record a review: how well a memory was recalled. The next one is scheduled by FSRS-6."""
    return _strengthened(call, id, GRADES[rating])


def _strengthened(call: Call, memory_id: str, evidence: Evidence) -> Strengthened:
    result = give_feedback(call, memory_id, evidence)
    told = (
        f"Retention {percent(result.retention_before)} → {percent(result.retention_after)}, "
        f"stability {result.before.strength.stability:.1f} → {result.after.strength.stability:.1f} days."
    )
    return Strengthened(
        action=evidence.value,
        id=memory_id,
        before=_numbers(result.before, result.retention_before),
        after=_numbers(result.after, result.retention_after),
        next_review=result.after.strength.due_at,
        message=" ".join([told, *_standing(result)]),
    )


def _standing(result: FeedbackResult) -> Iterator[str]:
    """What a vote did to whether a memory comes to mind."""
    before, after = result.before.memory, result.after.memory
    if before.suppression_count and not after.suppression_count:
        yield "It is not suppressed any more."
    if before.archived_at is not None and after.archived_at is None:
        yield "It is back from the archive."
    note = archived_note(after)
    if note:
        yield note


def _numbers(record: Record, retention: float) -> dict[str, float]:
    strength = record.strength
    return {
        "retention": round(retention, 4),
        "stability": round(strength.stability, 4),
        "difficulty": round(strength.difficulty, 4),
        "storage": round(strength.storage, 4),
        "reps": strength.reps,
        "lapses": strength.lapses,
        "timesUseful": strength.times_useful,
    }
