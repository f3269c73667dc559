"""The outermost middleware: an id for each request, a JSON log line, a counter, and a handler for every
error. The line has the route template, the client's address and the label of the key. It never has a query, a
header or a body, which may hold secrets."""

import logging
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import BaseRoute, Match, Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vestige.core.caller import Caller
from vestige.core.errors import INSIDE, VestigeError
from vestige.operations.registry.registry import generic_error
from vestige.settings.settings import Settings
from vestige.transports.http.auth.addresses import sender_of
from vestige.transports.http.limits.bodies_and_rates import PROBES, is_stream
from vestige.transports.http.problems import failure, is_response_start, problem, respond_instead
from vestige.transports.http.status.metrics import Metrics

ACCESS = "vestige.access"
ANONYMOUS = Caller(name="", permissions=frozenset())
"""The caller of requests without a credential, on public paths."""
NO_ROUTE = "(none)"
CLIENT_LEFT = 499

State = Mapping[str, Any]  # as in Starlette: a free-form dictionary
"""The state of a request."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_INTERNAL_ERROR = 1011

logger = logging.getLogger(__name__)
access = logging.getLogger(ACCESS)


class AccessLog:
    """Logs each request, and answers for errors of the layers below. `unknown` is the state of a request
    before authentication; `who` reads from the state who sent it, for the log."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        new_id: Callable[[], str],
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        unknown: State,
        who: Callable[[State], Mapping[str, str]],
        routes: Sequence[BaseRoute],
        metrics: Metrics | None = None,
    ) -> None:
        self._app, self._routes, self._metrics = app, routes, metrics or Metrics()
        self._new_id, self._now, self._monotonic = new_id, now, monotonic
        self._unknown, self._who = unknown, who

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else self._new_id()
        scope.setdefault("state", {}).update(self._unknown, request_id=request_id)
        began, answer = self._monotonic(), _Answer(send, request_id)
        self._metrics.in_flight += 1
        try:
            await self._serve(scope, receive, answer)
        finally:
            self._metrics.in_flight -= 1
            self._log(scope, answer, self._monotonic() - began)

    async def _serve(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        request_id = scope["state"]["request_id"]
        try:
            await self._app(scope, receive, answer)
        except VestigeError as error:
            response = problem(
                generic_error(error, request_id) if isinstance(error, INSIDE) else error, request_id
            )
        except Exception:  # the outermost layer; the layers below have answered if they could
            logger.exception("This is a bug in Vestige (request %s)", request_id)
            response = failure(request_id)
        else:
            return
        if not answer.status:
            await respond_instead(response, scope, receive, answer)
        elif scope["type"] == "websocket" and not answer.over:
            await answer({"type": "websocket.close", "code": _INTERNAL_ERROR})

    def _log(self, scope: Scope, answer: "_Answer", seconds: float) -> None:
        method = scope.get("method") or "WEBSOCKET"
        route, status = template_of(scope, self._routes), answer.status or CLIENT_LEFT
        self._metrics.observe(method, route, status, None if answer.stream else seconds)
        level = logging.ERROR if status >= 500 and status != 503 else logging.INFO
        if scope["path"] in PROBES and status < 400:
            level = logging.DEBUG
        if access.isEnabledFor(level):
            line = {
                "time": self._now(),
                "request": scope["state"]["request_id"],
                "method": method,
                "route": route,
                "status": status,
                "client": sender_of(scope),
                "ms": round(1000 * seconds, 1),
                **self._who(scope["state"]),
            }
            access.log(level, "%s", orjson.dumps(line).decode())


class _Answer:
    """Passes a response on and records its status."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send, self._request_id = send, request_id
        self.status, self.stream, self.over = 0, False, False

    async def __call__(self, message: Message) -> None:
        if is_response_start(message):
            message.setdefault("headers", [])
            self.status, self.stream = message["status"], is_stream(message)
            MutableHeaders(scope=message)["X-Request-Id"] = self._request_id
        elif message["type"] == "websocket.accept":
            self.status, self.stream = 101, True
        elif message["type"] == "websocket.close":
            self.status, self.over = self.status or 403, True
        await self._send(message)


def template_of(scope: Scope, routes: Sequence[BaseRoute]) -> str:
    """The template of the path of the route that matches a request, accepted or not."""
    route = scope.get("route")
    if route is None:
        found = next((one for one in routes if one.matches(scope)[0] is not Match.NONE), None)
        return str(getattr(found, "path", NO_ROUTE))
    above: str = scope.get("root_path", "")
    return above if isinstance(route, Mount) else above + str(getattr(route, "path", ""))


class JsonLines(logging.Formatter):
    """Log records as lines of JSON, for the process of a server."""

    def format(self, record: logging.LogRecord) -> str:
        if record.name == ACCESS:
            return record.getMessage()  # is JSON already
        line = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


def set_up_logs(settings: Settings) -> None:
    """Send all logs of this process to standard error as JSON lines. Requests are logged at every level but
    `error`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=settings.log_level.upper())
    wanted = {"debug": logging.DEBUG, "error": logging.ERROR}
    access.setLevel(wanted.get(settings.log_level, logging.INFO))
    # At lower levels these log whole requests, with queries and headers.
    for name in ("uvicorn", "uvicorn.error", "websockets", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)
