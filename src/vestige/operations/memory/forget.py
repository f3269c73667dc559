"""Hiding a memory (`suppress`) and deleting one for good (`memory delete`, `purge`)."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from vestige.cognition.fsrs.strength import retention_of, retrieval_of, state
from vestige.cognition.fsrs.suppression import WINDOW, accessibility_of, penalty, reversible_until
from vestige.core.errors import InvalidInput
from vestige.engine.context import Call
from vestige.engine.memory.delete import Forgotten, file_copies, forget
from vestige.engine.memory.suppress import Suppressed, suppress, unsuppress
from vestige.operations.memory.change import archived_note
from vestige.operations.memory.read import EXAMPLE_ID
from vestige.operations.registry.arguments import MemoryId, Reason, Switch, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import count, day, percent

MOST_COPIES = 50
"""Maximum number of backups and exports that an answer names."""


class SuppressedView(Wire):
    """How far a memory is suppressed, and until when the last suppression can be reversed.

    `retrieval_penalty` is the share of its search score that it loses. Its neighbours are weakened when the
    reversal window closes.
    """

    action: str
    success: bool = True
    id: str
    suppression_count: int
    prior_count: int
    retrieval_penalty: float
    state: str
    accessibility: float
    retention: float
    retrieval: float
    stability: float
    estimated_cascade_neighbors: int | None = None
    reversible_until: datetime | None = None
    labile_window_hours: int
    message: str


class Deleted(Wire):
    """A deletion.

    `revived` are memories that the deleted one had superseded or merged and that are true again; `still_in`
    are memories that hold its text because of merging: what it was merged into and from.
    """

    action: str = "delete"
    success: bool = True
    id: str
    deleted: bool = True
    also_deleted: list[str] | None = None
    revived: list[str]
    still_in: list[str]
    message: str


class Purged(Wire):
    """A purge. `still_in` are memories that hold its text because of merging. `copies` are your own files
    that may hold it: backups and exports. `lingers_in` is a store file that holds it until a reader of an
    older snapshot of the store finishes.
    """

    action: str = "purge"
    success: bool = True
    id: str
    also_purged: list[str] | None = None
    revived: list[str]
    still_in: list[str]
    copies: list[str]
    lingers_in: str | None = None
    message: str


@registry.operation(
    "suppress",
    permission="write",
    example={"id": EXAMPLE_ID, "reason": "It keeps coming up and does not help."},
    title="Suppress a memory",
)
def suppress_memory(
    call: Call,
    id: MemoryId,
    reason: Reason = None,
    reverse: Annotated[Switch, Field(description="Reverse the last suppression, within 24 hours.")] = False,
) -> SuppressedView:
    """Hide a memory without deleting it. Each call hides it further.

    It can still be read by its id; `search` and lists show it only when asked to include suppressed memories,
    and rank it lower. Its text and strength stay, so `reverse` restores it exactly within 24 hours; after
    that its linked memories are weakened once. `memory promote` ends a suppression at any time.
    """
    done = unsuppress(call, id) if reverse else suppress(call, id)
    return _suppressed_view(call, done, reverse=reverse)


def _suppressed_view(call: Call, done: Suppressed, *, reverse: bool) -> SuppressedView:
    now, memory, strength = call.engine.now(), done.after.memory, done.after.strength
    done_note = _reversed(done) if reverse else _suppressed(done)
    return SuppressedView(
        action="reverse" if reverse else "suppress",
        id=memory.id,
        suppression_count=memory.suppression_count,
        prior_count=done.before.memory.suppression_count,
        retrieval_penalty=round(penalty(memory.suppression_count), 4),
        state=state(accessibility_of(done.after, now)).value,
        accessibility=round(accessibility_of(done.after, now), 4),
        retention=round(retention_of(strength, now), 4),
        retrieval=round(retrieval_of(strength, now), 4),
        stability=round(strength.stability, 4),
        estimated_cascade_neighbors=None if reverse else done.neighbours,
        reversible_until=None if reverse else reversible_until(memory),
        labile_window_hours=int(WINDOW.total_seconds() // 3600),
        message=" ".join(filter(None, (done_note, archived_note(memory)))),
    )


def _suppressed(done: Suppressed) -> str:
    memory = done.after.memory
    lost = percent(penalty(memory.suppression_count))
    return (
        f"Suppressed {memory.id}: only a search with `include_suppressed` finds it, and it loses {lost} of "
        f"its score there. It can be reversed until {day(reversible_until(memory))}; then "
        f"{count(done.neighbours, 'neighbour')} will be weakened."
    )


def _reversed(done: Suppressed) -> str:
    left = done.after.memory.suppression_count
    freed = "no longer suppressed" if done.changed else "unchanged"
    said = f"suppressed {count(left, 'time')}, as before" if left else freed
    rest = " Other changes since then stay." if done.changed else ""
    return f"Reversed for {done.after.memory.id}: it is {said}.{rest}"


@registry.operation("memory.delete", permission="write", effect="delete", example={"id": EXAMPLE_ID})
def memory_delete(
    call: Call,
    id: MemoryId,
    even_pinned: Annotated[Switch, Field(description="Delete it even if it is pinned.")] = False,
    with_merges: Annotated[
        Switch, Field(description="Also delete memories it was merged into; their other parts are restored.")
    ] = False,
    with_parts: Annotated[Switch, Field(description="Also delete memories it was merged from.")] = False,
) -> Deleted:
    """Delete a memory for good: its text, revisions, wordings, vectors and links.

    Only a tombstone without content stays, so that no sync brings it back. What it had superseded or merged
    is true again. `still_in` names memories that still hold its text because of merging. To let a wrong
    memory fade instead, use `demote`; to correct it, use `edit` or ingest the right fact.
    """
    done = forget(call, id, even_pinned=even_pinned, with_merges=with_merges, with_parts=with_parts)
    return Deleted(
        id=id,
        also_deleted=[one for one in done.deleted if one != id] or None,
        revived=list(done.revived),
        still_in=list(done.still_in),
        message=" ".join(
            [*_removed("Deleted", id, done, advice="; delete those too if it must go"), *_lingering(done)]
        ),
    )


def _removed(verb: str, memory_id: str, done: Forgotten, *, advice: str = "") -> list[str]:
    """What was removed and what was not, as sentences."""
    others = [one for one in done.deleted if one != memory_id]
    sentences = [f"{verb} {', '.join([memory_id, *others])}."]
    if done.revived:
        sentences.append(f"True again: {', '.join(done.revived)}.")
    if done.still_in:
        sentences.append(f"Because of merging, its text is still in {', '.join(done.still_in)}{advice}.")
    return sentences


def _lingering(done: Forgotten) -> list[str]:
    """Why text is still in a store file, and what to do about it."""
    if done.lingers_in is None:
        return []
    return [
        f"Its text is still in the file {done.lingers_in}, because a process is reading an older snapshot "
        "of the store. The first write after that process finishes removes it. To remove it now, stop the "
        "other processes (`system_status` lists them) and run any command."
    ]


@registry.operation(
    "purge",
    permission="write",
    effect="delete",
    example={"id": EXAMPLE_ID, "confirm": True},
    title="Purge a memory",
)
def purge(
    call: Call,
    id: MemoryId,
    confirm: Annotated[Switch, Field(description="Must be true: a purge cannot be undone.")] = False,
    even_pinned: Annotated[Switch, Field(description="Purge it even if it is pinned.")] = False,
    with_merges: Annotated[
        Switch, Field(description="Also purge memories it was merged into; their other parts are restored.")
    ] = False,
    with_parts: Annotated[Switch, Field(description="Also purge memories it was merged from.")] = False,
) -> Purged:
    """Erase a memory from every file of the store; this cannot be undone.

    Removes text, revisions, wordings, vectors, index words, links, cached answers and insights drawn from it;
    a tombstone without content stays. Backups and exports are your own files: `copies` names them.
    """
    if not confirm:
        raise InvalidInput(
            "A purge erases a memory for good and cannot be undone.",
            hint="Pass `confirm: true` to proceed; `suppress` only hides it.",
            details={"argument": "confirm"},
        )
    done = forget(call, id, even_pinned=even_pinned, with_merges=with_merges, with_parts=with_parts)
    kept = file_copies(call)
    sentences = _removed("Purged", id, done)
    if kept:
        sentences.append(f"Not touched: {len(kept)} of your backups and exports, which may hold it.")
    sentences += _lingering(done)
    sentences.append(
        "To check for its words, search with `record: false`: a recorded search stores the query."
    )
    return Purged(
        id=id,
        also_purged=[one for one in done.deleted if one != id] or None,
        revived=list(done.revived),
        still_in=list(done.still_in),
        copies=kept[:MOST_COPIES],
        lingers_in=done.lingers_in,
        message=" ".join(sentences),
    )
