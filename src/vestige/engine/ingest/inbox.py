"""The review inbox: texts that wait for a person's decision instead of being stored.

A waiting text is a document, not a memory: no search, count, graph, dream, gate or statistic reads documents
of this kind, so it cannot be found or move a ranking (ADR 0057).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from vestige.cognition.evidence.injection.find import suspicious
from vestige.core.documents import PENDING, WAITING, Document
from vestige.core.errors import InvalidInput
from vestige.core.events import EventScope, ReviewWaiting
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, Access, Memory, covers, utc
from vestige.core.origin import Origin
from vestige.engine.context import Call
from vestige.engine.ingest.batch import Draft, HeldText, IngestBatch, NewText, origin_of
from vestige.engine.ingest.orders import MEANING, new_orders, spoken_orders
from vestige.engine.ingest.secrets import SCREENED, texts_in
from vestige.engine.revise import find_document
from vestige.store.contract.changes import Embedded, Put

Outcome = Literal["approved", "merged", "rejected"]
Status = Literal["waiting", "approved", "merged", "rejected"]
ASKED = "The caller asked for a review."
POLICIES, POLICIES_ID = "review_policy", "chosen"
"""The document of the policies that were chosen."""
POLICY = "Everything that the user did not write waits in this scope."

_LISTS = ("tags", "domains")
_MOMENTS = ("occurred_at", "valid_from", "valid_until")
_KEPT = (
    "tags", "node_type", "source", "author", "agent_id", "session_id", "thread", "position", "occurred_at",
    "valid_from", "valid_until", "pinned", "domains", "metadata", "force_create",
)  # fmt: skip
"""The fields of a text that wait with it, if they were given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingText:
    """A text in the inbox. `flags` are the kinds of orders or hidden text found in it, `original` its words
    before it was edited; `memory_id` and `decision` say what it became. `stored` is what a memory in
    quarantine was (engine/care/quarantine.py)."""

    id: str
    scope: str
    text: NewText
    origin: str
    reason: str
    created_at: datetime
    updated_at: datetime
    version: int = 1
    flags: tuple[str, ...] = ()
    original: str | None = None
    outcome: Outcome | None = None
    resolved_at: datetime | None = None
    memory_id: str | None = None
    decision: str | None = None
    stored: Mapping[str, Any] | None = None

    @property
    def status(self) -> str:
        return self.outcome or WAITING


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Why a text has to wait, and the kinds of orders or hidden text found in it."""

    reason: str
    flags: tuple[str, ...] = ()


def reason_to_wait(call: Call, text: NewText, policy: str) -> Wait | None:
    """Why a text has to wait for a review by the policy of its scope; None if it is stored at once."""
    origin = origin_of(call, text)
    if text.hold is not None:
        return Wait(reason=text.hold, flags=flags_of(call, text, origin))
    flags = () if policy == "off" else _by_rules(text, origin)
    if flags:
        return Wait(reason=why_flagged(flags), flags=flags)
    if policy == "all" and origin != Origin.USER:
        return Wait(reason=POLICY, flags=flags_of(call, text, origin))
    return None


def meaning_to_wait(draft: Draft, made: Embedded, policy: str) -> Wait | None:
    """Why a text in which the rules found nothing has to wait, by the vectors that were made of it."""
    if policy == "off" or not new_orders(draft.memory, made):
        return None
    return Wait(reason=why_flagged(MEANING), flags=MEANING)


def flags_of(call: Call, text: NewText, origin: str | None) -> tuple[str, ...]:
    """What a text of this origin tries to do to an agent: by the rules in any of its fields, else by the
    learned judgement of its content."""
    return _by_rules(text, origin) or (MEANING if spoken_orders(call, [text.content], origin) else ())


def _by_rules(text: NewText, origin: str | None) -> tuple[str, ...]:
    return flags_in([getattr(text, name) for name in SCREENED], origin)


def flags_in(values: object, origin: str | None) -> tuple[str, ...]:
    """What the rules find in any values: texts, lists, objects."""
    if origin == Origin.USER:
        return ()
    found = (suspicious(one, origin) for one in texts_in(values))
    return tuple(dict.fromkeys(kind for kinds in found for kind in kinds))


def flags_by_all(call: Call, values: object, origin: str | None) -> tuple[str, ...]:
    """What the rules find in any values, else what the learned judgement finds in their texts."""
    return flags_in(values, origin) or (MEANING if spoken_orders(call, texts_in(values), origin) else ())


def why_flagged(flags: Sequence[str]) -> str:
    return f"It may give orders to an agent or hide something ({', '.join(flags)})."


def refuse_orders(call: Call, values: object, scope: str) -> None:
    """Raise InvalidInput for texts (as in `flags_in`) that would have to wait, where nothing can wait."""
    flags = flags_by_all(call, values, call.origin.value)
    if flags and policy_of(call, scope) != "off":  # where nothing was found, no store is needed
        raise InvalidInput(
            f"The text was refused. {why_flagged(flags)}",
            hint="Store it with `smart_ingest`: it waits there until the user decides about it.",
            details={"flags": list(flags)},
        )


def hold(batch: IngestBatch, draft: Draft, text: NewText, wait: Wait) -> HeldText:
    """Put a text into the inbox, as a part of the batch."""
    call, memory = batch.call, draft.memory
    kept = replace(text, scope=memory.scope, domains=memory.domains, hold=None)
    waiting = PendingText(
        id=memory.id,
        scope=memory.scope,
        text=replace(kept, given=text.given | ({"domains"} if memory.domains else set())),
        origin=origin_of(call, text),
        reason=wait.reason,
        flags=wait.flags,
        created_at=batch.now,
        updated_at=batch.now,
    )
    batch.held.append(Put(document=document_of(waiting)))
    batch.events.append(waiting_event(waiting, batch.now))
    return HeldText(
        pending_id=waiting.id,
        scope=memory.scope,
        scope_reason=draft.scope_reason,
        reason=wait.reason,
        flags=wait.flags,
    )


def pending_import(memory: Memory, flags: tuple[str, ...], now: datetime) -> PendingText:
    """A memory of another system as a text that waits under its id."""
    given = {name: getattr(memory, name) for name in _KEPT if hasattr(memory, name)}
    stated = {name: value for name, value in given.items() if value not in (None, (), False, {})}
    text = NewText(content=memory.content, scope=memory.scope, **stated, given=frozenset(stated))
    return PendingText(
        id=memory.id,
        scope=memory.scope,
        text=replace(text, metadata=dict(text.metadata)),
        origin=memory.origin or Origin.IMPORT.value,
        reason=why_flagged(flags),
        flags=flags,
        created_at=memory.created_at,
        updated_at=now,
    )


def waiting_event(waiting: PendingText, at: datetime) -> ReviewWaiting:
    """The event that a text waits. It does not quote the text."""
    return ReviewWaiting(
        timestamp=at, scopes=(EventScope(scope=waiting.scope),), id=waiting.id, origin=waiting.origin
    )


def inbox_access(call: Call) -> Access:
    """The access by which a caller puts texts into the inbox: they belong to no domain."""
    return Access(scopes=call.access.scopes)


# -- Which texts wait in a scope: as chosen in a document of the store that all processes share, or else by
# the settings. The document stays in its store: a sync or an import must not decide what waits here.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewPolicy:
    """The policy of a scope and what is below it, and whether it was chosen or comes from the settings."""

    scope: str
    policy: str
    chosen: bool


def policy_of(call: Call, scope: str) -> str:
    """The policy that decides what waits in a scope."""
    return policies_of(call, [scope])[0]


def policies_of(call: Call, scopes: Iterable[str]) -> list[str]:
    """The policies of some scopes, all as they are now."""
    known = policies_by_scope(call, chosen_policies(call))
    return [nearest_policy(known, scope).policy for scope in scopes]


def chosen_policies(call: Call) -> Mapping[str, str]:
    held = find_document(call, POLICIES, POLICIES_ID, access=EVERYTHING)
    return held.body["scopes"] if held else {}


def policies_by_scope(call: Call, chosen: Mapping[str, str]) -> dict[str, ReviewPolicy]:
    """All policies by their scopes; a chosen one replaces that of the settings."""
    set_before = call.engine.settings.review.by_scope()
    known = {name: ReviewPolicy(scope=name, policy=one, chosen=False) for name, one in set_before.items()}
    return known | {name: ReviewPolicy(scope=name, policy=one, chosen=True) for name, one in chosen.items()}


def nearest_policy(known: Mapping[str, ReviewPolicy], scope: str) -> ReviewPolicy:
    return known[max((one for one in known if covers(one, scope)), key=len)]


# -- As documents


def document_of(waiting: PendingText) -> Document:
    given = {name: _plain(getattr(waiting.text, name)) for name in _KEPT if name in waiting.text.given}
    body: dict[str, Any] = {
        "content": waiting.text.content,
        "origin": waiting.origin,
        "reason": waiting.reason,
        "terms": {waiting.status: True},
    }
    resolved = None if waiting.resolved_at is None else waiting.resolved_at.isoformat()
    optional = {
        "given": given,
        "flags": list(waiting.flags),
        "original": waiting.original,
        "outcome": waiting.outcome,
        "resolved": resolved,
        "memory": waiting.memory_id,
        "decision": waiting.decision,
        "stored": waiting.stored,
    }
    return Document(
        kind=PENDING,
        id=waiting.id,
        body=body | {name: value for name, value in optional.items() if value},
        scope=waiting.scope,
        cites=() if waiting.memory_id is None else (waiting.memory_id,),
        version=waiting.version,
        created_at=waiting.created_at,
        updated_at=waiting.updated_at,
    )


def pending_of(document: Document) -> PendingText:
    body = document.body
    resolved = body.get("resolved")
    return PendingText(
        id=document.id,
        scope=document.scope,
        text=_text_of(body, document.scope),
        origin=body["origin"],
        reason=body["reason"],
        created_at=document.created_at,
        updated_at=document.updated_at,
        version=document.version,
        flags=tuple(body.get("flags", ())),
        original=body.get("original"),
        outcome=body.get("outcome"),
        resolved_at=None if resolved is None else utc(datetime.fromisoformat(resolved)),
        memory_id=body.get("memory"),
        decision=body.get("decision"),
        stored=body.get("stored"),
    )


def _text_of(body: Mapping[str, Any], scope: str) -> NewText:  # Any: JSON
    given = {name: value for name, value in body.get("given", {}).items() if name in _KEPT}
    lists = {name: tuple(given[name]) for name in _LISTS if name in given}
    moments = {name: utc(datetime.fromisoformat(given[name])) for name in _MOMENTS if given.get(name)}
    return NewText(
        content=body["content"],
        scope=scope,
        origin=body["origin"],
        **{**given, **lists, **moments},
        given=frozenset(given) | {"content", "scope"},
    )


def _plain(value: Any) -> Any:  # Any: a field of a text, as JSON
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value
