"""Many cases in one test: each that fails is shown, and none is taken for all."""

import inspect

import pytest

from testbed.failures import Failures, each


def test_every_case_that_fails_is_shown_with_its_name_and_the_others_are_not() -> None:
    failures = Failures()
    for number in range(4):
        with failures.case(f"case {number}"):
            assert number % 2 == 0, f"{number} is odd"
    with pytest.raises(AssertionError, match="2 of 4 cases failed") as raised:
        failures.check()
    assert "case 1: AssertionError" in str(raised.value)
    assert "3 is odd" in str(raised.value)
    assert "case 2" not in str(raised.value)


def test_a_test_without_cases_fails() -> None:
    with pytest.raises(AssertionError, match="no case"):
        Failures().check()


def test_each_runs_every_row_and_asks_pytest_for_the_other_arguments_only() -> None:
    seen: list[tuple[str, int, int]] = []

    @each("number", [1, pytest.param(2)])
    @each(("word", "length"), [("a", 1), ("bb", 2), ("c", 9)])
    def check(fixture: str, word: str, length: int, number: int) -> None:
        seen.append((word, length, number))
        assert fixture == "given"
        assert len(word) == length

    assert list(inspect.signature(check).parameters) == ["fixture"]
    with pytest.raises(AssertionError, match="'c', 9"):
        check(fixture="given")
    assert len(seen) == 6
