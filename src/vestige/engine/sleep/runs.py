"""Long runs over the memory: each alone among all processes, each with a row in the history.

A run holds a lease that says until when. A run that was killed leaves one that ends by itself. Who reaches a
part of the store waits for runs over everything and over what his part overlaps; a run over everything waits
for its like only, so that nobody keeps the owner from his.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from vestige.core.documents import Document
from vestige.core.errors import Conflict, Forbidden, NotFound
from vestige.core.models import EVERYTHING, ROOT_SCOPE, covers
from vestige.engine.context import Call
from vestige.engine.revise import retry_on_conflict
from vestige.store.contract.changes import Drop, Put

RUNNING = "running"
"""The kind of document that has all leases of the runs of one name: whoever takes one sees the others."""
DREAM, CONSOLIDATION, SNAPSHOT = "dream", "consolidation", "snapshot"
"""Kinds of documents that are rows of a history: one for each run."""
KEPT = 100
"""Rows of each kind that are kept, the latest ones."""
PAGE = 200
LEASE = timedelta(minutes=10)
RENEWED_EVERY = timedelta(minutes=1)
ATTEMPTS = 100
"""How often a lease is written anew when others were quicker. Each time one of them got on, and a lease that
is not given back keeps a part waiting for minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunClaim:
    """That a run is under way in these scopes (None: everywhere), as it is written down."""

    id: str
    scopes: Sequence[str] | None
    since: str
    until: str

    def left(self, now: datetime) -> timedelta:
        """How long it still holds. One that would hold for longer than any does is of another clock."""
        left = datetime.fromisoformat(self.until) - now
        return left if timedelta(0) < left <= LEASE else timedelta(0)

    def keeps_out(self, other: "RunClaim") -> bool:
        """Whether the other one may not begin beside it."""
        if self.scopes is None or other.scopes is None:
            return self.scopes is None
        return any(covers(one, two) or covers(two, one) for one in self.scopes for two in other.scopes)


class Lease:
    """The right to be the only run of its name in a part of the store. A run renews it whenever it asks
    whether to go on."""

    def __init__(self, call: Call, name: str, hold: RunClaim) -> None:
        self._call = call
        self._name = name
        self._hold = hold

    def renew(self) -> None:
        """Hold it for longer, at most once a minute; Conflict if another run has taken it over."""
        now = self._call.engine.now()
        if LEASE - self._hold.left(now) < RENEWED_EVERY:
            return
        renewed = replace(self._hold, until=(now + LEASE).isoformat())
        self._exchange([renewed])
        self._hold = renewed

    def release(self) -> None:
        """Let the next one run. What another has taken over is not ours to end."""
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
def alone(call: Call, name: str) -> Iterator[Lease]:
    """Run as the only one of this name where the caller reaches, in any process; Conflict while another one
    runs there."""
    lease = Lease(call, name, _take(call, name))
    try:
        yield lease
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
        # One that has ended and could not begin beside this one is taken over; others may still be renewed.
        return [*(one for one in others if one.left(now) or not hold.keeps_out(one)), hold]

    _change(call, name, change)
    return hold


def _change(call: Call, name: str, change: Callable[[Sequence[RunClaim]], Sequence[RunClaim]]) -> None:
    """Change the leases of a name, decided anew when another run was quicker."""
    for left in reversed(range(ATTEMPTS)):
        # Where a lease is kept is no part of what its holder reaches.
        found = call.engine.store.documents(RUNNING, ids=[name], access=EVERYTHING, limit=1)
        before, now = next(iter(found), None), call.engine.now()
        holds = change([RunClaim(**one) for one in before.body.get("holds", ())] if before else [])
        document = Document(
            kind=RUNNING,
            id=name,
            version=before.version + 1 if before else 1,
            created_at=before.created_at if before else now,
            updated_at=now,
            body={"holds": [asdict(one) for one in holds]},
        )
        try:
            call.engine.store.commit([Put(document=document, logged=False)], access=EVERYTHING)
        except Conflict:
            if not left:
                raise
        else:
            return


