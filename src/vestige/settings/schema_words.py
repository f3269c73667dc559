"""Values allowed by a JSON schema, in words: the hint of errors about arguments and settings."""

from collections.abc import Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]

_WORDS_OF_TIME = "yesterday or tomorrow at 10"


def in_words(whole: Schema, where: Sequence[int | str]) -> str | None:
    """The values allowed at a path, such as ("items", 3, "tags"); None for an unknown path."""
    schema = _plain(whole, whole)
    for part in where:
        inner = _inside(schema, part)
        if inner is None:
            return None
        schema = _plain(inner, whole)
    return _words(schema)


def _plain(schema: Schema, whole: Schema) -> Schema:
    """The schema without references and without the null branch."""
    if "$ref" in schema:
        return _plain(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    if "anyOf" in schema:
        given = [one for one in schema["anyOf"] if one.get("type") != "null"]
        return _plain(given[0], whole) if len(given) == 1 else schema
    return schema


def _inside(schema: Schema, part: int | str) -> Schema | None:
    inner: Schema | None = (
        schema.get("items") if isinstance(part, int) else schema.get("properties", {}).get(part)
    )
    return inner


def _words(schema: Schema) -> str | None:
    if "enum" in schema:
        return f"One of: {', '.join(map(str, schema['enum']))}."
    if schema.get("format") == "date-time":
        return f"A date (2026-03-01), a time (2026-03-01T14:05:00Z), or words such as {_WORDS_OF_TIME}."
    match schema.get("type"):
        case "integer":
            return f"A whole number{_range(schema, 'minimum', 'maximum')}."
        case "number":
            return f"A number{_range(schema, 'minimum', 'maximum')}."
        case "boolean":
            return "true or false."
        case "string":
            return f"A text{_range(schema, 'minLength', 'maxLength', ' of', ' characters')}."
        case "array":
            return f"A list{_range(schema, 'minItems', 'maxItems', ' of', ' entries')}."
        case "object":
            names = ", ".join(schema.get("properties", ()))
            return f"An object with {names}." if names else "An object."
        case _:
            return None


def _range(schema: Schema, least: str, most: str, of: str = "", unit: str = "") -> str:
    low, high, above = schema.get(least), schema.get(most), schema.get("exclusiveMinimum")
    if above is not None and high is not None:
        return f" above {above:,}, at most {high:,}"
    if low is not None and high is not None:
        return f"{of or ' from'} {low:,} to {high:,}{unit}"
    if high is not None:
        return f"{of} at most {high:,}{unit}"
    return "" if low is None else f"{of} at least {low:,}{unit.removesuffix('s') if low == 1 else unit}"
