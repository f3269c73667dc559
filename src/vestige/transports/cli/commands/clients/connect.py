"""`vestige connect CLIENT`: adds this memory to the settings of an agent, with a preview."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

import click

from vestige.core.errors import InvalidInput
from vestige.engine.agent.files import agent_files
from vestige.operations.shared.text import table
from vestige.settings.settings import DATABASE_URL, is_set, load_settings
from vestige.transports.arguments import invalid_argument
from vestige.transports.cli.commands.server_address import (
    UNENCRYPTED,
    is_vestige,
    leaves_unencrypted,
    on_this_machine,
)
from vestige.transports.cli.operation_commands import NearestChoice, confirm
from vestige.transports.cli.program import locations_of, own_command, script_beside, typed
from vestige.transports.cli.session import CliSession, visible
from vestige.transports.connect import hooks, plans
from vestige.transports.connect.clients import (
    CLAUDE,
    CLAUDE_CODE,
    CLIENTS,
    AgentClient,
    Entry,
    Http,
    InlineKey,
    Machine,
    Named,
    Scope,
    Server,
    Stdio,
    claude_add,
    claude_remove,
    find,
)
from vestige.transports.connect.plans import FileChange

# -- The server of an entry: the program of this installation, or a running HTTP server

KEY_VARIABLE = "VESTIGE_KEY"
MCP_PATH = "/mcp"
OWN_SERVER = "own"
"""`--http` without a URL: the server of the settings."""
ASK_SECONDS = 2.0
"""Seconds that a server may take to answer."""

PATH_CHARS = 34
"""Characters of a path in the list of clients."""


def server_of(session: CliSession, client: AgentClient, given: Mapping[str, Any]) -> Server:
    """The server that the options of `connect` select."""
    if given["http"] is None:
        if given["key"] is not None or given["key_env"] is not None:
            raise invalid_argument("key", "--key and --key-env need --http: a key is for a server.")
        return _program(session)
    if given["key"] is not None and given["key_env"] is not None:
        raise invalid_argument("key_env", "Give --key or --key-env, not both.")
    settings = session.settings()
    own = given["http"] == OWN_SERVER
    url = _own_url(settings.server.bind) if own else _url(given["http"])
    needed = settings.auth.enabled or not own
    return Http(url=url, key=_key(client, given["key"], given["key_env"], needed=needed))


def elsewhere(session: CliSession, client: AgentClient, server: Server) -> Iterator[str]:
    """A warning if the client would use another store than this shell. The entry can name a data directory
    and a settings file, but not environment variables: they may contain a password."""
    if isinstance(server, Http):
        return
    here = session.settings()
    there = load_settings(locations_of(session), environ={})
    if here.place != there.place:
        yield (
            f"Here the store is {here.place or 'in memory'}, because of variables of this shell "
            f"({DATABASE_URL} or VESTIGE_STORAGE_…). The entry does not contain them: set them where "
            f"{client.title} starts, or it uses {there.place or 'a store in memory'}."
        )


def missing(session: CliSession, client: AgentClient, server: Server) -> Iterator[str]:
    """What the entry alone does not provide: a server that answers, and the client's key variable."""
    if not isinstance(server, Http):
        return
    there = _root(server.url)
    here = on_this_machine(there)
    if (here or not session.settings().offline) and not is_vestige(there, ASK_SECONDS):
        yield f"No Vestige server answers at {there} now."
    if isinstance(server.key, Named):
        variable = server.key.variable
        yield f"{client.title} reads the key from {variable}: set it where {client.title} starts."
        if not is_set(variable):
            command = own_command(locations_of(session)) if here else "vestige"
            yield (
                f"It is not set here. Create a key with `{command} keys create --label "
                f"NAME`{'' if here else ', on the machine of the server'}, and set it with `export "
                f"{variable}=vst_…`."
            )


def _program(session: CliSession) -> Stdio:
    """The `vestige-mcp` of this installation, with the given data directory and settings file."""
    script = script_beside("vestige-mcp")
    command = [script] if script else [sys.executable, "-m", "vestige", "mcp"]
    for flag, path in locations_of(session).items():
        command += [f"--{flag.replace('_', '-')}", path]
    return Stdio(command=command[0], args=tuple(command[1:]))


