"""The catalog of tools, prompts and resources, read from `tools.json`, which is generated from the registry.
Because it is a file, `tools/list` is answered without importing any operation."""

import json
import os
from collections.abc import Iterable

from vestige.transports.mcp.protocol.jsonrpc import INVALID_PARAMS, Message, ProtocolError, as_object, shown

# -- Prompts of the catalog, filled in

PRIVATE = "parts"
"""The field of a prompt that is not listed: its text, in pieces."""


def filled_prompt(prompt: Message, arguments: object) -> Message:
    """The answer to `prompts/get`: the prompt's text as a message of the user."""
    given = _prompt_arguments(prompt, arguments)
    parts = prompt.get(PRIVATE)
    text = "".join(_prompt_piece(part, given) for part in (parts if isinstance(parts, list) else []))
    content = {"type": "text", "text": text}
    return {"description": prompt.get("description"), "messages": [{"role": "user", "content": content}]}


def _prompt_piece(part: object, given: dict[str, str]) -> str:
    clause = as_object(part)
    if clause is None:
        return str(part)
    value, around = given.get(str(clause["argument"])), clause["text"]
    return value.join(around) if value is not None and isinstance(around, list) else ""


def _prompt_arguments(prompt: Message, arguments: object) -> dict[str, str]:
    given = {} if arguments is None else as_object(arguments)
    if given is None:
        raise ProtocolError(INVALID_PARAMS, 'Invalid params: "arguments" must be an object')
    listed = prompt.get("arguments")
    declared = {str(one["name"]): one for one in (listed if isinstance(listed, list) else [])}
    name = shown(str(prompt["name"]))
    for argument, value in given.items():
        if argument not in declared:
            nearest = _nearest(argument, declared)
            suffix = f" (did you mean {nearest}?)" if nearest else ""
            raise ProtocolError(
                INVALID_PARAMS, f"The prompt {name} has no argument {shown(argument)}{suffix}"
            )
        if not isinstance(value, str):
            raise ProtocolError(INVALID_PARAMS, f'Invalid params: the argument "{argument}" must be a string')
    for argument, one in declared.items():
        if one.get("required") and not str(given.get(argument, "")).strip():
            raise ProtocolError(INVALID_PARAMS, f"The prompt {name} needs the argument {argument}")
    return {argument: str(value) for argument, value in given.items() if str(value).strip()}


# -- Parts of the lists that a client may use, by its permissions

WHOLE_STORE = "everything"
"""Required, besides a permission, by operations on the whole store."""


def tools(entries: list[Message], needed: Message, granted: frozenset[str]) -> list[Message]:
    """The tools with at least one permitted action, each listing only those."""
    uses = as_object(needed.get("tools")) or {}
    narrowed = (_tool(entry, as_object(uses.get(str(entry["name"]))), granted) for entry in entries)
    return [entry for entry in narrowed if entry is not None]


def resources(entries: list[Message], needed: Message, granted: frozenset[str]) -> list[Message]:
    """The permitted resources or templates."""
    uses = as_object(needed.get("resources")) or {}
    return [entry for entry in entries if _may(uses.get(_address(entry)), granted)]


def _tool(entry: Message, actions: Message | None, granted: frozenset[str]) -> Message | None:
    if actions is None:
        return entry
    allowed = [action for action, needs in actions.items() if _may(needs, granted)]
    if not allowed or len(allowed) == len(actions):
        return entry if allowed else None
    schema = as_object(entry["inputSchema"]) or {}
    properties = as_object(schema.get("properties")) or {}
    action = {**(as_object(properties.get("action")) or {}), "enum": allowed}
    return {**entry, "inputSchema": {**schema, "properties": {**properties, "action": action}}}


def _address(entry: Message) -> str:
    return str(entry.get("uri") or entry.get("uriTemplate")).partition("{?")[0]


def _may(needs: object, granted: frozenset[str]) -> bool:
    return not isinstance(needs, list) or granted.issuperset(needs)


PROFILES = ("core", "full")
"""Which tools are listed: a few, one of which runs all others, or all. Every tool can be called in both."""

INSTRUCTIONS = ("minimal", "full")
"""How long the instructions for an agent are."""

_JSON = "application/json"


