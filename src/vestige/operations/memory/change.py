"""Operations that change a memory: the writing actions of the tool `memory`, and `mark_reviewed`."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Annotated

from pydantic import Field

from vestige.core.errors import Conflict, InvalidInput
from vestige.core.models import Evidence, Filter, Memory, Record
from vestige.engine.context import Call, require_writable
from vestige.engine.ingest.secrets import screen_fields, screen_text
from vestige.engine.memory.bulk import MOVED, moved_to, rename_tag
from vestige.engine.memory.feedback import FeedbackResult, give_feedback
from vestige.engine.reactions.reconsolidation import edit
from vestige.engine.revise import revise
from vestige.operations.memory.read import EXAMPLE_ID
from vestige.operations.registry.arguments import (
    ComingEnd,
    MemoryId,
    Moment,
    Reason,
    Scope,
    ScopeTree,
    Tags,
    Wire,
    ZonedArguments,
    check_some_time,
)
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import used
from vestige.operations.shared.memory_view import MemoryView, memory_card, view
from vestige.operations.shared.secrets import Secrets
from vestige.operations.shared.text import count, percent, strength

GRADES = {1: Evidence.AGAIN, 2: Evidence.HARD, 3: Evidence.GOOD, 4: Evidence.EASY}


class Changed(Wire):
    """A memory after a change.

    `reconsolidated`: the memory had just been recalled, so the edit counts as a correction and a review.
    `message`: a note, such as that the memory is archived.
    """

    action: str
    success: bool = True
    changed: bool
    reconsolidated: bool | None = None
    message: str | None = None
    node: MemoryView


class Strengthened(Wire):
    action: str
    success: bool = True
    id: str
    before: dict[str, float]
    after: dict[str, float]
    next_review: datetime
    message: str


class Renamed(Wire):
    action: str = "rename_tag"
    success: bool = True
    tag: str
    renamed_to: str
    memories: int
    scope: str


def _render_strengthened(result: Strengthened) -> str:
    """The message with strengths as lists show them."""
    before, after = (strength(one["retention"]) for one in (result.before, result.after))
    _, stability, rest = result.message.partition("stability ")
    return f"Strength {before} → {after}, {stability}{rest}"


def _render_changed(result: Changed) -> str:
    head = "Changed." if result.changed else "No change: it was already so."
    if result.reconsolidated:
        head = "Corrected and strengthened: it had just been recalled."
    return f"{' '.join(filter(None, (head, result.message)))}\n\n{memory_card(result.node)}"


def archived_note(memory: Memory) -> str | None:
    """A note for callers that change an archived memory."""
    if memory.archived_at is None:
        return None
    return f"It is archived and no search finds it; `archive undo {memory.id}` restores it."


@registry.operation(
    "memory.edit",
    permission="write",
    example={"id": EXAMPLE_ID, "content": "Ada prefers TypeScript 5 over JavaScript."},
    render=_render_changed,
)
def memory_edit(
    call: Call,
    id: MemoryId,
    content: Annotated[str, Field(description="The new text.")],
    secrets: Secrets = None,
) -> Changed:
    """Replace a memory's text; the old text stays in its history as a revision.

    Links and other wordings are kept. A validity window that came from the old text is dropped. An edit
    within five minutes after the memory was recalled (found, reviewed, promoted, marked useful) is a
    correction: `reconsolidated` is true and it counts as a successful review. Otherwise its strength is kept.
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
    example={"id": EXAMPLE_ID, "add": ["language"], "remove": ["draft"]},
    render=_render_changed,
)
def memory_tag(
    call: Call,
    id: MemoryId,
    add: Annotated[Tags, Field(description="Tags to add.")] = [],  # noqa: B006  pydantic copies defaults
    remove: Annotated[Tags, Field(description="Tags to remove.")] = [],  # noqa: B006  pydantic copies defaults
    secrets: Secrets = None,
) -> Changed:
    """Add or remove tags of a memory."""
    if not add and not remove:
        raise InvalidInput("Neither `add` nor `remove` is given.", hint="Give the tags to add or remove.")
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
    example={"tag": "preference", "to": "preferences"},
    render=lambda r: f"{r.tag} is now {r.renamed_to} on {count(r.memories, 'memory')}.",
)
def memory_rename_tag(
    call: Call,
    tag: Annotated[str, Field(min_length=1, description="Current name of the tag.")],
    to: Annotated[str, Field(min_length=1, description="New name of the tag.")],
    scope: ScopeTree = None,
    secrets: Secrets = None,
) -> Renamed:
    """Rename a tag on every memory in the scope; if the new name exists, the two tags are merged."""
    place = used(call, scope)
    name = str(screen_fields(call, {"to": to}, secrets).get("to", to)).strip()
    changed = rename_tag(call, tag, name, Filter(scope=place, archived=None))
    return Renamed(tag=tag, renamed_to=name, memories=changed, scope=place)


@registry.operation(
    "memory.move",
    permission="write",
    example={"id": EXAMPLE_ID, "to": "/project/garden"},
    render=_render_changed,
)
def memory_move(
    call: Call,
    id: MemoryId,
    to: Annotated[Scope, Field(description="The scope to move to.")],
    secrets: Secrets = None,
) -> Changed:
    """Move a memory to another scope, which the caller must have access to; move it back to undo.

    Its text, strength, links and history stay. Callers with access to the former scope only lose sight of it;
    those of the new scope see it as it is, without its past. What is read from a file stays.
    `memory bulk` moves many.
    """
    scope = str(screen_fields(call, {"to": to}, secrets).get("to", to))
    require_writable(call, scope)

    def moved(memory: Memory) -> Memory:
        there = moved_to(memory, scope)
        if isinstance(there, str):
            raise Conflict(
                f"The memory {id} is {there}, so it stays there.",
                hint="Move the text to a file of the other project instead.",
                details={"id": id},
            )
        return there

    return _revised(call, "move", id, moved, reason=MOVED)


