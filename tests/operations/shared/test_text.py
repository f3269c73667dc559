"""Lines for people."""

import pytest

from vestige.operations.shared.text import count


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
