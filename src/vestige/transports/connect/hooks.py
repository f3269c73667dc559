"""Hooks of clients (`hooks.toml`): the entries that make a client run `vestige-hook`, or call the tool of the
connected server, and careful edits of the file that they are in. Entries of others stay as they are."""

import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from vestige.core.errors import InvalidInput, nearest_name
from vestige.transports.connect import files, jsonc
from vestige.transports.connect.clients import AgentClient, Entry, Json, Machine, Scope
from vestige.transports.connect.plans import FileChange

HOOKS = "hooks"
PROMPT = "UserPromptSubmit"
GATEWAY = "vestige"
"""The tool that every profile of the server lists, and that can run every other one."""
_PROGRAM = re.compile(r"\bvestige-hook\b|vestige\.transports\.hooks\.command")
_SLOT = "/* the program and its arguments */ []"
OWN_HOOKS = {"openclaw": "Its plugin runs the hooks: see `hookCommand` in docs/howto/openclaw.md."}
"""Clients whose plugin does what hooks do elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookClient:
    """A client with hooks.

    - `form`: entries are `groups` with a matcher and handlers, plain `commands`, or the file is a `plugin`.
    - `splits_arguments`: a handler lists its arguments, and no shell runs it.
    - `tool`: a handler may call a tool of a connected server, which needs no process.
    - `versioned`, `typed`: the file has a version, a plain command has a type.
    """

    name: str
    title: str
    user: tuple[str, ...]
    project: tuple[str, ...]
    form: Literal["groups", "commands", "plugin"]
    events: tuple[str, ...]
    signs: tuple[str, ...]
    program: str
    advice: str
    source: tuple[str, ...]
    splits_arguments: bool = False
    tool: bool = False
    versioned: bool = False
    typed: bool = False
    timeout: int | None = None
    timeout_name: str = "timeout"
    timeouts: Mapping[str, int] = field(default_factory=dict)
    matchers: Mapping[str, str] = field(default_factory=dict)

    def as_client(self) -> AgentClient:
        """The client as a change of its file names it."""
        return AgentClient(
            name=self.name,
            title=self.title,
            user={"linux": self.user},
            project=self.project,
            signs=self.signs,
            program=self.program,
            advice=self.advice,
            source=self.source,
        )

    def place(self, machine: Machine, scope: Scope) -> Path:
        return machine.choose(self.project if scope == "project" else self.user)

    def entry(self, event: str, command: tuple[str, ...], server: str | None, platform: str) -> Entry:
        """The entry of an event. With a `server`, recall for a prompt is a call of its tool."""
        if self.tool and server is not None and event == PROMPT:
            handler = self._tool(event, server)
        else:
            handler = self._command(event, command, platform)
        if self.form == "commands":
            return handler
        matcher = self.matchers.get(event)
        return {**({"matcher": matcher} if matcher else {}), HOOKS: [handler]}

    def _command(self, event: str, command: tuple[str, ...], platform: str) -> Entry:
        entry: Entry = {"type": "command"} if self.form == "groups" or self.typed else {}
        words = (*command, self.name)
        if self.splits_arguments:
            entry |= {"command": words[0], "args": list(words[1:])}
        else:
            typed = subprocess.list2cmdline(words) if platform == "win32" else shlex.join(words)
            entry |= {"command": typed}
        seconds = self.timeouts.get(event, self.timeout)
        return entry | ({self.timeout_name: seconds} if seconds is not None else {})

    def _tool(self, event: str, server: str) -> Entry:
        fields = ("session_id", "prompt", "cwd")
        payload: Entry = {"hook_event_name": event, **{name: f"${{{name}}}" for name in fields}}
        arguments: Entry = {"action": "hook", "client": self.name, "payload": payload}
        given: Entry = {"tool": "agent", "arguments": arguments}
        return {"type": "mcp_tool", "server": server, "tool": GATEWAY, "input": given, "timeout": 5}


def find_hooks(name: str) -> HookClient:
    """The client of a name, or InvalidInput with the nearest one."""
    if name in HOOK_CLIENTS:
        return HOOK_CLIENTS[name]
    close = nearest_name(name, HOOK_CLIENTS)
    near = f"Did you mean `{close}`?" if close else f"One of: {', '.join(HOOK_CLIENTS)}."
    raise InvalidInput(
        f"Vestige knows no hooks of `{name}`.",
        hint=OWN_HOOKS.get(name, near),
        details={"argument": "client", "allowed": list(HOOK_CLIENTS)},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCommand:
    """What the hooks of a client run: the program `vestige-hook` with its arguments before the client's name,
    and the name of the connected server, if the client has one."""

    program: tuple[str, ...]
    server: str | None
    platform: str


def install(client: HookClient, machine: Machine, command: HookCommand, *, scope: Scope) -> FileChange:
    """The change that adds the hooks of Vestige to a client; earlier ones are replaced."""
    file = files.read(client.place(machine, scope))
    try:
        after = installed_text(client, file.text or "", command)
    except ValueError as exc:
        raise files.unusable(file.path, f"cannot be edited: {exc}") from exc
    own = frozenset(json.dumps(text, ensure_ascii=False) for text in _texts(_entries(client, command)))
    return FileChange(
        client=client.as_client(),
        file=file,
        after=after,
        own=own,
        private=scope == "user",
        done="The hooks are written.",
        idle="the hooks exist",
    )


def remove(client: HookClient, machine: Machine, command: HookCommand, *, scope: Scope) -> FileChange:
    """The change that removes them. A file that was not changed since becomes what it was, byte for byte."""
    file = files.read(client.place(machine, scope))
    text, after, spent = file.text, file.text, tuple[Path, ...]()
    if text is not None and _is_installed(client, text):
        before = [(path, old) for path, old in files.backups(file) if _made_from(client, old, text, command)]
        if before:
            after, spent = before[-1][1], tuple(path for path, _ in before)
        elif client.form == "plugin" or _made_from(client, "", text, command):
            after = None
        else:
            after = _without(client, text, file.path)
    return FileChange(
        client=client.as_client(),
        file=file,
        after=after,
        undoes=True,
        spent=spent,
        roots=machine.roots(),
        done=f"The hooks of {client.title} are removed.",
        idle="there are no hooks of Vestige",
    )


def installed_text(client: HookClient, text: str, command: HookCommand) -> str:
    """The text of the file with our hooks in it; ValueError if it cannot be edited."""
    if client.form == "plugin":
        template = Path(__file__).with_name("opencode_plugin.js").read_text(encoding="utf-8")
        return template.replace(_SLOT, json.dumps([*command.program, client.name]))
    values = jsonc.read(text)
    if client.versioned and "version" not in values:
        text = jsonc.put(text, ("version",), 1)
    for event, entry in _entries(client, command).items():
        held = jsonc.read(text).get(HOOKS)
        there = held.get(event) if isinstance(held, dict) else None
        ours = [at for at, one in enumerate(there) if is_ours(one)] if isinstance(there, list) else []
        if isinstance(there, list) and [there[at] for at in ours] == [entry]:
            continue
        for at in reversed(ours):
            text = jsonc.take_item(text, (HOOKS, event), at)
        text = jsonc.append(text, (HOOKS, event), entry)
    return text


def is_ours(value: Json) -> bool:
    """Whether an entry runs `vestige-hook`, or calls the tool of our server for a hook."""
    if isinstance(value, dict):
        given = value.get("input")
        called = isinstance(given, dict) and given.get("tool") == "agent"
        return (called and value.get("type") == "mcp_tool") or any(map(is_ours, value.values()))
    if isinstance(value, list):
        return any(map(is_ours, value))
    return isinstance(value, str) and _PROGRAM.search(value) is not None


def has_hooks(client: HookClient, machine: Machine, scope: Scope) -> bool:
    """Whether our hooks are in the file of a client."""
    text = files.read(client.place(machine, scope)).text
    return text is not None and _is_installed(client, text)


def _entries(client: HookClient, command: HookCommand) -> dict[str, Json]:
    if client.form == "plugin":
        return {}
    program, server, platform = command.program, command.server, command.platform
    return {event: client.entry(event, program, server, platform) for event in client.events}


def _is_installed(client: HookClient, text: str) -> bool:
    if client.form == "plugin":
        return _PROGRAM.search(text) is not None
    try:
        return is_ours(jsonc.read(text).get(HOOKS))
    except ValueError:
        return False


def _made_from(client: HookClient, old: str, text: str, command: HookCommand) -> bool:
    """Whether installing the hooks into an old text gives this one, with or without a connected server."""
    if _is_installed(client, old) or client.form == "plugin":
        return False
    commands = (command, HookCommand(program=command.program, server=None, platform=command.platform))
    try:
        return any(installed_text(client, old, one) == text for one in commands)
    except ValueError:
        return False


def _without(client: HookClient, text: str, path: Path) -> str:
    """The text without our entries, and without lists that are empty then."""
    try:
        held = jsonc.read(text).get(HOOKS)
        for event in list(held) if isinstance(held, dict) else ():
            there = held[event] if isinstance(held, dict) else None
            ours = [at for at, one in enumerate(there) if is_ours(one)] if isinstance(there, list) else []
            for at in reversed(ours):
                text = jsonc.take_item(text, (HOOKS, event), at)
            if isinstance(there, list) and ours and len(ours) == len(there):
                text = jsonc.take(text, (HOOKS, event))
        if jsonc.read(text).get(HOOKS) == {}:
            text = jsonc.take(text, (HOOKS,))
    except (ValueError, KeyError) as exc:
        raise files.unusable(path, f"cannot be edited: {exc}") from exc
    return text


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for one in inner for text in _texts(one)]


def _frozen(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()}


HOOK_CLIENTS: Mapping[str, HookClient] = {
    name: HookClient(name=name, **_frozen(facts))
    for name, facts in tomllib.loads(
        Path(__file__).with_name("hooks.toml").read_text(encoding="utf-8")
    ).items()
}
