"""The values a row is found by: how they are put in order, asked for and written down.

They are numbers and texts. In a damaged file of SQLite, which keeps anything in any column, they are also
bytes, and texts that are no UTF-8: these come with a surrogate for each byte that is none, and go back so.
"""

import json
from collections.abc import Sequence
from typing import Any

Key = tuple[Any, ...]


def rank(key: Key) -> tuple[tuple[int, Any], ...]:
    """What orders keys as the databases do: numbers, then texts, then bytes; texts by their bytes."""
    return tuple(_ranked(value) for value in key)


def blanks(key: Key) -> str:
    """The place of each value in a statement."""
    return ", ".join("?" if is_sound(value) else "CAST(? AS TEXT)" for value in key)


def bound(key: Key) -> Sequence[Any]:
    """The values for these places. A driver takes only texts that are some; others go as their bytes."""
    return [value if is_sound(value) else _bytes(value) for value in key]


def is_sound(value: object) -> bool:
    """Whether a value is other than a text that is no UTF-8."""
    if not isinstance(value, str):
        return True
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def written(key: Sequence[Any]) -> str:
    """A key in ASCII, from which it can be read again, whatever it holds."""
    return json.dumps(key, default=lambda value: {"bytes": value.hex()})


def read(text: str) -> Key:
    """A key that was written down."""
    return tuple(bytes.fromhex(one["bytes"]) if isinstance(one, dict) else one for one in json.loads(text))


def _ranked(value: object) -> tuple[int, Any]:
    if isinstance(value, str):
        return 1, _bytes(value)
    return (2, value) if isinstance(value, bytes) else (0, value)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
