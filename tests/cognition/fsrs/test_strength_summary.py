"""The retention of everything in a few numbers."""

import pytest

from vestige.cognition.fsrs.strength import ADVICE, keeping


def test_every_memory_is_in_one_bucket_whose_lower_edge_belongs_to_it() -> None:
    kept = keeping([0.0, 0.1999, 0.2, 0.5, 0.8, 0.9, 1.0], [1.0] * 7)

    assert kept.distribution == {"0-20%": 2, "20-40%": 1, "40-60%": 1, "60-80%": 0, "80-100%": 3}


def test_what_is_weak_is_counted_below_its_bounds() -> None:
    kept = keeping([0.1, 0.3, 0.4, 0.5], [0.2, 0.4, 0.6, 0.8])

    assert (kept.below_weak, kept.below_half) == (1, 3)
    assert kept.average == pytest.approx(0.325)
    assert kept.recall == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("average", "step"), [(0.8, 0), (0.79, 1), (0.6, 1), (0.59, 2), (0.4, 2), (0.39, 3), (0.0, 3)]
)
def test_the_advice_follows_the_average_chance_of_recall(average: float, step: int) -> None:
    assert keeping([0.5], [average]).advice == ADVICE[step][1]


def test_an_empty_memory_has_no_retention_to_speak_of() -> None:
    kept = keeping([], [])

    assert (kept.average, kept.recall, sum(kept.distribution.values())) == (0.0, None, 0)
    assert kept.advice == "Nothing is remembered yet."
