"""Candidates: arrays that the arms of a search share."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vestige.core.candidates import distinct


@given(st.lists(st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)))
def test_distinct_values_are_those_of_numpy(values: list[int]) -> None:
    keys = np.array(values, dtype=np.int64)
    assert distinct(keys).tolist() == np.unique(keys).tolist()
    assert distinct(keys).dtype == np.int64
    assert keys.tolist() == values
