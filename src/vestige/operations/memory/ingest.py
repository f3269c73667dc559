"""Storing memories: `smart_ingest`."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Annotated, Any

from pydantic import Field, JsonValue

from vestige.cognition.gate.decide import Create, Decision, Merge, Reinforce, Supersede, Update, rival_of
from vestige.core.documents import PENDING
from vestige.core.errors import InvalidInput
from vestige.core.models import EVERYTHING, estimate
from vestige.core.origin import Origin
from vestige.engine.context import Call
from vestige.engine.embedding import other_model_warning
from vestige.engine.ingest.batch import HeldText, Ingested, NewText
from vestige.engine.ingest.inbox import ASKED
from vestige.engine.ingest.ingest import Idempotency, Replayed, ingest
from vestige.engine.ingest.secrets import SCREENED
from vestige.operations.registry.arguments import (
    Arguments,
    ComingEnd,
    DomainNames,
    Moment,
    Scope,
    Tags,
    TimeZone,
    Wire,
    check_some_time,
)
from vestige.operations.registry.registry import registry
from vestige.operations.shared.secrets import Secrets
from vestige.operations.shared.text import count, day, row_number, short_id, styled, table, warning

MAX_BATCH = 500


class Item(Arguments):
    """One text to remember, with its metadata."""

    content: str = Field(description="The text to remember.")
    tags: Tags = Field([], description="Labels to find it by.")
    node_type: str = Field(
        "fact",
        description="fact, concept, event, person, place, note, decision, preference, state (expires) …",
    )
    source: str | None = Field(None, description="Origin: a URL, file or system.")
    origin: Origin | None = Field(
        None, description="Kind of source, if it is less trusted than the caller: tool, document, connector …"
    )
    scope: Scope | None = Field(
        None, description="Default: the current project, or /user for what is about the user."
    )
    author: str | None = Field(None, description="Author of the statement.")
    agent_id: str | None = Field(None, description="Agent that stores it.")
    session_id: str | None = Field(None, description="Session it comes from.")
    thread: str | None = Field(
        None, description="Conversation or document it is part of; every part is kept."
    )
    position: int | None = Field(None, description="Position in the thread or source.")
    occurred_at: Moment | None = Field(None, description="When it happened.")
    valid_from: Moment | None = Field(None, description="Start of validity.")
    valid_until: ComingEnd | None = Field(None, description="End of validity; a bare date includes that day.")
    pinned: bool = Field(False, description="Exempt it from all automatic changes.")
    domains: DomainNames = Field([], description="Topics it belongs to.")
    metadata: dict[str, JsonValue] = Field({}, description="JSON object to store with it.")
    force_create: bool = Field(False, description="Always store it as a new memory.")
    review: bool = Field(False, description="Let it wait in the review inbox for the user's approval.")


class IngestArguments(Item):
    """One text, or several."""

    content: Annotated[str | None, Field(description="The text to remember.")] = None  # type: ignore[assignment]  # optional here: `items` may stand in for it
    items: list[Item] | None = Field(
        None, max_length=MAX_BATCH, description="Several texts instead of one; all are written or none."
    )
    idempotency_key: str | None = Field(
        None, min_length=1, max_length=200, description="Makes a retry safe: same key, same answer."
    )
    secrets: Secrets = None
    timezone: TimeZone = None


class IngestedView(Wire):
    """The gate's decision about one text; `pending` for one that waits in the review inbox under `node_id`,
    `flags` being the kinds of orders or hidden text found in it.

    `validity_words` are the words of the text that state its validity. `begins_at` is a time to come at which
    it begins, by these words: it ends nothing that is valid now, and is found before that time too.
    """

    index: int | None = None
    status: str = "saved"
    decision: str
    node_id: str
    scope: str
    scope_reason: str | None = None
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
    begins_at: datetime | None = None
    flags: list[str] | None = None


class SmartIngested(IngestedView):
    """The answer to a single text."""

    success: bool = True
    warning: str | None = None
    replayed: bool = False


class BatchIngested(Wire):
    """The answer to a batch."""

    success: bool = True
    mode: str = "batch"
    summary: dict[str, int]
    results: list[IngestedView]
    warning: str | None = None
    replayed: bool = False


def render_ingested(result: SmartIngested | BatchIngested) -> str:
    warned = f"\n{warning(result.warning)}" if result.warning else ""
    if isinstance(result, SmartIngested):
        where = f"Scope: {result.scope} ({result.scope_reason or 'stored'})"
        about = f"{where}{_truth(result)}{_beside(result)}{warned}"
        number = row_number(result.node_id)
        named = f"{short_id(result.node_id)}{f' (@{number})' if number else ''}"
        return f"{styled('strong', result.message)}\n{result.reason}\nId: {named}\n{about}"
    rows = (
        (row_number(r.node_id) or r.index, r.decision, short_id(r.node_id), r.scope, r.reason)
        for r in result.results
    )
    decisions = table(("#", "decision", "id", "scope", "reason"), rows)
    return f"{decisions}\n\n{count(len(result.results), 'text')} processed.{warned}"


def _beside(result: IngestedView) -> str:
    if result.rival_id is None:
        return ""
    known = (
        f"“{result.rival_preview}” ({short_id(result.rival_id)})"
        if result.rival_preview
        else short_id(result.rival_id)
    )
    return f"\nCompared with: {known}"


def _truth(result: IngestedView) -> str:
    """Its validity and the words that state it, as a line; empty if unknown."""
    start = f" from {day(result.valid_from)}" if result.valid_from else ""
    end = f" until {day(result.valid_until)}" if result.valid_until else ""
    words = f" (“{result.validity_words}”)" if result.validity_words else ""
    valid = f"\nValid{start}{end}{words}." if start or end else ""
    begins = (
        f"\nBegins {day(result.begins_at)}{words}; it is found before that too." if result.begins_at else ""
    )
    return valid + begins


@registry.operation(
    "smart_ingest",
    permission="write",
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
    in one transaction. What is about the user (preference, identity or habit: by its words, its type or such
    a tag) goes to /user and holds in every project, unless it names the project; `scopeReason` says so. A
    text with a key, token or password is refused unless `secrets` allows it.
    """
    batch = arguments.items is not None
    texts = [_text(item, index) for index, item in enumerate(_items(arguments))]
    idempotency = None
    if arguments.idempotency_key is not None:
        idempotency = Idempotency(
            key=_claim_key(call, arguments.idempotency_key),
            digest=lambda clean: _digest(arguments, clean),
            answer=lambda results: _answer(call, results, batch).model_dump_json(),
        )
    outcome = ingest(call, texts, secrets=arguments.secrets, idempotency=idempotency)
    if isinstance(outcome, Replayed):
        kind = BatchIngested if batch else SmartIngested
        return kind.model_validate_json(outcome.answer).model_copy(update={"replayed": True})
    return _answer(call, outcome, batch)


