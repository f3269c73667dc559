"""Neighbour lists: for each vector, the nearest others, kept while vectors come and go.

A list has every other vector whose product is above its `floor`. So it answers for any part of the vectors:
where enough of that part are in the list, they are the nearest; only where they are not, the vector is
compared with all again. A vector that goes leaves the lists as they are, one that comes is compared once
with all others.

Products are those of vectors whose components are rounded to whole numbers, so that each is exact in single
precision, whatever the order of the sum: a list depends neither on the library, nor on what is computed
together, nor on the order in which vectors came.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from vestige.core.lazy_dataclass import dataclass

Ints = NDArray[np.int64]
Vectors = NDArray[np.float32]
Flags = NDArray[np.bool_]

KEPT = 24
"""The length of a list: discovery needs ten of those that take part, duplicates five of the same scope."""
SHORT = 12
"""A list from which others have gone is made again below this length."""
SCALE = 4_064
"""The length of a rounded vector: the product of two, and each part of its sum, is at most 2**24 up to
4,096 dimensions, and so exact."""
UNIT = float(SCALE * SCALE)
"""The product of a vector with itself, but for rounding."""
NOTHING = -(2**25)
"""Below every product: the floor of a list that has all others, and the product of a place without one."""
MOST_LISTED = 200_000
"""Of more vectors no lists are made, because all pairs would take hours."""
PRODUCTS = 8_000_000
"""The most products that are computed at once: 32 MB."""
BATCH = 4_096
CHUNK = 64
"""Products whose highest stands for all of them while the best are looked for."""
CROWD = 8
"""More than this number of times the wanted ones are not sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourLists:
    """The lists of vectors, which are named by ascending numbers. `near` has the names of the nearest, -1
    in empty places, best first, ties by name; `products` belong to them."""

    names: Ints
    near: Ints
    products: Ints
    floors: Ints

    @classmethod
    def none(cls) -> "NeighbourLists":
        empty = np.empty(0, dtype=np.int64)
        return cls(names=empty, near=empty.reshape(0, KEPT), products=empty.reshape(0, KEPT), floors=empty)

    def __len__(self) -> int:
        return len(self.names)

    def renamed(self, chosen: Ints) -> "NeighbourLists":
        """The lists of the chosen vectors among each other, in this order, named 0, 1, 2 …"""
        kept = without(self, np.sort(chosen))
        order = np.argsort(chosen, kind="stable")
        rows = np.searchsorted(kept.names, chosen)
        near = kept.near[rows]
        places = np.where(near >= 0, order[np.searchsorted(kept.names, near)], -1)
        products = kept.products[rows]
        best = np.lexsort((places, -products), axis=-1)
        return NeighbourLists(
            names=np.arange(len(chosen)),
            near=np.take_along_axis(places, best, axis=1),
            products=np.take_along_axis(products, best, axis=1),
            floors=kept.floors[rows],
        )


def rounded(vectors: Vectors) -> Vectors:
    """Unit vectors with components that are whole numbers."""
    whole: Vectors = np.rint(vectors * np.float32(SCALE))
    return whole


def whole_vectors(pieces: Vectors, owners: Ints) -> Vectors:
    """One unit vector for each owner of pieces, the direction of their mean, in the order of their first
    pieces."""
    _, first, sizes = np.unique(owners, return_index=True, return_counts=True)
    order = np.argsort(first)
    first, sizes = first[order], sizes[order]
    wholes = np.empty((len(first), pieces.shape[1]), dtype=np.float32)
    for begin in range(0, len(first), BATCH):
        wholes[begin : begin + BATCH] = direction(pieces[first[begin : begin + BATCH]].astype(np.float64))
    for at in np.flatnonzero(sizes > 1).tolist():
        ours = pieces[owners == owners[first[at]]]
        wholes[at] = direction(ours.mean(axis=0, dtype=np.float64)[np.newaxis])[0]
    return wholes


def direction(mean: NDArray[np.float64]) -> Vectors:
    """Rows as unit vectors; zeros where a row has no length. A row gives the same numbers in any company."""
    lengths = np.sqrt(np.einsum("ij,ij->i", mean, mean))
    units: Vectors = (mean / np.where(lengths > 1e-9, lengths, np.inf)[:, np.newaxis]).astype(np.float32)
    return units


def brought_up(
    held: NeighbourLists, names: Ints, whole: Vectors, check: Callable[[], None] = lambda: None
) -> tuple[NeighbourLists, Flags]:
    """The lists of exactly these vectors (`rounded`), given lists of earlier ones, and which of them are not
    as they were held. `check` is called between steps and may raise, to cancel."""
    # An entry without a list of its own comes again, as a new one.
    kept = without(held, np.intersect1d(held.names, names))
    known = np.searchsorted(names, kept.names)
    new = np.ones(len(names), dtype=np.bool_)
    new[known] = False
    lost = (kept.near >= 0).sum(axis=1) < (held.near[np.isin(held.names, names)] >= 0).sum(axis=1)
    short = lost & ((kept.near >= 0).sum(axis=1) < SHORT) & (kept.floors > NOTHING)
    lists = _spread(kept, names, known)
    changed = new.copy()
    changed[known[lost]] = True
    steady = known[~short]
    for rows, products in blocks(whole, np.concatenate((np.flatnonzero(new), known[short]))):
        check()
        lists.near[rows], lists.products[rows], lists.floors[rows] = _nearest(names, products)
        come = new[rows]
        if come.any() and len(steady):
            changed[_insert(lists, steady, names[rows[come]], products[come])] = True
    return lists, changed