def _key(
    client: AgentClient, key: str | None, variable: str | None, *, needed: bool
) -> InlineKey | Named | None:
    if key == "-":
        key = click.prompt("Key", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline()
    if key is not None:
        return InlineKey(text=key.strip()) if key.strip() else None
    if variable is None and not needed:
        return None
    if variable is None and client.http and client.reference is None:
        raise InvalidInput(
            f"{client.title} can only take the key from its settings file.",
            hint="Pass it with --key, or `--key -` to type it. Or omit --http: then no key is needed.",
            details={"client": client.name, "argument": "key"},
        )
    return Named(variable=_variable(variable or KEY_VARIABLE))


def _variable(name: str) -> str:
    if not name.isidentifier() or not name.isascii():
        raise invalid_argument("key_env", f"{name!r} is not a valid variable name.")
    return name


def _own_url(bind: str) -> str:
    host, _, port = bind.strip().rpartition(":")
    if port == "0":
        message = "The server picks another port each time it starts, because its port is 0."
        raise invalid_argument("http", message, "Give its URL: --http http://127.0.0.1:PORT")
    everywhere = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}
    return f"http://{everywhere.get(host, host)}:{port}{MCP_PATH}"


def _url(given: str) -> str:
    parts = urlsplit(given)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        example = (
            "For example --http http://127.0.0.1:3927, without user and password. CLIENT comes before it."
        )
        raise invalid_argument("http", f"{given!r} is not the URL of a server.", example)
    return given if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}{MCP_PATH}"


