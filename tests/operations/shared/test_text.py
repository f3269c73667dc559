"""Lines for people."""

import pytest

from vestige.core.models import estimate
from vestige.operations.shared.text import count, percent


@pytest.mark.parametrize(
    ("number", "noun", "told"),
    [
        (1, "key", "1 key"),
        (2, "key", "2 keys"),
        (1, "memory", "1 memory"),
        (1_200, "memory", "1,200 memories"),
        (0, "server", "0 servers"),
        (3, "recent search", "3 recent searches"),
    ],
)
def test_a_noun_is_in_the_plural_where_it_belongs(number: int, noun: str, told: str) -> None:
    assert count(number, noun) == told


@pytest.mark.parametrize("value", [0.99, 0.994, 0.99996, 1.0])
def test_an_estimate_is_never_certain(value: float) -> None:
    assert estimate(value) == 0.99
    assert percent(estimate(value)) == "99 %"


def test_an_estimate_below_is_rounded_only() -> None:
    assert estimate(0.123456) == 0.1235
