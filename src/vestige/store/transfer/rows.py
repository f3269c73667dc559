"""Copies the rows of a store into an empty one, in batches that are written whole or not at all."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from datetime import datetime

from vestige.core.lazy_dataclass import dataclass
from vestige.store.sql.database import Database, Row
from vestige.store.sql.filters import moment_text
from vestige.store.sql.rows import history, memories, strengths
from vestige.store.sql.search import index_rows
from vestige.store.transfer import receipts, row_keys
from vestige.store.transfer.ends import Progress, RowRefusal, Side, UnfitRow
from vestige.store.transfer.receipts import CarriedState, Receipt
from vestige.store.transfer.tables import MEMORIES, PARTS, CarriedRow, TableSpec

NO_MEMORY = "its memory does not exist"
BATCH = 1_000
"""Rows per transaction: enough that its cost is small, few enough that others can write in between and little
is repeated after an interruption."""


@dataclass(slots=True, kw_only=True)
class Carrier:
    """Copies the rows that `there` sees into a destination, and records the progress."""

    there: Database
    into: Side
    name: str
    now: Callable[[], datetime]
    progress: Progress
    batch: int = BATCH
    added: int = 0
    resumed: bool = False
    _done: int = 0
    _total: int = 0
    _receipt: Receipt = field(init=False)

    def carry(self, carried: CarriedState) -> None:
        self._begin(carried)
        self._total = sum(part.count(self.there) for part in PARTS)
        for part in PARTS:
            if self._receipt.behind(part):
                self._done += part.count(self.there)
            else:
                self._carry(part)
        if self._receipt.finished is None:
            self._finish()

    def _begin(self, carried: CarriedState) -> None:
        with self.into.writing() as db:
            receipts.make(db)
            known = receipts.admitted(db, self.name, carried)
            if known is None:
                index_rows.rebuild(
                    db, {}, self.into.surfaces
                )  # no memory yet: this records the version of the analyser
                begun = moment_text(self.now())
                known = Receipt(node=carried.node, digest=carried.digest, begun=begun)
                receipts.keep(db, known)
            else:
                self.resumed = True
        self._receipt = known

    def _carry(self, part: TableSpec) -> None:
        after = self._receipt.after if self._receipt.part == part.table else None
        for rows in part.batches(self.there, after, self.batch):
            # Analysing is slow, so it is done before the lock is taken.
            items = part.items(self.there, rows)
            self._deliver(part, items, self._receipt.reached(part, part.key(rows[-1])))
            self._done += len(rows)
            self.progress(self._done, self._total, f"Carrying {part.table}")

    def _deliver(self, part: TableSpec, items: Sequence[CarriedRow], reached: Receipt) -> None:
        """Write a batch, its refused rows and the progress, all in one transaction."""
        with self.into.writing() as db:
            receipts.require_same(db, self.name, self.into.store.node, self._receipt)
            fit, refused = _parted(part, items, _present(db, part, items))
            late = list(self._put(db, part, fit))
            receipts.refuse(
                db, [refusal(self.there, part, one.row, reason) for one, reason in (*refused, *late)]
            )
            receipts.keep(db, reached)
        self._receipt = reached
        self.added += len(fit) - len(late)

    def _put(
        self, db: Database, part: TableSpec, items: Sequence[CarriedRow]
    ) -> Iterator[tuple[CarriedRow, str]]:
        """Write rows; those that the database refuses are found by bisection."""
        if not items:
            return
        try:
            with self.into.attempt(db):
                part.put(db, items, self.into.surfaces)
        except UnfitRow as exc:
            if len(items) == 1:
                yield items[0], str(exc)
                return
            middle = len(items) // 2
            yield from self._put(db, part, items[:middle])
            yield from self._put(db, part, items[middle:])

    def _finish(self) -> None:
        """Write the values that exist once per store, and complete the receipt."""
        with self.into.writing() as db:
            receipts.require_same(db, self.name, self.into.store.node, self._receipt)
            strengths.tune(db, strengths.curve(self.there))
            history.advance(db, history.reading(self.there))
            self.into.number_on(db)
            self._receipt = replace(self._receipt, finished=moment_text(self.now()))
            receipts.keep(db, self._receipt)


def faulty(there: Database, total: int, progress: Progress) -> Iterator[RowRefusal]:
    """The rows that would be refused, as far as it can be checked without writing."""
    lost: set[int] = set()
    done = 0
    for part in PARTS:
        for rows in part.batches(there, None, BATCH):
            items = part.items(there, rows)
            _, refused = _parted(part, items, _present(there, part, items) - lost)
            if part is MEMORIES:
                lost.update(one.row[0] for one, _ in refused)
            yield from (refusal(there, part, one.row, reason) for one, reason in refused)
            done += len(rows)
            progress(done, total, f"Checking {part.table}")


def refusal(there: Database, part: TableSpec, row: Row, reason: str) -> RowRefusal:
    """The refusal of a row, by its name in the source."""
    name, reason = _name(there, part, row), printable(reason)
    return RowRefusal(table=part.table, key=key_text(part, row), name=name, reason=reason)


def key_text(part: TableSpec, row: Row) -> str:
    return row_keys.written(part.key(row))


def _parted(
    part: TableSpec, items: Sequence[CarriedRow], present: set[int]
) -> tuple[list[CarriedRow], list[tuple[CarriedRow, str]]]:
    """The rows that can be copied, and the others with the reason."""
    fit: list[CarriedRow] = []
    refused: list[tuple[CarriedRow, str]] = []
    for one in items:
        fault = one.fault or (None if present.issuperset(part.memory_keys(one.row)) else NO_MEMORY)
        if fault is None:
            fit.append(one)
        else:
            refused.append((one, fault))
    return fit, refused


def _present(db: Database, part: TableSpec, items: Sequence[CarriedRow]) -> set[int]:
    """The memories of these rows that exist."""
    asked = sorted({key for one in items if one.fault is None for key in part.memory_keys(one.row)})
    return set(memories.ids_of(db, asked)) if asked else set()


def _name(there: Database, part: TableSpec, row: Row) -> str:
    """The name of a row: the ids of its memories instead of their keys."""
    ids = memories.ids_of(there, [key for key in part.memory_keys(row) if isinstance(key, int)])
    if part is MEMORIES:
        return printable(row[part.place("id")])
    values = [
        str(ids.get(value, value)) if name in part.of_memories else str(value)
        for name, value in zip(part.order, part.key(row), strict=True)
    ]
    return printable(", ".join(values))


def printable(value: object) -> str:
    """A text without invalid characters."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\0")