def _root(url: str) -> str:
    """The URL of the server without the MCP path."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    above = path.removesuffix(MCP_PATH) if path.endswith(MCP_PATH) else ""
    return f"{parts.scheme}://{parts.netloc}{above}"


NAME = "vestige"
SCOPES: tuple[Scope, ...] = get_args(Scope)
UNCHANGED = 1
"""Exit code if the requested change was not made."""
_ADDRESSES = ("url", "serverUrl", "httpUrl")


def options() -> list[click.Parameter]:
    option = click.Option
    return [
        click.Argument(["client"], metavar="[CLIENT]", required=False, shell_complete=_names),
        option(
            ["--http"],
            metavar="[URL]",
            is_flag=False,
            flag_value=OWN_SERVER,
            help="Use a running server (`vestige serve`) instead of starting one; without URL your own "
            "server.",
        ),
        option(
            ["--key"],
            metavar="KEY",
            help="API key for the server, stored in the client's file; `-` prompts for it, '' means no key.",
        ),
        option(
            ["--key-env"],
            metavar="NAME",
            help=f"Environment variable in which the client finds the key (default {KEY_VARIABLE}).",
        ),
        option(["--name"], default=NAME, help="Name of the memory in the client (default vestige)."),
        option(
            ["--scope"],
            type=NearestChoice(SCOPES),
            default="user",
            help="For all projects (user, the default), or for the project of this directory.",
        ),
        option(
            ["--hooks"],
            is_flag=True,
            help="Add hooks instead: context at the start of a session, recall at a prompt, a session log.",
        ),
        option(["--print", "only_print"], is_flag=True, help="Print the entry; change nothing."),
        option(["--dry-run"], is_flag=True, help="Show the change; change nothing."),
        option(["--yes", "-y"], is_flag=True, help="Do not ask."),
        option(["--undo"], is_flag=True, help="Remove the entry."),
        config_home_option(),
    ]


def config_home_option() -> click.Option:
    variable = "APPDATA" if sys.platform == "win32" else "XDG_CONFIG_HOME"
    return click.Option(
        ["--config-home"],
        metavar="DIR",
        envvar=variable,
        help=f"Folder of program settings, if it is not the usual one (also: {variable}).",
    )


def connect(session: CliSession, client: str | None, **given: Any) -> None:
    """Add this memory to an agent's settings; without CLIENT list the supported agents.

    Shows the change first, and keeps a copy of the file beside it. The rest of the file stays unchanged, with
    its comments. --undo removes the entry.
    """
    machine = this_machine(given["config_home"])
    if client is None and given["http"] in CLIENTS:  # the word after --http was not a URL
        client, given["http"] = given["http"], OWN_SERVER
    if client is None:
        if given["http"] or given["undo"] or given["only_print"] or given["hooks"]:
            raise InvalidInput("`connect` needs a CLIENT.", hint=f"One of: {', '.join(CLIENTS)}.")
        found = [_state(one, machine, given["name"]) for one in CLIENTS.values()]
        session.answer({"clients": found}, lambda: _list(found, own_command(locations_of(session))))
        return
    if given["hooks"]:
        _hooks(session, machine, client, given)
        return
    chosen = find(client)
    name, scope = _checked_name(given["name"]), given["scope"]
    if given["undo"]:
        change = plans.undo(chosen, machine, name=name, scope=scope)
        _apply(session, change, _by_command(change, machine, scope, [claude_remove(name)]), given, [])
        return
    server = server_of(session, chosen, given)
    if given["only_print"]:
        _print(session, chosen, machine, server, name, scope)
        return
    change = plans.connect(chosen, machine, server, name=name, scope=scope)
    words = [claude_add(server, name)]
    if change.file.text is not None and plans.connected(chosen, machine, name=name, scope=scope):
        words.insert(0, claude_remove(name))
    notes = [*_notes(change, machine, server), *elsewhere(session, chosen, server)]
    if not change.nothing:
        notes += missing(session, chosen, server)
    _apply(session, change, _by_command(change, machine, scope, words), given, notes)


def _hooks(session: CliSession, machine: Machine, client: str, given: Mapping[str, Any]) -> None:
    """Add or remove the hooks of a client."""
    if given["http"] is not None:
        raise invalid_argument(
            "http", "--hooks has no --http: hooks ask whatever server runs on this machine."
        )
    chosen, scope = hooks.find_hooks(client), given["scope"]
    script = script_beside("vestige-hook")
    program = [script] if script else [sys.executable, "-m", "vestige.transports.hooks.command"]
    if folder := locations_of(session).get("data_dir"):
        program += ["--data-dir", folder]
    name = _checked_name(given["name"])
    command = hooks.HookCommand(
        program=tuple(program), server=_server_named(machine, client, name, scope), platform=machine.platform
    )
    if given["only_print"]:
        path, text = chosen.place(machine, scope), hooks.installed_text(chosen, "", command)
        value = {"client": client, "file": str(path), "text": text, "notes": [chosen.advice]}
        session.answer(value, lambda: "\n".join([f"In {path}:\n\n{text}", chosen.advice]))
        return
    if given["undo"]:
        _apply(session, hooks.remove(chosen, machine, command, scope=scope), [], given, [])
        return
    change = hooks.install(chosen, machine, command, scope=scope)
    notes = [] if change.client.installed(machine) else [f"{chosen.title} was not found on this machine."]
    if client == "cursor" and hooks.has_hooks(hooks.HOOK_CLIENTS[CLAUDE_CODE], machine, "user"):
        notes.append("The hooks of Claude Code are installed, and Cursor runs them too: you need only one.")
    if client in CLIENTS and command.server is None:
        notes.append(f"`vestige connect {client}` gives it the tools of Vestige; hooks are faster then, too.")
    settings = load_settings(locations_of(session))
    if not agent_files(settings).folder.is_dir():
        notes.append("`vestige agent init` creates the files of the session log, which hooks write then.")
    _apply(session, change, [], given, notes)


def _server_named(machine: Machine, client: str, name: str, scope: Scope) -> str | None:
    """The name of the client's connected server, whose tool a hook may call; None without one."""
    if client not in CLIENTS:
        return None
    scopes = [one for one in dict.fromkeys((scope, "user")) if CLIENTS[client].files(one, machine.platform)]
    try:
        there = any(plans.connected(CLIENTS[client], machine, name=name, scope=one) for one in scopes)
    except InvalidInput:
        return None
    return name if there else None


def this_machine(config_home: str | None) -> Machine:
    return Machine(
        home=Path.home(),
        platform=sys.platform,
        project=Path.cwd(),
        config_home=Path(config_home) if config_home else None,
        which=shutil.which,
    )


