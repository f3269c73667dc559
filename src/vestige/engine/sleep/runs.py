"""Long runs over the store: each holds a lease against all processes, rests often, and records what it did.

A lease has an end, so that one of a killed run ends by itself. A caller with limited access waits for runs
over everything and over overlapping scopes. A run over everything waits only for another one, so that no one
can block the owner.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from vestige.core.documents import Document
from vestige.core.errors import Conflict, Forbidden
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, ROOT_SCOPE, covers
from vestige.core.timezone import time_text
from vestige.engine.context import Call
from vestige.engine.revise import documents_by_id, find_document, put_document, retry_on_conflict, save
from vestige.store.contract.changes import Drop, Put

RUNNING = "running"
"""The kind of document that holds all leases of one name, so that a run sees the others."""
DREAM, CONSOLIDATION, SNAPSHOT = "dream", "consolidation", "snapshot"
"""Kinds of documents that are rows of a history, one for each run."""
KEPT = 100
"""Rows of each kind that are kept, latest first."""
PAGE = 200
LEASE = timedelta(minutes=10)
RENEWED_EVERY = timedelta(minutes=1)
ATTEMPTS = 100
"""How often a lease is written again after a conflict. Each conflict means that another run got on, and a
lease that is not released makes others wait for minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunClaim:
    """A run in progress in these scopes (None: everywhere), as it is stored."""

    id: str
    scopes: Sequence[str] | None
    since: str
    until: str

    def left(self, now: datetime) -> timedelta:
        """How long it is still held. A claim that lasts longer than any lease comes from another clock."""
        left = datetime.fromisoformat(self.until) - now
        return left if timedelta(0) < left <= LEASE else timedelta(0)

    def keeps_out(self, other: "RunClaim") -> bool:
        """Whether the other run may not begin beside it."""
        if self.scopes is None or other.scopes is None:
            return self.scopes is None
        return any(covers(one, two) or covers(two, one) for one in self.scopes for two in other.scopes)


class Lease:
    """The right to be the only run of a name in a part of the store. A run renews it at every check."""

    def __init__(self, call: Call, name: str, hold: RunClaim) -> None:
        self._call = call
        self._name = name
        self._hold = hold

    def renew(self) -> None:
        """Extend the lease, at most once a minute. Raises Conflict if another run has taken it over."""
        now = self._call.engine.now()
        if LEASE - self._hold.left(now) < RENEWED_EVERY:
            return
        renewed = replace(self._hold, until=(now + LEASE).isoformat())
        self._exchange([renewed])
        self._hold = renewed

    def release(self) -> None:
        """Release the lease. One that another run has taken over is left alone."""
        with suppress(Conflict):
            self._exchange([])

    def _exchange(self, ours: Sequence[RunClaim]) -> None:
        def change(holds: Sequence[RunClaim]) -> list[RunClaim]:
            others = [one for one in holds if one.id != self._hold.id]
            if len(others) == len(holds):
                raise _lease_lost(self._name, self._hold)
            return [*others, *ours]

        _change(self._call, self._name, change)


@contextmanager
def alone(call: Call, name: str) -> Iterator[Call]:
    """Run as the only one of this name within the caller's access, in any process; Conflict if one runs.
    Yields the call to work with: at every check it rests, and renews the lease."""
    lease = Lease(call, name, _take(call, name))
    try:
        yield throttled(call, lease.renew)
    finally:
        lease.release()


def _take(call: Call, name: str) -> RunClaim:
    now, scopes = call.engine.now(), call.access.scopes
    hold = RunClaim(
        id=call.engine.new_id(),
        scopes=None if scopes is None or ROOT_SCOPE in scopes else scopes,
        since=now.isoformat(),
        until=(now + LEASE).isoformat(),
    )

    def change(others: Sequence[RunClaim]) -> list[RunClaim]:
        for other in others:
            if other.left(now) and other.keeps_out(hold):
                raise _busy(name, other)
        # An expired claim that excludes this one is taken over; other expired claims may still be renewed.
        return [*(one for one in others if one.left(now) or not hold.keeps_out(one)), hold]

    _change(call, name, change)
    return hold


def _change(call: Call, name: str, change: Callable[[Sequence[RunClaim]], Sequence[RunClaim]]) -> None:
    """Change the leases of a name; decided again if another run changed them meanwhile."""
    for left in reversed(range(ATTEMPTS)):
        # Leases are stored outside the access of their holders.
        before = find_document(call, RUNNING, name, access=EVERYTHING)
        holds = change([RunClaim(**one) for one in before.body.get("holds", ())] if before else [])
        body = {"holds": [asdict(one) for one in holds]}
        put = put_document(RUNNING, name, before, call.engine.now(), body=body)
        try:
            call.engine.store.commit([put], access=EVERYTHING)
        except Conflict:
            if not left:
                raise
        else:
            return


def _busy(name: str, held: RunClaim) -> Conflict:
    since, until = (datetime.fromisoformat(moment) for moment in (held.since, held.until))
    return Conflict(
        f"A {name} has been running since {time_text(since, seconds=True)}.",
        hint=f"Wait for it. If it was killed, the next one can run from {time_text(until, seconds=True)} on.",
        details={"since": held.since, "until": held.until},
    )