def _items(arguments: IngestArguments) -> list[Item]:
    if (arguments.content is None) == (arguments.items is None):
        raise InvalidInput("Give either `content` or `items`.", hint='For example: "Ada prefers tea."')
    if arguments.items is None:
        return [arguments]
    if not arguments.items:
        raise InvalidInput("`items` is empty.", hint="Give at least one text.")
    beside = arguments.model_fields_set - {"items", "idempotency_key", "secrets", "timezone"}
    if beside:
        raise InvalidInput(
            f"With `items`, the top-level {', '.join(sorted(beside))} would be ignored.",
            hint="Set it in each item.",
            details={"arguments": sorted(beside)},
        )
    return arguments.items


_LISTS = ("tags", "domains")
_OWN = frozenset({"items", "idempotency_key", "secrets", "timezone"})
"""Arguments about the request, not about a text."""


def _text(item: Item, index: int) -> NewText:
    try:
        check_some_time(item.valid_from, item.valid_until)
    except InvalidInput as exc:
        exc.details.setdefault("index", index)
        raise
    given = {name: getattr(item, name) for name in item.model_fields_set - _OWN - {"review"}}
    lists = {name: tuple(given[name]) for name in _LISTS if name in given}
    own = {"origin": item.origin.value if item.origin else None, "hold": ASKED if item.review else None}
    return NewText(**{**given, **lists, **own}, given=frozenset(given))


def _claim_key(call: Call, key: str) -> str:
    """The stored form of an idempotency key: a hash of scope, key and access.

    Projects and callers with different access may use the same key, because an answer quotes memories that
    its caller can read. It is hashed because a key may contain a token or a name.
    """
    access = "" if call.access == EVERYTHING else f" {call.access}"
    said = f"{call.scope} {key}{access}".encode()
    return blake2b(said, digest_size=32, person=b"vestige claim").hexdigest()


def _digest(arguments: IngestArguments, clean: Sequence[NewText]) -> str:
    """Identifies a request: all arguments except the key, without secrets."""
    items = [
        item.model_copy(update={name: _plain(getattr(text, name)) for name in SCREENED if name in text.given})
        for item, text in zip(_items(arguments), clean, strict=True)
    ]
    update = {"items": items} if arguments.items is not None else items[0].model_dump(include=set(SCREENED))
    said = arguments.model_copy(update=update).model_dump_json(
        exclude={"idempotency_key"}, exclude_defaults=True
    )
    return blake2b(said.encode("utf-8"), digest_size=16).hexdigest()


def _plain(value: Any) -> Any:  # Any: a field of a text
    return list(value) if isinstance(value, tuple) else value


def _answer(call: Call, results: Sequence[Ingested | HeldText], batch: bool) -> SmartIngested | BatchIngested:
    stored = [result for result in results if isinstance(result, Ingested)]
    warning = None if all(result.embedded for result in stored) else other_model_warning(call.engine)
    if not batch:
        return SmartIngested(**_decision_fields(results[0]), warning=warning)
    views = [IngestedView(index=index, **_decision_fields(result)) for index, result in enumerate(results)]
    tally = Counter(view.decision for view in views)
    updated = tally["update"] + tally["reinforce"]
    # A batch is atomic: no item is skipped or fails alone.
    summary = {
        "total": len(views),
        "created": len(views) - updated - tally[PENDING],
        "updated": updated,
        "skipped": 0,
        "errors": 0,
    }
    return BatchIngested(summary=summary | tally, results=views, warning=warning)


def _decision_fields(result: Ingested | HeldText) -> dict[str, Any]:  # fields of IngestedView
    if isinstance(result, HeldText):
        return _held_fields(result)
    decision = result.decision
    similarity = decision.similarity
    if similarity is not None and not (isinstance(decision, Reinforce) and decision.identical):
        similarity = estimate(similarity)
    return {
        "decision": type(decision).__name__.lower(),
        "node_id": result.memory_id,
        "scope": result.scope,
        "scope_reason": result.scope_reason,
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
        "begins_at": result.begins_at,
        **_others(decision),
    }


def _held_fields(result: HeldText) -> dict[str, Any]:  # fields of IngestedView
    return {
        "status": PENDING,
        "decision": PENDING,
        "node_id": result.pending_id,
        "scope": result.scope,
        "scope_reason": result.scope_reason,
        "message": "Not stored yet: it waits for the user in the inbox (`review list`).",
        "reason": result.reason,
        "flags": list(result.flags) or None,
        "has_embedding": False,
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
