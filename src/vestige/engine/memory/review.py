"""Deciding about the texts in the review inbox: approve, edit, merge, reject, and undo."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from vestige.cognition.gate.decide import Create
from vestige.cognition.text.analyser import fingerprint
from vestige.cognition.time.validity import reworded
from vestige.core.documents import PENDING
from vestige.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Evidence, Memory, check_content
from vestige.core.origin import lowest
from vestige.engine.care.quarantine import restored
from vestige.engine.context import Call
from vestige.engine.ingest.batch import Ingested
from vestige.engine.ingest.inbox import PendingText, Status, document_of, flags_of, pending_of, refuse_orders
from vestige.engine.ingest.ingest import Approval, ingest
from vestige.engine.ingest.secrets import screen_fields, screen_text
from vestige.engine.memory.delete import forget
from vestige.engine.revise import (
    changed_fields,
    created_event,
    find_document,
    load,
    next_revision,
    not_before,
    retry_on_conflict,
    revision,
    updated_event,
)
from vestige.store.contract.changes import Add, Change, Drop, Put, RecordEvidence

REVIEWED = "reviewed"
"""The reason of the revision of a memory that a text was merged into."""
RESTORED = "It was a memory before the quarantine."
ADDING = ("create", "merge", "supersede")
"""Decisions of the gate that added a memory, which an undo can take back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxPage:
    """Some texts of the inbox, and how many there are."""

    texts: tuple[PendingText, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """An approved text and what the gate decided about it."""

    text: PendingText
    result: Ingested


def inbox(call: Call, status: Status | None, scope: str | None, *, limit: int, offset: int) -> InboxPage:
    """The texts with a status (None: all), the last one changed first."""
    terms = None if status is None else [status]
    read = partial(call.engine.store.documents, PENDING, access=call.access, terms=terms, scope=scope)
    total = call.engine.store.count_documents(PENDING, access=call.access, terms=terms, scope=scope)
    return InboxPage(texts=tuple(pending_of(one) for one in read(limit=limit, offset=offset)), total=total)


def find(call: Call, pending_id: str) -> PendingText:
    found = find_document(call, PENDING, pending_id)
    if found is None:
        raise NotFound(
            f"There is no text {pending_id} in the review inbox.",
            hint="Find the right id with `review` and the action `list`.",
            details={"id": pending_id},
        )
    return pending_of(found)


def is_withheld(call: Call, text: PendingText) -> bool:
    """Whether a text must not be shown to this caller, nor decided by it: it may give orders to an agent, and
    an agent would read the answer."""
    return bool(text.flags) and call.in_context


def approve(call: Call, pending_id: str) -> Approved:
    """Store a waiting text as if it came now: the gate decides what it becomes. A memory in quarantine comes
    back as it was."""
    found = _to_decide(call, pending_id)
    if found.stored is not None:
        return retry_on_conflict(call, partial(_restore, call, pending_id))
    done: list[Approved] = []

    def resolve(result: Ingested) -> list[Change]:
        present = _to_decide(call, pending_id)
        if present.text != found.text:
            raise Conflict("The text was edited meanwhile.", hint="Read it again, then decide.")
        decision = type(result.decision).__name__.lower()
        text = replace(present, outcome="approved", memory_id=result.memory_id, decision=decision)
        put = _next(call, text, resolved=True)
        done.append(Approved(text=pending_of(put.document), result=result))
        return [put]

    text = found.text
    said = replace(text, occurred_at=text.occurred_at or found.created_at)
    ingest(call, [said], secrets="allow", approval=Approval(changes=resolve))
    return done[-1]


def _restore(call: Call, pending_id: str) -> Approved:
    found = _to_decide(call, pending_id)
    memory, changes = restored(call, found, found.stored or {})
    decided = replace(found, outcome="approved", memory_id=memory.id, decision=Create.__name__.lower())
    put = _next(call, decided, resolved=True)
    call.engine.store.commit([*changes, put], access=call.access)
    call.engine.events.emit(created_event(memory, call.engine.now()))
    result = Ingested(
        memory_id=memory.id,
        scope=memory.scope,
        scope_reason="as before",
        valid_from=memory.valid_from,
        valid_until=memory.valid_until,
        decision=Create(reason=RESTORED),
        embedded=any(isinstance(one, Add) and one.embedded is not None for one in changes),
    )
    return Approved(text=pending_of(put.document), result=result)


def edit(call: Call, pending_id: str, change: Callable[[PendingText], PendingText]) -> PendingText:
    """Change a waiting text; its first wording is kept."""

    def attempt() -> PendingText:
        before = _to_decide(call, pending_id)
        after = change(before)
        check_content(after.text.content)
        edited = {name: getattr(after.text, name) for name in ("content", "tags", "node_type")}
        text = replace(after.text, **screen_fields(call, edited))
        if text == before.text:
            return before
        original = before.original or before.text.content
        origin = lowest((before.origin, call.origin.value)) or before.origin
        after = replace(
            after, text=text, original=original, origin=origin, flags=flags_of(call, text, origin)
        )
        call.engine.store.commit([_next(call, after)], access=call.access)
        return find(call, pending_id)

    return retry_on_conflict(call, attempt)


def merge(call: Call, pending_id: str, into: str, content: str | None) -> tuple[PendingText, Memory]:
    """Join a waiting text to a memory: as another wording of it, or as the new content that is given."""

    def attempt() -> tuple[PendingText, Memory]:
        text = _to_decide(call, pending_id)
        known = load(call, into).memory
        new = content
        if new is not None:
            refuse_orders(call, new, known.scope)
            new = screen_text(call, new)
        wanted = replace(_joined(known, text.text.content, new), origin=lowest((known.origin, text.origin)))
        now = call.engine.now()
        changes: list[Change] = []
        names = changed_fields(known, wanted)
        memory = next_revision(wanted, now) if names else known
        if names:
            changes.append(revision(call, memory, names, REVIEWED))
        changes.append(RecordEvidence(memory_id=into, evidence=Evidence.REINFORCED, at=now))
        changes.append(_next(call, replace(text, outcome="merged", memory_id=into), resolved=True))
        call.engine.store.commit(changes, access=call.access)
        if names:
            call.engine.events.emit(updated_event(memory, now, names))
        return find(call, pending_id), memory

    return retry_on_conflict(call, attempt)


def _joined(known: Memory, text: str, content: str | None) -> Memory:
    if content is not None:
        check_content(content)
        return replace(reworded(known, content), phrasings=())
    wordings = {fingerprint(one) for one in (known.content, *known.phrasings)}
    if fingerprint(text) in wordings:
        return known
    return replace(known, phrasings=(*known.phrasings, text))


def reject(call: Call, pending_id: str) -> PendingText:
    """Refuse a waiting text. It is kept, and `undo` lets it wait again."""

    def attempt() -> PendingText:
        text = replace(_to_decide(call, pending_id), outcome="rejected")
        call.engine.store.commit([_next(call, text, resolved=True)], access=call.access)
        return find(call, pending_id)

    return retry_on_conflict(call, attempt)


def undo(call: Call, pending_id: str) -> PendingText:
    """Let a text wait again. A memory that its approval added is deleted, and what that had superseded is
    valid again; a text that joined a memory stays there."""

    def attempt() -> PendingText:
        before = find(call, pending_id)
        added = _to_take_back(call, before)
        after = replace(before, outcome=None, resolved_at=None, memory_id=None, decision=None)
        call.engine.store.commit([_next(call, after)], access=call.access)
        if added is not None:  # second: an interrupted undo has the text twice, not never
            forget(call, added, even_pinned=True)
        return find(call, pending_id)

    return retry_on_conflict(call, attempt)


def delete(call: Call, pending_id: str) -> PendingText:
    """Erase a text from the inbox; returns what it was."""

    def attempt() -> PendingText:
        found = find(call, pending_id)
        drop = Drop(kind=PENDING, id=pending_id, at=call.engine.now())
        call.engine.store.commit([drop], access=call.access)
        return found

    return retry_on_conflict(call, attempt)


def _to_decide(call: Call, pending_id: str) -> PendingText:
    """A waiting text that this caller may decide about."""
    found = find(call, pending_id)
    if is_withheld(call, found):
        raise Forbidden(
            "This text may give orders to an agent, so an agent must not decide about it.",
            hint=f"Ask the user to run `vestige review show {pending_id}`.",
            details={"id": pending_id, "flags": list(found.flags)},
        )
    if found.outcome is not None:
        raise InvalidInput(
            f"The text {pending_id} was {found.outcome} already.",
            hint="`review` with the action `undo` lets it wait again.",
            details={"id": pending_id, "outcome": found.outcome},
        )
    return found


def _to_take_back(call: Call, text: PendingText) -> str | None:
    """The memory to delete when the decision about a text is undone; InvalidInput if it cannot be."""
    if text.outcome is None:
        raise InvalidInput(f"The text {text.id} still waits.", details={"id": text.id})
    if is_withheld(call, text):
        raise Forbidden("An agent must not decide about this text.", details={"id": text.id})
    if text.outcome == "rejected" or text.memory_id is None:
        return None
    memory = load(call, text.memory_id).memory
    if text.outcome == "merged" or text.decision not in ADDING:
        raise InvalidInput(
            f"The text became a part of the memory {memory.id}.",
            hint="`memory history` shows how it was before; `memory edit` sets its text.",
            details={"id": text.id, "memory": memory.id},
        )
    if memory.revision > 1:
        raise InvalidInput(
            f"The memory {memory.id} was changed since.",
            hint="Delete it with `memory delete`, if it is wrong.",
            details={"id": text.id, "memory": memory.id},
        )
    return memory.id


def _next(call: Call, text: PendingText, *, resolved: bool = False) -> Put:
    now = not_before(text.updated_at, call.engine.now())
    changed = replace(
        text, version=text.version + 1, updated_at=now, resolved_at=now if resolved else text.resolved_at
    )
    return Put(document=document_of(changed))
