"""Keeping a memory out of mind (`suppress`), and removing one for good (`memory delete`, `purge`)."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from vestige.cognition.fsrs.forgetting import WINDOW, penalty, reach, reversible_until
from vestige.cognition.fsrs.strength import retention_of, retrieval_of, state
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
"""How many backups and exports an answer names."""


class SuppressedView(Wire):
    """How far a memory is out of mind, and until when the last suppression can be taken back.

    `retrieval_penalty` is the share of its score that it loses in a search. The neighbours are weakened when
    the window has closed.
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
    """What was deleted.

    `revived` are memories that it had superseded or merged and that are true again; `still_in` those that
    hold words of it because of merging: what it was merged into, and what it was merged from.
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
    """What was removed. `still_in` hold words of it because of merging, `copies` are files of your own that
    may hold it: backups and exports. `lingers_in` is a file of the store that holds it until somebody who
    reads the store as it was before has ended."""

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
    effect="write",
    example={"id": EXAMPLE_ID, "reason": "It keeps coming up and does not help."},
    positional=("id",),
    title="Suppress a memory",
    render=lambda result: result.message,
)
def suppress_memory(
    call: Call,
    id: MemoryId,
    reason: Reason = None,
    reverse: Annotated[Switch, Field(description="Take the last suppression back, within 24 hours.")] = False,
) -> SuppressedView:
    """Keep a memory out of mind without deleting it; each time further.

    It ranks lower in `search` and comes back through nothing else, but is readable by its id. Its text and
    strength stay as they are, so that `reverse` restores exactly what was, for 24 hours; after that what is
    linked to it is weakened too, once. `memory promote` ends a suppression at any time.
    """
    done = unsuppress(call, id) if reverse else suppress(call, id)
    return _suppressed_view(call, done, reverse=reverse)


def _suppressed_view(call: Call, done: Suppressed, *, reverse: bool) -> SuppressedView:
    now, memory, strength = call.engine.now(), done.after.memory, done.after.strength
    told = _reversed(done) if reverse else _suppressed(done)
    return SuppressedView(
        action="reverse" if reverse else "suppress",
        id=memory.id,
        suppression_count=memory.suppression_count,
        prior_count=done.before.memory.suppression_count,
        retrieval_penalty=round(penalty(memory.suppression_count), 4),
        state=state(reach(done.after, now)).value,
        accessibility=round(reach(done.after, now), 4),
        retention=round(retention_of(strength, now), 4),
        retrieval=round(retrieval_of(strength, now), 4),
        stability=round(strength.stability, 4),
        estimated_cascade_neighbors=None if reverse else done.neighbours,
        reversible_until=None if reverse else reversible_until(memory),
        labile_window_hours=int(WINDOW.total_seconds() // 3600),
        message=" ".join(filter(None, (told, archived_note(memory)))),
    )


def _suppressed(done: Suppressed) -> str:
    memory = done.after.memory
    lost = percent(penalty(memory.suppression_count))
    return (
        f"Suppressed {memory.id}: it loses {lost} of its score in searches and comes up nowhere else. "
        f"Until {day(reversible_until(memory))} UTC it can be taken back; "
        f"then {count(done.neighbours, 'neighbour')} will be weakened."
    )


def _reversed(done: Suppressed) -> str:
    left = done.after.memory.suppression_count
    freed = "not suppressed any more" if done.changed else "as it was"
    said = f"suppressed {count(left, 'time')}, as before" if left else freed
    rest = " What else happened to it meanwhile stays." if done.changed else ""
    return f"Taken back for {done.after.memory.id}: it is {said}.{rest}"


@registry.operation(
    "memory.delete",
    permission="write",
    effect="delete",
    example={"id": EXAMPLE_ID},
    positional=("id",),
    render=lambda result: result.message,
)
def memory_delete(
    call: Call,
    id: MemoryId,
    even_pinned: Annotated[Switch, Field(description="Delete it although it is pinned.")] = False,
    with_merges: Annotated[
        Switch, Field(description="Also delete what it was merged into; their other parts live again.")
    ] = False,
    with_parts: Annotated[Switch, Field(description="Also delete what it was merged from.")] = False,
) -> Deleted:
    """Delete a memory for good: its text, revisions, wordings, vectors and links.

    Only a mark without content stays, so that it does not come back from elsewhere. What the memory had
    superseded or merged is true again. The answer names what still holds its words because of merging
    (`still_in`). To let a wrong memory fade instead, use `demote`; to correct it, `edit` it or remember the
    right thing.
    """
    done = forget(call, id, even_pinned=even_pinned, with_merges=with_merges, with_parts=with_parts)
    others = [one for one in done.deleted if one != id]
    return Deleted(
        id=id,
        also_deleted=others or None,
        revived=list(done.revived),
        still_in=list(done.still_in),
        message=_deletion(id, others, done),
    )


def _deletion(memory_id: str, others: list[str], done: Forgotten) -> str:
    """What was deleted and what was not, in sentences."""
    sentences = [f"Deleted {', '.join([memory_id, *others])}."]
    if done.revived:
        sentences.append(f"True again: {', '.join(done.revived)}.")
    if done.still_in:
        held = ", ".join(done.still_in)
        sentences.append(f"By merging, its words are still in {held}; delete those too if they must go.")
    return " ".join([*sentences, *_lingering(done)])


def _lingering(done: Forgotten) -> list[str]:
    """Why words are still in a file of the store, and what to do."""
    if done.lingers_in is None:
        return []
    return [
        f"Its words are still in the file {done.lingers_in}, because somebody is reading the store as it was "
        "before. They go with the first write after that has ended. To have them gone at once, stop what "
        "else uses the store (`system_status` names the processes) and run any command."
    ]


@registry.operation(
    "purge",
    permission="write",
    effect="delete",
    example={"id": EXAMPLE_ID, "confirm": True},
    positional=("id",),
    title="Purge a memory",
    render=lambda result: result.message,
)
def purge(
    call: Call,
    id: MemoryId,
    confirm: Annotated[Switch, Field(description="Must be true: purging cannot be undone.")] = False,
    even_pinned: Annotated[Switch, Field(description="Purge it although it is pinned.")] = False,
    with_merges: Annotated[
        Switch, Field(description="Also purge what it was merged into; their other parts live again.")
    ] = False,
    with_parts: Annotated[Switch, Field(description="Also purge what it was merged from.")] = False,
) -> Purged:
    """Remove a memory for good, from every file of the store; it cannot be undone.

    Text, revisions, wordings, vectors, words, links, kept answers and what was concluded from it go; a mark
    without content stays. Backups and exports are your own files: the answer names them (`copies`).
    """
    if not confirm:
        raise InvalidInput(
            "Purging removes a memory for good and cannot be undone.",
            hint="Say `confirm: true` if you mean it; `suppress` only keeps it out of mind.",
            details={"argument": "confirm"},
        )
    done = forget(call, id, even_pinned=even_pinned, with_merges=with_merges, with_parts=with_parts)
    others, kept = [one for one in done.deleted if one != id], file_copies(call)
    sentences = [f"Purged {', '.join([id, *others])}."]
    if done.revived:
        sentences.append(f"True again: {', '.join(done.revived)}.")
    if done.still_in:
        sentences.append(f"By merging, its words are still in {', '.join(done.still_in)}.")
    if kept:
        sentences.append(f"Not touched: {len(kept)} of your backups and exports, which may hold it.")
    sentences += _lingering(done)
    sentences.append("To look for its words, search with `record: false`: a search keeps what was asked for.")
    return Purged(
        id=id,
        also_purged=others or None,
        revived=list(done.revived),
        still_in=list(done.still_in),
        copies=kept[:MOST_COPIES],
        lingers_in=done.lingers_in,
        message=" ".join(sentences),
    )
