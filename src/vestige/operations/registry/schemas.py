"""JSON schemas of operation arguments and answers, in full and as the core profile shows them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from pydantic.json_schema import JsonSchemaMode, models_json_schema

from vestige.core.lazy_dataclass import dataclass
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import Operation, Registry, Tool

Schema = dict[str, Any]

_IN_CORE = ("type", "enum", "format", "items", "description")
"""Schema keywords in the core profile; errors state the limits."""


def tool_schema(registry: Registry, tool: Tool) -> Schema:
    """The schema of all arguments of a tool."""
    if "" not in tool.actions:
        return _grouped(registry, tool)
    schema = _operation_schema(registry.operations[tool.actions[""]])
    if tool.name == registry.gateway:
        schema["properties"]["arguments"] = {
            "type": "object",
            "description": "Arguments for the tool, {} for none. Omit to describe the tool instead of "
            "running it.",
        }
    return schema


def core_schema(registry: Registry, tool: Tool) -> Schema:
    """The schema of a tool's main arguments. It also accepts the others, so they are not forbidden."""
    whole = tool_schema(registry, tool)
    properties = whole["properties"]
    # If actions share an argument, the first description is used, without the list of actions.
    for name in reversed(list(tool.actions.values())):
        properties = {**properties, **_operation_schema(registry.operations[name])["properties"]}
    names = {**registry.core, **registry.core_in_project}[tool.name]
    shown = {name: _brief(properties[name], names) for name in names}
    return _object(shown, whole.get("required", []))


def _brief(schema: Schema, names: tuple[str, ...]) -> Schema:
    kept = {key: schema[key] for key in _IN_CORE if key in schema}
    if "items" in kept:
        # Entries of a list have the same fields as the tool, so the same ones are shown.
        kept["items"] = _bare(kept["items"], names)
    elif "properties" in schema:
        kept |= _bare(schema, schema["properties"])
    return kept


def _bare(schema: Schema, names: Iterable[str]) -> Schema:
    """Only the type of a value; for an object, only these fields."""
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
        "action": {"type": "string", "enum": list(tool.actions), "description": "Action to run."}
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
    return {"type": "object", "properties": properties, "required": ["action"], "additionalProperties": False}


def _plain(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """A schema without references, generated titles and the null branch of optional fields."""
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


# -- Schemas of arguments and answers as they are on the wire

TIME: Schema = {"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}]}
"""A time in an argument. In an answer it is always a date with a time."""

_NOTHING = {"type": "null"}
_WIRE_NAMES = {"ConsolidationPriority": "Priority", "ImportFormat": "Format"}
"""Classes whose schema has another name: names of schemas are public, and names of classes are not."""
_LONG_NAME = re.compile(r"^vestige__(?:\w+__)?(\w+?)__(\w+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """The schemas of all operations. `named` holds those referenced as {prefix}{name}."""

    named: Mapping[str, Schema]
    arguments: Mapping[str, Schema]
    """By operation: an object schema."""
    answers: Mapping[str, Schema]
    """By operation: one reference, or `anyOf` several."""


def shapes(registry: Registry, prefix: str) -> Shapes:
    """The schemas of every operation that REST offers."""
    offered = [registry.operations[route.operation] for route in registry.routes()]
    taken, taken_named = _schemas({one.name: [one.arguments] for one in offered}, prefix, answers=False)
    answered, answered_named = _schemas(
        {one.name: _kinds(one.answers) for one in offered}, prefix, answers=True
    )
    top = {one[0]["$ref"].removeprefix(prefix) for one in taken.values()}
    return Shapes(
        named={
            **{name: _with_dates(schema) for name, schema in taken_named.items() if name not in top},
            **{name: _as_serialised(schema) for name, schema in answered_named.items()},
        },
        arguments={
            name: _with_dates(taken_named[one[0]["$ref"].removeprefix(prefix)]) for name, one in taken.items()
        },
        answers={name: refs[0] if len(refs) == 1 else {"anyOf": refs} for name, refs in answered.items()},
    )


def _kinds(answers: Any) -> list[type[Wire]]:  # what `Operation.answers` is
    return list(get_args(answers)) or [answers]


def _schemas(
    kinds: Mapping[str, list[type[Wire]]], prefix: str, *, answers: bool
) -> tuple[dict[str, list[Schema]], dict[str, Schema]]:
    """References to the models of each operation, and the referenced models by name."""
    mode: JsonSchemaMode = "serialization" if answers else "validation"
    every = dict.fromkeys((kind, mode) for several in kinds.values() for kind in several)
    references, whole = models_json_schema(list(every), by_alias=answers, ref_template=f"{prefix}{{model}}")
    named = {_short(name): _tidy(schema, prefix) for name, schema in sorted(whole["$defs"].items())}
    referring = {
        name: [_tidy(references[kind, mode], prefix) for kind in several] for name, several in kinds.items()
    }
    return referring, named


def _short(name: str) -> str:
    """The name of a model; with its module's name if others have the same one."""
    long = _LONG_NAME.match(name)
    return long[1].title().replace("_", "") + long[2] if long else _WIRE_NAMES.get(name, name)


def _tidy(schema: Any, prefix: str) -> Any:
    """A schema without generated titles, and with short names."""
    if isinstance(schema, list):
        return [_tidy(one, prefix) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if not (key == "title" and isinstance(value, str))}
    if "$ref" in kept:
        kept["$ref"] = prefix + _short(kept["$ref"].removeprefix(prefix))
    return {key: _tidy(value, prefix) for key, value in kept.items()}


def _with_dates(schema: Any) -> Any:
    """The schema of arguments, where every time may be a date."""
    if isinstance(schema, list):
        return [_with_dates(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "date-time":
        return {**{key: value for key, value in schema.items() if key != "format"}, **TIME}
    return {key: _with_dates(value) for key, value in schema.items()}


def _as_serialised(schema: Schema) -> Schema:
    """An answer's schema as `Wire.wire` serialises it: null fields are left out."""
    if "properties" not in schema:
        return schema
    answered = {name: _without_nothing(one) for name, one in schema["properties"].items()}
    needed = [name for name, one in schema["properties"].items() if not _is_nullable(one)]
    return {**schema, "properties": answered, **({"required": needed} if needed else {})}


def _is_nullable(schema: Schema) -> bool:
    anything = not schema.keys() & {"type", "$ref", "anyOf", "enum", "const", "oneOf", "allOf"}
    return anything or _NOTHING in schema.get("anyOf", [])


def _without_nothing(schema: Schema) -> Schema:
    plain = {key: value for key, value in schema.items() if key != "default"}
    branches = [one for one in plain.pop("anyOf", []) if one != _NOTHING]
    if len(branches) == 1:
        return {**branches[0], **plain}
    return {**plain, **({"anyOf": branches} if branches else {})}
