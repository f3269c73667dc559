"""Remembering: `smart_ingest`."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Annotated, Any

from pydantic import Field, JsonValue

from vestige.cognition.gate.decide import Create, Decision, Merge, Reinforce, Supersede, Update, rival_of
from vestige.core.errors import InvalidInput
from vestige.core.models import EVERYTHING
from vestige.engine.context import Call
from vestige.engine.ingest.batch import Ingested, NewText
from vestige.engine.ingest.ingest import Idempotency, Replayed, ingest
from vestige.engine.ingest.secrets import SCREENED
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
from vestige.operations.shared.secrets import Secrets
from vestige.operations.shared.text import count, day, table

MAX_BATCH = 500


class Item(Arguments):
    """One text to remember, with everything that can be said of it."""

    content: Annotated[str, Field(description="The text to remember.")]
    tags: Annotated[Tags, Field(description="Labels to find it by.")] = []
    node_type: Annotated[
        str,
        Field(description="fact, concept, event, person, place, note, decision, state (ends by itself) …"),
    ] = "fact"
    source: Annotated[str | None, Field(description="Where it comes from: a URL, file or system.")] = None
    scope: Annotated[Scope | None, Field(description="Where it belongs, such as /project/vestige.")] = None
    author: Annotated[str | None, Field(description="Who said it.")] = None
    agent_id: Annotated[str | None, Field(description="The agent that stores it.")] = None
    session_id: Annotated[str | None, Field(description="The session it comes from.")] = None
    thread: Annotated[
        str | None, Field(description="The conversation or document it is part of; every part is kept.")
    ] = None
    position: Annotated[int | None, Field(description="Its place in the thread or source.")] = None
    occurred_at: Annotated[Moment | None, Field(description="When it happened.")] = None
    valid_from: Annotated[Moment | None, Field(description="From when on it is true.")] = None
    valid_until: Annotated[
        EndMoment | None, Field(description="Until when it is true; a date includes that day.")
    ] = None
    pinned: Annotated[bool, Field(description="Never touch it automatically.")] = False
    domains: Annotated[Names, Field(description="Topics it belongs to.")] = []
    metadata: Annotated[dict[str, JsonValue], Field(description="Any JSON object to keep with it.")] = {}
    force_create: Annotated[bool, Field(description="Keep it as new, whatever is known.")] = False


class IngestArguments(Item):
    """One text, or several."""

    content: Annotated[str | None, Field(description="The text to remember.")] = None  # type: ignore[assignment]  # optional here: `items` may stand in for it
    items: Annotated[
        list[Item] | None,
        Field(max_length=MAX_BATCH, description="Several texts instead of one, all or none written."),
    ] = None
    idempotency_key: Annotated[
        str | None,
        Field(min_length=1, max_length=200, description="Makes a retry safe: same key, same answer."),
    ] = None
    secrets: Secrets = None


class IngestedView(Wire):
    """What became of one text."""

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
    """What became of the texts, for a person."""
    if isinstance(result, SmartIngested):
        return f"{result.message}\n{result.reason}\n{result.node_id}{_truth(result)}{_beside(result)}"
    rows = ((r.index, r.decision, r.node_id, r.reason) for r in result.results)
    return f"{table(('#', 'decision', 'id', 'reason'), rows)}\n\n{count(len(result.results), 'text')} taken."


def _beside(result: IngestedView) -> str:
    if result.rival_id is None:
        return ""
    known = f"“{result.rival_preview}” ({result.rival_id})" if result.rival_preview else result.rival_id
    return f"\nBeside: {known}"


def _truth(result: IngestedView) -> str:
    """When it is true and which of its words say so, as a line; nothing where nothing is known."""
    start = f" from {day(result.valid_from)}" if result.valid_from else ""
    end = f" until {day(result.valid_until)}" if result.valid_until else ""
    words = f" (“{result.validity_words}”)" if result.validity_words else ""
    return f"\nTrue{start}{end}{words}." if start or end else ""


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
def smart_ingest(call: Call, told: IngestArguments) -> SmartIngested | BatchIngested:
    """Remember something, deciding what it is to what is already known.

    The text becomes a new memory, strengthens one that says the same, revises one it extends, or
    supersedes one it corrects; the answer says which and why. Nothing is overwritten: revisions and
    superseded facts stay in the history. Turns of a `thread` are all kept. Give one `content`, or
    `items` for up to 500 texts in one transaction. A text that holds a key, a token or a password is refused
    unless `secrets` says otherwise.
    """
    batch = told.items is not None
    texts = [_text(item, index) for index, item in enumerate(_items(told))]
    idempotency = None
    if told.idempotency_key is not None:
        idempotency = Idempotency(
            key=_claim_key(call, told.idempotency_key),
            digest=lambda clean: _digest(told, clean),
            answer=lambda results: _answer(results, batch).model_dump_json(),
        )
    outcome = ingest(call, texts, secrets=told.secrets, idempotency=idempotency)
    if isinstance(outcome, Replayed):
        kind = BatchIngested if batch else SmartIngested
        return kind.model_validate_json(outcome.answer).model_copy(update={"replayed": True})
    return _answer(outcome, batch)


def _items(told: IngestArguments) -> list[Item]:
    if (told.content is None) == (told.items is None):
        raise InvalidInput(
            "Give either `content` or `items`.", hint='For example {"content": "Ada prefers tea."}.'
        )
    if told.items is None:
        return [told]
    if not told.items:
        raise InvalidInput("`items` is empty.", hint="Give at least one text.")
    beside = told.model_fields_set - {"items", "idempotency_key", "secrets"}
    if beside:
        raise InvalidInput(
            f"With `items`, {', '.join(sorted(beside))} would be ignored.",
            hint="Say it in each item.",
            details={"arguments": sorted(beside)},
        )
    return told.items


_LISTS = ("tags", "domains")
_OWN = frozenset({"items", "idempotency_key", "secrets"})
"""Arguments about the request, not about a text."""


def _text(item: Item, index: int) -> NewText:
    try:
        check_some_time(item.valid_from, item.valid_until)
    except InvalidInput as exc:
        exc.details.setdefault("index", index)
        raise
    given = {name: getattr(item, name) for name in item.model_fields_set - _OWN}
    lists = {name: tuple(given[name]) for name in _LISTS if name in given}
    return NewText(**{**given, **lists}, given=frozenset(given))


def _claim_key(call: Call, key: str) -> str:
    """What a key is stored as. Two projects may use the same one, and so may callers with another reach: an
    answer quotes what its caller reaches. It may be made of a token or somebody's name, so nobody can read it
    there."""
    reach = "" if call.access == EVERYTHING else f" {call.access}"
    said = f"{call.scope} {key}{reach}".encode()
    return blake2b(said, digest_size=32, person=b"vestige claim").hexdigest()


def _digest(told: IngestArguments, clean: Sequence[NewText]) -> str:
    """What makes two requests the same: every argument but the key, without secrets."""
    items = [
        item.model_copy(update={name: _plain(getattr(text, name)) for name in SCREENED if name in text.given})
        for item, text in zip(_items(told), clean, strict=True)
    ]
    update = {"items": items} if told.items is not None else items[0].model_dump(include=set(SCREENED))
    said = told.model_copy(update=update).model_dump_json(exclude={"idempotency_key"}, exclude_defaults=True)
    return blake2b(said.encode("utf-8"), digest_size=16).hexdigest()


def _plain(value: Any) -> Any:  # Any: a field of a text
    return list(value) if isinstance(value, tuple) else value


def _answer(results: Sequence[Ingested], batch: bool) -> SmartIngested | BatchIngested:
    if not batch:
        return SmartIngested(**_told(results[0]))
    views = [IngestedView(index=index, **_told(result)) for index, result in enumerate(results)]
    tally = Counter(view.decision for view in views)
    updated = tally["update"] + tally["reinforce"]
    # A batch is written whole or not at all: nothing in it is skipped or fails alone.
    told = {
        "total": len(views),
        "created": len(views) - updated,
        "updated": updated,
        "skipped": 0,
        "errors": 0,
    }
    return BatchIngested(summary=told | tally, results=views)


def _told(result: Ingested) -> dict[str, Any]:  # fields of IngestedView, which checks them
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
    Update: "An existing memory got a new revision.",
    Reinforce: "Already known; the memory was strengthened.",
    Supersede: "Remembered; it supersedes an older memory.",
    Merge: "Remembered as a new memory, linked to similar ones.",
}

_STAYS = " It stays suppressed: `memory promote` would bring it back to mind."


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
