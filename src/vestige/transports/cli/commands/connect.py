"""`vestige connect CLIENT`: this memory in the settings of an agent, shown before it is written."""

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import click

from vestige.core.errors import InvalidInput
from vestige.operations.shared.text import table
from vestige.transports.cli.commands.connect_server import (
    KEY_VARIABLE,
    OWN_SERVER,
    elsewhere,
    missing,
    server_of,
)
from vestige.transports.cli.operation_commands import NearestChoice, confirm
from vestige.transports.cli.program import own_command, places_of, typed
from vestige.transports.cli.server_address import UNENCRYPTED, leaves_unencrypted
from vestige.transports.cli.session import CliSession, visible
from vestige.transports.connect import claude, plans
from vestige.transports.connect.clients import CLIENTS, AgentClient, Scope, find
from vestige.transports.connect.machine import Machine
from vestige.transports.connect.plans import FileChange
from vestige.transports.connect.servers import Entry, Http, Server

NAME = "vestige"
SCOPES: tuple[Scope, ...] = get_args(Scope)
UNCHANGED = 1
"""The exit code when what was asked for was not done."""
_ADDRESSES = ("url", "serverUrl", "httpUrl")


def options() -> list[click.Parameter]:
    """The words that `connect` takes."""
    option = click.Option
    variable = "APPDATA" if sys.platform == "win32" else "XDG_CONFIG_HOME"
    return [
        click.Argument(["client"], metavar="[CLIENT]", required=False, shell_complete=_names),
        option(
            ["--http"],
            metavar="[URL]",
            is_flag=False,
            flag_value=OWN_SERVER,
            help="Use a running server (`vestige serve`) instead of starting one; without URL your own.",
        ),
        option(
            ["--key"],
            metavar="KEY",
            help="The key for it, which is then in the client's file; `-` asks for it, '' is no key.",
        ),
        option(
            ["--key-env"],
            metavar="NAME",
            help=f"The variable that the client finds the key in (default {KEY_VARIABLE}).",
        ),
        option(["--name"], default=NAME, help="What the memory is called there (default vestige)."),
        option(
            ["--scope"],
            type=NearestChoice(SCOPES),
            default="user",
            help="For all you do (user, the default), or in the project of this directory.",
        ),
        option(["--print", "only_print"], is_flag=True, help="Show the entry; change nothing."),
        option(["--yes", "-y"], is_flag=True, help="Do not ask."),
        option(["--undo"], is_flag=True, help="Take it out again."),
        option(
            ["--config-home"],
            metavar="DIR",
            envvar=variable,
            help=f"Where programs keep their settings, if it is an unusual place (also: {variable}).",
        ),
    ]


def connect(session: CliSession, client: str | None, **given: Any) -> None:
    """Add this memory to an agent's settings, or without CLIENT show which agents there are.

    What would change is shown first, and a copy of the file is kept beside it. The rest of the file stays as
    it is, with its comments. --undo takes the entry out again.
    """
    machine = _machine(given["config_home"])
    if client is None and given["http"] in CLIENTS:  # the word behind --http was not meant as an address
        client, given["http"] = given["http"], OWN_SERVER
    if client is None:
        if given["http"] or given["undo"] or given["only_print"]:
            raise InvalidInput("`connect` needs a CLIENT.", hint=f"One of: {', '.join(CLIENTS)}.")
        found = [_state(one, machine, given["name"]) for one in CLIENTS.values()]
        session.answer({"clients": found}, lambda: _list(found, own_command(places_of(session))))
        return
    chosen = find(client)
    name, scope = _checked_name(given["name"]), given["scope"]
    if given["undo"]:
        change = plans.undo(chosen, machine, name=name, scope=scope)
        _settle(session, change, _by_command(change, machine, scope, [claude.remove(name)]), given, [])
        return
    server = server_of(session, chosen, given)
    if given["only_print"]:
        _print(session, chosen, machine, server, name, scope)
        return
    change = plans.connect(chosen, machine, server, name=name, scope=scope)
    words = [claude.add(server, name)]
    if change.file.text is not None and plans.connected(chosen, machine, name=name, scope=scope):
        words.insert(0, claude.remove(name))
    notes = [*_notes(change, machine, server), *elsewhere(session, chosen, server)]
    if not change.nothing:
        notes += missing(session, chosen, server)
    _settle(session, change, _by_command(change, machine, scope, words), given, notes)


# -- what is wanted ----------------------------------------------------------------------------------------


def _machine(config_home: str | None) -> Machine:
    return Machine(
        home=Path.home(),
        platform=sys.platform,
        project=Path.cwd(),
        config_home=Path(config_home) if config_home else None,
        which=shutil.which,
    )


def _checked_name(name: str) -> str:
    if not name or not all(letter.isalnum() or letter in "-_" for letter in name):
        raise InvalidInput(
            f"{name!r} cannot be a name there.",
            hint="Use letters, digits, - and _.",
            details={"argument": "name"},
        )
    return name


# -- what becomes of it ------------------------------------------------------------------------------------


