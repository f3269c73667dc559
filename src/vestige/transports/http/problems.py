"""Errors as `application/problem+json` (RFC 9457): those of the application, and what a server refuses
before it asks the application at all."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from vestige.core.errors import Cancelled, VestigeError

MEDIA_TYPE = "application/problem+json"
CHALLENGE = 'Bearer realm="vestige"'
"""What a 401 has to say: how to authenticate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why the server does not take a request; of the same shape as an error of the application."""

    status: int
    code: str
    message: str
    hint: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


UNAUTHENTICATED = Refusal(
    status=401,
    code="unauthenticated",
    message="A valid key is needed.",
    hint="Send `Authorization: Bearer vst_…`. `vestige keys create --label NAME` makes a key.",
)
STORE_AWAY = Refusal(
    status=503,
    code="store_unavailable",
    message="The memory cannot be reached just now.",
    hint="Try again in a moment; the server's log says more.",
)
NO_SUCH_ROUTE = Refusal(
    status=404,
    code="no_such_route",
    message="There is nothing at this address.",
    hint="MCP is at /mcp, REST below /api/v1; /api/v1/docs shows all of that.",
)
METHOD_NOT_ALLOWED = Refusal(
    status=405,
    code="method_not_allowed",
    message="This address does not take that method.",
    hint="The header `Allow` of this answer names those that it takes.",
)
NOT_ACCEPTABLE = Refusal(
    status=406, code="not_acceptable", message="The client accepts no form that the answer could have."
)
TOO_SLOW = Refusal(
    status=408,
    code="too_slow",
    message="The rest of the body did not come in time.",
    hint="Nothing was done with it. Send the request again, or in smaller parts.",
)
UNSUPPORTED_MEDIA_TYPE = Refusal(
    status=415,
    code="unsupported_media_type",
    message="The body is not of a type that is taken here.",
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
    """An error as a response."""
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
    """A bug as a response: what went wrong is for the log only."""
    hint = f"The server's log says more about request {request_id}."
    return problem(VestigeError("The server failed.", hint=hint), request_id)


async def gone(request: Request, exc: Exception) -> Response:
    """What nobody reads, for the log: a client has left before all of its request was there."""
    return problem(Cancelled(), request.state.request_id)


def refusal_of(exc: HTTPException) -> Refusal:
    """What the framework refused, in our words."""
    known = _OF_STATUS.get(exc.status_code)
    return known or Refusal(status=exc.status_code, code=f"http_{exc.status_code}", message=exc.detail)


async def answer_instead(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Send a response in the place of what was asked for; in the place of a WebSocket too."""
    if scope["type"] == "http" or _DENIAL in scope.get("extensions", {}):
        await response(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": _POLICY_VIOLATION})


def starts(message: Message) -> bool:
    """Whether this is where a response begins, with its headers."""
    return message["type"] in _STARTS