def _checked_name(name: str) -> str:
    if not name or not all(letter.isalnum() or letter in "-_" for letter in name):
        message = f"{name!r} is not a valid name for the entry."
        raise invalid_argument("name", message, "Use letters, digits, - and _.")
    return name


# -- Changes of settings files


def _by_command(
    change: FileChange, machine: Machine, scope: Scope, commands: Sequence[Sequence[str]]
) -> list[str]:
    """Commands to run instead of an edit, for the one client that rewrites its own file all the time."""
    own = change.client.name == CLAUDE_CODE and scope == "user" and machine.which(CLAUDE)
    if change.nothing or not own:
        return []
    return [typed(words, machine.platform) for words in commands]


def _apply(
    session: CliSession, change: FileChange, commands: list[str], given: Mapping[str, Any], notes: list[str]
) -> None:
    """Show the change, apply it if wanted, and report the result."""
    diff, backup = change.diff(), None
    changed = shown = refused = False
    if change.nothing:
        idle = change.idle or ("it is not connected" if change.undoes else "the entry exists")
        what = f"Nothing to do: {idle}."
    elif commands:
        what = (
            f"Nothing was changed: {change.client.title} manages this file itself. Run this yourself:\n\n  "
            + "\n  ".join(commands)
        )
    elif given["dry_run"]:
        what = "Nothing was changed: this is a dry run."
    elif given["yes"] or sys.stdin.isatty():
        if not given["yes"]:
            click.echo(f"{visible(diff)}\n", err=True)
            confirm(f"{change.warning} Change {change.file.path}?".strip())
            shown = True
        backup, changed = change.apply(datetime.now(UTC)), True
        what = change.outcome
    else:
        refused = True
        what = "Nothing was changed: confirmation is needed, but there is no terminal. Pass --yes to confirm."
    advice = [change.client.advice] if changed and not change.undoes else []
    if given["dry_run"] and change.client.advice and not (commands or change.undoes):
        advice = [f"After the change: {change.client.advice}"]
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
    session.answer(value, lambda: _text(value, with_diff=not shown))
    if refused:
        click.get_current_context().exit(UNCHANGED)


def _text(value: Mapping[str, Any], *, with_diff: bool) -> str:
    parts = [value["diff"], ""] if with_diff and value["diff"] and not value["commands"] else []
    parts.append(value["message"])
    if value["kept"]:
        parts.append(f"The previous file is kept as {value['kept']}.")
    return "\n".join([*parts, *value["notes"]])


def _notes(change: FileChange, machine: Machine, server: Server) -> Iterator[str]:
    title = change.client.title
    if not change.client.installed(machine):
        yield f"{title} was not found on this machine."
    if isinstance(server, Http) and server.key and leaves_unencrypted(server.url):
        yield UNENCRYPTED
    if change.exposed:
        yield (
            f"Other users of this machine can read {change.file.path}, which contains the key. Run chmod "
            "600 on it."
        )


def _print(
    session: CliSession, client: AgentClient, machine: Machine, server: Server, name: str, scope: Scope
) -> None:
    path, text = plans.place(client, machine, scope), plans.snippet(client, server, name)
    notes = list(elsewhere(session, client, server))
    value = {"client": client.name, "file": str(path), "format": client.format, "text": text, "notes": notes}
    session.answer(value, lambda: "\n".join([f"In {path}:\n\n{text}", *notes]))


# -- List of clients


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
    rows = []
    for one in found:
        installed = "yes" if one["installed"] else "no"
        connections = [
            (f"{state.get('connected') or 'unreadable'} ({scope})", state["file"])
            for scope, state in one["scopes"].items()
            if state["connected"] or "problem" in state
        ]
        for connected, file in connections or [("no", one["scopes"]["user"]["file"])]:
            rows.append((one["client"], installed, connected, _short_path(file)))
    shown = table(("client", "installed", "connected", "file"), rows)
    return f"{shown}\n\n{command} connect CLIENT connects one; --undo disconnects it."


def _short_path(file: str) -> str:
    """A path with `~` for the home directory, and without its beginning if it is long: its end says more."""
    home = str(Path.home())
    path = f"~{file[len(home) :]}" if file.startswith(home + os.sep) else file
    return path if len(path) <= PATH_CHARS else f"…{path[1 - PATH_CHARS :]}"
