"""Options of every command, before or after it: data directory, settings file and output format."""

from collections.abc import Callable
from typing import Any, Literal

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from vestige.settings.directories import environment_name
from vestige.transports.cli.session import CliSession, Form


def everywhere() -> list[click.Option]:
    """New instances of the options that every command and group has."""
    return [
        *location_options(),
        _form("json", "Print JSON (the default if output is not a terminal)."),
        _form("table", "Print text for people."),
    ]


def location_options() -> list[click.Option]:
    """The options for locations only, for commands with their own output format."""
    return [
        _setting("data_dir", "DIR", "Data directory, which holds the memories.", "dir"),
        _setting(
            "config", "FILE", "Settings file to use instead of vestige.toml in the data directory.", "file"
        ),
    ]


def path_option(flag: str, metavar: str, help_text: str, kind: Literal["dir", "file"]) -> click.Option:
    """An option that takes a path; the shell completes it, and the command checks it."""
    return click.Option([flag], metavar=metavar, help=help_text, shell_complete=paths(kind))


def paths(
    kind: Literal["dir", "file"],
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type=kind)]

    return complete


def _setting(name: str, metavar: str, help_text: str, kind: Literal["dir", "file"]) -> click.Option:
    def keep(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
        if value is None:
            return
        session = ctx.ensure_object(CliSession)
        # The settings read the environment themselves; the value is kept for commands that pass it to other
        # programs.
        given = ctx.get_parameter_source(name) is not ParameterSource.ENVIRONMENT
        (session.flags if given else session.surroundings)[name] = value

    option = path_option("--" + name.replace("_", "-"), metavar, help_text, kind)
    option.callback, option.expose_value = keep, False
    option.envvar = environment_name(name)
    return option


def _form(form: Form, help_text: str) -> click.Option:
    def keep(ctx: click.Context, _param: click.Parameter, value: Any) -> None:
        if value:
            ctx.ensure_object(CliSession).form = form

    return click.Option([f"--{form}"], is_flag=True, expose_value=False, callback=keep, help=help_text)
