"""Exact cosines of pieces: the same numbers to the last bit, whatever database the vectors come from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vestige.embed.protocol import Signature
from vestige.errors import InvalidInput
from vestige.pool import Floats, Integers, Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Closest:
    """The best piece of each of some memories: its cosine, its span and its vector; NaN and 0 for none."""

    cosine: Floats
    starts: Integers
    ends: Integers
    vectors: Vectors

    @classmethod
    def none(cls, count: int, dimension: int) -> "Closest":
        """What is known of so many memories without vectors."""
        nowhere = np.zeros(count, dtype=np.int64)
        return cls(
            cosine=np.full(count, np.nan),
            starts=nowhere,
            ends=nowhere.copy(),
            vectors=np.zeros((count, dimension), dtype=np.float32),
        )


def check_queries(queries: NDArray[np.float32], signature: Signature) -> Vectors:
    """The queries as float32 rows, or InvalidInput."""
    rows = np.ascontiguousarray(queries, dtype=np.float32)
    if rows.ndim != 2 or rows.shape[1] != signature.dimension or not np.isfinite(rows).all():
        raise InvalidInput(f"Queries of {signature.name} are rows of {signature.dimension} finite numbers.")
    return rows


def cosines(vectors: Vectors, query: Vectors) -> Floats:
    """The cosine of each vector and the query, all of unit length."""
    # einsum goes row by row in a fixed order: a score depends neither on the BLAS in use nor on the others.
    scores: Floats = np.einsum("ij,j->i", vectors.astype(np.float64), query.astype(np.float64))
    return scores


def best_of_each(owners: Integers, scores: Floats) -> tuple[Integers, Integers]:
    """The owners, ascending, and where the best piece of each stands: the earliest of those that tie."""
    order = np.lexsort((np.arange(len(owners)), -scores, owners))
    found, firsts = np.unique(owners[order], return_index=True)
    return found, order[firsts]
