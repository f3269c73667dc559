"""The key of a row: its order, its use in statements, and its form as text.

Keys are numbers and texts. In a damaged SQLite file, which keeps anything in any column, they are also bytes,
and texts that are not UTF-8: these are read with a surrogate for each invalid byte, and written back so.
"""

import json
from collections.abc import Sequence
from typing import Any

Key = tuple[Any, ...]


def rank(key: Key) -> tuple[tuple[int, Any], ...]:
    """A sort key with the order of the databases: numbers, then texts, then bytes; texts by their bytes."""
    return tuple(_ranked(value) for value in key)


def blanks(key: Key) -> str:
    return ", ".join("?" if is_sound(value) else "CAST(? AS TEXT)" for value in key)


def bound(key: Key) -> Sequence[Any]:
    """The values for the placeholders. Drivers take only valid texts; others are sent as bytes."""
    return [value if is_sound(value) else _bytes(value) for value in key]


def is_sound(value: object) -> bool:
    """Whether a value is anything but a text that is not UTF-8."""
    if not isinstance(value, str):
        return True
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def written(key: Sequence[Any]) -> str:
    """A key as ASCII text, which `read` reverses."""
    return json.dumps(key, default=lambda value: {"bytes": value.hex()})


def read(text: str) -> Key:
    return tuple(bytes.fromhex(one["bytes"]) if isinstance(one, dict) else one for one in json.loads(text))


def _ranked(value: object) -> tuple[int, Any]:
    if isinstance(value, str):
        return 1, _bytes(value)
    return (2, value) if isinstance(value, bytes) else (0, value)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
