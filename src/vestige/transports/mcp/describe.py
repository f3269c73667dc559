"""The MCP view of the registry, as one JSON document. It is generated into the package (`tools.json`), so
that a server lists its tools without heavy imports; `vestige docs --check` fails if the file and the registry
differ."""

from typing import Any

from vestige.operations.registry.prompts import GAP, INSTRUCTIONS, PROMPTS, Prompt
from vestige.operations.registry.registry import Operation, Registry, Resource, Tool
from vestige.operations.registry.schemas import core_schema, tool_schema
from vestige.transports.mcp.catalog import WHOLE_STORE

JSON = "application/json"
RESULT_SIZE = "anthropic/maxResultSizeChars"


def document(registry: Registry) -> dict[str, Any]:
    """Everything a client can list, and fields for the server only: `gateway`, `needed`, `long`, `aliases`,
    `parts`."""
    tools = registry.tools
    resources = list(registry.resources.values())
    return {
        "instructions": INSTRUCTIONS,
        "tools": {
            "core": [_in_core(registry, tools[name]) for name in registry.core],
            "project": [_in_core(registry, tools[name]) for name in registry.core_in_project],
            "full": [_in_full(registry, tool) for tool in tools.values() if tool.name != registry.gateway],
        },
        "gateway": registry.gateway,
        "needed": {
            "tools": {
                tool.name: {action: _needed(registry, name) for action, name in tool.actions.items()}
                for tool in tools.values()
                if tool.name != registry.gateway
            },
            "resources": {one.uri: _needed(registry, one.operation) for one in resources},
        },
        "long": {tool.name: actions for tool in tools.values() if (actions := _long_actions(registry, tool))},
        "aliases": {
            old: {"tool": tool, "arguments": dict(given)} for old, (tool, given) in registry.aliases.items()
        },
        "prompts": [_prompt(prompt) for prompt in PROMPTS],
        "resources": [_resource(one, {"uri": one.uri}) for one in resources if "{" not in one.uri],
        "resourceTemplates": [
            _resource(one, {"uriTemplate": one.uri + _query(one)})
            for one in resources
            if "{" in one.uri or one.query
        ],
    }


def _query(resource: Resource) -> str:
    return f"{{?{','.join(resource.query)}}}" if resource.query else ""


def _resource(resource: Resource, address: dict[str, str]) -> dict[str, Any]:
    return {**address, "name": resource.name, "description": resource.description, "mimeType": JSON}


def _prompt(prompt: Prompt) -> dict[str, Any]:
    return {
        "name": prompt.name,
        "title": prompt.title,
        "description": prompt.description,
        "arguments": [
            {"name": one.name, "description": one.description, "required": one.required}
            for one in prompt.arguments
        ],
        "parts": [
            part if isinstance(part, str) else {"argument": part.argument, "text": part.text.split(GAP)}
            for part in prompt.parts
        ],
    }


def _in_full(registry: Registry, tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.full,
        "inputSchema": tool_schema(registry, tool),
        "annotations": _annotations(tool.title, _operations(registry, tool)),
        **_result_size(registry.large.get(tool.name)),
    }


def _in_core(registry: Registry, tool: Tool) -> dict[str, Any]:
    """The short form of a tool: an agent reads this list in every session."""
    largest = registry.large.get(tool.name)
    if tool.name == registry.gateway:
        largest = max(registry.large.values(), default=None)
    return {
        "name": tool.name,
        "description": tool.brief,
        "inputSchema": core_schema(registry, tool),
        "annotations": _annotations(tool.title, _operations(registry, tool)),
        **_result_size(largest),
    }


def _operations(registry: Registry, tool: Tool) -> list[Operation]:
    """The operations that a call of the tool may run."""
    tools = registry.tools.values() if tool.name == registry.gateway else [tool]
    return [registry.operations[name] for one in tools for name in one.actions.values()]


def _needed(registry: Registry, operation: str) -> list[str]:
    one = registry.operations[operation]
    return [one.permission, *([WHOLE_STORE] if one.whole else [])]


def _long_actions(registry: Registry, tool: Tool) -> list[str]:
    return [action for action, name in tool.actions.items() if registry.operations[name].long]


def _annotations(title: str, operations: list[Operation]) -> dict[str, Any]:
    """Honest hints: a search strengthens memories, so it is not read-only."""
    effects = {operation.effect for operation in operations}
    return {
        "title": title,
        "readOnlyHint": effects == {"none"},
        "destructiveHint": "delete" in effects,
        "idempotentHint": effects <= {"none", "touch"},
        "openWorldHint": False,
    }


def _result_size(characters: int | None) -> dict[str, Any]:
    return {} if characters is None else {"_meta": {RESULT_SIZE: characters}}
