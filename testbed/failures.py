"""Collects the failures of many cases in one test, so that each of them is shown.

    failures = Failures()
    for name in names:
        with failures.case(name):
            assert ...
    failures.check()

A table of hundreds of rows is one test then: collecting, setting up and reporting a test costs more than
checking a row.
"""

import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest

_SHOWN = 20
_LABEL = 300
_Parameters = type(pytest.param())


class Failures:
    """The cases that failed, each with its message and line."""

    def __init__(self) -> None:
        self._cases = 0
        self._messages: list[str] = []

    @contextmanager
    def case(self, name: object) -> Iterator[None]:
        """Check one case: an assertion or another error in the block is kept, and the test goes on."""
        self._cases += 1
        try:
            yield
        except Exception as error:
            line = traceback.extract_tb(error.__traceback__)[-1]
            said = str(error) or line.line
            self._messages.append(f"{name}: {type(error).__name__} at line {line.lineno}: {said}")

    def check(self) -> None:
        """AssertionError with every case that failed, or if there was none to check."""
        assert self._cases, "no case was checked"
        shown = "\n\n".join(self._messages[:_SHOWN])
        assert not self._messages, f"{len(self._messages)} of {self._cases} cases failed:\n{shown}"


def each(
    names: str | Sequence[str], values: Iterable[Any], *, ids: object = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with each of these values, as `pytest.mark.parametrize` does, but as one test.

    For tables of many rows whose test needs nothing fresh for each row. `ids` are not needed: a failure shows
    the values.
    """
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = list(values)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @wraps(test)
        def every(**fixtures: Any) -> None:
            failures = Failures()
            for row in rows:
                given = row.values if isinstance(row, _Parameters) else (row,) if len(wanted) == 1 else row
                with failures.case(repr(given)[:_LABEL]):
                    test(**fixtures, **dict(zip(wanted, given, strict=True)))
            failures.check()

        del every.__wrapped__  # or pytest would ask for the names as fixtures
        others = [one for name, one in signature.parameters.items() if name not in wanted]
        every.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined] # as above
        return every

    return decorate
