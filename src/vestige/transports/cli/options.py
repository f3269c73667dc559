"""The options that work on every command, and before it: where the memories are, and how to answer."""

from collections.abc import Callable
from typing import Any, Literal

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from vestige.settings.settings import environment_name
from vestige.transports.cli.session import CliSession, Form


def everywhere() -> list[click.Option]:
    """Fresh copies of the options that every command and group has."""
    return [
        *places(),
        _form("json", "Answer in JSON (the default when output is not a terminal)."),
        _form("table", "Answer in text for people."),
    ]


def places() -> list[click.Option]:
    """Those of them that say where things are: all there is for a command that answers in no form of ours."""
    return [
        _setting("data_dir", "DIR", "Where the memories are.", "dir"),
        _setting("config", "FILE", "A settings file to use instead of vestige.toml there.", "file"),
    ]


def path_option(flag: str, metavar: str, help_text: str, kind: Literal["dir", "file"]) -> click.Option:
    """An option that takes a path; the shell completes it, and whoever uses it checks it."""
    return click.Option([flag], metavar=metavar, help=help_text, shell_complete=paths(kind))


def paths(
    kind: Literal["dir", "file"],
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Lets the shell complete a path."""

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type=kind)]

    return complete


def _setting(name: str, metavar: str, help_text: str, kind: Literal["dir", "file"]) -> click.Option:
    def keep(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
        if value is None:
            return
        session = ctx.ensure_object(CliSession)
        # The settings read the environment themselves; it is kept for who tells another program about it.
        told = ctx.get_parameter_source(name) is not ParameterSource.ENVIRONMENT
        (session.flags if told else session.surroundings)[name] = value

    option = path_option("--" + name.replace("_", "-"), metavar, help_text, kind)
    option.callback, option.expose_value = keep, False
    option.envvar = environment_name(name)
    return option


def _form(form: Form, help_text: str) -> click.Option:
    def keep(ctx: click.Context, _param: click.Parameter, value: Any) -> None:
        if value:
            ctx.ensure_object(CliSession).form = form

    return click.Option([f"--{form}"], is_flag=True, expose_value=False, callback=keep, help=help_text)
