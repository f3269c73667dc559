"""The console program `vestige`. The application is imported when a command opens it: help, completion and
mistakes on the command line need none of it."""

import gc
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from vestige.settings.libraries import prepare_libraries

if TYPE_CHECKING:
    from vestige.app.app import App
    from vestige.settings.settings import Settings
    from vestige.store.transfer.ends import End
    from vestige.transports.cli.openers import MaintainedDatabase


def main(argv: Sequence[str] | None = None, *, alone: str | None = None) -> NoReturn:
    """The command `vestige`, or a program that runs one of its commands."""
    gc.disable()  # imports make no garbage; looking for it takes a tenth of a start. Commands enable it
    prepare_libraries()
    from vestige.transports.cli import run

    sys.exit(run(_open_here, _open_server, _open_database, _open_ends, argv, alone=alone))


def restore_main() -> NoReturn:
    """The command `vestige-restore FILE`."""
    main(alone="restore")


def _open_here(options: Mapping[str, Any]) -> "App":
    from vestige.app.app import open_here

    return open_here(options)


def _open_server(options: Mapping[str, Any], *, parent: int = 0) -> "App":
    from vestige.app.app import open_server

    return open_server(options, parent=parent)


def _open_database(settings: "Settings") -> "MaintainedDatabase":
    from vestige.app.app import open_database

    return open_database(settings)


def _open_ends(settings: "Settings", source: str, destination: str) -> "tuple[End, End]":
    from vestige.app.app import open_ends

    return open_ends(settings, source, destination)