def without(held: NeighbourLists, names: Ints) -> NeighbourLists:
    """The lists of those vectors that still exist, with only such in them. The floors stay as they are."""
    stays = np.isin(held.names, names)
    near, products = held.near[stays], held.products[stays]
    there = np.isin(near, names) & (near >= 0)
    order = np.argsort(~there, axis=1, kind="stable")
    near = np.take_along_axis(np.where(there, near, -1), order, axis=1)
    products = np.take_along_axis(np.where(there, products, NOTHING), order, axis=1)
    return NeighbourLists(names=held.names[stays], near=near, products=products, floors=held.floors[stays])


def _spread(kept: NeighbourLists, names: Ints, known: Ints) -> NeighbourLists:
    """Room for the lists of all vectors, with those kept in their places."""
    near = np.full((len(names), KEPT), -1, dtype=np.int64)
    products = np.full((len(names), KEPT), NOTHING, dtype=np.int64)
    floors = np.full(len(names), NOTHING, dtype=np.int64)
    near[known], products[known], floors[known] = kept.near, kept.products, kept.floors
    return NeighbourLists(names=names, near=near, products=products, floors=floors)


def blocks(whole: Vectors, asked: Ints) -> Iterator[tuple[Ints, Vectors]]:
    """The products of some vectors with all, NOTHING with itself, a block at a time. The columns are filled
    up with NOTHING to a multiple of CHUNK."""
    size = len(whole)
    padded = np.zeros((-(-size // CHUNK) * CHUNK, whole.shape[1]), dtype=np.float32)
    padded[:size] = whole
    step = max(1, PRODUCTS // max(1, size))
    for begin in range(0, len(asked), step):
        rows = asked[begin : begin + step]
        products = whole[rows] @ padded.T
        products[:, size:] = NOTHING
        products[np.arange(len(rows)), rows] = NOTHING
        yield rows, products


def best_of_rows(products: Vectors, count: int) -> tuple[Ints, Ints]:
    """The columns of the highest products of each row (of `blocks`), best first, ties by column, with the
    products; -1 and NOTHING where there are not as many."""
    size, width = products.shape
    found = np.full((size, count), -1, dtype=np.int64)
    scores = np.full((size, count), NOTHING, dtype=np.int64)
    bounds = _bounds(products, count)
    above = products >= bounds[:, np.newaxis]
    if (bounds <= NOTHING).any():
        above &= products > NOTHING
    crowds = np.flatnonzero(np.count_nonzero(above, axis=1) > CROWD * count)
    for row in crowds.tolist():  # many ties: only the first of them
        ours = products[row]
        last = np.partition(ours, width - count)[width - count]
        above[row] = ours > last
        above[row, np.flatnonzero(ours == last)[:count]] = last > NOTHING
    rows, columns = np.nonzero(above)
    values = products[rows, columns].astype(np.int64)
    order = np.lexsort((columns, -values, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, np.arange(size))[rows]
    first = place < count
    found[rows[first], place[first]], scores[rows[first], place[first]] = columns[first], values[first]
    return found, scores


def _bounds(products: Vectors, count: int) -> Vectors:
    """For each row a number that its `count` highest products reach."""
    size, width = products.shape
    if width // CHUNK < count:
        return np.full(size, NOTHING, dtype=np.float32)
    tops = products.reshape(size, -1, CHUNK).max(axis=2)
    bounds: Vectors = np.partition(tops, tops.shape[1] - count, axis=1)[:, tops.shape[1] - count]
    return bounds


def _nearest(names: Ints, products: Vectors) -> tuple[Ints, Ints, Ints]:
    """The list of each row: the names, the products and the floor, which is the best product left out. None
    is listed that ties with the floor, so that the list does not depend on which of them were seen first."""
    found, scores = best_of_rows(products, KEPT + 1)
    floors = scores[:, KEPT]
    found, scores = found[:, :KEPT], scores[:, :KEPT]
    there = scores > floors[:, np.newaxis]
    return np.where(there, names[found], -1), np.where(there, scores, NOTHING), floors


def _insert(lists: NeighbourLists, known: Ints, come: Ints, products: Vectors) -> Ints:
    """Put vectors that came into the lists of those known before; the rows that changed."""
    above = products[:, known] > lists.floors[known].astype(np.float32)
    comer, at = np.nonzero(above)
    if not len(at):
        return at
    touched = np.unique(at)
    rows = known[touched]
    owners = np.concatenate((np.repeat(touched, KEPT), at))
    names = np.concatenate((lists.near[rows].reshape(-1), come[comer]))
    scores = np.concatenate((lists.products[rows].reshape(-1), products[comer, known[at]].astype(np.int64)))
    order = np.lexsort((names, -scores, owners))
    owners, names, scores = owners[order], names[order], scores[order]
    starts = np.searchsorted(owners, touched)
    place = np.arange(len(owners)) - np.repeat(starts, np.diff(np.append(starts, len(owners))))
    floors = np.maximum(lists.floors[rows], scores[starts + KEPT])  # each has at least one more than KEPT
    fits = (place < KEPT) & (scores > np.repeat(floors, np.diff(np.append(starts, len(owners)))))
    near = np.full((len(rows), KEPT), -1, dtype=np.int64)
    found = np.full((len(rows), KEPT), NOTHING, dtype=np.int64)
    which = np.searchsorted(touched, owners[fits])
    near[which, place[fits]], found[which, place[fits]] = names[fits], scores[fits]
    lists.near[rows], lists.products[rows], lists.floors[rows] = near, found, floors
    return rows


def nearest_listed(lists: NeighbourLists, count: int) -> tuple[Ints, Ints, Flags]:
    """The `count` nearest of each vector by its list, with the products (-1 and NOTHING in empty places),
    and whether they are known to be the nearest: a vector that is not listed could be one of others."""
    found, products = lists.near[:, :count], lists.products[:, :count]
    return found, products, (found[:, -1] >= 0) | (lists.floors == NOTHING)
