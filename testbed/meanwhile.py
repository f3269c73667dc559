"""What somebody else does between what a mechanism reads and what it commits: the races of two processes."""

from collections.abc import Callable, Sequence

import pytest

from testbed.world import World
from vestige.core.models import Access, LogEvent
from vestige.store.contract.changes import Change, Claim, Drop, Put


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, world: World, kind: str, act: Callable[[], object], *, times: int = 1
) -> None:
    """Have `act` done just before each of the next commits that put or drop a document of this kind."""
    store = world.app.engine.store
    commit, left, acting = store.commit, [kind] * times, False

    def late(
        changes: Sequence[Change],
        *,
        access: Access,
        claim: Claim | None = None,
        patience_seconds: float | None = None,
    ) -> list[LogEvent]:
        nonlocal acting
        if left and not acting and kind in {_kind(change) for change in changes}:
            left.pop()
            acting = True
            act()
            acting = False
        return commit(changes, access=access, claim=claim, patience_seconds=patience_seconds)

    monkeypatch.setattr(store, "commit", late)


def _kind(change: Change) -> str | None:
    if isinstance(change, Put):
        return change.document.kind
    return change.kind if isinstance(change, Drop) else None
