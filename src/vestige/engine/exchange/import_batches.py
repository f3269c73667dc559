"""Import of foreign records in batches: each batch is a transaction, and every record is accounted for."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from vestige.core.errors import Conflict, Forbidden, InvalidInput, NotFound, SecretFound
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import LogEvent
from vestige.engine.context import Call
from vestige.engine.ingest import secrets
from vestige.exchange.importers.records import (
    BroughtEdge,
    BroughtInsight,
    BroughtIntention,
    BroughtMemory,
    Target,
)
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.changes import Change, Embedded

# -- The account of an import

SHOWN = 20
"""The most skipped records that are listed; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What became of the records of a kind: imported + present + left = read."""

    read: int
    imported: int
    present: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportNote:
    """A note about `count` records of a kind; `place` is the position of the first one in the file."""

    kind: str
    place: str
    what: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOutcome:
    """The result of an import, by kind. `left` has every reason for skipping with its number of records,
    `examples` the first of these records; `notes` say what was changed in imported records."""

    tallies: dict[str, Tally]
    left: tuple[ImportNote, ...] = ()
    examples: tuple[ImportNote, ...] = ()
    notes: tuple[ImportNote, ...] = ()


class ImportAccount:
    """The account of an import while it runs. Every record is entered once."""

    def __init__(self) -> None:
        self._imported: Counter[str] = Counter()
        self._present: Counter[str] = Counter()
        self._reasons: Counter[tuple[str, str]] = Counter()
        self._notes: Counter[tuple[str, str]] = Counter()
        self._places: dict[tuple[str, str], str] = {}
        self._examples: list[ImportNote] = []

    def imported(self, kind: str, place: str, notes: tuple[str, ...]) -> None:
        """Count a record that was imported, with its changes."""
        self._imported[kind] += 1
        for note in notes:
            self._notes[kind, note] += 1
            self._places.setdefault((kind, note), place)

    def present(self, kind: str) -> None:
        self._present[kind] += 1

    def left(self, kind: str, place: str, reason: str, count: int = 1) -> None:
        """Count records that were not imported."""
        if not count:
            return
        self._reasons[kind, reason] += count
        self._places.setdefault((kind, reason), place)
        if len(self._examples) < SHOWN:
            self._examples.append(ImportNote(kind=kind, place=place, what=reason, count=count))

    def outcome(self) -> ImportOutcome:
        kinds = dict.fromkeys([*self._imported, *self._present, *(kind for kind, _ in self._reasons)])
        return ImportOutcome(
            tallies={kind: self._tally(kind) for kind in kinds},
            left=self._counted(self._reasons),
            examples=tuple(self._examples),
            notes=self._counted(self._notes),
        )

    def _tally(self, kind: str) -> Tally:
        imported, present = self._imported[kind], self._present[kind]
        left = sum(count for (one, _), count in self._reasons.items() if one == kind)
        return Tally(read=imported + present + left, imported=imported, present=present, left=left)

    def _counted(self, counted: Counter[tuple[str, str]]) -> tuple[ImportNote, ...]:
        return tuple(
            ImportNote(kind=kind, place=self._places[kind, what], what=what, count=count)
            for (kind, what), count in counted.most_common()
        )


# -- Writing batches

PAGE = 1_000
REFUSALS = (InvalidInput, Conflict, Forbidden, NotFound)
"""Errors about one record. Others, such as a full disk, end the import; the next run continues it."""

REDACTED = "secrets in it were redacted"
SHORT_CHARS, MOST_CLEAN = 500, 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedRecord:
    """A record to import by these changes, with notes."""

    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()


Decided = AcceptedRecord | str | None
"""What becomes of a record: it is imported, skipped for a reason, or (None) here already."""
Record = TypeVar("Record", bound=BroughtMemory | BroughtEdge | BroughtIntention | BroughtInsight)


class Intake:
    """An import while it runs. A dry run decides everything and writes nothing."""

    def __init__(self, call: Call, target: Target, *, dry_run: bool) -> None:
        self.account = ImportAccount()
        self.call, self.target, self.dry_run = call, target, dry_run
        self.store, self.access = call.engine.store, call.access
        self.memories: set[str] = set()
        """Memories of the file that exist here now, or would after a dry run."""
        self.vectors: dict[str, Embedded] = {}
        """The vectors of the memories of a batch, if they are judged by them."""
        self.embedded = 0
        """How many memories were accepted with their vectors."""
        self._clean: set[tuple[str, str]] = set()
        """Short values of fields without a secret: they repeat in the records of a file."""

    def screen(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that hold secrets, redacted, as `screen_fields` does."""
        shown = {name: repr(value) for name, value in fields.items()}
        unknown = {name: value for name, value in fields.items() if (name, shown[name]) not in self._clean}
        clean = secrets.screen_fields(self.call, unknown)
        if len(self._clean) > MOST_CLEAN:
            self._clean.clear()
        self._clean |= {
            (name, shown[name]) for name in unknown.keys() - clean.keys() if len(shown[name]) <= SHORT_CHARS
        }
        return clean

    def take(self, kind: str, batch: Sequence[Record], decide: Callable[[Record], Decided]) -> None:
        """Import the records of a batch that are new and valid. A decision may raise SecretFound."""
        wanted: list[tuple[str, AcceptedRecord]] = []
        for one in batch:
            decided = _decide(one, decide)
            if decided is None:
                self.account.present(kind)
            elif isinstance(decided, str):
                self.account.left(kind, one.place, decided)
            else:
                wanted.append((one.place, replace(decided, notes=(*one.notes, *decided.notes))))
        if wanted:
            self._write(kind, wanted)

    def _write(self, kind: str, wanted: Sequence[tuple[str, AcceptedRecord]]) -> None:
        """Write these records in one transaction; if that is refused, each by itself."""
        try:
            if not self.dry_run:
                changes = [change for _, one in wanted for change in one.changes]
                self.store.commit(changes, access=self.access)
        except REFUSALS as exc:
            if len(wanted) == 1:
                self.account.left(kind, wanted[0][0], exc.message)
                return
            for alone in wanted:
                self._write(kind, [alone])
            return
        for place, one in wanted:
            self.account.imported(kind, place, one.notes)

    def logged(self, kind: str) -> Iterator[LogEvent]:
        """Every event of a kind, last first."""
        query = LogQuery(kinds=(kind,))
        while page := self.store.latest(query, access=self.access, limit=PAGE):
            yield from page
            query = replace(query, before=page[-1].position)


def _decide(one: Record, decide: Callable[[Record], Decided]) -> Decided:
    """The decision about a record; a record with a secret that is refused is skipped."""
    try:
        return decide(one)
    except SecretFound as exc:
        kinds = sorted({str(secret["kind"]) for secret in exc.details["secrets"]})
        return f"it holds a secret ({', '.join(kinds)})"
