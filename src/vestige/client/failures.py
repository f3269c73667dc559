"""What can go wrong between a client and a server, and the server's own errors by their codes."""

from collections.abc import Iterator
from typing import Any

import orjson

from vestige.core.errors import VestigeError

_SHOWN_CHARS = 200


class Unreachable(VestigeError):
    """The server cannot be reached."""

    code = "unreachable"
    status = 503


class Refused(VestigeError):
    """The server does not take the request. `details` has the code and the status it answered with."""

    code = "refused"
    status = 400


class Unauthenticated(Refused):
    """The server wants a valid key."""

    code = "unauthenticated"
    status = 401


def error_of(status: int, body: bytes) -> VestigeError:
    """The error that a response tells."""
    told = _object(body)
    code, message = told.get("code"), told.get("detail")
    if not isinstance(code, str) or not isinstance(message, str):
        said = body[:_SHOWN_CHARS].decode("utf-8", "replace").strip()
        return Unreachable(
            f"The answer, status {status}, is not one of Vestige's: {said!r}.",
            hint="Check the URL, and what stands between here and the server.",
            details={"status": status},
        )
    details, hint = told.get("details"), told.get("hint")
    details = details if isinstance(details, dict) else {}
    kind = {one.code: one for one in _tree(VestigeError)}.get(code)
    if kind is None:  # of the server itself, or of a newer one
        kind, details = Refused, {**details, "code": code, "status": status}
    return kind(message, hint=hint if isinstance(hint, str) else None, details=details)


def _object(body: bytes) -> dict[str, Any]:
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return told if isinstance(told, dict) else {}


def _tree(kind: type[VestigeError]) -> Iterator[type[VestigeError]]:
    yield kind
    for child in kind.__subclasses__():
        # One made elsewhere (a test's, an extension's) may have the code of its parent.
        if child.__module__ in (VestigeError.__module__, __name__):
            yield from _tree(child)
