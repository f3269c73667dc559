"""Errors of the connection to a server, and the server's own errors by their codes."""

from collections.abc import Iterator
from typing import Any

import orjson

from vestige.core.errors import VestigeError

_SHOWN_CHARS = 200


class Unreachable(VestigeError):
    """The server is unreachable."""

    code = "unreachable"
    status = 503


class Refused(VestigeError):
    """The server refused the request. `details` has its code and status."""

    code = "refused"
    status = 400


class Unauthenticated(Refused):
    """The server needs a valid API key."""

    code = "unauthenticated"
    status = 401


def error_of(status: int, body: bytes) -> VestigeError:
    """The error that a response describes."""
    problem = _object(body)
    code, message = problem.get("code"), problem.get("detail")
    if not isinstance(code, str) or not isinstance(message, str):
        said = body[:_SHOWN_CHARS].decode("utf-8", "replace").strip()
        return Unreachable(
            f"The answer, status {status}, does not come from Vestige: {said!r}.",
            hint="Check the URL, and any proxy in front of the server.",
            details={"status": status},
        )
    details, hint = problem.get("details"), problem.get("hint")
    details = details if isinstance(details, dict) else {}
    kind = {one.code: one for one in _tree(VestigeError)}.get(code)
    if kind is None:  # of the server itself, or of a newer version
        kind, details = Refused, {**details, "code": code, "status": status}
    return kind(message, hint=hint if isinstance(hint, str) else None, details=details)


def _object(body: bytes) -> dict[str, Any]:
    try:
        problem = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _tree(kind: type[VestigeError]) -> Iterator[type[VestigeError]]:
    yield kind
    for child in kind.__subclasses__():
        # One defined elsewhere (by a test or an extension) may have the code of its parent.
        if child.__module__ in (VestigeError.__module__, __name__):
            yield from _tree(child)
