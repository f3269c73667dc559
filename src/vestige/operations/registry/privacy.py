"""What a caller is not told: names of memories that he does not reach, and how the installation is made."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vestige.core.errors import INSIDE, VestigeError
from vestige.core.models import EVERYTHING
from vestige.engine.context import Call, inaccessible_ids

logger = logging.getLogger(__name__)

NAMING = frozenset({"supersededBy", "superseded_by"})
"""Fields of a memory that name another. Whoever reaches the one need not reach the other."""

_PASSES = 503
"""The status of what may be over in a moment."""


@contextmanager
def discretion(call: Call) -> Iterator[None]:
    """Have an error of the installation tell only its kind to those who may not hear more; the log has it."""
    try:
        yield
    except INSIDE as error:
        if call.sees_installation:
            raise
        raise in_general(error, call.request_id) from error


def in_general(error: VestigeError, request_id: str) -> VestigeError:
    """What anybody may know of an error: its kind. The rest is written to the log."""
    logger.warning("Request %s failed with %s: %s %s", request_id, error.code, error.message, error.details)
    again = "Try again in a moment; the" if error.status == _PASSES else "The"
    return type(error)(hint=f"{again} server's log says more about request {request_id}.")


def discreet(call: Call, answer: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
    """The answer without the names of memories out of the caller's reach."""
    if call.access == EVERYTHING:
        return answer
    hidden = inaccessible_ids(call, _named(answer))
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