def _lease_lost(name: str, lost: RunClaim) -> Conflict:
    minutes = LEASE // timedelta(minutes=1)
    return Conflict(
        f"This {name} made no progress for {minutes} minutes, and another one has begun since.",
        hint="Nothing needs to be done: the other run completes the work.",
        details={"since": lost.since, "until": lost.until},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    id: str
    kind: str
    at: datetime
    scope: str
    body: Mapping[str, Any]  # Any: JSON


def run_scope(call: Call) -> str:
    """The scope under which a run over everything accessible is recorded."""
    if call.access.domains is not None:
        raise Forbidden(
            "This works on whole scopes, and your access is limited to domains.",
            hint="Use a key that is limited by scopes only.",
        )
    return call.access.scopes[0] if call.access.scopes else ROOT_SCOPE


def accessible_scope(call: Call, scope: str) -> str:
    """The scope under which a run in this scope is recorded: itself, or the accessible part of it."""
    whole = run_scope(call)
    return scope if any(covers(one, scope) for one in call.access.scopes or (ROOT_SCOPE,)) else whole


def history_row(call: Call, kind: str, scope: str, body: Mapping[str, Any], *, logged: bool = True) -> Put:
    name, now = call.engine.new_id(), call.engine.now()
    return put_document(kind, name, None, now, body=body, scope=scope, logged=logged)


def run_records(call: Call, kind: str, *, limit: int = KEPT) -> list[RunRecord]:
    """The latest accessible runs, last first."""
    found = call.engine.store.documents(kind, access=call.access, limit=limit)
    return [_row(document) for document in found]


def last_run(call: Call, kind: str, scope: str) -> RunRecord | None:
    """The last run that covered a scope: in it or above it."""
    found = call.engine.store.documents(kind, access=call.access, scope=scope, inherited=True, limit=KEPT)
    return next((_row(document) for document in found if covers(document.scope, scope)), None)


def _row(document: Document) -> RunRecord:
    return RunRecord(
        id=document.id, kind=document.kind, at=document.created_at, scope=document.scope, body=document.body
    )


def trim(call: Call) -> int:
    """Delete the rows beyond the latest KEPT of each kind; returns how many."""

    find = partial(call.engine.store.documents, access=call.access, limit=KEPT, offset=KEPT)
    kinds = (DREAM, CONSOLIDATION, SNAPSHOT)
    return _drop_found(call, lambda: [one for kind in kinds for one in find(kind)])


def drop_older(call: Call, kind: str, before: datetime) -> int:
    """Delete the documents of a kind that were last changed before a time; returns how many."""
    store, offset, gone = call.engine.store, 0, 0
    while page := store.documents(kind, access=call.access, limit=PAGE, offset=offset):
        call.check()
        passed = [one.id for one in page if one.updated_at < before]
        gone += _drop_found(call, partial(_unchanged_since, call, kind, passed, before))
        offset += len(page) - len(passed)
    return gone


def _unchanged_since(call: Call, kind: str, names: Sequence[str], before: datetime) -> list[Document]:
    return [one for one in documents_by_id(call, kind, names).values() if one.updated_at < before]


def _drop_found(call: Call, find: Callable[[], Sequence[Document]]) -> int:
    """Delete what `find` returns; found again if another process was faster."""

    def attempt() -> int:
        now = call.engine.now()
        changes = [Drop(kind=one.kind, id=one.id, at=now) for one in find()]
        if changes:
            save(call, changes)
        return len(changes)

    return retry_on_conflict(call, attempt)


# -- Throttling of long work: after each piece it rests as long as the piece took
#
# Threads of one process share an interpreter, and writers share a lock. Work that pauses leaves both to
# others, such as a search during a dream.

MOST_SECONDS = 0.25
"""The longest rest: a slow machine must not make the work endless."""


class Throttle:
    """A cancellation check that rests first, and runs periodic duties."""

    def __init__(
        self,
        cancelled: Callable[[], bool],
        monotonic: Callable[[], float],
        rest: Callable[[float], object],
        duties: tuple[Callable[[], None], ...] = (),
    ) -> None:
        self._cancelled = cancelled
        self._monotonic = monotonic
        self._rest = rest
        self._duties = duties
        self._since = monotonic()

    def __call__(self) -> bool:
        """Rest, run the duties, and say whether the caller has cancelled."""
        worked = self._monotonic() - self._since
        if worked > 0:
            self._rest(min(worked, MOST_SECONDS))
        for due in self._duties:
            due()
        self._since = self._monotonic()
        return self._cancelled()

    def doing(self, due: Callable[[], None]) -> "Throttle":
        return Throttle(self._cancelled, self._monotonic, self._rest, (*self._duties, due))


def throttled(call: Call, due: Callable[[], None]) -> Call:
    """The same call, which at each `Call.check` rests (once within throttled work) and runs `due`."""
    pace = call.cancelled
    if not isinstance(pace, Throttle):
        rest = threading.Event().wait  # never set
        pace = Throttle(call.cancelled, call.engine.monotonic, rest)
    return replace(call, cancelled=pace.doing(due))
