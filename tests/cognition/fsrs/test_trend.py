"""The trend of the average retention over the last snapshots, the newest first."""

import pytest

from vestige.cognition.fsrs.trend import Trend, trend


@pytest.mark.parametrize(
    ("averages", "expected"),
    [
        ([], Trend.UNKNOWN),
        ([0.9, 0.1], Trend.UNKNOWN),
        ([0.7, 0.7, 0.7], Trend.STABLE),
        ([0.75, 0.74, 0.7], Trend.IMPROVING),
        ([0.6, 0.62, 0.7, 0.7, 0.7], Trend.DECLINING),
        ([0.71, 0.71, 0.7, 0.7, 0.7], Trend.STABLE),
    ],
)
def test_the_newest_two_are_compared_with_those_before(averages: list[float], expected: Trend) -> None:
    assert trend(averages) is expected


def test_only_the_last_five_count() -> None:
    assert trend([0.7, 0.7, 0.7, 0.7, 0.7, 0.1, 0.1]) is Trend.STABLE
