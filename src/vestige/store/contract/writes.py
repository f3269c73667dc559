"""The part of the store contract about writing."""

from collections.abc import Sequence
from typing import Protocol

from vestige.core.models import (
    Access,
    LogEvent,
)
from vestige.store.contract.changes import Change, Claim
from vestige.store.merge.histories import Absorbed, Life


class StoreWrites(Protocol):
    """Writing canonical data. `commit` and `absorb` are one transaction each."""

    def commit(
        self,
        changes: Sequence[Change],
        *,
        access: Access,
        claim: Claim | None = None,
        patience_seconds: float | None = None,
    ) -> list[LogEvent]:
        """Apply all changes in order, or none, in one transaction; the events logged for them.

        Kinds logged: `memory.created`, `memory.revised` (payload `fields`: names of what changed,
        `reason`), `memory.remarked` (`evidence`, `details`), `edge.linked` (`target`, `kind`,
        `weight`), `edge.unlinked` (`target`, `kind`), `memory.state` (`from`, `to`, `reason`),
        `memory.carried` (`strength`), `curve.tuned` (`w20`; no memory),
        `document.put` and `document.dropped` (`kind`, `id`; no memory), `memory.deleted` (`reason`). A remark
        tells its `amount` when it is not 1, and `state` (from, to) when it changed the memory's state. An
        event of a document has the document's scope. A change made earlier in the list is seen by later
        ones. A claim whose key exists raises IdempotencyConflict and writes nothing. An event's scope
        is its memory's after the change; milliseconds in `clock` end in the year 4199. StoreBusy after
        `patience_seconds` of waiting for other writers, where that is less than the store is set to wait.
        """

    def absorb(self, lives: Sequence[Life], *, access: Access) -> Absorbed:
        """Unite these lives with what is here, in one transaction; doing it again changes nothing.

        `store.uniting` says what two tellings make. Events keep their node, seq and clock and get positions
        at the end of this store's log; the clock never gives a reading below one it has seen. Strengths are
        folded anew where evidence came in. A deleted memory stays deleted. An edge is there when both ends
        are; a document that cites a memory that is not here is left out. Vectors are taken like those of
        `put_vectors` by memories that have none; ones of another signature are ignored. Only for an
        unlimited access, else Forbidden. A life that cannot be true (`plausible.check`), or that tells one
        event in another way than it is told here, is InvalidInput.
        """
