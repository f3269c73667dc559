"""Collects the failures of many cases in one test, so that each of them is shown.

    failures = Failures()
    for name in names:
        with failures.case(name):
            assert ...
    failures.check()

A table of hundreds of rows is one test then: collecting, setting up and reporting a test costs more than
checking a row.
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

_SHOWN = 20


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
