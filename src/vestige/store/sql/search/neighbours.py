"""The table of neighbour lists: read, brought up to date with the vectors, and written back.

It is behind after every write of vectors and caught up with before it is used, so that a write pays nothing.
The lists of one version are complete among each other (`cognition.graph.neighbour_lists`); vectors without a
list are those that came since. Lists that were made from an earlier version are never written.
"""

from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.graph.neighbour_lists import (
    KEPT,
    MOST_LISTED,
    NOTHING,
    Ints,
    NeighbourLists,
    Vectors,
    brought_up,
    rounded,
    whole_vectors,
)
from vestige.core.errors import StoreBusy, StoreReadOnly
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ANYTHING, Access
from vestige.store.contract.answers import NearestMemories
from vestige.store.sql.database import Database, Transactions
from vestige.store.sql.filters import clause
from vestige.store.sql.rows import store_facts

BATCH = 4_096
LIVING = (
    "SELECT min(v.id), m.id FROM vectors v JOIN memories m ON m.key = v.key"
    " WHERE v.profile = ? AND v.text_hash = m.text_hash GROUP BY m.key, m.id ORDER BY 1"
)
"""The memories with vectors of a profile for their present text, by their first vector."""
VISIBLE = "SELECT m.id FROM memories m WHERE {reach}"
HELD = "SELECT vector_id, floor, near FROM neighbours ORDER BY vector_id"
PIECES = (
    "SELECT v.id, v.key, v.vector FROM vectors v JOIN memories m ON m.key = v.key"
    " WHERE v.profile = ? AND v.text_hash = m.text_hash AND v.id > ? ORDER BY v.id LIMIT ?"
)
VERSION = "SELECT version FROM neighbours_version"
NEXT_VERSION = "UPDATE neighbours_version SET version = version + 1"
PUT = (
    "INSERT INTO neighbours (vector_id, floor, near) SELECT ?, ?, ? WHERE EXISTS"
    " (SELECT 1 FROM vectors WHERE id = ?)"
    " ON CONFLICT (vector_id) DO UPDATE SET floor = excluded.floor, near = excluded.near"
)
EMPTY = "DELETE FROM neighbours"
ENTRY = np.dtype([("name", "<i8"), ("product", "<i4")])
"""An entry of a list as it is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedMemories:
    """The lists of a snapshot, the id of the memory of each vector, and those of the memories within the
    access. `missing` vectors have no list yet."""

    version: int
    profile: int
    ids: dict[int, str]
    visible: frozenset[str] | None
    lists: NeighbourLists
    missing: Ints

    @property
    def names(self) -> Ints:
        return np.fromiter(self.ids, dtype=np.int64, count=len(self.ids))


def read(
    tables: Transactions, *, access: Access, most_products: int | None, check: Callable[[], None]
) -> NearestMemories | None:
    """The neighbours of all accessible memories, after catching up; None where that takes more products than
    `most_products`: then as many as that allows are done, and the next call goes on. None also where there
    are more than MOST_LISTED, without doing anything."""

    def look(db: Database) -> tuple[ListedMemories, Vectors | None] | None:
        profile = store_facts.profile(db)
        return None if profile is None else _looked(db, profile, access)

    looked = tables.read(look)
    if looked is None:
        return NearestMemories.of({}, NeighbourLists.none())
    held, whole = looked
    complete = True
    if whole is None:
        lists = held.lists
    elif len(held.ids) > MOST_LISTED:
        return None
    else:
        names, whole, complete = _affordable(held, whole, most_products)
        lists, changed = brought_up(held.lists, names, whole, check)
        # Who cannot write now still has the right lists in hand; the next one catches up.
        with suppress(StoreBusy, StoreReadOnly):
            tables.written(lambda db: _save(db, held.version, lists, changed))
    if not complete:
        return None
    ids = {name: one for name, one in held.ids.items() if held.visible is None or one in held.visible}
    return NearestMemories.of(ids, lists)


def empty(db: Database) -> None:
    """Forget all lists, so that they are made again."""
    db.execute(EMPTY)
    db.execute(NEXT_VERSION)


def _looked(
    db: Database, profile: store_facts.Profile, access: Access
) -> tuple[ListedMemories, Vectors | None]:
    """The lists as they are stored; with the vectors if the lists have to be brought up to date."""
    ids: dict[int, str] = dict(db.execute(LIVING, (profile.id,)).fetchall())
    reach = clause(ANYTHING, access)
    visible = None
    if reach.conditions:
        rows = db.execute(VISIBLE.format(reach=reach.sql), reach.params)
        visible = frozenset(row[0] for row in rows)
    names = np.fromiter(ids, dtype=np.int64, count=len(ids))
    lists = _stored(db, names)
    held = ListedMemories(
        version=db.execute(VERSION).fetchone()[0],
        profile=profile.id,
        ids=ids,
        visible=visible,
        lists=lists,
        missing=np.setdiff1d(names, lists.names, assume_unique=True),
    )
    stale = len(held.missing) or not np.isin(lists.near[lists.near >= 0], names).all()
    return held, _wholes(db, profile, names) if stale else None


def _affordable(
    held: ListedMemories, whole: Vectors, most_products: int | None
) -> tuple[Ints, Vectors, bool]:
    """The vectors to list now, and whether these are all."""
    names = held.names
    most = len(names) if most_products is None else most_products // max(1, len(names))
    if len(held.missing) <= most:
        return names, whole, True
    left = np.isin(names, held.missing[most:])
    return names[~left], whole[~left], False


def _stored(db: Database, names: Ints) -> NeighbourLists:
    """The stored lists of these vectors."""
    rows = db.execute(HELD).fetchall()
    rows = [row for row in rows if len(row[2]) % ENTRY.itemsize == 0 and len(row[2]) <= KEPT * ENTRY.itemsize]
    owners = np.array([row[0] for row in rows], dtype=np.int64)
    lengths = np.array([len(row[2]) // ENTRY.itemsize for row in rows], dtype=np.int64)
    entries = np.frombuffer(b"".join(bytes(row[2]) for row in rows), dtype=ENTRY)
    near = np.full((len(rows), KEPT), -1, dtype=np.int64)
    products = np.full((len(rows), KEPT), NOTHING, dtype=np.int64)
    there = np.arange(KEPT) < lengths[:, np.newaxis]
    near[there], products[there] = entries["name"], entries["product"]
    ours = np.isin(owners, names)
    floors = np.array([row[1] for row in rows], dtype=np.int64)
    return NeighbourLists(names=owners[ours], near=near[ours], products=products[ours], floors=floors[ours])


def _wholes(db: Database, profile: store_facts.Profile, names: Ints) -> Vectors:
    """The rounded vectors of memories, in the order of their first vectors."""
    keys: list[int] = []
    batches: list[NDArray[np.float32]] = []
    last = 0
    while rows := db.execute(PIECES, (profile.id, last, BATCH)).fetchall():
        last = rows[-1][0]
        keys += [row[1] for row in rows]
        batches.append(np.frombuffer(b"".join(row[2] for row in rows), dtype="<f4").reshape(len(rows), -1))
    pieces = np.concatenate(batches)
    batches.clear()
    whole = whole_vectors(pieces, np.array(keys, dtype=np.int64))
    if len(whole) != len(names):
        raise StoreBusy("The vectors changed while they were read.", hint="Try again.")
    return rounded(whole)


def _save(db: Database, version: int, lists: NeighbourLists, changed: NDArray[np.bool_]) -> None:
    """Write the lists that changed, unless they were made from an earlier version than the stored one."""
    if db.execute(VERSION).fetchone()[0] != version:
        return
    rows = np.flatnonzero(changed).tolist()
    if not rows:
        return
    db.execute(NEXT_VERSION)
    db.executemany(PUT, [_row(lists, row) for row in rows])


def _row(lists: NeighbourLists, row: int) -> tuple[int, int, bytes, int]:
    there = lists.near[row] >= 0
    entries = np.empty(int(there.sum()), dtype=ENTRY)
    entries["name"], entries["product"] = lists.near[row][there], lists.products[row][there]
    name = int(lists.names[row])
    return name, int(lists.floors[row]), entries.tobytes(), name
