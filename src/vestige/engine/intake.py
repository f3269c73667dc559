"""Writing foreign records in batches, each of which is a transaction, and keeping account of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from vestige.engine.context import Call
from vestige.engine.tally import Account
from vestige.errors import Conflict, Forbidden, InvalidInput, NotFound, SecretFound
from vestige.importers.brought import (
    BroughtEdge,
    BroughtInsight,
    BroughtIntention,
    BroughtMemory,
    Target,
)
from vestige.models import LogEvent
from vestige.store.changes import Change
from vestige.store.logquery import LogQuery

PAGE = 1_000
REFUSALS = (InvalidInput, Conflict, Forbidden, NotFound)
"""Errors that are about one record. Others, such as a full disk, end the import; the next run goes on."""

REDACTED = "secrets in it were blacked out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bring:
    """That a record comes in by these changes; `notes` is what else is to be said of it."""

    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()


Decided = Bring | str | None
"""What becomes of a record: it comes in, is left for a reason, or (None) is here already."""
Record = TypeVar("Record", bound=BroughtMemory | BroughtEdge | BroughtIntention | BroughtInsight)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A record that would be new here, and the changes that bring it."""

    place: str
    changes: tuple[Change, ...]
    notes: tuple[str, ...]


class Intake:
    """An import on its way. In a dry run everything is decided and nothing is written."""

    def __init__(self, call: Call, target: Target, *, dry_run: bool) -> None:
        self.account = Account()
        self.call, self.target, self.dry_run = call, target, dry_run
        self.store, self.access = call.engine.store, call.access
        self.memories: set[str] = set()
        """Memories of the file that are here by now, or would be."""

    def take(self, kind: str, batch: Sequence[Record], decide: Callable[[Record], Decided]) -> None:
        """Take in those of a batch that are new and can be. A decision may raise SecretFound."""
        wanted: list[_Wanted] = []
        for one in batch:
            decided = _decided(one, decide)
            if decided is None:
                self.account.present(kind)
            elif isinstance(decided, str):
                self.account.left(kind, one.place, decided)
            else:
                notes = (*one.notes, *decided.notes)
                wanted.append(_Wanted(place=one.place, changes=decided.changes, notes=notes))
        if wanted:
            self._write(kind, wanted)

    def _write(self, kind: str, wanted: Sequence[_Wanted]) -> None:
        """Write these records in one transaction; where that is refused, each by itself."""
        changes = [change for one in wanted for change in one.changes]
        try:
            if not self.dry_run:
                self.store.commit(changes, access=self.access)
        except REFUSALS as exc:
            if len(wanted) == 1:
                self.account.left(kind, wanted[0].place, exc.message)
                return
            for one in wanted:
                self._write(kind, [one])
            return
        for one in wanted:
            self.account.imported(kind, one.place, one.notes)

    def logged(self, kind: str) -> Iterator[LogEvent]:
        """Every event of a kind, the last one first."""
        before: int | None = None
        while page := self.store.latest(
            LogQuery(kinds=(kind,), before=before), access=self.access, limit=PAGE
        ):
            yield from page
            before = page[-1].position


def _decided(one: Record, decide: Callable[[Record], Decided]) -> Decided:
    """The decision about a record; one that may not be taken for a secret in it is left."""
    try:
        return decide(one)
    except SecretFound as exc:
        kinds = sorted({str(secret["kind"]) for secret in exc.details["secrets"]})
        return f"it holds a secret ({', '.join(kinds)})"
