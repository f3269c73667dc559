"""The languages of files."""

from collections.abc import Sequence

import pytest

from vestige.cognition.code.languages import languages_of


@pytest.mark.parametrize(
    ("paths", "counts"),
    [
        (("a.c", "a.h", "b.h"), {"c": 3}),
        (("a.cpp", "a.h"), {"cpp": 2}),
        (("a.c", "b.hpp", "a.h"), {"c": 1, "cpp": 2}),
        (("a.h",), {"cpp": 1}),
        (("a.py", "LICENSE"), {"python": 1, "": 1}),
    ],
)
def test_headers_belong_to_the_language_of_the_project(paths: Sequence[str], counts: dict[str, int]) -> None:
    assert languages_of(paths) == counts