def _busy(name: str, held: RunClaim) -> Conflict:
    since, until = (datetime.fromisoformat(moment) for moment in (held.since, held.until))
    return Conflict(
        f"A {name} has been running since {since:%Y-%m-%d %H:%M:%S} UTC.",
        hint=f"Wait for it. If it was killed, the next one can run from {until:%H:%M:%S} UTC on.",
        details={"since": held.since, "until": held.until},
    )


def _lease_lost(name: str, lost: RunClaim) -> Conflict:
    minutes = LEASE // timedelta(minutes=1)
    return Conflict(
        f"This {name} did not get on for {minutes} minutes, and another one has begun since.",
        hint="Nothing is to be done: the other one does what this one has left.",
        details={"since": lost.since, "until": lost.until},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What a run did, and where."""

    id: str
    kind: str
    at: datetime
    scope: str
    body: Mapping[str, Any]  # Any: JSON


def run_scope(call: Call) -> str:
    """The scope whose history a run over everything in reach belongs to."""
    if call.access.domains is not None:
        raise Forbidden(
            "This works on whole scopes, and this access is limited to domains.",
            hint="Use an access that is limited by scopes only.",
        )
    return call.access.scopes[0] if call.access.scopes else ROOT_SCOPE


def accessible_scope(call: Call, scope: str) -> str:
    """The scope whose history a run in this scope belongs to: itself, or what of it is in reach."""
    whole = run_scope(call)
    return scope if any(covers(one, scope) for one in call.access.scopes or (ROOT_SCOPE,)) else whole


def history_row(call: Call, kind: str, scope: str, body: Mapping[str, Any], *, logged: bool = True) -> Put:
    """The change that adds a row to the history."""
    now = call.engine.now()
    row = Document(kind=kind, id=call.engine.new_id(), body=body, scope=scope, created_at=now, updated_at=now)
    return Put(document=row, logged=logged)


def run_records(call: Call, kind: str, *, limit: int = KEPT) -> list[RunRecord]:
    """The latest runs in reach, the last one first."""
    found = call.engine.store.documents(kind, access=call.access, limit=limit)
    return [_row(document) for document in found]


def last(call: Call, kind: str, scope: str) -> RunRecord | None:
    """The last run that covered a scope: in it or above it."""
    found = call.engine.store.documents(kind, access=call.access, scope=scope, inherited=True, limit=KEPT)
    return next((_row(document) for document in found if covers(document.scope, scope)), None)


def _row(document: Document) -> RunRecord:
    return RunRecord(
        id=document.id,
        kind=document.kind,
        at=document.created_at,
        scope=document.scope,
        body=document.body,
    )


def trim(call: Call, kinds: Sequence[str]) -> int:
    """Drop the rows beyond the latest of each kind; how many."""

    def old() -> list[Document]:
        store = call.engine.store
        return [
            one
            for kind in kinds
            for one in store.documents(kind, access=call.access, limit=KEPT, offset=KEPT)
        ]

    return _drop_found(call, old)


def drop_older(call: Call, kind: str, before: datetime) -> int:
    """Drop the documents of a kind that were last changed before a moment; how many."""
    store, offset, gone = call.engine.store, 0, 0
    while page := store.documents(kind, access=call.access, limit=PAGE, offset=offset):
        call.check()
        passed = [one.id for one in page if one.updated_at < before]
        gone += _drop_found(call, partial(_unchanged_since, call, kind, passed, before))
        offset += len(page) - len(passed)
    return gone


def _unchanged_since(call: Call, kind: str, names: Sequence[str], before: datetime) -> list[Document]:
    """Those that are there and have not been changed since."""
    found = (
        call.engine.store.documents(kind, access=call.access, ids=names, limit=len(names)) if names else []
    )
    return [one for one in found if one.updated_at < before]


def _drop_found(call: Call, find: Callable[[], Sequence[Document]]) -> int:
    """Drop what is found; looked for again when another process was quicker."""

    def attempt() -> int:
        now = call.engine.now()
        changes = [Drop(kind=one.kind, id=one.id, at=now) for one in find()]
        try:
            if changes:
                call.engine.store.commit(changes, access=call.access)
        except NotFound as exc:
            raise Conflict() from exc
        return len(changes)

    return retry_on_conflict(call, attempt)
