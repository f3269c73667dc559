"""`vestige events`: what happens in every process at work on the store, told line by line as it happens."""

import select
import sys
from collections.abc import Collection, Sequence
from functools import partial
from queue import Empty, SimpleQueue

import click

from vestige.core.errors import InvalidInput
from vestige.core.events import KINDS, Happening
from vestige.core.nearest import nearest_name
from vestige.operations.shared.text import clip
from vestige.transports.cli.session import CliSession

LOOK_SECONDS = 0.5
"""How often it is seen whether anybody still reads."""


def options() -> list[click.Parameter]:
    """The options of the command."""
    return [
        click.Option(["--type", "types"], metavar="TYPE", multiple=True, help="Only these; repeatable."),
        click.Option(["--limit"], metavar="N", type=click.IntRange(min=1), help="End after so many."),
    ]


def follow_events(session: CliSession, types: Sequence[str], limit: int | None) -> None:
    """Show what happens in every process at work on the memory, as it happens, until it is interrupted.

    A line for each event on a terminal, a line of JSON in a pipe. `vestige docs events` lists the types; what
    happened before is told by `vestige changelog`.
    """
    _check(types)
    heard: SimpleQueue[Happening] = SimpleQueue()
    with session.open() as app, app.engine.events.listening(heard.put, everywhere=True):
        app.exchange_news()
        click.echo("Following; Ctrl-C ends it.", err=True)
        left = -1 if limit is None else limit
        while left and _somebody_reads():
            happening = _next(heard)
            if happening is None or (types and type(happening).__name__ not in types):
                continue
            if not session.line(happening.message(), partial(in_a_line, happening)):
                return
            left -= 1


def in_a_line(happening: Happening) -> str:
    """An event for a person: when, what, and its details."""
    details = happening.details()
    at = details.pop("timestamp")
    told = (f"{name}={_plain(value)}" for name, value in details.items() if value not in (None, "", ()))
    return f"{at:%Y-%m-%d %H:%M:%S}  {type(happening).__name__:<22}  {'  '.join(told)}".rstrip()


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return clip(", ".join(map(str, value)) if isinstance(value, tuple) else str(value))


def _next(heard: SimpleQueue[Happening]) -> Happening | None:
    try:
        return heard.get(timeout=LOOK_SECONDS)
    except Empty:
        return None


def _check(types: Collection[str]) -> None:
    for wanted in types:
        if wanted not in KINDS:
            close = nearest_name(wanted, KINDS)
            hint = f"Did you mean {close}?" if close else "`vestige docs events` lists them."
            raise InvalidInput(
                f"There is no event {wanted!r}.", hint=hint, details={"argument": "type", "given": wanted}
            )


def _somebody_reads() -> bool:
    """Whether the other end of a pipe is still there, which otherwise shows only when something is told."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):  # no real stream
        return True
    if not hasattr(select, "poll"):  # Windows
        return True
    polled = select.poll()
    polled.register(descriptor, 0)
    return not any(event & (select.POLLERR | select.POLLHUP) for _, event in polled.poll(0))
