"""What may stand at a place of a JSON schema, in words: the hint of errors about arguments and settings."""

from collections.abc import Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]


def in_words(whole: Schema, where: Sequence[int | str]) -> str | None:
    """What may stand at a place, such as ("items", 3, "tags"); None for no such place."""
    place = _plain(whole, whole)
    for part in where:
        inner = _inside(place, part)
        if inner is None:
            return None
        place = _plain(inner, whole)
    return _said(place)


def _plain(place: Schema, whole: Schema) -> Schema:
    """The schema without references, and without that nothing may be given."""
    if "$ref" in place:
        return _plain(whole["$defs"][place["$ref"].rpartition("/")[2]], whole)
    if "anyOf" in place:
        given = [one for one in place["anyOf"] if one.get("type") != "null"]
        return _plain(given[0], whole) if len(given) == 1 else place
    return place


def _inside(place: Schema, part: int | str) -> Schema | None:
    inner: Schema | None = (
        place.get("items") if isinstance(part, int) else place.get("properties", {}).get(part)
    )
    return inner


def _said(place: Schema) -> str | None:
    if "enum" in place:
        return f"One of: {', '.join(map(str, place['enum']))}."
    if place.get("format") == "date-time":
        return "A date (2026-03-01) or a time (2026-03-01T14:05:00Z)."
    match place.get("type"):
        case "integer":
            return f"A whole number{_range(place, 'minimum', 'maximum')}."
        case "number":
            return f"A number{_range(place, 'minimum', 'maximum')}."
        case "boolean":
            return "true or false."
        case "string":
            return f"A text{_range(place, 'minLength', 'maxLength', ' of', ' characters')}."
        case "array":
            return f"A list{_range(place, 'minItems', 'maxItems', ' of', ' entries')}."
        case "object":
            names = ", ".join(place.get("properties", ()))
            return f"An object with {names}." if names else "An object."
        case _:
            return None


def _range(place: Schema, least: str, most: str, of: str = "", unit: str = "") -> str:
    low, high, above = place.get(least), place.get(most), place.get("exclusiveMinimum")
    if above is not None and high is not None:
        return f" above {above:,}, at most {high:,}"
    if low is not None and high is not None:
        return f"{of or ' from'} {low:,} to {high:,}{unit}"
    if high is not None:
        return f"{of} at most {high:,}{unit}"
    return "" if low is None else f"{of} at least {low:,}{unit.removesuffix('s') if low == 1 else unit}"
