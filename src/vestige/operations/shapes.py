"""What operations take and what they answer as JSON schemas, true of what travels.

An answer tells every field that has a value and leaves out the others, so a field that may be nothing is not
required and never null, and every other one is required, whether or not it has a default.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic.json_schema import JsonSchemaMode, models_json_schema

from vestige.operations.registry import Registry
from vestige.operations.wire import Wire

Schema = dict[str, Any]

TIME: Schema = {"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}]}
"""What an argument that is a time may be. In an answer it is always a date with its time."""

_NOTHING = {"type": "null"}
_LONG_NAME = re.compile(r"^vestige__(?:\w+__)?(\w+?)__(\w+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """The schemas of all operations. `named` are those that others refer to as {prefix}{name}."""

    named: Mapping[str, Schema]
    arguments: Mapping[str, Schema]
    """By operation: an object."""
    answers: Mapping[str, Schema]
    """By operation: one reference, or any of several."""


def shapes(registry: Registry, prefix: str) -> Shapes:
    """The schemas of every operation that REST offers."""
    offered = [registry.operations[route.operation] for route in registry.routes()]
    taken, taken_named = _schemas({one.name: [one.arguments] for one in offered}, prefix, answers=False)
    told, told_named = _schemas({one.name: _kinds(one.answers) for one in offered}, prefix, answers=True)
    top = {one[0]["$ref"].removeprefix(prefix) for one in taken.values()}
    return Shapes(
        named={
            **{name: _with_dates(schema) for name, schema in taken_named.items() if name not in top},
            **{name: _as_told(schema) for name, schema in told_named.items()},
        },
        arguments={
            name: _with_dates(taken_named[one[0]["$ref"].removeprefix(prefix)]) for name, one in taken.items()
        },
        answers={name: refs[0] if len(refs) == 1 else {"anyOf": refs} for name, refs in told.items()},
    )


def _kinds(answers: Any) -> list[type[Wire]]:  # what `Operation.answers` is
    return list(get_args(answers)) or [answers]


def _schemas(
    kinds: Mapping[str, list[type[Wire]]], prefix: str, *, answers: bool
) -> tuple[dict[str, list[Schema]], dict[str, Schema]]:
    """References to the models of each operation, and all that is referred to by its name."""
    mode: JsonSchemaMode = "serialization" if answers else "validation"
    every = dict.fromkeys((kind, mode) for several in kinds.values() for kind in several)
    references, whole = models_json_schema(list(every), by_alias=answers, ref_template=f"{prefix}{{model}}")
    named = {_short(name): _tidy(schema, prefix) for name, schema in sorted(whole["$defs"].items())}
    referring = {
        name: [_tidy(references[kind, mode], prefix) for kind in several] for name, several in kinds.items()
    }
    return referring, named


def _short(name: str) -> str:
    """What a model is called: by itself, or with its module's noun where others are called the same."""
    long = _LONG_NAME.match(name)
    return long[1].title().replace("_", "") + long[2] if long else name


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


def _as_told(schema: Schema) -> Schema:
    """An answer's schema as `Wire.wire` tells it."""
    if "properties" not in schema:
        return schema
    told = {name: _without_nothing(one) for name, one in schema["properties"].items()}
    needed = [name for name, one in schema["properties"].items() if not _may_be_nothing(one)]
    return {**schema, "properties": told, **({"required": needed} if needed else {})}


def _may_be_nothing(schema: Schema) -> bool:
    anything = not schema.keys() & {"type", "$ref", "anyOf", "enum", "const", "oneOf", "allOf"}
    return anything or _NOTHING in schema.get("anyOf", [])


def _without_nothing(schema: Schema) -> Schema:
    plain = {key: value for key, value in schema.items() if key != "default"}
    branches = [one for one in plain.pop("anyOf", []) if one != _NOTHING]
    if len(branches) == 1:
        return {**branches[0], **plain}
    return {**plain, **({"anyOf": branches} if branches else {})}
