"""How much a request may hold, seen before any of it is checked: checking says what is wrong with each value,
and of a million values that takes seconds in which nothing else in the process runs."""

from collections.abc import Mapping
from typing import Any

from vestige.errors import TooLarge

MAX_ENTRIES = 1_000
"""Values in one list, or names in one object: more than any argument takes."""
MAX_VALUES = 60_000
"""Values in all: as a full batch with all its tags has."""


def is_too_much(arguments: object) -> bool:
    """Whether arguments, or a message with them, hold more values than any request needs."""
    containers: list[Any] = [arguments] if isinstance(arguments, Mapping | list) else []
    values = 0
    while containers:
        container = containers.pop()
        values += len(container)
        if len(container) > MAX_ENTRIES or values > MAX_VALUES:
            return True
        inner = container.values() if isinstance(container, Mapping) else container
        containers.extend(value for value in inner if isinstance(value, dict | list | tuple))
    return False


def too_much() -> TooLarge:
    """The error for that. Raise it where the values are let go of: who keeps it would keep them."""
    return TooLarge(
        f"The arguments hold more than {MAX_ENTRIES:,} values in one place or {MAX_VALUES:,} in all.",
        hint="Send several requests with less each.",
        details={"limit": MAX_ENTRIES},
    )
