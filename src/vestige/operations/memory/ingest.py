"""Storing memories: `smart_ingest`."""

from collections import Counter
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Annotated, Any

from pydantic import Field, JsonValue

from vestige.cognition.gate.decide import Create, Decision, Merge, Reinforce, Supersede, Update, rival_of
from vestige.cognition.time.calendar import LATEST
from vestige.cognition.time.validity import StatedValidity, validity_told
from vestige.core.errors import Forbidden, InvalidInput, SecretFound
from vestige.core.models import EVERYTHING, Memory, covers
from vestige.engine.context import Call
from vestige.engine.ingest.batch import Draft, Ingested
from vestige.engine.ingest.ingest import Promise, Replayed, ingest
from vestige.operations.registry.arguments import (
    Arguments,
    EndMoment,
    Moment,
    Names,
    Scope,
    Tags,
    Wire,
    check_some_time,
)
from vestige.operations.registry.registry import registry
from vestige.operations.shared.secrets import Secrets, cleaned
from vestige.operations.shared.text import count, day, table

MAX_BATCH = 500


class Item(Arguments):
    """One text to remember, with its metadata."""

    content: Annotated[str, Field(description="The text to remember.")]
    tags: Annotated[Tags, Field(description="Labels to find it by.")] = []
    node_type: Annotated[
        str,
        Field(description="fact, concept, event, person, place, note, decision, state (ends by itself) …"),
    ] = "fact"
    source: Annotated[str | None, Field(description="Origin: a URL, file or system.")] = None
    scope: Annotated[Scope | None, Field(description="Scope it belongs to, such as /project/vestige.")] = None
    author: Annotated[str | None, Field(description="Author of the statement.")] = None
    agent_id: Annotated[str | None, Field(description="Agent that stores it.")] = None
    session_id: Annotated[str | None, Field(description="Session it comes from.")] = None
    thread: Annotated[
        str | None, Field(description="Conversation or document it is part of; every part is kept.")
    ] = None
    position: Annotated[int | None, Field(description="Position in the thread or source.")] = None
    occurred_at: Annotated[Moment | None, Field(description="When it happened.")] = None
    valid_from: Annotated[Moment | None, Field(description="Start of validity.")] = None
    valid_until: Annotated[
        EndMoment | None, Field(description="End of validity; a bare date includes that day.")
    ] = None
    pinned: Annotated[bool, Field(description="Exempt it from all automatic changes.")] = False
    domains: Annotated[Names, Field(description="Topics it belongs to.")] = []
    metadata: Annotated[dict[str, JsonValue], Field(description="JSON object to store with it.")] = {}
    force_create: Annotated[bool, Field(description="Always store it as a new memory.")] = False


class IngestArguments(Item):
    """One text, or several."""

    content: Annotated[str | None, Field(description="The text to remember.")] = None  # type: ignore[assignment]  # optional here: `items` may stand in for it
    items: Annotated[
        list[Item] | None,
        Field(max_length=MAX_BATCH, description="Several texts instead of one; all are written or none."),
    ] = None
    idempotency_key: Annotated[
        str | None,
        Field(min_length=1, max_length=200, description="Makes a retry safe: same key, same answer."),
    ] = None
    secrets: Secrets = None


class IngestedView(Wire):
    """The gate's decision about one text."""

    index: int | None = None
    status: str = "saved"
    decision: str
    node_id: str
    scope: str
    message: str
    reason: str
    has_embedding: bool
    similarity: float | None = None
    prediction_error: float | None = None
    importance_score: float | None = None
    conflict: str | None = None
    conflict_detail: str | None = None
    rival_id: str | None = None
    rival_preview: str | None = None
    superseded_id: str | None = None
    related_ids: list[str] | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    validity_words: str | None = None


class SmartIngested(IngestedView):
    """The answer to a single text."""

    success: bool = True
    replayed: bool = False


class BatchIngested(Wire):
    """The answer to a batch."""

    success: bool = True
    mode: str = "batch"
    summary: dict[str, int]
    results: list[IngestedView]
    replayed: bool = False


def render_ingested(result: SmartIngested | BatchIngested) -> str:
    """The decisions as text."""
    if isinstance(result, SmartIngested):
        return f"{result.message}\n{result.reason}\n{result.node_id}{_truth(result)}{_beside(result)}"
    rows = ((r.index, r.decision, r.node_id, r.reason) for r in result.results)
    return (
        f"{table(('#', 'decision', 'id', 'reason'), rows)}\n\n{count(len(result.results), 'text')}  "
        "processed."
    )


