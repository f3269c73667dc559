"""Vectors as int8 codes with a proven error bound, for scans that read a quarter of the bytes.

A row r is stored as scale * code + rest, a query q likewise. Then r·q is the integer product of the codes
times both scales, give or take |rest of r|·|q| + |coded r|·|rest of q| (Cauchy-Schwarz). So a scan over
codes yields an upper bound of every score, and scoring exactly all rows whose bound reaches the last rank
gives the exact answer.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from vestige.core.lazy_dataclass import dataclass

Vectors = NDArray[np.float32]
Codes = NDArray[np.int8]
Kernel = Callable[[Codes, Codes], NDArray[np.float64]]

TOP = 127
ROUNDING = np.float32(1e-5)
"""More than float32 arithmetic on unit vectors can be wrong by; every bound is widened by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coded:
    """Codes of rows, the scale of each, the length of each row's rest, and the longest coded row."""

    codes: Codes
    scales: Vectors
    rests: Vectors
    longest: float


def encode(rows: Vectors) -> Coded:
    peaks = np.abs(rows).max(axis=1, initial=0.0)
    scales = (np.where(peaks > 0, peaks, 1) / TOP).astype(np.float32)
    codes = np.rint(rows / scales[:, np.newaxis]).astype(np.int8)
    coded = codes * scales[:, np.newaxis]
    longest = _lengths(coded).max(initial=0.0)
    return Coded(codes=codes, scales=scales, rests=_lengths(rows - coded), longest=float(longest))


def bounds(kernel: Kernel, block: Coded, query: Vectors) -> Vectors:
    """For every row a number that its product with the query cannot exceed."""
    asked = encode(query[np.newaxis])
    products: Vectors = kernel(asked.codes, block.codes)[0].astype(np.float32)
    products *= block.scales * asked.scales[0]
    products += block.rests * np.linalg.norm(query)
    products += ROUNDING + asked.rests[0] * np.float32(block.longest)
    return products


def _lengths(rows: Vectors) -> Vectors:
    lengths: Vectors = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return lengths


@cache
def kernel() -> Kernel | None:
    """Products of int8 rows, exact, if the optional package for them is there. Numpy has none worth using. It
    is not imported before the first search."""
    try:
        cdist = import_module("simsimd").cdist
    except ImportError:
        return None

    def products(queries: Codes, rows: Codes) -> NDArray[np.float64]:
        return np.asarray(cdist(queries, rows, metric="dot"), dtype=np.float64)

    return products
