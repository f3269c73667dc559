"""The write path: screen → draft → embed → rivals → decide → apply → commit → emit.

A batch is decided item by item, each seeing what the earlier ones became, and written in one transaction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vestige.core.errors import Conflict, IdempotencyConflict, NotFound
from vestige.engine.context import Call
from vestige.engine.ingest.apply import apply
from vestige.engine.ingest.batch import Draft, IngestBatch, Ingested, NewText, draft_all, embed
from vestige.engine.ingest.decide import decide_one, find_rivals, result_of
from vestige.engine.ingest.importance import importance_inputs, record_importance
from vestige.engine.ingest.secrets import Policy, screen
from vestige.engine.revise import retry_on_conflict
from vestige.store.contract.changes import Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Idempotency:
    """An idempotency key, the digest of its request (after screening), and how to serialise its answer."""

    key: str
    digest: Callable[[Sequence[NewText]], str]
    answer: Callable[[Sequence[Ingested]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The stored answer of a request that was made before."""

    answer: str


def ingest(
    call: Call,
    texts: Sequence[NewText],
    *,
    secrets: Policy | None = None,
    idempotency: Idempotency | None = None,
) -> list[Ingested] | Replayed:
    """Remember every text or none. A repeated request with an idempotency key gets its first answer again."""
    clean = screen(call, texts, secrets)
    drafts = draft_all(call, clean)
    claim = _Claiming(call, idempotency, clean) if idempotency else None
    try:
        return retry_on_conflict(call, lambda: _attempt(call, drafts, claim))
    except IdempotencyConflict:
        if claim is None or not claim.earlier():
            raise
        # The same request was made at the same time and committed first: return its answer.
        return _attempt(call, drafts, claim)


def _attempt(call: Call, drafts: Sequence[Draft], claim: "_Claiming | None") -> list[Ingested] | Replayed:
    if claim and (earlier := claim.earlier()):
        return claim.replay(earlier)
    batch = embed(call, drafts)
    find_rivals(batch, drafts)
    weights = importance_inputs(batch, drafts)
    for index, draft in enumerate(drafts):
        decided = decide_one(batch, index, draft, weights)
        memory_id = apply(batch, index, draft, decided.decision)
        if decided.importance and memory_id == draft.memory.id:
            record_importance(batch, draft.memory, decided.importance)
        batch.results.append(result_of(batch, draft, decided, memory_id))
    _commit(call, batch, claim.of(batch) if claim else None)
    call.engine.events.emit(*batch.events)
    return batch.results


def _commit(call: Call, batch: IngestBatch, claim: Claim | None) -> None:
    call.check()
    try:
        call.engine.store.commit(batch.changes, access=call.access, claim=claim)
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
