"""Errors as `application/problem+json` (RFC 9457): those of the application, and refusals of the server
itself."""

from collections.abc import Mapping
from dataclasses import field
from http import HTTPStatus
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from vestige.core.errors import Cancelled, VestigeError
from vestige.core.lazy_dataclass import dataclass

MEDIA_TYPE = "application/problem+json"
CHALLENGE = 'Bearer realm="vestige"'
"""The WWW-Authenticate header of a 401."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why the server refuses a request; it has the same fields as an error of the application."""

    status: int
    code: str
    message: str
    hint: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


UNAUTHENTICATED = Refusal(
    status=401,
    code="unauthenticated",
    message="A valid API key is needed.",
    hint="Send `Authorization: Bearer vst_…`. `vestige keys create --label NAME` makes a key.",
)
STORE_AWAY = Refusal(
    status=503,
    code="store_unavailable",
    message="The store is not available.",
    hint="Try again in a moment. The server's log has the reason.",
)
NO_SUCH_ROUTE = Refusal(
    status=404,
    code="no_such_route",
    message="There is nothing at this address.",
    hint="MCP is at /mcp, REST below /api/v1. /api/v1/docs lists all addresses.",
)
METHOD_NOT_ALLOWED = Refusal(
    status=405,
    code="method_not_allowed",
    message="The method is not allowed here.",
    hint="The header `Allow` lists the allowed methods.",
)
NOT_ACCEPTABLE = Refusal(
    status=406, code="not_acceptable", message="None of the accepted content types is available."
)
TOO_SLOW = Refusal(
    status=408,
    code="too_slow",
    message="The request body arrived too slowly.",
    hint="The request was not carried out. Send it again, or in smaller parts.",
)
UNSUPPORTED_MEDIA_TYPE = Refusal(
    status=415,
    code="unsupported_media_type",
    message="The content type of the body is not supported.",
    hint="Send JSON with `Content-Type: application/json`.",
)
_OF_STATUS = {
    one.status: one
    for one in (
        UNAUTHENTICATED, NO_SUCH_ROUTE, METHOD_NOT_ALLOWED, NOT_ACCEPTABLE, TOO_SLOW, UNSUPPORTED_MEDIA_TYPE,
    )
}  # fmt: skip
_DENIAL = "websocket.http.response"
_STARTS = ("http.response.start", f"{_DENIAL}.start")
_POLICY_VIOLATION = 1008
_UNLISTED = {499: "Client Closed Request"}


def problem(
    error: VestigeError | Refusal, request_id: str, headers: Mapping[str, str] | None = None
) -> Response:
    shown: dict[str, object] = {
        "type": "about:blank",
        "title": _UNLISTED.get(error.status) or HTTPStatus(error.status).phrase,
        "status": error.status,
        "detail": error.message,
        "code": error.code,
    }
    if error.hint:
        shown["hint"] = error.hint
    if error.details:
        shown["details"] = error.details
    shown["requestId"] = request_id
    challenge = {"WWW-Authenticate": CHALLENGE} if error.status == UNAUTHENTICATED.status else {}
    return Response(
        orjson.dumps(shown, default=str),
        status_code=error.status,
        media_type=MEDIA_TYPE,
        headers={**challenge, **(headers or {})},
    )


def failure(request_id: str) -> Response:
    """An unexpected error as a response; its details are in the log only."""
    hint = f"The server's log says more about request {request_id}."
    return problem(VestigeError("The server failed.", hint=hint), request_id)


async def client_gone(request: Request, exc: Exception) -> Response:
    """A response for the log: the client disconnected before its request was complete."""
    return problem(Cancelled(), request.state.request_id)


def refusal_of(exc: HTTPException) -> Refusal:
    """The refusal for an exception of the web framework."""
    known = _OF_STATUS.get(exc.status_code)
    return known or Refusal(status=exc.status_code, code=f"http_{exc.status_code}", message=exc.detail)


async def respond_instead(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Send a response instead of passing a request on; for a WebSocket, too."""
    if scope["type"] == "http" or _DENIAL in scope.get("extensions", {}):
        await response(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": _POLICY_VIOLATION})


def is_response_start(message: Message) -> bool:
    return message["type"] in _STARTS
