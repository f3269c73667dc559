"""`vestige project watch`: refreshes a project after every change, until it is stopped."""

import signal
import threading
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import click

from vestige.core.errors import Cancelled, InvalidInput
from vestige.core.origin import Origin
from vestige.engine.context import Call
from vestige.engine.project.place import Project, current_project
from vestige.engine.project.watcher import EVERY_SECONDS, WatchedChange, watch_project
from vestige.transports.cli.options import paths
from vestige.transports.cli.session import CliSession


def options() -> list[click.Parameter]:
    return [
        click.Argument(["path"], metavar="PATH", required=False, shell_complete=paths("dir")),
        click.Option(
            ["--every"],
            metavar="SECONDS",
            type=click.FloatRange(min=0.1, max=3600),
            default=EVERY_SECONDS,
            help="Pause between two looks, at least; longer in a large project.",
        ),
    ]


def watch(session: CliSession, path: str | None, every: float) -> None:
    """Refresh the project after every change of its files, until Ctrl-C or SIGTERM.

    It looks at the project in turns and needs no other program. Only one process watches a project. Shared
    memories are read too. On a terminal a line for each refresh, in a pipe a line of JSON.
    """
    stopped = threading.Event()
    _stop_on_signals(stopped)
    with session.open() as app:
        folder = Path.cwd()
        call = Call(
            engine=app.engine,
            local=True,
            folder=folder,
            scope=app.engine.scope_of(folder),
            zone=app.engine.settings.zone,
            origin=Origin.USER,
            cancelled=stopped.is_set,
        )
        project = current_project(call, path)
        click.echo(f"Watching {project.root}; press Ctrl-C to stop.", err=True)
        try:
            for change in watch_project(call, project, stopped.wait, every_seconds=every):
                if not session.line(as_data(project, change), partial(in_words, change)):
                    return
        except Cancelled:  # a signal came during a refresh; the next one continues it
            pass
    click.echo("Stopped.", err=True)


def as_data(project: Project, change: WatchedChange) -> dict[str, Any]:
    done, shared = change.refreshed, change.shared
    return {
        "project": project.name,
        "added": done.added,
        "changed": done.changed,
        "removed": done.removed,
        "renamed": done.renamed,
        "sharedAdded": shared.added,
        "sharedChanged": shared.changed + shared.returned,
        "sharedEnded": shared.ended,
        "sharedWaiting": shared.waiting,
    }


def in_words(change: WatchedChange) -> str:
    done, shared = change.refreshed, change.shared
    text = f"{done.added} added, {done.changed} changed, {done.removed} removed, {done.renamed} renamed"
    new = shared.added + shared.changed + shared.returned
    parts = [text, *([f"{new} shared memories read"] if new else [])]
    parts += [f"{shared.ended} shared memories ended"] if shared.ended else []
    parts += [f"{shared.waiting} wait for a review"] if shared.waiting else []
    return "; ".join(parts)


def _stop_on_signals(stopped: threading.Event) -> None:
    """Let SIGTERM and SIGINT stop in order; a second signal of the same kind ends the process at once."""

    def handle(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        stopped.set()

    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, handle)
    except ValueError as exc:  # only the main thread may
        raise InvalidInput("A project can only be watched by the main thread of a program.") from exc
