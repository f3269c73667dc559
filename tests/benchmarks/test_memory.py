"""The memory of a server that gets large batches, as a process, at an eighth of the benchmark's scale."""

import sys

import pytest

from benchmarks.memory import run


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of a process")
def test_batches_at_once_take_a_bounded_amount_of_memory_and_are_all_stored() -> None:
    report = run(batches=8, size=500_000, quick=True)
    (row,) = report.tables["Memory of the server"]
    assert row["stored"] == 8
    assert float(row["peak above idle MB"] or 0) < 150  # 250 when token states were kept until the end
    assert float(row["left above idle MB"] or 0) < 100
