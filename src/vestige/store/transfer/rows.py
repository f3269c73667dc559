"""Carrying the rows of a store into an empty one, in batches that are there whole or not at all."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from vestige.store.sql.columns import moment_text
from vestige.store.sql.database import Database, Row
from vestige.store.sql.rows import log, memories, strengths
from vestige.store.sql.search import word_rows
from vestige.store.transfer import receipts, row_keys
from vestige.store.transfer.ends import Progress, RowRefusal, Side, UnfitRow
from vestige.store.transfer.receipts import CarriedState, Receipt
from vestige.store.transfer.tables import MEMORIES, PARTS, CarriedRow, TableSpec

NO_MEMORY = "the memory it is about is not there"
BATCH = 1_000
"""Rows in one transaction: large enough that the transaction costs little, small enough that others can write
between two of them and little is done twice after a kill."""


@dataclass(slots=True, kw_only=True)
class Carrier:
    """Carries what `there` sees into a destination, and remembers how far it is."""

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
        """Carry all that is not there yet."""
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
                word_rows.rebuild(
                    db, {}, self.into.surfaces
                )  # nothing: it notes by which analyser words come
                begun = moment_text(self.now())
                known = Receipt(node=carried.node, digest=carried.digest, begun=begun)
                receipts.keep(db, known)
            else:
                self.resumed = True
        self._receipt = known

    def _carry(self, part: TableSpec) -> None:
        after = self._receipt.after if self._receipt.part == part.table else None
        for rows in part.batches(self.there, after, self.batch):
            # What is slow (analysing) is done before the lock is taken.
            items = part.items(self.there, rows)
            self._deliver(part, items, self._receipt.reached(part, part.key(rows[-1])))
            self._done += len(rows)
            self.progress(self._done, self._total, f"Carrying {part.table}")

    def _deliver(self, part: TableSpec, items: Sequence[CarriedRow], reached: Receipt) -> None:
        """Write a batch, what of it cannot be written, and how far that is, all in one transaction."""
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
        """Write rows; those that the database does not take are found by halves."""
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
        """What is one for the whole store, and the end of the receipt."""
        with self.into.writing() as db:
            receipts.require_same(db, self.name, self.into.store.node, self._receipt)
            strengths.tune(db, strengths.curve(self.there))
            log.advance(db, log.reading(self.there))
            self.into.number_on(db)
            self._receipt = replace(self._receipt, finished=moment_text(self.now()))
            receipts.keep(db, self._receipt)


def faulty(there: Database, total: int, progress: Progress) -> Iterator[RowRefusal]:
    """What can be seen of the rows that would not be carried. Only the database itself knows all of them."""
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
            progress(done, total, f"Looking at {part.table}")


def refusal(there: Database, part: TableSpec, row: Row, reason: str) -> RowRefusal:
    """That a row is not carried, by the name it has in the source."""
    name, reason = _name(there, part, row), printable(reason)
    return RowRefusal(table=part.table, key=key_text(part, row), name=name, reason=reason)


def key_text(part: TableSpec, row: Row) -> str:
    """What a row is found by, as a text."""
    return row_keys.written(part.key(row))


def _parted(
    part: TableSpec, items: Sequence[CarriedRow], present: set[int]
) -> tuple[list[CarriedRow], list[tuple[CarriedRow, str]]]:
    """The rows that can be carried, and the others with the reason."""
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
    """Which of the memories that rows are about are there."""
    asked = sorted({key for one in items if one.fault is None for key in part.memory_keys(one.row)})
    return set(memories.ids_of(db, asked)) if asked else set()


def _name(there: Database, part: TableSpec, row: Row) -> str:
    """What a row is called: the ids of its memories rather than their keys."""
    ids = memories.ids_of(there, [key for key in part.memory_keys(row) if isinstance(key, int)])
    if part is MEMORIES:
        return printable(row[part.place("id")])
    told = [
        str(ids.get(value, value)) if name in part.of_memories else str(value)
        for name, value in zip(part.order, part.key(row), strict=True)
    ]
    return printable(", ".join(told))


def printable(value: object) -> str:
    """A text without what no text may hold."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\0")
