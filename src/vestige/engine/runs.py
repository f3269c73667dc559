"""Long runs over the memory: each alone among all processes, each with a row in the history.

A run holds a lease, a document that says until when. A run that was killed leaves one that ends by itself.
Who reaches a part of the store holds the lease of that part: he waits for runs over everything, which never
wait for him.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import blake2b
from typing import Any

from vestige.documents import Document
from vestige.engine.context import Call
from vestige.engine.revising import persistently
from vestige.errors import Conflict, Forbidden, NotFound
from vestige.models import EVERYTHING, ROOT_SCOPE, covers
from vestige.store.changes import Drop, Put

RUNNING = "running"
DREAM, CONSOLIDATION, SNAPSHOT = "dream", "consolidation", "snapshot"
"""Kinds of documents that are rows of a history: one for each run."""
KEPT = 100
"""Rows of each kind that are kept, the latest ones."""
PAGE = 200
LEASE = timedelta(minutes=10)
RENEWED_EVERY = timedelta(minutes=1)


class Lease:
    """The right to be the only run of its name. A run renews it whenever it asks whether to go on."""

    def __init__(self, call: Call, name: str, document: Document) -> None:
        self._call = call
        self._name = name
        self._document = document

    def renew(self) -> None:
        """Hold it for longer, at most once a minute; Conflict if another run has taken it over."""
        now = self._call.engine.now()
        if LEASE - _left(self._document, now) < RENEWED_EVERY:
            return
        try:
            self._put({**self._document.body, "until": (now + LEASE).isoformat()}, now)
        except Conflict as exc:
            raise _overtaken(self._name, self._document) from exc

    def release(self) -> None:
        """Let the next one run. What another has taken over is not ours to end."""
        try:
            self._put({}, self._call.engine.now())
        except Conflict:
            return

    def _put(self, body: Mapping[str, Any], now: datetime) -> None:
        version = self._document.version + 1
        document = replace(self._document, version=version, updated_at=now, body=body)
        # Where a lease is kept is no part of what its holder reaches.
        self._call.engine.store.commit([Put(document=document, logged=False)], access=EVERYTHING)
        self._document = document


@contextmanager
def alone(call: Call, name: str) -> Iterator[Lease]:
    """Run as the only one of this name in any process; Conflict while another does."""
    lease = Lease(call, name, persistently(call, lambda: _take(call, name)))
    try:
        yield lease
    finally:
        lease.release()


def _take(call: Call, name: str) -> Document:
    store, now, own = call.engine.store, call.engine.now(), _lease_of(call, name)
    wanted = list({name, own})
    there = {
        one.id: one for one in store.documents(RUNNING, ids=wanted, access=EVERYTHING, limit=len(wanted))
    }
    for held in there.values():
        if _left(held, now):
            raise _busy(name, held)
    before = there.get(own)
    document = Document(
        kind=RUNNING,
        id=own,
        version=before.version + 1 if before else 1,
        created_at=before.created_at if before else now,
        updated_at=now,
        body={"since": now.isoformat(), "until": (now + LEASE).isoformat()},
    )
    store.commit([Put(document=document, logged=False)], access=EVERYTHING)
    return document


def _lease_of(call: Call, name: str) -> str:
    """What the lease of a run of this name is called: a scope may be longer than the id of a document."""
    if call.access == EVERYTHING:
        return name
    return f"{name} {blake2b(reach(call).encode(), digest_size=16).hexdigest()}"


def _left(lease: Document, now: datetime) -> timedelta:
    """How long a lease still holds. One that would hold for longer than any does is of another clock."""
    if "until" not in lease.body:
        return timedelta(0)
    left = datetime.fromisoformat(lease.body["until"]) - now
    return left if timedelta(0) < left <= LEASE else timedelta(0)


def _busy(name: str, held: Document) -> Conflict:
    since, until = (datetime.fromisoformat(held.body[name]) for name in ("since", "until"))
    return Conflict(
        f"A {name} has been running since {since:%Y-%m-%d %H:%M:%S} UTC.",
        hint=f"Wait for it. If it was killed, the next one can run from {until:%H:%M:%S} UTC on.",
        details={"since": held.body["since"], "until": held.body["until"]},
    )


def _overtaken(name: str, lost: Document) -> Conflict:
    minutes = LEASE // timedelta(minutes=1)
    return Conflict(
        f"This {name} did not get on for {minutes} minutes, and another one has begun since.",
        hint="Nothing is to be done: the other one does what this one has left.",
        details={"since": lost.body["since"], "until": lost.body["until"]},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a run did, and where."""

    id: str
    kind: str
    at: datetime
    scope: str
    body: Mapping[str, Any]  # Any: JSON


def reach(call: Call) -> str:
    """The scope whose history a run over everything in reach belongs to."""
    if call.access.domains is not None:
        raise Forbidden(
            "This works on whole scopes, and this access is limited to domains.",
            hint="Use an access that is limited by scopes only.",
        )
    return call.access.scopes[0] if call.access.scopes else ROOT_SCOPE


def within_reach(call: Call, scope: str) -> str:
    """The scope whose history a run in this scope belongs to: itself, or what of it is in reach."""
    whole = reach(call)
    return scope if any(covers(one, scope) for one in call.access.scopes or (ROOT_SCOPE,)) else whole


def written(call: Call, kind: str, scope: str, body: Mapping[str, Any], *, logged: bool = True) -> Put:
    """The change that adds a row to the history."""
    now = call.engine.now()
    row = Document(kind=kind, id=call.engine.new_id(), body=body, scope=scope, created_at=now, updated_at=now)
    return Put(document=row, logged=logged)


def rows(call: Call, kind: str, *, limit: int = KEPT) -> list[Row]:
    """The latest runs in reach, the last one first."""
    found = call.engine.store.documents(kind, access=call.access, limit=limit)
    return [_row(document) for document in found]


def last(call: Call, kind: str, scope: str) -> Row | None:
    """The last run that covered a scope: in it or above it."""
    found = call.engine.store.documents(kind, access=call.access, scope=scope, inherited=True, limit=KEPT)
    return next((_row(document) for document in found if covers(document.scope, scope)), None)


def _row(document: Document) -> Row:
    return Row(
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

    return _dropped(call, old)


def drop_older(call: Call, kind: str, before: datetime) -> int:
    """Drop the documents of a kind that were last changed before a moment; how many."""
    store, offset, gone = call.engine.store, 0, 0
    while page := store.documents(kind, access=call.access, limit=PAGE, offset=offset):
        call.check()
        passed = [one.id for one in page if one.updated_at < before]
        gone += _dropped(call, partial(_still, call, kind, passed, before))
        offset += len(page) - len(passed)
    return gone


def _still(call: Call, kind: str, names: Sequence[str], before: datetime) -> list[Document]:
    """Those that are there and have not been changed since."""
    found = (
        call.engine.store.documents(kind, access=call.access, ids=names, limit=len(names)) if names else []
    )
    return [one for one in found if one.updated_at < before]


def _dropped(call: Call, find: Callable[[], Sequence[Document]]) -> int:
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

    return persistently(call, attempt)
