"""The supported clients (`clients.toml`): where each keeps its settings on a machine, and the form of an
entry for the two kinds of servers."""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from vestige.core.errors import InvalidInput, nearest_name

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Entry: TypeAlias = dict[str, Json]
Keys: TypeAlias = tuple[str, ...]
"""The position of a value in a file: the keys on the way to it."""
FormatName = Literal["json", "toml"]
Scope = Literal["user", "project"]
Places = Mapping[str, tuple[str, ...]]
"""Files by platform (as in `sys.platform`; others are like Linux): the first that exists counts."""

VARIABLE = "NAME"
"""Placeholder for the name of a variable in a reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stdio:
    """A program that the client starts."""

    command: str
    args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineKey:
    """A key that is stored in the file."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A key in an environment variable of the client: the file contains no secret."""

    variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """A running server; without a key if it needs none."""

    url: str
    key: InlineKey | Named | None = None


Server: TypeAlias = Stdio | Http


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A user's machine: what decides where a client keeps its settings. `platform` is as in `sys.platform`,
    `config_home` is the folder of program settings if it is not the usual one, and `which` finds a program on
    the user's path."""

    home: Path
    platform: str
    project: Path
    config_home: Path | None = None
    which: Callable[[str], str | None] = lambda _name: None

    def place(self, template: str) -> Path:
        """The path of a template of the client table on this machine. It starts with `~` (home), `CONFIG`
        (the folder of program settings), or nothing (the project)."""
        first, _, rest = template.partition("/")
        if first == "~":
            return self.home / rest
        if first == "CONFIG":
            return self._settings() / rest
        return self.project / template

    def choose(self, templates: Iterable[str]) -> Path:
        """The first path that exists, or else the first one."""
        places = [self.place(one) for one in templates]
        return next((place for place in places if place.exists()), places[0])

    def has(self, templates: Iterable[str]) -> bool:
        return any(self.place(one).exists() for one in templates)

    def roots(self) -> tuple[Path, ...]:
        """Folders that belong to no client: files of a client are below one of them."""
        return (self.home, self._settings(), self.project)

    def _settings(self) -> Path:
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        usual = self.home / ("AppData/Roaming" if self.platform == "win32" else ".config")
        # The XDG standard requires ignoring a relative path.
        return self.config_home if self.config_home and self.config_home.is_absolute() else usual


# -- Clients


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentClient:
    """A program that speaks MCP. `containers` are the keys under which servers are listed; the first that
    exists counts, else the last. `signs` are files of an installed client.

    An entry for a program has the type `stdio_type`, if the client needs one; `joins_arguments` puts command
    and arguments in one list. `http` is the key of a server's URL, empty if the client supports no servers,
    and `http_type` the type of such an entry. The API key goes into `headers`. `reference` is how a value
    refers to an environment variable; `key_variable` is the key for its bare name, if there is one.
    """

    name: str
    title: str
    user: Places
    project: tuple[str, ...] = ()
    format: FormatName = "json"
    containers: tuple[Keys, ...] = (("mcpServers",),)
    stdio_type: str = ""
    joins_arguments: bool = False
    http: str = ""
    http_type: str = ""
    headers: str = "headers"
    key_variable: str = ""
    reference: str | None = None
    signs: tuple[str, ...]
    program: str | None = None
    advice: str = ""
    source: tuple[str, ...]

    def files(self, scope: Scope, platform: str) -> tuple[str, ...]:
        """Its settings files of a scope, as templates for `Machine.place`."""
        if scope == "project":
            return self.project
        return self.user.get(platform, self.user["linux"])

    def installed(self, machine: Machine) -> bool:
        return machine.has(self.signs) or bool(self.program and machine.which(self.program))

    def entry(self, server: Server) -> Entry:
        """The entry for a server, or InvalidInput if the client does not support it."""
        return self._started(server) if isinstance(server, Stdio) else self._connected(server)

    def _started(self, server: Stdio) -> Entry:
        entry: Entry = {"type": self.stdio_type} if self.stdio_type else {}
        if self.joins_arguments:
            return {**entry, "command": [server.command, *server.args]}
        return {**entry, "command": server.command, **({"args": list(server.args)} if server.args else {})}

    def _connected(self, server: Http) -> Entry:
        if not self.http:
            raise InvalidInput(
                f"{self.title} does not support HTTP servers in its settings file.",
                hint="Omit --http: it then starts `vestige-mcp` itself.",
                details={"client": self.name},
            )
        entry: Entry = {"type": self.http_type} if self.http_type else {}
        entry[self.http] = server.url
        if isinstance(server.key, Named) and self.key_variable:
            entry[self.key_variable] = server.key.variable
        elif server.key is not None:
            entry[self.headers] = {"Authorization": f"Bearer {self._key(server.key)}"}
        return entry

    def _key(self, key: InlineKey | Named) -> str:
        if isinstance(key, InlineKey):
            return key.text
        if self.reference is None:
            raise InvalidInput(
                f"{self.title} does not read environment variables in its settings file.",
                hint="Pass the key itself with --key (it is then stored in your own file), or omit --http.",
                details={"client": self.name, "argument": "key_env"},
            )
        return self.reference.replace(VARIABLE, key.variable)


def find(name: str) -> AgentClient:
    """The client of a name, or InvalidInput with the nearest one."""
    if name in CLIENTS:
        return CLIENTS[name]
    close = nearest_name(name, CLIENTS)
    raise InvalidInput(
        f"There is no client `{name}`.",
        hint=f"Did you mean `{close}`?" if close else f"One of: {', '.join(CLIENTS)}.",
        details={"argument": "client", "allowed": list(CLIENTS)},
    )


def _frozen(value: Any) -> Any:
    """A value of the table, with tuples instead of lists."""
    if isinstance(value, dict):
        return {key: _frozen(one) for key, one in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


_TABLE = tomllib.loads(Path(__file__).with_name("clients.toml").read_text(encoding="utf-8"))
CLIENTS: Mapping[str, AgentClient] = {
    name: AgentClient(name=name, **_frozen(facts)) for name, facts in _TABLE.items()
}


# -- Commands of Claude Code

# Claude Code rewrites its user settings file all the time. A running session can overwrite an edit of the
# file, but not a change by its own command.

CLAUDE_CODE = "claude-code"
CLAUDE = "claude"


def claude_add(server: Server, name: str) -> list[str]:
    """The command that adds a server for all projects of the user."""
    words = [CLAUDE, "mcp", "add", "--scope", "user"]
    if isinstance(server, Stdio):
        return [*words, name, "--", server.command, *server.args]
    words += ["--transport", "http", name, server.url]
    headers = CLIENTS[CLAUDE_CODE].entry(server).get("headers")
    if isinstance(headers, dict):
        # After the URL: the option takes every following word.
        words += ["--header", *(f"{key}: {value}" for key, value in headers.items())]
    return words


def claude_remove(name: str) -> list[str]:
    """The command that removes the server."""
    return [CLAUDE, "mcp", "remove", "--scope", "user", name]
