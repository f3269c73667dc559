"""Long work says how far it is: a bar on a terminal, else a line when it begins."""

import sys
from collections.abc import Iterator, Sequence
from typing import TypeVar

import click

T = TypeVar("T")


def track(items: Sequence[T], label: str) -> Iterator[T]:
    """The items, with progress on standard error."""
    if not sys.stderr.isatty():
        print(f"{label}: {len(items):,}", file=sys.stderr)
        yield from items
        return
    with click.progressbar(items, label=f"{label:<40}", file=sys.stderr) as bar:
        yield from bar


def say(text: str) -> None:
    """A line on standard error."""
    print(text, file=sys.stderr)
