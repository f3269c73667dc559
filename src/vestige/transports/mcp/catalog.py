"""The tools and resources on offer, from `tools.json`, which is generated from the registry.

Reading a file is what lets `tools/list` be answered without importing a single operation.
"""

import json
import os

from vestige.nearest import nearest_name
from vestige.transports.mcp.jsonrpc import Message, as_object

SHORT = "short"
LONG = "long"

_PRIVATE = "_vestige"
_JSON = "application/json"


class Catalog:
    """What `tools.json` says: {tools, aliases, resources, resourceTemplates, instructions}.

    An alias can be called and is not listed. An entry's field `_vestige` is for us and is not listed
    either: `{"lane": "long"}` marks a tool that gets a thread of its own.
    """

    def __init__(self, data: Message) -> None:
        entries = _entries(data, "tools")
        self.tools = [{key: entry[key] for key in entry if key != _PRIVATE} for entry in entries]
        self.resources = _entries(data, "resources")
        self.templates = _entries(data, "resourceTemplates")
        self.instructions = str(data.get("instructions") or "")
        self._lanes: dict[str, str] = {}
        for entry in entries:
            private = as_object(entry.get(_PRIVATE)) or {}
            self._lanes[str(entry["name"])] = str(private.get("lane") or SHORT)
        self._aliases = {alias: str(name) for alias, name in (as_object(data.get("aliases")) or {}).items()}

    def lane(self, name: str) -> str | None:
        """How the tool of this name or alias is run, SHORT or LONG; None when there is no such tool."""
        return self._lanes.get(self._aliases.get(name, name))

    def nearest_tool(self, name: str) -> str | None:
        """The listed tool whose name looks most like this one."""
        return nearest_name(name, self._lanes)

    def resource(self, uri: str) -> str | None:
        """The media type of a resource, or None when no resource or template here can have this uri."""
        uri = uri.removeprefix("vestige/")  # some clients prefix the server's name
        for entry in self.resources:
            if entry.get("uri") == uri:
                return str(entry.get("mimeType") or _JSON)
        for entry in self.templates:
            fixed = str(entry.get("uriTemplate")).partition("{")[0]
            if uri.startswith(fixed) and len(uri) > len(fixed):
                return str(entry.get("mimeType") or _JSON)
        return None


def _entries(data: Message, key: str) -> list[Message]:
    entries = data.get(key) or []
    if not isinstance(entries, list):
        raise TypeError(f"the catalog's {key} must be a list")
    return entries


def packaged() -> Catalog:
    """The catalog that this release was built with."""
    path = __file__.rpartition(os.sep)[0] + os.sep + "tools.json"
    with open(path, "rb") as file:  # noqa: PTH123 - pathlib is 3 ms, a seventh of the whole start
        data = as_object(json.load(file))
    if data is None:
        raise TypeError("tools.json must hold an object")
    return Catalog(data)
