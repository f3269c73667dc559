"""Patterns that are compiled late: they act like patterns, and every one of them can be compiled."""

import gc
import re

from vestige.core import patterns
from vestige.core.patterns import lazy_pattern
from vestige.operations.registry import groups


def test_a_pattern_acts_like_a_compiled_one() -> None:
    made = lazy_pattern(r"(\w+)@(\w+)", re.IGNORECASE)
    assert made.search("ada@home") is not None
    assert made.sub(r"\2", "ada@home") == "home"
    assert (made.pattern, made.groups) == (r"(\w+)@(\w+)", 2)
    assert lazy_pattern(rb"\d").findall(b"1a2") == [b"1", b"2"]


def test_every_pattern_of_the_source_can_be_compiled() -> None:
    assert groups.registry.operations  # imports all modules that have patterns
    made = [one for one in gc.get_objects() if isinstance(one, patterns._LazyPattern)]
    assert len(made) > 100
    for one in made:
        assert one.pattern is not None
