"""The server of an entry: the program of this installation, or a running HTTP server."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import click

from vestige.core.errors import InvalidInput
from vestige.settings.settings import DATABASE_URL, is_set, load_settings
from vestige.transports.cli.program import locations_of, own_command, script_beside
from vestige.transports.cli.server_address import is_vestige, on_this_machine
from vestige.transports.cli.session import CliSession
from vestige.transports.connect.clients import AgentClient, Http, InlineKey, Named, Server, Stdio

KEY_VARIABLE = "VESTIGE_KEY"
MCP_PATH = "/mcp"
OWN_SERVER = "own"
"""`--http` without a URL: the server of the settings."""
ASK_SECONDS = 2.0
"""Seconds that a server may take to answer."""


def server_of(session: CliSession, client: AgentClient, given: Mapping[str, Any]) -> Server:
    """The server that the options of `connect` select."""
    if given["http"] is None:
        if given["key"] is not None or given["key_env"] is not None:
            raise InvalidInput(
                "--key and --key-env need --http: a key is for a server.", details={"argument": "key"}
            )
        return _program(session)
    if given["key"] is not None and given["key_env"] is not None:
        raise InvalidInput("Give --key or --key-env, not both.", details={"argument": "key_env"})
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


# -- Program


def _program(session: CliSession) -> Stdio:
    """The `vestige-mcp` of this installation, with the given data directory and settings file."""
    script = script_beside("vestige-mcp")
    command = [script] if script else [sys.executable, "-m", "vestige", "mcp"]
    for flag, path in locations_of(session).items():
        command += [f"--{flag.replace('_', '-')}", path]
    return Stdio(command=command[0], args=tuple(command[1:]))


# -- Server


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
        raise InvalidInput(f"{name!r} is not a valid variable name.", details={"argument": "key_env"})
    return name


def _own_url(bind: str) -> str:
    host, _, port = bind.strip().rpartition(":")
    if port == "0":
        raise InvalidInput(
            "The server picks another port each time it starts, because its port is 0.",
            hint="Give its URL: --http http://127.0.0.1:PORT",
            details={"argument": "http"},
        )
    everywhere = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}
    return f"http://{everywhere.get(host, host)}:{port}{MCP_PATH}"


def _url(given: str) -> str:
    parts = urlsplit(given)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise InvalidInput(
            f"{given!r} is not the URL of a server.",
            hint="For example --http http://127.0.0.1:3927, without user and password. CLIENT comes before "
            "it.",
            details={"argument": "http"},
        )
    return given if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}{MCP_PATH}"


def _root(url: str) -> str:
    """The URL of the server without the MCP path."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    above = path.removesuffix(MCP_PATH) if path.endswith(MCP_PATH) else ""
    return f"{parts.scheme}://{parts.netloc}{above}"
