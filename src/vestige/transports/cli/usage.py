"""Mistakes on the command line, as the error value that every transport uses."""

import click
from click.exceptions import BadArgumentUsage, BadOptionUsage, BadParameter, NoSuchOption

from vestige.core.errors import InvalidInput, UnknownArgument, nearest_name

OTHER_NAMES = {"--port": "--bind", "--host": "--bind"}
"""Options under the names that other programs use."""


FEW = 12
"""The most commands of a group that an error lists."""


def usage_error(error: click.UsageError) -> InvalidInput:
    if isinstance(error, NoSuchOption):
        return _unknown_option(error)
    if isinstance(error, BadParameter) and error.param is not None:
        return _bad_value(error, error.param)
    hint = _help_hint(error.ctx)
    if isinstance(error, BadOptionUsage | BadArgumentUsage):
        return InvalidInput(error.message, hint=hint)
    if "unexpected extra argument" in error.message:
        hint = f"Put a text of several words in quotes. {hint}"
    return InvalidInput(error.message, hint=hint)


def sessions_hint(ctx: click.Context) -> str | None:
    """What `recall read ID` may mean: `recall` searches memories, and other programs call sessions that."""
    if ctx.parent is None or ctx.info_name != "recall":
        return None
    root = ctx.parent.command
    group = root.commands.get("sessions") if isinstance(root, click.Group) else None
    first = str(ctx.params.get("query")).partition(" ")[0]
    if not isinstance(group, click.Group) or first not in group.list_commands(ctx):
        return None
    program = ctx.parent.command_path
    return f"`{program} recall` searches memories. Old sessions: `{program} sessions {first}`."


def unknown_command(ctx: click.Context, name: str, known: list[str]) -> InvalidInput:
    close = _other_command(ctx, name) or nearest_name(name, known)
    meant = [f"{ctx.command_path} {close}"] if close else []
    meant = meant if _other_command(ctx, name) else _further_in(ctx, name) or meant
    named = ", ".join(known) if len(known) <= FEW else ""
    return InvalidInput(
        f"`{ctx.command_path}` has no command `{name}`.",
        hint=f"Did you mean {' or '.join(f'`{one}`' for one in meant)}?"
        if meant
        else f"Its commands: {named}."
        if named
        else _help_hint(ctx),
        details={"command": name},
    )


def _other_command(ctx: click.Context, name: str) -> str | None:
    """The command that a word means at the top; a word that names no command there is left alone."""
    if ctx.parent is not None:
        return None
    from vestige.operations.registry.command_names import OTHER_COMMANDS  # only after an error

    return next((command for command, words in OTHER_COMMANDS.items() if name in words.split()), None)


def _further_in(ctx: click.Context, name: str) -> list[str]:
    """The commands of this name in subgroups."""
    groups = ctx.command.commands if isinstance(ctx.command, click.Group) else {}
    return [
        f"{ctx.command_path} {group} {name}"
        for group, command in sorted(groups.items())
        if isinstance(command, click.Group) and name in command.list_commands(ctx)
    ]


def _unknown_option(error: NoSuchOption) -> InvalidInput:
    name, ctx = error.option_name, error.ctx
    known = [flag for param in ctx.command.params for flag in _flags(param)] if ctx else []
    where = f"`{ctx.command_path}`" if ctx else "The command"
    other = OTHER_NAMES.get(name)
    close = other if other in known else nearest_name(name, known)
    hint = (
        f"Did you mean `{close}`?"
        if close
        else f"Put `--` before a text that starts with a dash. {_help_hint(ctx)}"
    )
    return UnknownArgument(f"{where} has no option `{name}`.", hint=hint, details={"argument": name})


def _flags(param: click.Parameter) -> list[str]:
    return [flag for flag in (*param.opts, *param.secondary_opts) if flag.startswith("--")]


def _bad_value(error: BadParameter, param: click.Parameter) -> InvalidInput:
    name = param.name or ""
    details: dict[str, object] = {"argument": name}
    hint = _help_hint(error.ctx)
    if isinstance(param.type, click.Choice):
        allowed = [str(choice) for choice in param.type.choices]
        details["allowed"] = allowed
        hint = f"One of: {', '.join(allowed)}."
    shown = next(iter(_flags(param)), name.upper())
    return InvalidInput(f"`{shown}`: {error.message}", hint=hint, details=details)


def _help_hint(ctx: click.Context | None) -> str:
    return f"See `{ctx.command_path if ctx else 'vestige'} --help`."
