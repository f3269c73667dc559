"""The write path: drafts → embed → rivals → decide → one transaction → events.

A batch is decided item by item, each seeing what the earlier ones did, and written whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from vestige.core.errors import Conflict, IdempotencyConflict, NotFound
from vestige.engine.access import placed
from vestige.engine.context import Call
from vestige.engine.ingest.batch import Draft, IngestBatch, Ingested
from vestige.engine.ingest.decide import decide_all
from vestige.engine.revise import persistently
from vestige.store.contract.changes import Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """An idempotency key: the digest of its request, and how to write its answer down."""

    key: str
    digest: str
    answer: Callable[[list[Ingested]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The stored answer of a request that was made before."""

    answer: str


def ingest(
    call: Call, drafts: Sequence[Draft], *, promise: Promise | None = None
) -> list[Ingested] | Replayed:
    """Remember every draft or none; a promise kept before gives its answer again."""
    drafts = [replace(draft, memory=placed(call, draft.memory)) for draft in drafts]
    try:
        return persistently(call, lambda: _attempt(call, drafts, promise))
    except IdempotencyConflict:
        if promise is None or not call.engine.store.claimed(promise.key):
            raise
        # Somebody made the same request at the same time and was first: theirs is the answer.
        return _attempt(call, drafts, promise)


def _attempt(call: Call, drafts: Sequence[Draft], promise: Promise | None) -> list[Ingested] | Replayed:
    store = call.engine.store
    claim = None
    if promise:
        earlier = store.claimed(promise.key)
        if earlier:
            return _replay(earlier, promise)
    batch: IngestBatch = decide_all(call, drafts)
    if promise:
        claim = Claim(
            key=promise.key, digest=promise.digest, answer=promise.answer(batch.results), at=batch.now
        )
    call.check()
    try:
        store.commit(batch.changes, access=call.access, claim=claim)
    except NotFound as exc:
        # A rival was deleted since it was looked at: decide again without it.
        raise Conflict() from exc
    call.engine.events.emit(*batch.happenings)
    return batch.results


def _replay(earlier: Claim, promise: Promise) -> Replayed:
    if earlier.digest != promise.digest:
        raise IdempotencyConflict(hint="Use a new key for a new request.")
    return Replayed(answer=earlier.answer)
