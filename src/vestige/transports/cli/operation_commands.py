"""Commands generated from the registry: one per operation."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from vestige.core.errors import Cancelled, InvalidInput, StoreError, VestigeError
from vestige.core.nearest import nearest_name
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import Operation, Registry
from vestige.transports.arguments import (
    Argument,
    ArgumentReader,
    Wording,
    arguments_of,
    example_of,
    invalid_argument,
)
from vestige.transports.cli.options import everywhere
from vestige.transports.cli.session import CliSession, ProgressLine
from vestige.transports.cli.usage import unknown_command

CONFIRM = "confirm"
"""The argument that confirms a destructive operation; the prompt sets it."""
NOTES = ("note", "message", "hint", "warning")
"""The fields of an answer that tell the user what to do."""
_METAVARS = {"integer": "N", "number": "X", "time": "TIME", "json": "JSON|@FILE|-"}


class NearestChoice(click.Choice[str]):
    """A choice whose error names the nearest value."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.choices:
            return str(value)
        close = nearest_name(str(value), self.choices)
        hint = f" Did you mean {close!r}?" if close else ""
        return self.fail(f"{value!r} is not one of the choices.{hint}", param, ctx)


class CommandGroup(click.Group):
    """A group that shows its help when called alone and suggests the nearest command for an unknown one."""

    def __init__(self, name: str, help_text: str) -> None:
        super().__init__(
            name,
            help=help_text,
            short_help=help_text,  # click would shorten it in the list of commands
            params=list(everywhere()),
            invoke_without_command=True,
            callback=_show_help,
        )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name.startswith("-"):  # click reports unknown options
            return super().resolve_command(ctx, args)
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            raise unknown_command(ctx, name, self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    def place(self, path: tuple[str, ...], command: click.Command, groups: Mapping[str, str]) -> None:
        """Add a command at its path, creating the groups on the way."""
        first, *rest = path
        if not rest:
            self.add_command(command, first)
            return
        inner = self.commands.get(first)
        if not isinstance(inner, CommandGroup):
            inner = CommandGroup(first, groups.get(first, ""))
            self.add_command(inner)
        inner.place(tuple(rest), command, groups)


@click.pass_context
def _show_help(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def add_operations(root: CommandGroup, registry: Registry) -> None:
    groups, tools = _groups(registry), _tools(registry)
    for operation in registry.operations.values():
        root.place(operation.command, operation_command(operation, tools, registry), groups)
    for name, group in root.commands.items():
        if isinstance(group, CommandGroup) and not group.help:  # not a tool: list its commands instead
            group.help = group.short_help = f"The {name}: {', '.join(sorted(group.commands))}."


def _groups(registry: Registry) -> dict[str, str]:
    """The help of each group: the description of its tool up to the colon."""
    groups: dict[str, str] = {}
    for tool in registry.tools.values():
        for name in tool.actions.values():
            path = registry.operations[name].command
            if len(tool.actions) > 1 and len(path) > 1:
                groups.setdefault(path[0], tool.description.partition(":")[0] + ".")
    return groups


def _tools(registry: Registry) -> dict[str, str]:
    """The command of each tool that has one."""
    return {
        tool.name: " ".join(registry.operations[tool.actions[""]].command)
        for tool in registry.tools.values()
        if "" in tool.actions
    }


def operation_command(operation: Operation, tools: Mapping[str, str], registry: Registry) -> click.Command:
    arguments = arguments_of(operation)
    wording = Wording(arguments, tools)
    asks = operation.effect == "delete"
    wants_word = asks and any(argument.name == CONFIRM for argument in arguments)

    def notes() -> Wording:
        others = [one for other in registry.operations.values() for one in arguments_of(other)]
        return Wording(arguments, tools, others)

    def run(**given: Any) -> None:
        session = click.get_current_context().ensure_object(CliSession)
        sure = given.get(CONFIRM) if wants_word else given.pop("yes", True)
        values = ArgumentReader(_stdin).values(arguments, given)
        _check(operation, arguments, values, notes)
        if not sure:
            confirm(f"{operation.title}? {_named(operation, values)}".strip())
        if wants_word:
            values[CONFIRM] = True
        try:
            result = _answer(session, operation, values)
        except VestigeError as error:
            reword(error, notes())
            raise
        session.answer(result.wire(), lambda: operation.render(_with_notes(result, notes())))
        if result.exit_code:
            click.get_current_context().exit(result.exit_code)

    params = [
        _parameter(argument, wording) for argument in arguments if not (asks and argument.name == CONFIRM)
    ]
    if asks:
        names = ["--yes", "-y", *(["--confirm", CONFIRM] if wants_word else [])]
        params.append(click.Option(names, is_flag=True, help="Do not ask."))
    return click.Command(
        operation.command[-1],
        callback=run,
        params=[*params, *everywhere()],
        help=wording.of(operation.description),
        short_help=wording.of(operation.summary),
        epilog=f"\b\nExample:\n  {example_of(operation)}",
    )


def reword(error: VestigeError, wording: Wording) -> None:
    """Put an error into the words of the command line."""
    error.message = wording.of(error.message)
    error.hint = error.hint and wording.of(error.hint)


def _with_notes(result: Wire, wording: Wording) -> Wire:
    """An answer with its notes for the user in the words of the command line. Its other texts are data."""
    said = {name: getattr(result, name, None) for name in NOTES}
    return result.model_copy(
        update={name: wording.of(text) for name, text in said.items() if isinstance(text, str)}
    )


def _check(
    operation: Operation,
    arguments: Sequence[Argument],
    values: Mapping[str, Any],
    notes: Callable[[], Wording],
) -> None:
    """Validate arguments before asking or opening anything; a missing one is named as on the command line."""
    try:
        operation.parse(values)
    except InvalidInput as error:
        missing = {one.name: one for one in arguments if one.required and one.name not in values}
        lacking = missing.get(error.details.get("argument", ""))
        if lacking is None:
            reword(error, notes())
            raise
        shown = lacking.name.upper() if lacking.positional else lacking.flag
        command = " ".join(["vestige", *operation.command])
        hint = f"For example: `{example_of(operation)}`"
        raise InvalidInput(f"`{command}` needs `{shown}`.", hint=hint, details=error.details) from error


def _answer(session: CliSession, operation: Operation, values: Mapping[str, Any]) -> Wire:
    """The answer of an operation, or its answer for a store that cannot be opened."""
    try:
        app = session.open()
    except StoreError as exc:
        if operation.without_store is None:
            raise
        return operation.without_store(exc, session.database().remains())
    with app, ProgressLine() as progress:
        return app.run(operation, values, progress)


def confirm(question: str) -> None:
    """Ask before something is destroyed; without a terminal `--yes` is needed."""
    if not sys.stdin.isatty():
        message = "Confirmation is needed, but there is no terminal to ask on."
        raise invalid_argument("yes", message, "Pass --yes to confirm.")
    if not click.confirm(question, err=True):
        raise Cancelled("Nothing was changed.")


def _named(operation: Operation, values: Mapping[str, Any]) -> str:
    return " ".join(str(values[name]) for name in operation.positional if name in values)


def _stdin() -> bytes:
    return sys.stdin.buffer.read()


def _parameter(argument: Argument, wording: Wording) -> click.Parameter:
    # Nothing is required here: the registry reports missing arguments.
    if argument.positional:
        metavar = argument.name.upper() + ("…" if argument.kind == "list" else "")
        return click.Argument(
            [argument.name],
            required=False,
            nargs=-1 if argument.kind == "list" else 1,
            metavar=metavar if argument.required else f"[{metavar}]",
            type=_type(argument),
        )
    if argument.kind == "boolean":
        flag = argument.flag + (f"/{argument.flag.replace('--', '--no-', 1)}" if argument.two_sided else "")
        return click.Option([flag, argument.name], is_flag=True, default=None, help=_help(argument, wording))
    return click.Option(
        [argument.flag, argument.name],
        multiple=argument.kind == "list",
        metavar=_METAVARS.get(argument.kind),
        type=_type(argument),
        help=_help(argument, wording),
    )


def _type(argument: Argument) -> click.ParamType[Any]:
    return NearestChoice(argument.choices) if argument.choices else click.STRING


def _help(argument: Argument, wording: Wording) -> str:
    """The description with limits, and with the default unless the description states it."""
    notes = []
    if argument.kind == "list":
        notes.append("repeatable, or separated by commas")
    if argument.limits:
        notes.append(argument.limits)
    if argument.required:
        notes.append("required")
    elif argument.default not in (None, False, [], {}) and "default" not in argument.description.lower():
        notes.append(f"default: {_plain(argument.default)}")
    return wording.of(argument.description) + (f" [{'; '.join(notes)}]" if notes else "")


def _plain(default: Any) -> str:
    """A default as it is written on the command line."""
    if isinstance(default, bool):
        return str(default).lower()
    return ", ".join(map(str, default)) if isinstance(default, list) else str(default)
