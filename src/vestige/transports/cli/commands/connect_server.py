"""What an entry leads to: the program of this installation with its memory, or a server that runs already."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import click

from vestige.core.errors import InvalidInput
from vestige.settings.settings import DATABASE_URL, is_set, load_settings
from vestige.transports.cli.program import own_command, places_of, script_beside
from vestige.transports.cli.server_address import is_vestige, on_this_machine
from vestige.transports.cli.session import CliSession
from vestige.transports.connect.clients import AgentClient
from vestige.transports.connect.servers import Http, InlineKey, Named, Server, Stdio

KEY_VARIABLE = "VESTIGE_KEY"
MCP_PATH = "/mcp"
OWN_SERVER = "own"
"""What `--http` is without an address: the server that the settings describe."""
ASK_SECONDS = 2.0
"""How long a server may take to say that it is there."""


def server_of(session: CliSession, client: AgentClient, given: Mapping[str, Any]) -> Server:
    """The server that the options of `connect` are about."""
    if given["http"] is None:
        if given["key"] is not None or given["key_env"] is not None:
            raise InvalidInput("A key is for a server: say --http as well.", details={"argument": "key"})
        return _program(session)
    if given["key"] is not None and given["key_env"] is not None:
        raise InvalidInput("Give --key or --key-env, not both.", details={"argument": "key_env"})
    settings = session.settings()
    own = given["http"] == OWN_SERVER
    url = _own_url(settings.server.bind) if own else _url(given["http"])
    needed = settings.auth.enabled or not own
    return Http(url=url, key=_key(client, given["key"], given["key_env"], needed=needed))


def elsewhere(session: CliSession, client: AgentClient, server: Server) -> Iterator[str]:
    """A warning where a client that starts the program would find another memory than this shell does.

    A file can be named in the entry; what else the environment says cannot: it may be a password.
    """
    if isinstance(server, Http):
        return
    here = session.settings()
    there = load_settings(places_of(session), environ={})
    if here.place != there.place:
        yield (
            f"Here memories are in {here.place or 'this process'}, as variables of this shell say "
            f"({DATABASE_URL} or VESTIGE_STORAGE_…). They are not in the entry: set them where "
            f"{client.title} starts, or it uses {there.place or 'a memory that ends with it'}."
        )


def missing(session: CliSession, client: AgentClient, server: Server) -> Iterator[str]:
    """What the entry alone does not bring: a server that answers, and the key where the client looks."""
    if not isinstance(server, Http):
        return
    there = _root(server.url)
    here = on_this_machine(there)
    if (here or not session.settings().offline) and not is_vestige(there, ASK_SECONDS):
        yield f"No Vestige answers at {there} now."
    if isinstance(server.key, Named):
        variable = server.key.variable
        yield f"{client.title} takes the key from {variable}: set it where {client.title} starts."
        if not is_set(variable):
            command = own_command(places_of(session)) if here else "vestige"
            yield (
                f"It is not set here. `{command} keys create --label NAME`"
                f"{'' if here else ', on the machine of the server,'} makes a key; "
                f"`export {variable}=vst_…` sets the variable."
            )


# -- the program -------------------------------------------------------------------------------------------


def _program(session: CliSession) -> Stdio:
    """The `vestige-mcp` of this installation, with the places that were named, by whatever way."""
    script = script_beside("vestige-mcp")
    command = [script] if script else [sys.executable, "-m", "vestige", "mcp"]
    for flag, path in places_of(session).items():
        command += [f"--{flag.replace('_', '-')}", path]
    return Stdio(command=command[0], args=tuple(command[1:]))


# -- a server ----------------------------------------------------------------------------------------------


def _key(
    client: AgentClient, key: str | None, variable: str | None, *, needed: bool
) -> InlineKey | Named | None:
    if key == "-":
        key = click.prompt("Key", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline()
    if key is not None:
        return InlineKey(text=key.strip()) if key.strip() else None
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


def _root(url: str) -> str:
    """What lies above the address of MCP."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    above = path.removesuffix(MCP_PATH) if path.endswith(MCP_PATH) else ""
    return f"{parts.scheme}://{parts.netloc}{above}"