class Catalog:
    """The content of `tools.json`, in one profile. An alias can be called but is not listed. A call through
    the gateway, {tool, arguments}, counts as a call of the tool it names. `long` lists the tools that run on
    their own thread, each with the actions that need it ("" for a tool without actions). `in_project` adds
    the tools that the core profile lists where a project has an index."""

    def __init__(
        self,
        data: Message,
        profile: str = PROFILES[0],
        instructions: str = INSTRUCTIONS[0],
        granted: frozenset[str] | None = None,
        *,
        in_project: bool = False,
    ) -> None:
        listed = as_object(data.get("tools")) or {}
        self._gateway = data.get("gateway")
        self._resources = _entries(data, "resources")
        self._templates = _entries(data, "resourceTemplates")
        self.for_all = granted is None
        """Whether the lists are complete; otherwise they are limited to the client's permissions."""
        self.tools, others = list(_entries(listed, profile)), _entries(listed, "full")
        if in_project and profile == PROFILES[0]:
            self.tools += _entries(listed, "project")
        self.resources, self.templates = self._resources, self._templates
        if granted is not None:
            needed = as_object(data.get("needed")) or {}
            self.tools = tools(self.tools, needed, granted)
            others = tools(others, needed, granted)
            self.resources = resources(self.resources, needed, granted)
            self.templates = resources(self.templates, needed, granted)
        self.tools = [self._pointing_to(entry, others) for entry in self.tools]
        self.instructions = str((as_object(data.get("instructions")) or {}).get(instructions) or "")
        self.prompts: list[Message] = []
        self._prompts: dict[str, Message] = {}
        for entry in _entries(data, "prompts"):
            self._prompts[str(entry["name"])] = entry
            self.prompts.append({key: entry[key] for key in entry if key != PRIVATE})
        self._names = {str(entry["name"]) for name in PROFILES for entry in _entries(listed, name)}
        self._long = as_object(data.get("long")) or {}
        self._aliases = as_object(data.get("aliases")) or {}

    def _pointing_to(self, entry: Message, others: list[Message]) -> Message:
        """The entry; that of the gateway with the names of the tools that are not listed."""
        if entry["name"] != self._gateway:
            return entry
        listed = {tool["name"] for tool in self.tools}
        names = ", ".join(str(tool["name"]) for tool in others if tool["name"] not in listed)
        suffix = f" Not listed here: {names}." if names else ""
        return {**entry, "description": f"{entry['description']}{suffix}"}

    def has_tool(self, name: str) -> bool:
        return name in self._names or name in self._aliases

    def is_long(self, name: str, arguments: Message) -> bool:
        """Whether this is a long call, which others should not wait for."""
        inner = as_object(arguments.get("arguments"))
        if name == self._gateway and inner is not None:
            name, arguments = str(arguments.get("tool")), inner
        alias = as_object(self._aliases.get(name))
        if alias is not None:
            name, arguments = str(alias["tool"]), {**arguments, **(as_object(alias.get("arguments")) or {})}
        actions = self._long.get(name)
        return isinstance(actions, list) and ("" in actions or arguments.get("action") in actions)

    def nearest_tool(self, name: str) -> str | None:
        return _nearest(name, sorted(self._names))

    def prompt(self, name: str) -> Message | None:
        return self._prompts.get(name)

    def nearest_prompt(self, name: str) -> str | None:
        return _nearest(name, self._prompts)

    def resource(self, uri: str) -> str | None:
        """The media type of a resource, or None if there is no such resource or template."""
        plain = uri.removeprefix("vestige/").partition("?")[0]  # some clients put the server's name first
        for entry in self._resources:
            if entry.get("uri") == plain:
                return str(entry.get("mimeType") or _JSON)
        for entry in self._templates:
            fixed, _, gap = str(entry.get("uriTemplate")).partition("{")
            # A template that only adds a query to a resource was already checked with the resource.
            if not gap.startswith("?") and plain.startswith(fixed) and len(plain) > len(fixed):
                return str(entry.get("mimeType") or _JSON)
        return None


def _entries(data: Message, key: str) -> list[Message]:
    entries = data.get(key) or []
    if not isinstance(entries, list):
        raise TypeError(f"the catalog's {key} must be a list")
    return entries


def packaged(profile: str = PROFILES[0], instructions: str = INSTRUCTIONS[0]) -> Catalog:
    """The complete catalog of this release, for a server in the working directory."""
    return Catalog(packaged_data(), profile, instructions, in_project=is_in_project())


def is_in_project() -> bool:
    """Whether the working directory belongs to a project with an index. One that was made elsewhere counts
    too: the tools say so when they are called."""
    try:
        folder = os.getcwd()  # noqa: PTH109 - pathlib is slow to import
    except OSError:
        return False
    while not _has_index(f"{folder}{os.sep}.vestige"):
        above = os.path.dirname(folder)  # noqa: PTH120 - as above
        if above == folder:
            return False
        folder = above
    return True


def _has_index(directory: str) -> bool:
    try:
        names = os.listdir(directory)  # noqa: PTH208 - pathlib is slow to import
    except OSError:
        return False
    return any(name.startswith("code-") and name.endswith(".db") for name in names)


def packaged_data() -> Message:
    """The content of `tools.json`."""
    path = __file__.rpartition(os.sep)[0] + os.sep + "tools.json"
    with open(path, "rb") as file:  # noqa: PTH123 - pathlib is 3 ms, a seventh of the whole start
        data = as_object(json.load(file))
    if data is None:
        raise TypeError("tools.json must contain an object")
    return data


def _nearest(wrong: str, known: Iterable[str]) -> str | None:
    from vestige.core.errors import nearest_name  # after an error only: it imports typing

    return nearest_name(wrong, known)
