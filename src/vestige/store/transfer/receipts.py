"""The receipt of a transfer in its destination: the source, its state, and the progress.

It is written in the same transaction as the rows it covers, so an interrupted run leaves both or neither, and
the next run continues after them. It stays when the transfer is done: by it a second run knows that there is
nothing to do.
"""

from dataclasses import asdict, replace
from hashlib import blake2b

import orjson

from vestige.core.errors import StoreBusy, StoreError
from vestige.core.lazy_dataclass import dataclass
from vestige.store.sql.database import Database
from vestige.store.sql.filters import json_text
from vestige.store.sql.merge import arrivals
from vestige.store.transfer import row_keys
from vestige.store.transfer.ends import RowRefusal
from vestige.store.transfer.row_keys import Key
from vestige.store.transfer.tables import API_KEYS, ENDED_LOGINS, PARTS, PROFILES, STRENGTHS, TableSpec

MAKE = (
    "CREATE TABLE IF NOT EXISTS transfer (one BIGINT PRIMARY KEY CHECK (one = 1), receipt TEXT NOT NULL)",
    'CREATE TABLE IF NOT EXISTS transfer_refusals ("table" TEXT NOT NULL, key TEXT NOT NULL,'
    ' name TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY ("table", key))',
)
KEEP = (
    "INSERT INTO transfer (one, receipt) VALUES (1, ?)"
    " ON CONFLICT (one) DO UPDATE SET receipt = excluded.receipt"
)
REFUSE = 'INSERT INTO transfer_refusals ("table", key, name, reason) VALUES (?, ?, ?, ?)'
REFUSED = 'SELECT "table", key, name, reason FROM transfer_refusals ORDER BY "table", key'
OWN = "SELECT 1 FROM events WHERE node = (SELECT node FROM installation) LIMIT 1"
"""Whether a store has an event of its own."""
LOOKED_AT = 10_000
GROWN = "SELECT coalesce(max(seq), 0) FROM places", "SELECT coalesce(max(position), 0) FROM dead_vectors"
"""Numbers that grow with changes that keep the number of rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedState:
    """The source of a transfer and its state. `position` is the last position of its log."""

    node: str
    digest: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The progress of a transfer: all parts before `part`, and of that the rows up to the key `after`."""

    node: str
    digest: str
    begun: str
    part: str = PARTS[0].table
    after: Key | None = None
    finished: str | None = None

    def behind(self, part: TableSpec) -> bool:
        tables = [one.table for one in PARTS]
        return self.finished is not None or tables.index(part.table) < tables.index(self.part)

    def reached(self, part: TableSpec, after: Key | None) -> "Receipt":
        return replace(self, part=part.table, after=after)


def state(db: Database) -> CarriedState:
    """A digest of a store's state: it changes with every write. Almost every write leaves an event, changes
    the number of rows, or increases a number. The exceptions are read whole: strengths that are folded again
    from the log, the profile in use, the state of keys, and ended logins."""
    (node,) = db.execute("SELECT node FROM installation").fetchone() or ("",)
    counts = [part.count(db) for part in PARTS]
    grown = [db.execute(sql).fetchone()[0] for sql in GROWN]
    (clock,) = db.execute("SELECT reading FROM clock").fetchone()
    last = db.execute("SELECT position, node, seq FROM events ORDER BY position DESC LIMIT 1").fetchone()
    digest = blake2b(row_keys.written([node, counts, grown, clock, *(last or ())]).encode(), digest_size=16)
    for part in (PROFILES, STRENGTHS, API_KEYS, ENDED_LOGINS):
        for rows in part.batches(db, None, LOOKED_AT):
            digest.update(repr(rows).encode())
    return CarriedState(node=str(node), digest=digest.hexdigest(), position=last[0] if last else 0)


def make(db: Database) -> None:
    for sql in MAKE:
        db.execute(sql)


def found(db: Database) -> Receipt | None:
    """The receipt of a store that has the table for it."""
    row = db.execute(arrivals.RECEIPT).fetchone()
    if row is None:
        return None
    values = orjson.loads(row[0])
    after = values.pop("after")
    return Receipt(**values, after=None if after is None else row_keys.read(after))


def keep(db: Database, receipt: Receipt) -> None:
    after = None if receipt.after is None else row_keys.written(receipt.after)
    db.execute(KEEP, (json_text(asdict(receipt) | {"after": after}),))


def refuse(db: Database, refusals: list[RowRefusal]) -> None:
    db.executemany(REFUSE, [(one.table, one.key, one.name, one.reason) for one in refusals])


def refused(db: Database) -> list[RowRefusal]:
    """The rows that were not copied, by any run."""
    return [
        RowRefusal(table=row[0], key=row[1], name=row[2], reason=row[3])
        for row in db.execute(REFUSED).fetchall()
    ]


def admitted(db: Database, name: str, carried: CarriedState, *, known: bool = True) -> Receipt | None:
    """The receipt of the same store in the same state; None in an empty destination. StoreError for a
    destination that holds anything else. `known` says whether the table of the receipt exists."""
    receipt = found(db) if known else None
    if receipt is None:
        _require_empty(db, name)
        return None
    if receipt.node != carried.node:
        raise StoreError(
            f"{name} holds memories that were copied there from another store.",
            hint="Give an empty destination: another schema, database or file.",
            details={"destination": name, "begun": receipt.begun},
        )
    if receipt.digest == carried.digest:
        _require_unused(db, name, receipt)
        return receipt
    if receipt.finished is not None:
        raise StoreError(
            f"The store was already copied to {name} on {receipt.finished}, and was changed since.",
            hint="Nothing was changed. Copy the changes with `vestige sync` or `vestige export`, or copy "
            "everything again into an empty destination.",
            details={"destination": name, "finished": receipt.finished},
        )
    raise StoreError(
        f"The store was changed since its transfer to {name} began, which holds a part of the earlier state.",
        hint="Nothing was changed. Empty the destination (drop its schema, or remove its file) and start "
        "again, after stopping everything that writes to the source.",
        details={"destination": name, "begun": receipt.begun},
    )


def _require_unused(db: Database, name: str, receipt: Receipt) -> None:
    """StoreError for a destination that was changed after the transfer."""
    if receipt.finished is None or not db.execute(OWN).fetchone():
        return
    raise StoreError(
        f"The store was already copied to {name} on {receipt.finished}, and that one was changed since: they"
        " are two stores now.",
        hint="Nothing was changed. Work with the destination, which has everything; `vestige sync` merges "
        "both.",
        details={"destination": name, "finished": receipt.finished},
    )


def require_same(db: Database, name: str, node: str, expected: Receipt) -> None:
    """StoreBusy when another process copies to the same destination, or anything else writes to it."""
    if found(db) != expected:
        raise StoreBusy(
            f"Another process is copying a store to {name}.",
            hint="Let it finish; then run the same command again to verify it.",
            details={"destination": name},
        )
    if db.execute("SELECT 1 FROM events WHERE node = ? LIMIT 1", (node,)).fetchone():
        raise StoreBusy(
            f"Something else writes to {name}, which is not complete yet.",
            hint="Stop it, empty the destination and start again.",
            details={"destination": name},
        )


def _require_empty(db: Database, name: str) -> None:
    held = {part.table: part.count(db) for part in PARTS}
    if any(held.values()):
        raise StoreError(
            f"{name} is not empty: it holds {held['memories']} memories, {held['events']} events and"
            f" {held[API_KEYS.table]} API keys.",
            hint="Give an empty destination: another schema, database or file. `vestige import` merges "
            "stores.",
            details={"destination": name, "held": {table: n for table, n in held.items() if n}},
        )