def _beside(result: IngestedView) -> str:
    if result.rival_id is None:
        return ""
    known = f"“{result.rival_preview}” ({result.rival_id})" if result.rival_preview else result.rival_id
    return f"\nCompared with: {known}"


def _truth(result: IngestedView) -> str:
    """Its validity and the words that state it, as a line; empty if unknown."""
    start = f" from {day(result.valid_from)}" if result.valid_from else ""
    end = f" until {day(result.valid_until)}" if result.valid_until else ""
    words = f" (“{result.validity_words}”)" if result.validity_words else ""
    return f"\nValid{start}{end}{words}." if start or end else ""


@registry.operation(
    "smart_ingest",
    permission="write",
    effect="write",
    example={"content": "Ada prefers TypeScript over JavaScript.", "tags": ["preference"]},
    positional=("content",),
    command="ingest",
    title="Remember",
    render=render_ingested,
)
def smart_ingest(call: Call, arguments: IngestArguments) -> SmartIngested | BatchIngested:
    """Remember a text; compares it with what is known and decides how to store it.

    The text becomes a new memory, strengthens one that says the same, revises one it extends, or supersedes
    one it corrects; the answer says which and why. Nothing is overwritten: revisions and superseded facts
    stay in the history. Turns of a `thread` are all kept. Give one `content`, or `items` for up to 500 texts
    in one transaction. A text with a key, token or password is refused unless `secrets` allows it.
    """
    arguments = _without_secrets(call, arguments)
    batch = arguments.items is not None
    now = call.engine.now()
    drafts = [_draft(call, item, index, now) for index, item in enumerate(_items(arguments))]
    promise = None
    if arguments.idempotency_key is not None:
        promise = Promise(
            key=_claim_key(call, arguments.idempotency_key),
            digest=_digest(arguments),
            answer=lambda results: _answer(results, batch).model_dump_json(),
        )
    outcome = ingest(call, drafts, promise=promise)
    if isinstance(outcome, Replayed):
        kind = BatchIngested if batch else SmartIngested
        return kind.model_validate_json(outcome.answer).model_copy(update={"replayed": True})
    return _answer(outcome, batch)


def _without_secrets(call: Call, arguments: IngestArguments) -> IngestArguments:
    """The arguments with secrets removed. No digest, event or error sees the originals."""
    clean = []
    for index, item in enumerate(_items(arguments)):
        try:
            clean.append(cleaned(call, item, _TEXTS, arguments.secrets))
        except SecretFound as exc:
            exc.details["index"] = index
            raise
    if arguments.items is None:
        return arguments.model_copy(update=clean[0].model_dump(include=set(_TEXTS), exclude_unset=True))
    return arguments.model_copy(update={"items": clean})


def _items(arguments: IngestArguments) -> list[Item]:
    if (arguments.content is None) == (arguments.items is None):
        raise InvalidInput(
            "Give either `content` or `items`.", hint='For example {"content": "Ada prefers tea."}.'
        )
    if arguments.items is None:
        return [arguments]
    if not arguments.items:
        raise InvalidInput("`items` is empty.", hint="Give at least one text.")
    beside = arguments.model_fields_set - {"items", "idempotency_key", "secrets"}
    if beside:
        raise InvalidInput(
            f"With `items`, the top-level {', '.join(sorted(beside))} would be ignored.",
            hint="Set it in each item.",
            details={"arguments": sorted(beside)},
        )
    return arguments.items


def _draft(call: Call, item: Item, index: int, now: datetime) -> Draft:
    scope = item.scope or call.scope
    if call.access.scopes is not None and not any(covers(allowed, scope) for allowed in call.access.scopes):
        raise Forbidden(f"This caller may not write to the scope {scope}.", details={"scope": scope})
    stated = _stated_validity(item, now)
    kept = stated.by(now) if stated else None
    start, end = (kept.valid_from, kept.valid_until) if kept else (item.valid_from, item.valid_until)
    expiry = None if end else _expiry(call, item, max(now, start or now))
    try:
        check_some_time(item.valid_from, item.valid_until)
        memory = Memory(
            id=call.engine.new_id(),
            created_at=now,
            updated_at=now,
            scope=scope,
            tags=tuple(item.tags),
            domains=tuple(item.domains),
            metadata=item.metadata,
            valid_from=start,
            valid_until=end or expiry,
            **{name: getattr(item, name) for name in _PLAIN},
        )
    except InvalidInput as exc:
        exc.details.setdefault("index", index)
        raise
    return Draft(
        memory=memory,
        given=frozenset(item.model_fields_set),
        force_create=item.force_create,
        told=stated,
        expires=expiry is not None,
    )


