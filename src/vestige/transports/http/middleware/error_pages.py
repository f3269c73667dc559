"""Errors as a page for browsers. Programs get `application/problem+json`."""

from html import escape
from pathlib import Path
from string import Template
from typing import Any

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vestige.transports.http.problems import MEDIA_TYPE, UNAUTHENTICATED

_PAGE = Template((Path(__file__).parents[1] / "static" / "error.html").read_text(encoding="utf-8"))
_LOG_IN = '<a href="/login">Log in</a>'
_WAYS = '<a href="/login">Start page</a> · <a href="/api/v1/docs">The API</a>'


class ErrorPages:
    """Middleware that turns an error into a page if a browser asked for one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_browser(scope):
            await self._app(scope, receive, send)
            return
        await self._app(scope, receive, _PageSender(scope, send))


def is_browser(scope: Scope) -> bool:
    """Whether a request wants a page: browsers name HTML in `Accept` when they follow a link, programs do
    not."""
    accepted = Headers(scope=scope).get("accept", "").lower()
    return scope["method"] in ("GET", "HEAD") and "text/html" in accepted and "json" not in accepted


class _PageSender:
    """Passes a response on, and replaces one that is an error."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope, self._send = scope, send
        self._start: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if Headers(raw=message["headers"]).get("content-type", "").startswith(MEDIA_TYPE):
                self._start = message
                return
        elif self._start is not None and message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if message.get("more_body", False):
                return
            start, self._start = self._start, None
            page = error_page(orjson.loads(self._body)).encode() if self._body else b""
            headers = MutableHeaders(raw=start["headers"])
            headers["Content-Type"] = "text/html; charset=utf-8"
            headers["Content-Length"] = str(len(page))
            headers.add_vary_header("Accept")
            await self._send(start)
            await self._send({"type": "http.response.body", "body": page})
            return
        await self._send(message)


def error_page(problem: dict[str, Any]) -> str:  # Any: JSON
    """The page of a problem, with the way on: the login, or the start page and the API."""
    needs_login = problem["status"] == UNAUTHENTICATED.status
    detail = f"This page needs a login. {problem['detail']}" if needs_login else problem["detail"]
    hint = "" if needs_login else problem.get("hint", "")
    return _PAGE.substitute(
        title=escape(problem["title"]),
        detail=escape(detail),
        hint=escape(hint),
        ways=_LOG_IN if needs_login else _WAYS,
        request=escape(problem["requestId"]),
    )
