"""The arguments of operations and tools as JSON schemas, in full and as the core profile shows them."""

from collections.abc import Iterable, Mapping
from typing import Any

from vestige.operations.registry import Operation, Registry, Tool

Schema = dict[str, Any]

_IN_CORE = ("type", "enum", "format", "items", "description")
"""What the core profile says of an argument; limits are told by the error that breaks them."""


def tool_schema(registry: Registry, tool: Tool) -> Schema:
    """Every argument of a tool."""
    if "" not in tool.actions:
        return _grouped(registry, tool)
    schema = _operation_schema(registry.operations[tool.actions[""]])
    if tool.name == registry.gateway:
        schema["properties"]["arguments"] = {
            "type": "object",
            "description": "Its arguments, {} for none. Left out: the tool is described instead of run.",
        }
    return schema


def core_schema(registry: Registry, tool: Tool) -> Schema:
    """The main arguments of a tool, briefly. It takes the others too, so they are not denied."""
    whole = tool_schema(registry, tool)
    properties = whole["properties"]
    # Where actions share an argument, the first one's words will do, without the list of its takers.
    for name in reversed(list(tool.actions.values())):
        properties = {**properties, **_operation_schema(registry.operations[name])["properties"]}
    names = registry.core[tool.name]
    shown = {name: _brief(properties[name], names) for name in names}
    return _object(shown, whole.get("required", []))


def _brief(schema: Schema, names: tuple[str, ...]) -> Schema:
    kept = {key: schema[key] for key in _IN_CORE if key in schema}
    if "items" in kept:
        # Entries of a list are like the tool itself, so of them the same is shown.
        kept["items"] = _bare(kept["items"], names)
    elif "properties" in schema:
        kept |= _bare(schema, schema["properties"])
    return kept


def _bare(schema: Schema, names: Iterable[str]) -> Schema:
    """Only what kind of value it is; of an object what these fields are."""
    if "properties" not in schema:
        return {key: schema[key] for key in ("type", "enum") if key in schema}
    inside = schema["properties"]
    fields = {name: _bare(inside[name], ()) for name in names if name in inside}
    return _object(fields, schema.get("required", []))


def _object(properties: Schema, required: list[str]) -> Schema:
    needed = [name for name in required if name in properties]
    return {"type": "object", "properties": properties, **({"required": needed} if needed else {})}


def _operation_schema(operation: Operation) -> Schema:
    whole = operation.arguments.model_json_schema(by_alias=False)
    plain = _plain(whole, whole.get("$defs", {}))
    schema: Schema = {"type": "object", "properties": plain.get("properties", {})}
    if plain.get("required"):
        schema["required"] = plain["required"]
    schema["additionalProperties"] = False
    return schema


def _grouped(registry: Registry, tool: Tool) -> Schema:
    """One schema for several actions: every argument, with the actions that take it."""
    properties: Schema = {
        "action": {"type": "string", "enum": list(tool.actions), "description": "What to do."}
    }
    takers: dict[str, list[str]] = {}
    for action, name in tool.actions.items():
        for argument, schema in _operation_schema(registry.operations[name])["properties"].items():
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
