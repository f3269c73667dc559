"""What of the lists somebody may use, by what he was granted. Pure.

What each use needs comes from the catalog: of tools by action ("" for a tool without), of resources by
address. Whatever it says nothing about may be used by all.
"""

from vestige.transports.mcp.jsonrpc import Message, as_object

EVERYTHING = "everything"
"""Needed, beside a permission, by what is about the store as a whole."""


def tools(entries: list[Message], needed: Message, granted: frozenset[str]) -> list[Message]:
    """The tools with an action that may be called, each showing only such actions."""
    uses = as_object(needed.get("tools")) or {}
    narrowed = (_tool(entry, as_object(uses.get(str(entry["name"]))), granted) for entry in entries)
    return [entry for entry in narrowed if entry is not None]


def resources(entries: list[Message], needed: Message, granted: frozenset[str]) -> list[Message]:
    """The resources, or templates, that may be read."""
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
