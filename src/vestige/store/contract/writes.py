"""The part of the store contract about writing."""

from collections.abc import Sequence
from typing import Protocol

from vestige.core.models import Access, LogEvent
from vestige.store.contract.changes import Change, Claim
from vestige.store.merge.histories import Absorbed, EntityHistory


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

        Kinds logged: `memory.created`, `memory.revised` (payload `fields`: names of the changed fields,
        `reason`), `memory.remarked` (`evidence`, `details`), `edge.linked` (`target`, `kind`, `weight`),
        `edge.unlinked` (`target`, `kind`), `memory.state` (`from`, `to`, `reason`), `memory.carried`
        (`strength`), `curve.tuned` (`w20`; no memory), `document.put` and `document.dropped` (`kind`, `id`;
        no memory), `memory.deleted` (`reason`). An evidence event (`memory.remarked`) has an `amount` when it
        is not 1, and `state` (from, to) when it changed the memory's state. An event of a document has the
        document's scope. A change made earlier in the list is seen by later ones. A claim whose key exists
        raises IdempotencyConflict and writes nothing. An event's scope is its memory's after the change;
        milliseconds in `clock` end in the year 4199. StoreBusy after `patience_seconds` of waiting for other
        writers, where that is less than the store is set to wait.
        """

    def absorb(self, histories: Sequence[EntityHistory], *, access: Access) -> Absorbed:
        """Merge histories with those of this store, in one transaction; repeating it changes nothing.

        `store.merge.union` defines the merge. Events keep their node, seq and clock and get positions at the
        end of this store's log; the clock never gives a reading below one it has seen. Strengths are folded
        anew where evidence came in. A deleted memory stays deleted. An edge exists while both ends do; a
        document that cites a memory unknown here is left out. Vectors are taken like those of `put_vectors`
        by memories that have none; ones of another signature are ignored. Only for an unlimited access, else
        Forbidden. An invalid history (`store.merge.absorb.check`), or one with another content for a known
        event, is InvalidInput.
        """