def _by_command(
    change: FileChange, machine: Machine, scope: Scope, commands: Sequence[Sequence[str]]
) -> list[str]:
    """The lines to run instead of an edit, for the one client that edits its own file all the time."""
    own = change.client.name == claude.CLIENT and scope == "user" and machine.which(claude.PROGRAM)
    if change.nothing or not own:
        return []
    return [typed(words, machine.platform) for words in commands]


def _settle(
    session: CliSession, change: FileChange, commands: list[str], given: Mapping[str, Any], notes: list[str]
) -> None:
    """Show what would be done, do it if that is wanted, and say what was done."""
    diff, backup, changed, shown = change.diff(), None, False, False
    refused = False
    if change.nothing:
        what = f"Nothing to do: {'it is not connected' if change.undoes else 'the entry is there'}."
    elif commands:
        what = (
            f"Nothing was changed: {change.client.title} keeps this file itself. Run this yourself:\n\n  "
            + "\n  ".join(commands)
        )
    elif given["yes"] or sys.stdin.isatty():
        if not given["yes"]:
            click.echo(f"{visible(diff)}\n", err=True)
            confirm(f"{change.warning} Change {change.file.path}?".strip())
            shown = True
        backup, changed = change.apply(datetime.now(UTC)), True
        what = change.outcome
    else:
        what, refused = "Nothing was changed: there is no terminal to ask. Say --yes to do this.", True
    advice = [change.client.advice] if changed and not change.undoes else []
    value = {
        "client": change.client.name,
        "file": str(change.file.path),
        "changed": changed,
        "message": what,
        "diff": diff,
        "commands": commands,
        "kept": str(backup) if backup else None,
        "notes": [] if change.nothing else [note for note in (change.warning, *notes, *advice) if note],
    }
    session.answer(value, lambda: _told(value, with_diff=not shown))
    if refused:
        click.get_current_context().exit(UNCHANGED)


def _told(value: Mapping[str, Any], *, with_diff: bool) -> str:
    parts = [value["diff"], ""] if with_diff and value["diff"] and not value["commands"] else []
    parts.append(value["message"])
    if value["kept"]:
        parts.append(f"The file as it was is kept as {value['kept']}.")
    return "\n".join([*parts, *value["notes"]])


def _notes(change: FileChange, machine: Machine, server: Server) -> Iterator[str]:
    """What somebody should know who connects a client."""
    title = change.client.title
    if not change.client.installed(machine):
        yield f"{title} was not found on this machine."
    if isinstance(server, Http) and server.key and leaves_unencrypted(server.url):
        yield UNENCRYPTED
    if change.exposed:
        yield f"Others on this machine can read {change.file.path}, with the key in it: chmod 600 helps."


def _print(
    session: CliSession, client: AgentClient, machine: Machine, server: Server, name: str, scope: Scope
) -> None:
    path, text = plans.place(client, machine, scope), plans.snippet(client, server, name)
    notes = list(elsewhere(session, client, server))
    value = {"client": client.name, "file": str(path), "format": client.format, "text": text, "notes": notes}
    session.answer(value, lambda: "\n".join([f"In {path}:\n\n{text}", *notes]))


# -- which clients there are -------------------------------------------------------------------------------


def _names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in CLIENTS if name.startswith(incomplete)]


def _state(client: AgentClient, machine: Machine, name: str) -> dict[str, Any]:
    scopes = [scope for scope in SCOPES if client.files(scope, machine.platform)]
    return {
        "client": client.name,
        "title": client.title,
        "installed": client.installed(machine),
        "scopes": {scope: _connection(client, machine, name, scope) for scope in scopes},
    }


def _connection(client: AgentClient, machine: Machine, name: str, scope: Scope) -> dict[str, Any]:
    state: dict[str, Any] = {"file": str(plans.place(client, machine, scope)), "connected": None}
    try:
        entry = plans.connected(client, machine, name=name, scope=scope)
    except InvalidInput as exc:
        return {**state, "problem": exc.message}
    return {**state, "connected": _kind(entry) if entry else None}


def _kind(entry: Entry) -> str:
    return "http" if any(key in entry for key in _ADDRESSES) else "stdio"


def _list(found: Sequence[Mapping[str, Any]], command: str) -> str:
    """A row for each connection, and for each client without one."""
    rows, places = [], []
    for one in found:
        installed = "yes" if one["installed"] else "no"
        told = [
            (f"{state.get('connected') or 'file cannot be read'} ({scope})", state["file"])
            for scope, state in one["scopes"].items()
            if state["connected"] or "problem" in state
        ]
        for connected, file in told or [("no", one["scopes"]["user"]["file"])]:
            rows.append((one["client"], installed, connected))
            places.append(file)
    lines = table(("client", "installed", "connected"), rows).splitlines()
    places = ["file", "─" * max(map(len, places)), *places]
    width = max(map(len, lines))
    # Beside the table, which cuts what is long: half a path is none.
    shown = [f"{line.ljust(width)}  {place}".rstrip() for line, place in zip(lines, places, strict=True)]
    return "\n".join([*shown, "", f"{command} connect CLIENT connects one; --undo takes it out again."])