def _stated_validity(item: Item, now: datetime) -> StatedValidity | None:
    """The validity that a text states itself; None if the caller states it."""
    if (
        not _may_end(item)
        or item.node_type == "event"
        or item.model_fields_set & {"valid_from", "valid_until"}
    ):
        return None
    return validity_told(item.content, item.occurred_at or now)


def _expiry(call: Call, item: Item, begin: datetime) -> datetime | None:
    """The end of a state's time to live; None for other types and if the caller gives an end."""
    life = timedelta(days=call.engine.settings.memory.state_ttl_days)
    if item.node_type != "state" or not _may_end(item) or "valid_until" in item.model_fields_set:
        return None
    return begin + life if begin < LATEST - life else None


def _may_end(item: Item) -> bool:
    """Whether validity may be set automatically: not for thread turns or pinned memories."""
    return item.thread is None and not item.pinned


_TEXTS = frozenset(
    {
        "content", "tags", "node_type", "source", "scope", "author", "agent_id", "session_id", "thread",
        "domains", "metadata",
    }
)  # fmt: skip
_PLAIN = (
    "content", "node_type", "source", "author", "agent_id", "session_id", "thread", "position",
    "occurred_at", "pinned",
)  # fmt: skip


def _claim_key(call: Call, key: str) -> str:
    """The stored form of an idempotency key: a hash of scope, key and access.

    Projects and callers with different access may use the same key, because an answer quotes memories that
    its caller can read. It is hashed because a key may contain a token or a name.
    """
    access = "" if call.access == EVERYTHING else f" {call.access}"
    said = f"{call.scope} {key}{access}".encode()
    return blake2b(said, digest_size=32, person=b"vestige claim").hexdigest()


def _digest(arguments: IngestArguments) -> str:
    """Identifies a request: all arguments except the key."""
    said = arguments.model_dump_json(exclude={"idempotency_key"}, exclude_defaults=True)
    return blake2b(said.encode("utf-8"), digest_size=16).hexdigest()


def _answer(results: list[Ingested], batch: bool) -> SmartIngested | BatchIngested:
    if not batch:
        return SmartIngested(**_decision_fields(results[0]))
    views = [IngestedView(index=index, **_decision_fields(result)) for index, result in enumerate(results)]
    tally = Counter(view.decision for view in views)
    updated = tally["update"] + tally["reinforce"]
    # A batch is atomic: no item is skipped or fails alone.
    summary = {
        "total": len(views),
        "created": len(views) - updated,
        "updated": updated,
        "skipped": 0,
        "errors": 0,
    }
    return BatchIngested(summary=summary | tally, results=views)


def _decision_fields(result: Ingested) -> dict[str, Any]:  # fields of IngestedView, which checks them
    decision = result.decision
    similarity = None if decision.similarity is None else round(decision.similarity, 4)
    return {
        "decision": type(decision).__name__.lower(),
        "node_id": result.memory_id,
        "scope": result.scope,
        "message": f"{_MESSAGES[type(decision)]}{_STAYS if result.suppressed else ''}",
        "reason": decision.reason,
        "has_embedding": result.embedded,
        "similarity": similarity,
        "prediction_error": None if similarity is None else round(1 - max(0.0, similarity), 4),
        "importance_score": None if result.importance is None else round(result.importance, 4),
        "conflict": decision.conflict.kind if decision.conflict else None,
        "conflict_detail": (decision.conflict.detail or None) if decision.conflict else None,
        "rival_id": rival_of(decision),
        "rival_preview": result.rival_preview,
        "valid_from": result.valid_from,
        "valid_until": result.valid_until,
        "validity_words": result.validity_words,
        **_others(decision),
    }


_MESSAGES: dict[type[Decision], str] = {
    Create: "Remembered as a new memory.",
    Update: "Updated an existing memory with a new revision.",
    Reinforce: "Already known; the memory was strengthened.",
    Supersede: "Remembered; it supersedes an older memory.",
    Merge: "Remembered as a new memory, linked to similar ones.",
}

_STAYS = " It stays suppressed; `memory promote` ends that."


def _others(decision: Decision) -> dict[str, Any]:
    match decision:
        case Supersede(memory_id=old):
            return {"superseded_id": old}
        case Create(related=related, contradicts=contradicts):
            return {"related_ids": [*related, *contradicts] or None}
        case Merge(memory_ids=others):
            return {"related_ids": list(others)}
        case _:
            return {}
