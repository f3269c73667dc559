"""`vestige events`: live events of every process that uses the store, one a line."""

import select
import sys
from collections.abc import Collection, Sequence
from functools import partial
from queue import Empty, SimpleQueue

import click

from vestige.core.errors import InvalidInput, nearest_name
from vestige.core.events import KINDS, Event
from vestige.core.timezone import time_text
from vestige.operations.shared.text import clip
from vestige.transports.cli.session import CliSession

LOOK_SECONDS = 0.5
"""Interval of checks whether the output is still read."""


def options() -> list[click.Parameter]:
    return [
        click.Option(
            ["--type", "types"], metavar="TYPE", multiple=True, help="Only this event type; repeatable."
        ),
        click.Option(["--limit"], metavar="N", type=click.IntRange(min=1), help="Stop after N events."),
    ]


def follow_events(session: CliSession, types: Sequence[str], limit: int | None) -> None:
    """Show live events of every process that uses the store, until interrupted.

    On a terminal a line per event, in a pipe a line of JSON. `vestige docs events` lists the types; for past
    changes use `vestige changelog`.
    """
    _check(types)
    heard: SimpleQueue[Event] = SimpleQueue()
    with session.open() as app, app.engine.events.listening(heard.put, everywhere=True):
        app.exchange_events()
        click.echo("Listening for events; press Ctrl-C to stop.", err=True)
        left = -1 if limit is None else limit
        while left and _has_reader():
            event = _next(heard)
            if event is None or (types and type(event).__name__ not in types):
                continue
            if not session.line(event.message(), partial(in_a_line, event)):
                return
            left -= 1


def in_a_line(event: Event) -> str:
    details = event.details() | event.actor_fields()
    at = details.pop("timestamp")
    shown = (f"{name}={_plain(value)}" for name, value in details.items() if value not in (None, "", ()))
    return f"{time_text(at, seconds=True)}  {type(event).__name__:<22}  {'  '.join(shown)}".rstrip()


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return clip(", ".join(map(str, value)) if isinstance(value, tuple) else str(value))


def _next(heard: SimpleQueue[Event]) -> Event | None:
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


def _has_reader() -> bool:
    """Whether the reader of a pipe is still there, which otherwise only shows on the next write."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):  # not a real stream
        return True
    if not hasattr(select, "poll"):  # Windows
        return True
    polled = select.poll()
    polled.register(descriptor, 0)
    return not any(event & (select.POLLERR | select.POLLHUP) for _, event in polled.poll(0))
