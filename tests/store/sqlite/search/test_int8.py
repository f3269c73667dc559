"""The codes of vectors: their bounds hold for every row and query, and are close enough to be of use."""

import numpy as np
import pytest
from numpy.typing import NDArray

from vestige.store.sqlite.search import int8

Vectors = NDArray[np.float32]


def by_numpy(queries: NDArray[np.int8], rows: NDArray[np.int8]) -> NDArray[np.float64]:
    return queries.astype(np.float64) @ rows.astype(np.float64).T


def unit(rows: NDArray[np.float64]) -> Vectors:
    scaled: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled.astype(np.float32)


def slack(rows: Vectors, query: Vectors) -> NDArray[np.float64]:
    """How far the bounds are above the products."""
    products = rows.astype(np.float64) @ query.astype(np.float64)
    return int8.bounds(by_numpy, int8.encode(rows), query) - products


def test_no_product_exceeds_its_bound() -> None:
    rng = np.random.default_rng(1)
    for dimension in (1, 2, 8, 384, 1024):
        rows = unit(rng.standard_normal((200, dimension)) * rng.exponential(size=dimension))
        for query in rows[:20]:
            between = slack(rows, query)
            assert between.min() >= 0
            assert between.max() <= 0.1


def test_the_bound_holds_when_every_rounding_goes_against_it() -> None:
    rng = np.random.default_rng(2)
    query = unit(rng.standard_normal((1, 64)))[0]
    steps = rng.integers(-100, 100, (50, 64)) + 0.49 * np.sign(query)
    steps[:, 0] = 127  # the peak: a step is one
    rows = (steps / 127).astype(np.float32)
    coded = int8.encode(rows)
    told = (coded.codes * coded.scales[:, np.newaxis]).astype(np.float64) @ query.astype(np.float64)
    exact = rows.astype(np.float64) @ query.astype(np.float64)
    assert (exact - told > 0.01).all(), "the codes are off by more than the query's own rest explains"
    assert slack(rows, query).min() >= 0


def test_a_query_between_the_codes_is_allowed_for() -> None:
    rng = np.random.default_rng(3)
    row = unit(rng.standard_normal((1, 64)))
    steps = rng.integers(-100, 100, 64) + 0.49 * np.sign(row[0])
    steps[0] = 127
    assert slack(row, (steps / 127).astype(np.float32)).min() >= 0


def test_a_row_of_zeros_has_codes() -> None:
    coded = int8.encode(np.zeros((2, 8), dtype=np.float32))
    assert not coded.codes.any()
    assert not coded.rests.any()


def test_the_package_for_codes_multiplies_exactly() -> None:
    pytest.importorskip("simsimd")
    kernel = int8.kernel()
    assert kernel is not None
    rng = np.random.default_rng(4)
    for dimension in (1, 8, 31, 384, 2048):
        rows = rng.integers(-127, 128, (70, dimension)).astype(np.int8)
        extreme = np.full((2, dimension), -127, dtype=np.int8)
        for queries in (rows[:1], extreme[:1]):
            assert (kernel(queries, rows) == by_numpy(queries, rows)).all()
        assert (kernel(extreme[:1], extreme) == 127 * 127 * dimension).all()
