"""The benchmark of searches during sleep runs, tiny. Its numbers are not judged here."""

from pathlib import Path

import pytest

from benchmarks.sleep import Part, run


def test_a_part_tells_the_middle_and_the_slow_end_of_its_searches() -> None:
    part = Part(name="dream", searches=[float(ms) for ms in range(1, 102)])
    assert (part.p50, part.p95) == (51.0, 96.0)


@pytest.mark.slow
@pytest.mark.nightly
def test_searches_are_measured_alone_and_during_sleep(tmp_path: Path, real_model_dir: Path) -> None:
    report = run(data=tmp_path, memories=30, searches=4)

    rows = report.tables["Searches"]
    assert [row["part"] for row in rows] == ["before", "dream", "consolidate", "after"]
    assert all(float(row["searches"] or 0) >= 4 for row in rows)
    assert [target.limit for target in report.targets] == [2.0, 2.0]