@registry.operation("memory.pin", permission="write", example={"id": EXAMPLE_ID}, render=_render_changed)
def memory_pin(call: Call, id: MemoryId) -> Changed:
    """Pin a memory. No automatic process changes, supersedes or archives it then."""
    return _revised(call, "pin", id, lambda memory: replace(memory, pinned=True), reason="pin")


@registry.operation("memory.unpin", permission="write", example={"id": EXAMPLE_ID}, render=_render_changed)
def memory_unpin(call: Call, id: MemoryId) -> Changed:
    """Unpin a memory."""
    return _revised(call, "unpin", id, lambda memory: replace(memory, pinned=False), reason="unpin")


class ValidityArguments(ZonedArguments):
    """A memory, and the ends of its validity to change."""

    id: MemoryId
    valid_from: Moment | None = Field(None, description="Start of validity; null: no start.")
    valid_until: ComingEnd | None = Field(
        None, description="End of validity (a bare date includes that day); null: no end."
    )


@registry.operation(
    "memory.set_validity",
    permission="write",
    example={"id": EXAMPLE_ID, "valid_from": "2026-01-01", "valid_until": "2026-12-31"},
    render=_render_changed,
)
def memory_set_validity(call: Call, arguments: ValidityArguments) -> Changed:
    """Set the time range in which a memory is true.

    An omitted end stays as it is; null removes it. With neither, both ends are removed and it is true again.
    """
    ends = ("valid_from", "valid_until")
    given = {name: getattr(arguments, name) for name in ends if name in arguments.model_fields_set}
    given = given or dict.fromkeys(ends)

    def limited(memory: Memory) -> Memory:
        until = given.get("valid_until", memory.valid_until)
        check_some_time(given.get("valid_from", memory.valid_from), until)
        # A memory that is true again is no longer superseded.
        return replace(memory, **given, superseded_by=memory.superseded_by if until is not None else None)

    return _revised(call, "set_validity", arguments.id, limited, reason="validity")


def _revised(
    call: Call, action: str, memory_id: str, change: Callable[[Memory], Memory], *, reason: str
) -> Changed:
    record, changed = revise(call, memory_id, change, reason=reason)
    note, node = archived_note(record.memory), view(record, call.engine.now())
    return Changed(action=action, changed=changed, message=note, node=node)


@registry.operation(
    "memory.promote",
    permission="write",
    example={"id": EXAMPLE_ID, "reason": "It solved the problem."},
    render=_render_strengthened,
)
def memory_promote(call: Call, id: MemoryId, reason: Reason = None) -> Strengthened:
    """Rate a memory as right or helpful: it is kept longer and ranks higher.

    This also ends its suppression and restores it from the archive.
    """
    return _strengthened(call, id, Evidence.PROMOTED)


@registry.operation(
    "memory.demote",
    permission="write",
    example={"id": EXAMPLE_ID, "reason": "It was out of date."},
    render=_render_strengthened,
)
def memory_demote(call: Call, id: MemoryId, reason: Reason = None) -> Strengthened:
    """Rate a memory as wrong or unhelpful: it fades sooner and ranks lower. It is not deleted."""
    return _strengthened(call, id, Evidence.DEMOTED)


@registry.operation(
    "memory.useful", permission="write", example={"id": EXAMPLE_ID}, render=_render_strengthened
)
def memory_useful(call: Call, id: MemoryId) -> Strengthened:
    """Record that a memory shown in an answer was used."""
    return _strengthened(call, id, Evidence.USEFUL)


@registry.operation(
    "mark_reviewed",
    permission="write",
    example={"id": EXAMPLE_ID, "rating": 3},
    command="grade",
    title="Review a memory",
    render=_render_strengthened,
)
def mark_reviewed(
    call: Call,
    id: MemoryId,
    rating: Annotated[int, Field(ge=1, le=4, description="1 again, 2 hard, 3 good, 4 easy.")],
) -> Strengthened:
    """Record a review: how well a memory was recalled. FSRS-6 schedules the next one."""
    return _strengthened(call, id, GRADES[rating])


def _strengthened(call: Call, memory_id: str, evidence: Evidence) -> Strengthened:
    result = give_feedback(call, memory_id, evidence)
    numbers = (
        f"Retention {percent(result.retention_before)} → {percent(result.retention_after)}, "
        f"stability {result.before.strength.stability:.1f} → {result.after.strength.stability:.1f} days."
    )
    return Strengthened(
        action=evidence.value,
        id=memory_id,
        before=_numbers(result.before, result.retention_before),
        after=_numbers(result.after, result.retention_after),
        next_review=result.after.strength.due_at,
        message=" ".join([numbers, *_visibility_notes(result)]),
    )


def _visibility_notes(result: FeedbackResult) -> Iterator[str]:
    """How a rating changed suppression and archiving."""
    before, after = result.before.memory, result.after.memory
    if before.suppression_count and not after.suppression_count:
        yield "It is no longer suppressed."
    if before.archived_at is not None and after.archived_at is None:
        yield "It was restored from the archive."
    note = archived_note(after)
    if note:
        yield note


def _numbers(record: Record, retention: float) -> dict[str, float]:
    state = record.strength
    return {
        "retention": round(retention, 4),
        "stability": round(state.stability, 4),
        "difficulty": round(state.difficulty, 4),
        "storage": round(state.storage, 4),
        "reps": state.reps,
        "lapses": state.lapses,
        "timesUseful": state.times_useful,
    }
