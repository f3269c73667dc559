"""The write path: screen → draft → embed → hold → rivals → decide → apply → commit → emit.

A batch is decided item by item, each seeing what the earlier ones became, and written in one transaction. A
text that has to wait for a review goes into the inbox instead.
"""

from collections.abc import Callable, Sequence

from vestige.core.errors import Conflict, IdempotencyConflict, NotFound
from vestige.core.lazy_dataclass import dataclass
from vestige.engine.context import Call
from vestige.engine.ingest.apply import apply
from vestige.engine.ingest.batch import (
    Draft,
    HeldText,
    IngestBatch,
    Ingested,
    NewText,
    batch_of,
    draft_all,
    embed,
)
from vestige.engine.ingest.decide import decide_one, find_rivals, result_of
from vestige.engine.ingest.importance import importance_inputs, record_importance
from vestige.engine.ingest.inbox import Wait, hold, inbox_access, meaning_to_wait, policies_of, reason_to_wait
from vestige.engine.ingest.secrets import Policy, screen
from vestige.engine.revise import retry_on_conflict
from vestige.store.contract.changes import Change, Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Idempotency:
    """An idempotency key, the digest of its request (after screening), and how to serialise its answer."""

    key: str
    digest: Callable[[Sequence[NewText]], str]
    answer: Callable[[Sequence[Ingested | HeldText]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The stored answer of a request that was made before."""

    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """The decision of a review: the texts wait no longer. `changes` are those to the inbox for the result of
    the text; they are part of the transaction."""

    changes: Callable[[Ingested], Sequence[Change]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Texts:
    """The texts of a request after screening, with their drafts, and why the rules or the policy let them
    wait (None: they do not)."""

    texts: Sequence[NewText]
    drafts: Sequence[Draft]
    waits: Sequence[Wait | None]
    policies: Sequence[str] | None
    """The policies of review of their scopes, as they were at the request; None if the texts are approved."""


def ingest(
    call: Call,
    texts: Sequence[NewText],
    *,
    secrets: Policy | None = None,
    idempotency: Idempotency | None = None,
    approval: Approval | None = None,
) -> list[Ingested | HeldText] | Replayed:
    """Remember every text or none. A repeated request with an idempotency key gets its first answer again."""
    clean = screen(call, texts, secrets)
    drafts = draft_all(call, clean)
    policies: list[str] | None = None
    waits: list[Wait | None] = [None] * len(clean)
    if not approval:  # what is approved does not wait
        policies = policies_of(call, (draft.memory.scope for draft in drafts))
        waits = [reason_to_wait(call, text, one) for text, one in zip(clean, policies, strict=True)]
    asked = _Texts(texts=clean, drafts=drafts, waits=waits, policies=policies)
    claim = _Claiming(call, idempotency, clean) if idempotency else None
    try:
        return retry_on_conflict(call, lambda: _attempt(call, asked, claim, approval))
    except IdempotencyConflict:
        if claim is None or not claim.earlier():
            raise
        # The same request was made at the same time and committed first: return its answer.
        return _attempt(call, asked, claim, approval)


def _attempt(
    call: Call, asked: _Texts, claim: "_Claiming | None", approval: Approval | None
) -> list[Ingested | HeldText] | Replayed:
    if claim and (earlier := claim.earlier()):
        return claim.replay(earlier)
    batch = _decided(call, asked, approval)
    _commit(call, batch, claim.of(batch) if claim else None)
    call.engine.events.emit(*batch.events)
    return batch.results


def _decided(call: Call, asked: _Texts, approval: Approval | None) -> IngestBatch:
    """The batch with what becomes of each text."""
    waits = list(asked.waits)
    open_places = [place for place, wait in enumerate(waits) if wait is None]
    vectors = embed(call, [asked.drafts[place] for place in open_places])
    if vectors and asked.policies is not None:
        for place, made in zip(open_places, vectors, strict=True):
            waits[place] = meaning_to_wait(asked.drafts[place], made, asked.policies[place])
        vectors = [made for place, made in zip(open_places, vectors, strict=True) if waits[place] is None]
    stored = [draft for draft, wait in zip(asked.drafts, waits, strict=True) if wait is None]
    batch = batch_of(call, stored, vectors)
    if stored:
        find_rivals(batch, stored)
        weights = importance_inputs(batch, stored)
    index = 0
    for text, draft, wait in zip(asked.texts, asked.drafts, waits, strict=True):
        if wait is not None:
            batch.results.append(hold(batch, draft, text, wait))
            continue
        decided = decide_one(batch, index, draft, weights)
        memory_id = apply(batch, index, draft, decided.decision)
        if decided.importance and memory_id == draft.memory.id:
            record_importance(batch, draft.memory, decided.importance)
        result = result_of(batch, draft, decided, memory_id)
        batch.results.append(result)
        batch.changes += approval.changes(result) if approval else ()
        index += 1
    return batch


def _commit(call: Call, batch: IngestBatch, claim: Claim | None) -> None:
    call.check()
    access = call.access
    if batch.held and access.domains is not None:
        # The inbox belongs to no domain, so these are a transaction of their own.
        call.engine.store.commit(batch.held, access=inbox_access(call))
    else:
        batch.changes += batch.held
    try:
        call.engine.store.commit(batch.changes, access=access, claim=claim)
    except NotFound as exc:
        # A rival was deleted since it was read: decide again without it.
        raise Conflict() from exc


class _Claiming:
    """The claim of a request on its idempotency key."""

    def __init__(self, call: Call, idempotency: Idempotency, texts: Sequence[NewText]) -> None:
        self._store, self._idempotency = call.engine.store, idempotency
        self._digest = idempotency.digest(texts)

    def earlier(self) -> Claim | None:
        return self._store.claimed(self._idempotency.key)

    def replay(self, earlier: Claim) -> Replayed:
        if earlier.digest != self._digest:
            raise IdempotencyConflict(hint="Use a new key for a new request.")
        return Replayed(answer=earlier.answer)

    def of(self, batch: IngestBatch) -> Claim:
        answer = self._idempotency.answer(batch.results)
        return Claim(key=self._idempotency.key, digest=self._digest, answer=answer, at=batch.now)
