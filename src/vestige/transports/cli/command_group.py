"""A group of commands that makes a command when it is called for, with help in sections."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import click
from click.shell_completion import CompletionItem

from vestige.transports.cli.options import everywhere
from vestige.transports.cli.usage import unknown_command

CommandMaker = Callable[[str], click.Command]
"""Makes a command under a name."""
Summary = Callable[[], str]
"""The first line of the help of a command, worded when it is shown."""
_OTHERS = "Other"
_NAME_COLUMNS = 18
"""The width of the column of names, the same in all sections."""


class CommandGroup(click.Group):
    """A group that shows its help when called alone and suggests the nearest command for an unknown one.

    It knows the names and summaries of its commands, and makes a command only to run or complete it.
    """

    def __init__(self, name: str, help_text: str) -> None:
        super().__init__(
            name,
            help=help_text,
            short_help=help_text,  # click would shorten it in the list of commands
            params=list(everywhere()),
            invoke_without_command=True,
            callback=_show_help,
        )
        self._makers: dict[str, CommandMaker] = {}
        self._summaries: dict[str, Summary] = {}
        self._short_names: dict[str, tuple[str, ...]] = {}
        self.sections: Mapping[str, Sequence[str]] = {}

    def place(
        self, path: tuple[str, ...], make: CommandMaker, summary: Summary, groups: Mapping[str, str]
    ) -> None:
        """Add a command at its path, creating the groups on the way."""
        first, *rest = path
        if not rest:
            self._makers[first] = make
            self._summaries[first] = summary
            return
        inner = self.commands.get(first)
        if not isinstance(inner, CommandGroup):
            inner = CommandGroup(first, groups.get(first, ""))
            self.add_command(inner)
            self._summaries[first] = partial(str, inner.help or "")
        inner.place(tuple(rest), make, summary, groups)

    def short_name(self, name: str, path: tuple[str, ...]) -> None:
        """Let a short name mean the command at a path."""
        self._short_names[name] = path

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands; short names are left out."""
        return sorted(self._summaries.keys() | self.commands.keys() - self._short_names.keys())

    def names(self) -> list[str]:
        """All names that can be typed."""
        return sorted({*self._summaries, *self._short_names})

    def subgroups(self) -> "dict[str, CommandGroup]":
        return {name: one for name, one in self.commands.items() if isinstance(one, CommandGroup)}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands:
            maker = self._maker((cmd_name,))
            if maker is None:
                return None
            self.commands[cmd_name] = maker(cmd_name)
        return self.commands[cmd_name]

    def _maker(self, path: tuple[str, ...]) -> CommandMaker | None:
        first, *rest = path
        if rest:
            inner = self.commands.get(first)
            return inner._maker(tuple(rest)) if isinstance(inner, CommandGroup) else None
        if first in self._makers:
            return self._makers[first]
        return self._maker(self._short_names[first]) if first in self._short_names else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name.startswith("-"):  # click reports unknown options
            return super().resolve_command(ctx, args)
        if name == "help" and self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            if len(args) > 1:
                return self.resolve_command(ctx, [*args[1:], "--help"])
            click.echo(ctx.get_help())
            ctx.exit()
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            raise unknown_command(ctx, name, self.names())
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        # Not click's own way, which would make every command.
        return [
            CompletionItem(name, help=self._summary(name))
            for name in self.names()
            if name.startswith(incomplete)
        ]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands before the options: people look for a command first."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed: set[str] = set()
        for title, names in self.sections.items():
            shown = [name for name in names if name in self._summaries or name in self._short_names]
            listed.update(shown, (self._path(name)[0] for name in shown if len(self._path(name)) == 1))
            self._section(formatter, title, shown)
        rest = [name for name in self.list_commands(ctx) if name not in listed]
        self._section(formatter, _OTHERS if listed else "Commands", rest)

    def _section(self, formatter: click.HelpFormatter, title: str, names: Sequence[str]) -> None:
        if not names:
            return
        with formatter.section(title):
            rows = [(name, self._row(name, formatter.width)) for name in names]
            formatter.write_dl([(name.ljust(_NAME_COLUMNS), summary) for name, summary in rows])

    def _row(self, name: str, width: int) -> str:
        """The summary, with what else the command is called if that fits in the line."""
        path = self._path(name)
        also = [
            " ".join(other)
            for other in [path, *((one,) for one, to in self._short_names.items() if to == path)]
            if other != (name,)
        ]
        end = f" (also: {', '.join(also)})" if also and path[0] not in self.subgroups() else ""
        room = width - _NAME_COLUMNS - 6
        with_names = _phrase(self._summary(name), room - len(end)) + end
        return with_names if len(with_names) <= room else _phrase(self._summary(name), room)

    def _path(self, name: str) -> tuple[str, ...]:
        return self._short_names.get(name, (name,))

    def _summary(self, name: str) -> str:
        """The first sentence about a command."""
        first, *rest = self._path(name)
        if rest:
            inner = self.commands[first]
            return inner._summary(rest[0]) if isinstance(inner, CommandGroup) else ""
        return self._summaries[first]() if first in self._summaries else ""


def _phrase(text: str, width: int) -> str:
    """The summary of a command up to the end of its first sentence, or of a phrase that fits in one line. A
    sentence without one continues on the next line of the help: half a sentence explains nothing."""
    text = text.partition(". ")[0].rstrip(".") + "."
    if len(text) <= width:
        return text
    ends = (text.rfind(end, width // 3, width) for end in (": ", "; ", ", "))
    return next((text[:end] + "." for end in ends if end > 0), text)


@click.pass_context
def _show_help(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
