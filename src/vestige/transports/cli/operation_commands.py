"""Commands generated from the registry: one per operation."""

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import click

from vestige.core.errors import Cancelled, ConfigError, InvalidInput, StoreError, VestigeError, nearest_name
from vestige.core.patterns import lazy_pattern
from vestige.transports.arguments import Argument, ArgumentReader, Wording, invalid_argument
from vestige.transports.cli.catalog import CommandCatalog, CommandEntry
from vestige.transports.cli.command_group import CommandGroup
from vestige.transports.cli.options import everywhere
from vestige.transports.cli.session import CliSession, visible
from vestige.transports.cli.short_ids import complete_id, first_words, from_list, in_full
from vestige.transports.cli.terminal import ProgressLine
from vestige.transports.cli.usage import sessions_hint

if TYPE_CHECKING:
    from vestige.operations.registry.arguments import Wire
    from vestige.operations.registry.registry import Operation

FindOperation = Callable[[CommandEntry], "Operation"]
CONFIRM = "confirm"
"""The argument that confirms a destructive operation; the prompt sets it."""
DRY_RUN = "dry_run"
NOTES = ("note", "message", "hint", "warning")
"""The fields of an answer that tell the user what to do."""
SENTENCES = {"content", "query", "description", "prompt", "task", "text", "summary", "topic"}
"""The arguments that people write as a sentence. The last one of a command needs no quotes."""
SHORT_FLAGS = {"limit": "-n"}
_EXAMPLE_ID = lazy_pattern(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_METAVARS = {"integer": "N", "number": "X", "time": "TIME", "json": "JSON|@FILE|-"}


class NearestChoice(click.Choice[str]):
    """A choice whose error names the nearest value."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.choices:
            return str(value)
        close = nearest_name(str(value), self.choices)
        hint = f" Did you mean {close!r}?" if close else ""
        return self.fail(f"{value!r} is not one of the choices.{hint}", param, ctx)


def add_operations(root: CommandGroup, catalog: CommandCatalog, find: FindOperation | None = None) -> None:
    """Add the command of every operation. `find` returns an operation by its entry when a command runs."""
    for entry in catalog.commands:
        maker = partial(operation_command, entry, catalog, find or load_operation)
        root.place(entry.command, maker, partial(_summary, entry, catalog), catalog.groups)
    for name, path in catalog.short_names.items():
        root.short_name(name, path)


def _summary(entry: CommandEntry, catalog: CommandCatalog) -> str:
    return catalog.wording(entry).of(entry.summary)


def load_operation(entry: CommandEntry) -> "Operation":
    """The operation of an entry, by importing the module that defines it."""
    from importlib import import_module

    from vestige.operations.registry.registry import registry

    import_module(entry.module)
    return registry.operations[entry.name]


def operation_command(
    entry: CommandEntry, catalog: CommandCatalog, find: FindOperation, name: str
) -> click.Command:
    arguments, wording = entry.arguments, catalog.wording(entry)
    wants_word = entry.asks and any(argument.name == CONFIRM for argument in arguments)

    def notes() -> Wording:
        return catalog.wording(entry, all_arguments=True)

    def run(**given: Any) -> None:
        session = click.get_current_context().ensure_object(CliSession)
        sure = given.get(CONFIRM) if wants_word else given.pop("yes", True)
        values = from_list(session, arguments, ArgumentReader(_stdin).values(arguments, given))
        operation = find(entry)
        _check(operation, entry, values, notes)
        if not sure and not _only_shows(arguments, values):
            question = f"{entry.title}? {_named(entry, values)}".strip()
            confirm(question, lambda: _first_words(session, entry, values))
        if wants_word:
            values[CONFIRM] = True
        try:
            result = _answer(session, operation, entry, values)
        except VestigeError as error:
            reword(error, notes())
            _mention_stdin(error, entry, values)
            raise
        session.answer(result.wire(), lambda: operation.render(_with_notes(result, notes())))
        if hint := sessions_hint(click.get_current_context()):
            click.echo(hint, err=True)
        if result.exit_code:
            click.get_current_context().exit(result.exit_code)

    params = [
        _parameter(argument, wording, is_sentence=argument.name == _sentence(entry))
        for argument in arguments
        if not (entry.asks and argument.name == CONFIRM)
    ]
    if entry.asks:
        names = ["--yes", "-y", *(["--confirm", CONFIRM] if wants_word else [])]
        params.append(click.Option(names, is_flag=True, help="Do not ask."))
    return click.Command(
        name,
        callback=run,
        params=[*params, *everywhere()],
        help=wording.of(entry.description),
        short_help=wording.of(entry.summary),
        epilog=f"\b\nExample:\n  {_typed_example(entry)}",
    )


def reword(error: VestigeError, wording: Wording) -> None:
    """Put an error into the words of the command line. One about the settings names a setting, which may be
    called like an argument."""
    if isinstance(error, ConfigError):
        return
    error.message = wording.of(error.message)
    error.hint = error.hint and wording.of(error.hint)


def _with_notes(result: "Wire", wording: Wording) -> "Wire":
    """An answer with its notes for the user in the words of the command line. Its other texts are data."""
    said = {name: getattr(result, name, None) for name in NOTES}
    return result.model_copy(
        update={name: wording.of(text) for name, text in said.items() if isinstance(text, str)}
    )


def _check(
    operation: "Operation", entry: CommandEntry, values: Mapping[str, Any], notes: Callable[[], Wording]
) -> None:
    """Validate arguments before asking or opening anything; a missing one is named as on the command line."""
    try:
        operation.parse(values)
    except InvalidInput as error:
        missing = {one.name: one for one in entry.arguments if one.required and one.name not in values}
        lacking = missing.get(error.details.get("argument", ""))
        if lacking is None:
            reword(error, notes())
            raise
        shown = lacking.name.upper() if lacking.positional else lacking.flag
        command = click.get_current_context().command_path
        hint = f"For example: `{_typed_example(entry, command)}`"
        raise InvalidInput(f"`{command}` needs `{shown}`.", hint=hint, details=error.details) from error


def _sentence(entry: CommandEntry) -> str | None:
    """The argument of a command that takes the rest of its words, if it has one."""
    return next((name for name in entry.positional[-1:] if name in SENTENCES), None)


def _joined(_ctx: click.Context, _param: click.Parameter, words: tuple[str, ...]) -> str | None:
    return " ".join(words) if words else None


def _mention_stdin(error: VestigeError, entry: CommandEntry, values: Mapping[str, Any]) -> None:
    """Say how a text is read from a pipe, to someone who seems to expect it. Vestige does not read one
    unasked: a script may leave its input open."""
    piped = not sys.stdin.isatty()
    sentence = _sentence(entry)
    if piped and sentence and sentence not in values and isinstance(error, InvalidInput):
        error.hint = f"{error.hint or ''} To read the text from standard input, write `-`.".lstrip()


def _typed_example(entry: CommandEntry, command: str = "") -> str:
    """The example of a command as a person types it: `@1` instead of an id, and the name that was typed."""
    long_name = " ".join(["vestige", *entry.command])
    example = entry.example.replace(long_name, command or long_name, 1)
    if not any(one.id_of for one in entry.arguments):
        return example
    rows = count(1)
    return _EXAMPLE_ID.sub(lambda _: f"@{next(rows)}", example)


def _answer(
    session: CliSession, operation: "Operation", entry: CommandEntry, values: Mapping[str, Any]
) -> "Wire":
    """The answer of an operation, or its answer for a store that cannot be opened."""
    try:
        app = session.open()
    except StoreError as exc:
        if operation.without_store is None:
            raise
        return operation.without_store(exc, session.database().remains())
    gc.freeze()  # what was imported stays: the collector need not look through it
    gc.enable()
    session.data_dir = app.engine.settings.data_dir
    with app, ProgressLine(colour=session.colour) as progress:
        return app.run(operation, in_full(app, entry.arguments, values), progress)


def _first_words(session: CliSession, entry: CommandEntry, values: Mapping[str, Any]) -> str:
    """The first words of the memories that are named; nothing if the store cannot be opened."""
    if not any(argument.id_of for argument in entry.arguments):
        return ""
    with suppress(StoreError), session.open() as app:
        return visible(first_words(app, entry.arguments, values))
    return ""


def _only_shows(arguments: Sequence[Argument], values: Mapping[str, Any]) -> bool:
    """Whether the operation changes nothing with these values."""
    return any(values.get(one.name, one.default) is True for one in arguments if one.name == DRY_RUN)


def confirm(question: str, about: Callable[[], str] = lambda: "") -> None:
    """Ask before something is destroyed; without a terminal `--yes` is needed. `about` returns
    what the question adds."""
    if not sys.stdin.isatty():
        message = "Confirmation is needed, but there is no terminal to ask on."
        raise invalid_argument("yes", message, "Pass --yes to confirm.")
    if not click.confirm(" ".join(filter(None, (question, about()))), err=True):
        raise Cancelled("Nothing was changed.")


def _named(entry: CommandEntry, values: Mapping[str, Any]) -> str:
    return " ".join(str(values[name]) for name in entry.positional if name in values)


def _stdin() -> bytes:
    return sys.stdin.buffer.read()


def _parameter(argument: Argument, wording: Wording, *, is_sentence: bool) -> click.Parameter:
    # Nothing is required here: the registry reports missing arguments.
    if argument.positional:
        metavar = argument.name.upper() + ("…" if argument.kind == "list" else "")
        return click.Argument(
            [argument.name],
            required=False,
            nargs=-1 if argument.kind == "list" or is_sentence else 1,
            metavar=metavar if argument.required else f"[{metavar}]",
            type=_type(argument),
            callback=_joined if is_sentence else None,
            shell_complete=complete_id if argument.id_of else None,
        )
    if argument.kind == "boolean":
        flag = argument.flag + (f"/{argument.flag.replace('--', '--no-', 1)}" if argument.two_sided else "")
        return click.Option([flag, argument.name], is_flag=True, default=None, help=_help(argument, wording))
    short = [SHORT_FLAGS[argument.name]] if argument.name in SHORT_FLAGS else []
    return click.Option(
        [argument.flag, *short, argument.name],
        multiple=argument.kind == "list",
        metavar=_METAVARS.get(argument.kind),
        type=_type(argument),
        help=_help(argument, wording),
        shell_complete=complete_id if argument.id_of else None,
    )


def _type(argument: Argument) -> click.ParamType[Any]:
    return NearestChoice(argument.choices) if argument.choices else click.STRING


def _help(argument: Argument, wording: Wording) -> str:
    """The description with limits, and with the default unless the description states it."""
    notes = []
    if argument.kind == "list":
        notes.append("repeatable, or separated by commas" if argument.divided else "repeatable")
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
