"""The benchmark of predictions runs, tiny, and counts right. Its numbers are not judged here."""

import pytest

from benchmarks.prediction import KINDS, WAYS, Tally, User, run


def test_a_rate_is_of_the_needs_of_its_kind() -> None:
    tally = Tally()
    tally.asked.update({"sequence": 4, "favourite": 1})
    tally.hits.update({("predict", "sequence"): 3})
    assert tally.rate("predict", "sequence") == 0.75
    assert tally.rate("predict") == 0.6
    assert tally.rate("chance") == 0.0


def test_the_same_seed_makes_the_same_user() -> None:
    first, second = User(3), User(3)
    assert first.content(7) == second.content(7)
    assert list(first.day()) == list(second.day())


@pytest.mark.slow
@pytest.mark.nightly
def test_a_tiny_run_compares_every_way_on_every_kind_of_need() -> None:
    report = run(seeds=1, days=3)
    (rows, _) = report.tables.values()
    assert [row["way"] for row in rows] == list(WAYS)
    assert set(KINDS) <= set(rows[0])
    assert report.plots
