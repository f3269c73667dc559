"""Copies a store: plan, copy, compare, and check that the source is unchanged."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from vestige.core.errors import InvalidInput, StoreCorrupt
from vestige.core.lazy_dataclass import dataclass
from vestige.store.contract.store import MemoryStore
from vestige.store.sql.check.fields import clocks
from vestige.store.sql.database import Database
from vestige.store.sql.merge import arrivals
from vestige.store.transfer import receipts
from vestige.store.transfer.compare import Comparison, compare
from vestige.store.transfer.ends import DestinationState, End, Progress, RowRefusal, Side
from vestige.store.transfer.receipts import CarriedState
from vestige.store.transfer.rows import BATCH, Carrier, faulty
from vestige.store.transfer.tables import PARTS


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferPlan:
    """The plan of a transfer: rows of each table, rows that cannot be copied, and the state of the
    destination. `model` names the vectors that are copied; `resumed` says that a part is there already,
    `done` that everything is."""

    rows: dict[str, int]
    refused: tuple[RowRefusal, ...]
    model: str | None
    outlook: DestinationState
    resumed: bool
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The result of a transfer. `added` rows were written by this run, which `resumed` an earlier one or not.
    `seal` is the hash of the source's bytes, if they are visible, and `untouched` says that it did not
    change. `overtaken` says that others wrote to the source in the meantime: their changes were not
    copied."""

    refused: tuple[RowRefusal, ...]
    comparison: Comparison
    model: str | None
    overtaken: bool
    added: int = 0
    resumed: bool = False
    seal: str | None = None
    untouched: bool = True

    @property
    def is_whole(self) -> bool:
        """Whether the destination equals the source."""
        return not (self.refused or self.comparison.differences or self.overtaken)


def plan(origin: End, goal: End, progress: Progress) -> TransferPlan:
    """Check both ends and every row; nothing is changed."""
    with _whole(origin) as source, source.reading() as there:
        carried = receipts.state(there)
        outlook = goal.look()
        receipt = None
        if outlook.is_store:
            with goal.source() as taken, taken.reading() as here:
                known = taken.has_receipt(here)
                receipt = receipts.admitted(here, goal.name, carried, known=known)
        rows = {part.table: part.count(there) for part in PARTS}
        return TransferPlan(
            rows=rows,
            refused=tuple(faulty(there, sum(rows.values()), progress)),
            model=_model(source.store),
            outlook=outlook,
            resumed=receipt is not None and receipt.finished is None,
            done=receipt is not None and receipt.finished is not None,
        )


def move(origin: End, goal: End, progress: Progress, *, batch: int = BATCH) -> Moved:
    """Copy the rows that are not at the destination yet, then compare both. Running it again resumes."""
    before = origin.seal()
    with _whole(origin) as source, goal.destination() as taken, source.reading() as there:
        carried = receipts.state(there)
        carrier = Carrier(
            there=there, into=taken, name=goal.name, now=goal.now, progress=progress, batch=batch
        )
        carrier.carry(carried)
        if carrier.added:
            taken.store.rebuild_index()
        moved = _compared(source, taken, there, carried, progress)
    after = origin.seal()
    return replace(moved, added=carrier.added, resumed=carrier.resumed, seal=after, untouched=before == after)


def verify(origin: End, goal: End, progress: Progress) -> Moved:
    """Only compare; nothing is changed."""
    before = origin.seal()
    with _whole(origin) as source, goal.source() as taken, source.reading() as there:
        moved = _compared(source, taken, there, receipts.state(there), progress)
    return replace(moved, seal=before, untouched=before == origin.seal())


@contextmanager
def _whole(origin: End) -> Iterator[Side]:
    """The source store; StoreError where it is itself an incomplete destination."""
    with origin.source() as source:
        with source.reading() as db:
            if source.has_receipt(db) and not arrivals.is_complete(db):
                raise arrivals.incomplete(origin.name)
            ahead = [one for one in clocks(db, origin.now()) if one.repair is not None]
            if ahead:
                raise InvalidInput(
                    ahead[0].message,
                    hint="Run `vestige doctor --repair` on this store first.",
                    details={"store": origin.name},
                )
        yield source


def _compared(source: Side, taken: Side, there: Database, carried: CarriedState, progress: Progress) -> Moved:
    with taken.reading() as here:
        refused = receipts.refused(here) if taken.has_receipt(here) else []
        comparison = compare(there, here, (source.store, taken.store), refused, progress)
    with source.reading() as later:
        overtaken = receipts.state(later) != carried
    return Moved(
        refused=tuple(refused),
        comparison=comparison.of_rows() if overtaken else comparison,
        model=_model(source.store),
        overtaken=overtaken,
    )


def _model(store: MemoryStore) -> str | None:
    signature = store.signature()
    return None if signature is None else signature.profile


# -- Backup into a file

_NAME = "vestige.db"


def copy_into_file(ends: Callable[[Path], tuple[End, End]], destination: Path) -> None:
    """Write the state of a store at one moment into a new file. `ends` names the store and a file to copy it
    to. The copy is made in a folder of its own, because an open store has files beside it; its backup is
    verified before it gets its name."""
    if destination.exists():
        raise InvalidInput(
            f"{destination} exists already.", hint="Give the backup a new name; nothing is overwritten."
        )
    if not destination.parent.is_dir():
        raise InvalidInput(f"The directory {destination.parent} does not exist.")
    with tempfile.TemporaryDirectory(
        prefix=f".{destination.name}.", suffix=".partial", dir=destination.parent
    ) as folder:
        origin, file = ends(Path(folder) / _NAME)
        moved = move(origin, file, lambda done, total, what: None)
        if moved.refused or moved.comparison.differences:
            raise StoreCorrupt(
                "The copy differs from the store, so it was discarded.",
                hint="`vestige doctor` finds the damage. `vestige migrate --from postgres --to "
                "PATH` copies what can be read.",
                details={
                    "rows": [f"{one.table} {one.name}: {one.reason}" for one in moved.refused[:20]],
                    "differences": len(moved.comparison.differences),
                },
            )
        with file.destination() as side:
            side.store.backup(destination)
