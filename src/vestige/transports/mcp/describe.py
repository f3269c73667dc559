"""The MCP view of the registry, as one JSON document.

It is generated into the package (`tools.json`), so that a server lists its tools without importing
anything heavy; `vestige docs --check` fails when the file and the registry disagree.
"""

from collections.abc import Mapping
from typing import Any

from vestige.operations.all import INSTRUCTIONS
from vestige.operations.registry import Operation, Registry, Resource, Tool

JSON = "application/json"


def document(registry: Registry) -> dict[str, Any]:
    """Everything a client can list, with what only the server reads under `_vestige`."""
    resources = list(registry.resources.values())
    return {
        "instructions": INSTRUCTIONS,
        "tools": [_tool(registry, tool) for tool in registry.tools.values()],
        "aliases": {old: tool for old, (tool, _) in registry.aliases.items()},
        "resources": [_resource(one, "uri") for one in resources if "{" not in one.uri],
        "resourceTemplates": [_resource(one, "uriTemplate") for one in resources if "{" in one.uri],
    }


def _resource(resource: Resource, key: str) -> dict[str, Any]:
    return {
        key: resource.uri,
        "name": resource.name,
        "description": resource.description,
        "mimeType": JSON,
    }


def _tool(registry: Registry, tool: Tool) -> dict[str, Any]:
    operations = [registry.operations[name] for name in tool.actions.values()]
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": _grouped(registry, tool) if len(operations) > 1 else _schema(operations[0]),
        "annotations": _annotations(tool.title, operations),
        "_vestige": {"lane": "long" if any(one.lane == "long" for one in operations) else "short"},
    }


def _annotations(title: str, operations: list[Operation]) -> dict[str, Any]:
    """Truthful hints: a search leaves a trace, so it is not read-only."""
    effects = {operation.effect for operation in operations}
    return {
        "title": title,
        "readOnlyHint": effects == {"none"},
        "destructiveHint": "delete" in effects,
        "idempotentHint": effects <= {"none", "touch"},
        "openWorldHint": False,
    }


def _schema(operation: Operation) -> dict[str, Any]:
    whole = operation.arguments.model_json_schema(by_alias=False)
    plain = _plain(whole, whole.get("$defs", {}))
    schema: dict[str, Any] = {"type": "object", "properties": plain.get("properties", {})}
    if plain.get("required"):
        schema["required"] = plain["required"]
    schema["additionalProperties"] = False
    return schema


def _grouped(registry: Registry, tool: Tool) -> dict[str, Any]:
    """One schema for several actions: every argument, with the actions that take it."""
    properties: dict[str, Any] = {
        "action": {"type": "string", "enum": list(tool.actions), "description": "What to do."}
    }
    takers: dict[str, list[str]] = {}
    for action, name in tool.actions.items():
        for argument, schema in _schema(registry.operations[name])["properties"].items():
            properties.setdefault(argument, schema)
            takers.setdefault(argument, []).append(action)
    for argument, actions in takers.items():
        if len(actions) < len(tool.actions):
            said = properties[argument].get("description", "")
            properties[argument] = {
                **properties[argument],
                "description": f"({', '.join(actions)}) {said}".strip(),
            }
    return {
        "type": "object",
        "properties": properties,
        "required": ["action"],
        "additionalProperties": False,
    }


def _plain(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """A schema without references, generated titles and the null branch of what may be left out."""
    if isinstance(schema, list):
        return [_plain(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        target = definitions[schema["$ref"].rsplit("/", 1)[-1]]
        return _plain({**target, **{k: v for k, v in schema.items() if k != "$ref"}}, definitions)
    kept = {
        k: v for k, v in schema.items() if k not in ("title", "$defs") and not (k == "default" and v is None)
    }
    branches = kept.get("anyOf", [])
    real = [branch for branch in branches if branch != {"type": "null"}]
    if branches and len(real) == 1:
        kept.pop("anyOf")
        kept = {**real[0], **kept}
        return _plain(kept, definitions)
    return {
        name: {argument: _plain(one, definitions) for argument, one in value.items()}
        if name == "properties"
        else _plain(value, definitions)
        for name, value in kept.items()
    }
