"""Entry point of the command line: the command tree and error handling."""

import errno
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vestige import __version__
from vestige.core.errors import InvalidInput, StoreFull, VestigeError
from vestige.transports.cli import builtin, catalog
from vestige.transports.cli.catalog import CommandCatalog
from vestige.transports.cli.command_group import CommandGroup
from vestige.transports.cli.operation_commands import add_operations
from vestige.transports.cli.session import CliSession, Form, abandon_output
from vestige.transports.cli.usage import usage_error

if TYPE_CHECKING:
    from vestige.transports.cli.openers import OpenApp, OpenDatabase, OpenEnds, OpenServer

logger = logging.getLogger(__name__)

NAME = "vestige"
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells expect."""

_HELP = """Long-term memory for AI agents: hybrid search, forgetting and consolidation.

Prints tables on a terminal and JSON in a pipe. `-` as a text reads it from standard input.
"""
_LOGGED = "The log lines above show where it happened."
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OUTPUT_FAILED = "The output could not be written: {}."
_FREE = "Free some space, or write the output elsewhere."
_FORMS: dict[str, Form] = {"--json": "json", "--table": "table"}


def root_command(commands: CommandCatalog | None = None) -> CommandGroup:
    """The tree of all commands; the operations are those of the catalog in the package, or of this one."""
    known = commands or catalog.packaged()
    root = CommandGroup(NAME, _HELP)
    root.sections = known.sections
    root.context_settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
    click.version_option(
        __version__, "--version", "-V", message=f"{NAME} {__version__}", help="Show the version."
    )(root)
    root.params.append(_no_color())
    add_operations(root, known)
    builtin.add_commands(root, known.summaries)
    return root


def run(
    open_app: "OpenApp",
    open_server: "OpenServer",
    open_database: "OpenDatabase",
    open_ends: "OpenEnds",
    argv: Sequence[str] | None = None,
    *,
    alone: str | None = None,
) -> int:
    """Run one command line; returns the exit code. With `alone`, the program is this one command."""
    words = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    session = CliSession(
        open_app=open_app, open_server=open_server, open_database=open_database, open_ends=open_ends
    )
    try:
        command, name = _program(alone)
        code = command.main(words, prog_name=name, standalone_mode=False, obj=session)
    except click.UsageError as exc:
        return _refused(session, words, usage_error(exc))
    except VestigeError as exc:
        return _refused(session, words, exc)
    except click.Abort:
        return INTERRUPTED
    except OSError as exc:
        if exc.errno not in _FULL:
            logger.exception("This is a bug in Vestige")
            return _refused(session, words, VestigeError(hint=_LOGGED))
        abandon_output()
        return _refused(session, words, StoreFull(_OUTPUT_FAILED.format(exc.strerror), hint=_FREE))
    except Exception:  # outermost handler: log the bug, and return an error value
        logger.exception("This is a bug in Vestige")
        return _refused(session, words, VestigeError(hint=_LOGGED))
    return code if isinstance(code, int) else 0


def _program(alone: str | None) -> tuple[click.Command, str]:
    root = root_command()
    if alone is None:
        return root, NAME
    command = root.get_command(click.Context(root), alone)
    if command is None:
        raise InvalidInput(f"There is no command {alone}.")
    command.context_settings = root.context_settings
    return command, f"{NAME}-{alone}"


def _open_streams() -> None:
    """Open the null device for streams that were closed at start (`>&-`)."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  for the whole process


def _refused(session: CliSession, words: Sequence[str], error: VestigeError) -> int:
    # A mistake may be found before the options after it are parsed.
    for word in words:
        if session.form is None and word in _FORMS:
            session.form = _FORMS[word]
    return session.refuse(error)


class _NoColor(click.Option):
    """The convention of no-color.org: any non-empty value counts."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        return "1" if super().resolve_envvar_value(ctx) else None


def _no_color() -> click.Option:
    def keep(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
        ctx.ensure_object(CliSession).colour = not value

    return _NoColor(
        ["--no-color"],
        is_flag=True,
        envvar="NO_COLOR",
        expose_value=False,
        callback=keep,
        help="Use no colours (also: NO_COLOR=1).",
    )
