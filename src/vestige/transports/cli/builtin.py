"""Commands that are not operations: servers, file management, documentation. Their modules are imported when
a command is run or completed."""

import gc
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import click

from vestige.core.lazy_dataclass import dataclass
from vestige.transports.cli.command_group import CommandGroup
from vestige.transports.cli.options import everywhere, location_options
from vestige.transports.cli.session import CliSession

_GROUPS = {"model": "The local embedding model.", "db": "The database of the store."}


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinCommand:
    """The function of a command, and the function that returns its parameters, both in a module of
    `commands`."""

    module: str
    function: str
    options: str | None = None
    own_output: bool = False
    """Whether it has its own output format, so that `--json` and `--table` mean nothing to it."""

    def _imported(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(
            import_module(f"vestige.transports.cli.commands.{self.module}"), name
        )
        return found

    def summary(self) -> str:
        """The first line of its help."""
        return (self._imported(self.function).__doc__ or "").split("\n", 1)[0]

    def make(self, name: str) -> click.Command:
        function = self._imported(self.function)
        gc.enable()
        if self.options is None and self.own_output:  # it makes the whole command itself
            made: click.Command = function()
            return made

        def call(**given: Any) -> None:
            function(click.get_current_context().ensure_object(CliSession), **given)

        params = self._imported(self.options)() if self.options else []
        # Errors before a command with its own output starts use the format of the terminal or pipe.
        common = location_options() if self.own_output else everywhere()
        return click.Command(
            name, callback=call, params=[*params, *common], help=function.__doc__, short_help=self.summary()
        )


_B = BuiltinCommand
COMMANDS: dict[tuple[str, ...], BuiltinCommand] = {
    ("model", "install"): _B(module="model", function="model_install", options="install_options"),
    ("model", "status"): _B(module="model", function="model_status", options="status_options"),
    ("mcp",): _B(module="mcp", function="mcp", options="options", own_output=True),
    ("serve",): _B(module="serve", function="serve", options="options"),
    ("dashboard",): _B(module="clients.dashboard", function="dashboard", options="options"),
    ("bridge",): _B(module="bridge", function="bridge", options="options"),
    ("connect",): _B(module="clients.connect", function="connect", options="options"),
    ("uninstall",): _B(module="clients.uninstall", function="uninstall", options="options"),
    ("sessions", "browse"): _B(
        module="clients.sessions", function="browse", options="options", own_output=True
    ),
    ("project", "watch"): _B(module="clients.project_watch", function="watch", options="options"),
    ("restore",): _B(module="restore", function="restore", options="options"),
    ("events",): _B(module="events", function="follow_events", options="options"),
    ("migrate",): _B(module="migrate", function="migrate", options="options"),
    ("db", "init"): _B(module="db", function="init"),
    ("db", "status"): _B(module="db", function="status"),
    ("db", "migrate"): _B(module="db", function="migrate", options="migrate_options"),
    ("config",): _B(module="about", function="config"),
    ("docs",): _B(module="about", function="show_docs", options="docs_options"),
    ("completion",): _B(module="about", function="completion", options="completion_options"),
    ("version",): _B(module="about", function="version"),
    ("bench",): _B(module="bench", function="bench_command", own_output=True),
}


def add_commands(root: CommandGroup, known: Mapping[str, str]) -> None:
    """Add every command; `known` are their summaries by command, and the missing ones are read."""
    for path, command in COMMANDS.items():
        said = known.get(" ".join(path))
        root.place(path, command.make, partial(str, said) if said else command.summary, _GROUPS)


def summaries() -> dict[str, str]:
    """The summary of every command. It imports all of them."""
    return {" ".join(path): command.summary() for path, command in COMMANDS.items()}
