"""Hides from a caller the ids of inaccessible memories and details of the installation."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vestige.core.errors import INSIDE, VestigeError
from vestige.core.models import EVERYTHING
from vestige.engine.context import Call, inaccessible_ids

logger = logging.getLogger(__name__)

NAMING = frozenset({"supersededBy", "superseded_by"})
"""Fields that hold the id of another memory, which the caller may not have access to."""

_PASSES = 503
"""HTTP status of a temporary failure."""


@contextmanager
def hide_installation_errors(call: Call) -> Iterator[None]:
    """Replace an installation error by a generic one for callers without that permission; log the details."""
    try:
        yield
    except INSIDE as error:
        if call.sees_installation:
            raise
        raise in_general(error, call.request_id) from error


def in_general(error: VestigeError, request_id: str) -> VestigeError:
    """A copy of the error with only its code. Its details are written to the log."""
    logger.warning("Request %s failed with %s: %s %s", request_id, error.code, error.message, error.details)
    again = "Try again in a moment; the" if error.status == _PASSES else "The"
    return type(error)(hint=f"{again} server's log has the details of request {request_id}.")


def without_inaccessible_ids(call: Call, answer: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
    """The answer without ids of memories that the caller has no access to."""
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
