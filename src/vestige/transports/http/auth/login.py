"""Logging in with a key, for people: the page, and what it asks."""

from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import anyio
import orjson
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from vestige.core.errors import InvalidInput, TooLarge
from vestige.transports.http.auth.addresses import bind_of
from vestige.transports.http.auth.cookies import COOKIE, Login
from vestige.transports.http.auth.credentials import Credential, Identity
from vestige.transports.http.auth.gate import Auth
from vestige.transports.http.context import Desk, request_id_of
from vestige.transports.http.problems import (
    TOO_SLOW,
    UNAUTHENTICATED,
    UNSUPPORTED_MEDIA_TYPE,
    Refusal,
    problem,
)

LOGIN = "/login"
FILES = Path(__file__).parents[1] / "static"
MAX_BYTES = 4_096
BODY_SECONDS = 10.0
"""How long the whole of a login may take to come."""
_FORM = "application/x-www-form-urlencoded"
_KEPT = ("www-authenticate", "retry-after")
_HIDDEN, _SHOWN = '<p id="failure" role="alert" hidden>', '<p id="failure" role="alert">'
_WRONG_KEY = "This key does not open anything."

HERE_ONLY = Refusal(
    status=503,
    code="logged_out_here_only",
    message="You are logged out here. A copy of your cookie still works at other servers of this memory, and "
    "here after a restart, until it expires: it could not be written down.",
    hint="If somebody could have a copy, revoke the key.",
)


class Handlers:
    """What answers the page, with what it needs."""

    def __init__(self, desk: Desk, auth: Auth, *, body_seconds: float = BODY_SECONDS) -> None:
        self._auth, self._engine, self._body_seconds = auth, desk.app.engine, body_seconds
        self._everywhere_secure = not bind_of(desk.settings.server.bind).loopback
        self._page = (FILES / "login.html").read_text(encoding="utf-8")

    async def page(self, request: Request) -> Response:
        """The page, with who is logged in for whom a script cannot show it."""
        found = None
        if COOKIE in request.cookies:
            found = await self._auth.admit(Credential(kind="cookie", text=request.cookies[COOKIE]), request)
        return HTMLResponse(_with(self._page, found) if isinstance(found, Identity) else self._page)

    async def enter(self, request: Request) -> Response:
        """Log in with a key: JSON for programs and our page, a form where there is no script."""
        # Another site could have a browser log in here with a key of its own, and read later what the person
        # writes. But a browser says with a POST of which origin the page is, and `Origins` lets none get here
        # but our own and allowed ones; ours is told too, and not as `null`, thanks to our Referrer-Policy.
        # Who tells no origin is no browser of today.
        kind = _kind(request)
        if kind not in ("application/json", _FORM):
            return problem(UNSUPPORTED_MEDIA_TYPE, request_id_of(request))
        with anyio.move_on_after(self._body_seconds) as waiting:
            body = await _body(request)
        if waiting.cancelled_caught:
            return problem(TOO_SLOW, request_id_of(request))
        text = _key_in(body, is_form=kind == _FORM)
        found = await self._auth.admit(Credential(kind="api-key", text=text), request)
        if isinstance(found, Response):
            return self._refused(found) if kind == _FORM else found
        login = self._auth.logins.begin(found.key_id, self._engine.now())
        response: Response = (
            RedirectResponse(LOGIN, status_code=303)
            if kind == _FORM
            else JSONResponse(_told(found, self._auth.logins.csrf(login)))
        )
        self._set_cookie(response, request, login)
        return response

    def _refused(self, reason: Response) -> Response:
        """The page with the reason, for whom a script cannot show it."""
        told = {name: reason.headers[name] for name in _KEPT if name in reason.headers}
        page = self._page.replace(_HIDDEN, _SHOWN)
        if reason.status_code != UNAUTHENTICATED.status:
            why = orjson.loads(reason.body)
            page = page.replace(_WRONG_KEY, escape(f"{why['detail']} {why.get('hint', '')}".strip()))
        return HTMLResponse(page, reason.status_code, told)

    async def leave(self, request: Request) -> Response:
        """Log out. Also who is out already, so no valid cookie is asked for; another site cannot do this to
        anybody: the cookie does not come along from there."""
        everywhere = await self._auth.log_out(request.cookies.get(COOKIE, ""))
        done = (
            RedirectResponse(LOGIN, status_code=303) if _kind(request) == _FORM else Response(status_code=204)
        )
        response = done if everywhere else problem(HERE_ONLY, request_id_of(request))
        response.delete_cookie(
            COOKIE, path="/", httponly=True, samesite="strict", secure=self._is_secure(request)
        )
        return response

    async def session(self, request: Request) -> Response:
        """Who is logged in, and the token that changes need."""
        found: Identity = request.state.identity
        return JSONResponse(_told(found, self._auth.logins.csrf(found.login) if found.login else ""))

    def _set_cookie(self, response: Response, request: Request, login: Login) -> None:
        response.set_cookie(
            COOKIE,
            login.text,
            max_age=int((login.ends - login.began).total_seconds()),
            path="/",
            httponly=True,
            samesite="strict",
            secure=self._is_secure(request),
        )

    def _is_secure(self, request: Request) -> bool:
        return request.url.scheme == "https" or self._everywhere_secure


def routes(desk: Desk, auth: Auth) -> list[BaseRoute]:
    """The page, what it uses, and its files. The address of the server alone leads to it."""
    handlers = Handlers(desk, auth)

    async def start(request: Request) -> Response:
        return RedirectResponse(LOGIN, status_code=307)

    return [
        Route("/", start, methods=["GET"]),
        Route(LOGIN, handlers.page, methods=["GET"]),
        Route(LOGIN, handlers.enter, methods=["POST"]),
        Route("/logout", handlers.leave, methods=["POST"]),
        Route(f"{LOGIN}/session", handlers.session, methods=["GET"]),
        Mount("/static", StaticFiles(directory=FILES)),
    ]


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _with(page: str, found: Identity) -> str:
    """The page as its script would show it to somebody who is logged in."""
    who = _told(found, "")
    places = [*(who["scopes"] or ()), *(who["domains"] or ())]
    for old, new in (
        ('<form id="login"', '<form id="login" hidden'),
        ('aria-live="polite" hidden>', 'aria-live="polite">'),
        ('id="label">', f'id="label">{escape(who["label"])}'),
        ('id="permissions">', f'id="permissions">{", ".join(who["permissions"])}'),
        ('id="reach">', f'id="reach">{escape(", ".join(places) or "everything")}'),
    ):
        page = page.replace(old, new)
    return page


def _told(found: Identity, csrf: str) -> dict[str, Any]:
    reach = found.caller.access
    return {
        "label": found.caller.name,
        "permissions": sorted(found.caller.permissions),
        "scopes": reach.scopes,
        "domains": reach.domains,
        "csrf": csrf,
    }


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BYTES:
            raise TooLarge(f"A login has at most {MAX_BYTES:,} bytes.", details={"limit": MAX_BYTES})
    return bytes(body)


def _key_in(body: bytes, *, is_form: bool) -> str:
    try:
        if is_form:
            return parse_qs(body.decode("utf-8"), strict_parsing=True)["api_key"][0].strip()
        given = orjson.loads(body)["api_key"]
    except (ValueError, KeyError, TypeError) as exc:  # what went wrong could quote the key
        raise InvalidInput("There is no `api_key` in the body.", details={"argument": "api_key"}) from exc
    if not isinstance(given, str):
        raise InvalidInput("`api_key` is no text.", details={"argument": "api_key"})
    return given.strip()
