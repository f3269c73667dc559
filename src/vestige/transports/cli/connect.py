"""`vestige connect CLIENT`: this memory in the settings of an agent, shown before it is written."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

import click

from vestige.connect import claude, plans
from vestige.connect.clients import CLIENTS, Client, Scope, find
from vestige.connect.machine import Machine
from vestige.connect.plans import Change
from vestige.connect.servers import Entry, Held, Http, Named, Server, Stdio
from vestige.errors import InvalidInput
from vestige.operations.prose import table
from vestige.transports.cli.commands import Choice, confirm
from vestige.transports.cli.session import Session, visible

KEY_VARIABLE = "VESTIGE_KEY"
NAME = "vestige"
MCP_PATH = "/mcp"
SCOPES: tuple[Scope, ...] = get_args(Scope)
_OWN_SERVER = "own"
"""What `--http` is without an address: the server that the settings describe."""
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
            flag_value=_OWN_SERVER,
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
            type=Choice(SCOPES),
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


def connect(session: Session, client: str | None, **given: Any) -> None:
    """Add this memory to an agent's settings, or without CLIENT show which agents there are.

    What would change is shown first, and a copy of the file is kept beside it. The rest of the file stays as
    it is, with its comments. --undo takes the entry out again.
    """
    machine = _machine(given["config_home"])
    if client is None and given["http"] in CLIENTS:  # the word behind --http was not meant as an address
        client, given["http"] = given["http"], _OWN_SERVER
    if client is None:
        if given["http"] or given["undo"] or given["only_print"]:
            raise InvalidInput("`connect` needs a CLIENT.", hint=f"One of: {', '.join(CLIENTS)}.")
        found = [_state(one, machine, given["name"]) for one in CLIENTS.values()]
        session.answer({"clients": found}, lambda: _list(found))
        return
    chosen = find(client)
    name, scope = _checked_name(given["name"]), given["scope"]
    if given["undo"]:
        change = plans.undo(chosen, machine, name=name, scope=scope)
        _settle(session, change, _by_command(change, machine, scope, [claude.remove(name)]), given, [])
        return
    server = _server(session, chosen, given)
    if given["only_print"]:
        _print(session, chosen, machine, server, name, scope)
        return
    change = plans.connect(chosen, machine, server, name=name, scope=scope)
    words = [claude.add(server, name)]
    if change.file.text is not None and plans.connected(chosen, machine, name=name, scope=scope):
        words.insert(0, claude.remove(name))
    notes = list(_notes(change, machine, server))
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


def _server(session: Session, client: Client, given: Mapping[str, Any]) -> Server:
    if given["http"] is None:
        if given["key"] is not None or given["key_env"] is not None:
            raise InvalidInput("A key is for a server: say --http as well.", details={"argument": "key"})
        return _program(session)
    if given["key"] is not None and given["key_env"] is not None:
        raise InvalidInput("Give --key or --key-env, not both.", details={"argument": "key_env"})
    settings = session.settings()
    own = given["http"] == _OWN_SERVER
    url = _own_url(settings.server.bind) if own else _url(given["http"])
    needed = settings.auth.enabled or not own
    return Http(url=url, key=_key(client, given["key"], given["key_env"], needed=needed))


def _program(session: Session) -> Stdio:
    """The `vestige-mcp` of this installation, with the places that were named beside the command."""
    script = Path(sys.executable).with_name("vestige-mcp.exe" if sys.platform == "win32" else "vestige-mcp")
    command = [str(script)] if script.exists() else [sys.executable, "-m", "vestige", "mcp"]
    for flag in ("data_dir", "config"):
        if flag in session.flags:
            path = Path(session.flags[flag]).expanduser().absolute()
            command += [f"--{flag.replace('_', '-')}", str(path)]
    return Stdio(command=command[0], args=tuple(command[1:]))


def _key(client: Client, key: str | None, variable: str | None, *, needed: bool) -> Held | Named | None:
    if key == "-":
        key = click.prompt("Key", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline()
    if key is not None:
        return Held(text=key.strip()) if key.strip() else None
    if variable is None and not needed:
        return None
    if variable is None and client.http is not None and client.reference is None:
        raise InvalidInput(
            f"{client.title} needs the key in its settings file.",
            hint="Give it with --key, or `--key -` to type it. Or leave --http out: then none is needed.",
            details={"client": client.name, "argument": "key"},
        )
    return Named(variable=_variable(variable or KEY_VARIABLE))


def _variable(name: str) -> str:
    if not name.isidentifier() or not name.isascii():
        raise InvalidInput(f"{name!r} is no name of a variable.", details={"argument": "key_env"})
    return name


def _own_url(bind: str) -> str:
    host, _, port = bind.strip().rpartition(":")
    if port == "0":
        raise InvalidInput(
            "The server takes another port each time it starts.",
            hint="Give its address: --http http://127.0.0.1:PORT",
            details={"argument": "http"},
        )
    everywhere = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}
    return f"http://{everywhere.get(host, host)}:{port}{MCP_PATH}"


def _url(given: str) -> str:
    parts = urlsplit(given)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise InvalidInput(
            f"{given!r} is no address of a server.",
            hint="Such as --http http://127.0.0.1:3927, without user and password. CLIENT stands before it.",
            details={"argument": "http"},
        )
    return given if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}{MCP_PATH}"


# -- what becomes of it ------------------------------------------------------------------------------------


def _by_command(
    change: Change, machine: Machine, scope: Scope, commands: Sequence[Sequence[str]]
) -> list[str]:
    """The lines to run instead of an edit, for the one client that edits its own file all the time."""
    own = change.client.name == claude.CLIENT and scope == "user" and machine.which(claude.PROGRAM)
    if change.nothing or not own:
        return []
    join = subprocess.list2cmdline if machine.platform == "win32" else shlex.join
    return [join(words) for words in commands]


def _settle(
    session: Session, change: Change, commands: list[str], given: Mapping[str, Any], notes: list[str]
) -> None:
    """Show what would be done, do it if that is wanted, and say what was done."""
    diff, backup, changed, shown = change.diff(), None, False, False
    if change.nothing:
        what = "Nothing to do: it is not connected." if change.undoes else "Nothing to do: it is connected."
    elif commands:
        what = f"{change.client.title} keeps this file itself. Run:\n\n  " + "\n  ".join(commands)
    elif given["yes"] or sys.stdin.isatty():
        if not given["yes"]:
            click.echo(f"{visible(diff)}\n", err=True)
            confirm(f"Change {change.file.path}?")
            shown = True
        backup, changed = change.apply(datetime.now(UTC)), True
        what = change.outcome
    else:
        what = "Nothing was changed: there is no terminal to ask. Say --yes to do this."
    value = {
        "client": change.client.name,
        "file": str(change.file.path),
        "changed": changed,
        "message": what,
        "diff": diff,
        "commands": commands,
        "kept": str(backup) if backup else None,
        "notes": [] if change.nothing else [*notes, *([change.client.advice] if changed else [])],
    }
    session.answer(value, lambda: _told(value, with_diff=not shown))


def _told(value: Mapping[str, Any], *, with_diff: bool) -> str:
    parts = [value["diff"], ""] if with_diff and value["diff"] and not value["commands"] else []
    parts.append(value["message"])
    if value["kept"]:
        parts.append(f"The file as it was is kept as {value['kept']}.")
    return "\n".join([*parts, *value["notes"]])


def _notes(change: Change, machine: Machine, server: Server) -> Iterator[str]:
    """What somebody should know who connects a client."""
    title = change.client.title
    if not change.client.installed(machine):
        yield f"{title} was not found on this machine."
    if isinstance(server, Http):
        if isinstance(server.key, Named):
            yield f"{title} takes the key from {server.key.variable}: set it where {title} starts."
        if server.key and server.url.startswith("http:") and not _on_this_machine(server.url):
            yield "The key travels to another machine without encryption: use https."
    if change.exposed:
        yield f"Others on this machine can read {change.file.path}, with the key in it: chmod 600 helps."


def _on_this_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _print(
    session: Session, client: Client, machine: Machine, server: Server, name: str, scope: Scope
) -> None:
    path, text = plans.place(client, machine, scope), plans.snippet(client, server, name)
    value = {"client": client.name, "file": str(path), "format": client.format, "text": text}
    session.answer(value, lambda: f"In {path}:\n\n{text}")


# -- which clients there are -------------------------------------------------------------------------------


def _names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in CLIENTS if name.startswith(incomplete)]


def _state(client: Client, machine: Machine, name: str) -> dict[str, Any]:
    scopes = [scope for scope in SCOPES if client.files(scope, machine.platform)]
    return {
        "client": client.name,
        "title": client.title,
        "installed": client.installed(machine),
        "scopes": {scope: _connection(client, machine, name, scope) for scope in scopes},
    }


def _connection(client: Client, machine: Machine, name: str, scope: Scope) -> dict[str, Any]:
    state: dict[str, Any] = {"file": str(plans.place(client, machine, scope)), "connected": None}
    try:
        entry = plans.connected(client, machine, name=name, scope=scope)
    except InvalidInput as exc:
        return {**state, "problem": exc.message}
    return {**state, "connected": _kind(entry) if entry else None}


def _kind(entry: Entry) -> str:
    return "http" if any(key in entry for key in _ADDRESSES) else "stdio"


def _list(found: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for one in found:
        said = [
            f"{state.get('connected') or 'file cannot be read'} ({scope})"
            for scope, state in one["scopes"].items()
            if state["connected"] or "problem" in state
        ]
        installed = "yes" if one["installed"] else "no"
        rows.append((one["client"], installed, ", ".join(said) or "no", one["scopes"]["user"]["file"]))
    text = table(("client", "installed", "connected", "file"), rows)
    return f"{text}\n\nvestige connect CLIENT connects one; --undo takes it out again."
