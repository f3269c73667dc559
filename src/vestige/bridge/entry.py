"""The outermost layer: an id for each request, a line in the log, and no error that escapes."""

import logging
import re
from collections.abc import Callable
from datetime import datetime

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vestige.errors import VestigeError
from vestige.transports.http.limits import PROBES
from vestige.transports.http.logs import ACCESS, CLIENT_LEFT, template_of
from vestige.transports.http.problems import failure, problem

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

logger = logging.getLogger(__name__)
access = logging.getLogger(ACCESS)


class Entry:
    """Lets requests in, and answers for whatever goes wrong further in."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        new_id: Callable[[], str],
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._app, self._new_id, self._now, self._monotonic = app, new_id, now, monotonic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else self._new_id()
        scope.setdefault("state", {}).update(request_id=request_id, agent="", key_id="")
        began, status = self._monotonic(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except VestigeError as error:
            if not status:
                await problem(error, request_id)(scope, receive, sending)
        except Exception:  # the outermost place; what is below has answered, if it could
            logger.exception("This is a bug in Vestige (request %s)", request_id)
            if not status:
                await failure(request_id)(scope, receive, sending)
        finally:
            self._tell(scope, status or CLIENT_LEFT, self._monotonic() - began)

    def _tell(self, scope: Scope, status: int, seconds: float) -> None:
        """Write the line. The agent is told as it was checked; nothing else that was sent is."""
        level = logging.ERROR if status >= 500 and status != 503 else logging.INFO
        if scope["path"] in PROBES and status < 400:
            level = logging.DEBUG
        if not access.isEnabledFor(level):
            return
        told = {
            "time": self._now(),
            "request": scope["state"]["request_id"],
            "method": scope["method"],
            "route": template_of(scope),
            "status": status,
            "ms": round(1000 * seconds, 1),
            "agent": scope["state"]["agent"],
        }
        access.log(level, "%s", orjson.dumps(told).decode())
