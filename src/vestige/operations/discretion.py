"""Answers to callers who reach a part of the store: no field names a memory that they do not reach."""

from collections.abc import Iterator
from typing import Any

from vestige.engine.context import Call
from vestige.engine.reach import unseen
from vestige.models import EVERYTHING

NAMING = frozenset({"supersededBy", "superseded_by"})
"""Fields of a memory that name another. Whoever reaches the one need not reach the other."""


def discreet(call: Call, answer: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
    """The answer without the names of memories out of the caller's reach."""
    if call.access == EVERYTHING:
        return answer
    hidden = unseen(call, _named(answer))
    return _without(answer, hidden) if hidden else answer


def _named(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in NAMING and isinstance(inner, str):
                yield inner
            yield from _named(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _named(inner)


def _without(value: Any, hidden: set[str]) -> Any:
    if isinstance(value, dict):
        return {
            name: _without(inner, hidden)
            for name, inner in value.items()
            if not (name in NAMING and isinstance(inner, str) and inner in hidden)
        }
    return [_without(inner, hidden) for inner in value] if isinstance(value, list) else value
