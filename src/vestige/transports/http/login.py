"""Logging in with a key, for people: the page, and the session behind it."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import anyio
import orjson
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from vestige.errors import InvalidInput, TooLarge
from vestige.transports.http.addresses import bind_of
from vestige.transports.http.auth import Auth
from vestige.transports.http.cookies import COOKIE, Session
from vestige.transports.http.credentials import Credential, Identity
from vestige.transports.http.desk import Desk, request_id_of
from vestige.transports.http.limits import LOGIN
from vestige.transports.http.problems import TOO_SLOW, UNSUPPORTED_MEDIA_TYPE, problem

FILES = Path(__file__).parent / "static"
MAX_BYTES = 4_096
BODY_SECONDS = 10.0
"""How long the whole of a login may take to come."""
_FORM = "application/x-www-form-urlencoded"
_KEPT = ("www-authenticate", "retry-after")
_HIDDEN, _SHOWN = '<p id="failure" role="alert" hidden>', '<p id="failure" role="alert">'


class Login:
    """The handlers, with what they need."""

    def __init__(self, desk: Desk, auth: Auth, *, body_seconds: float = BODY_SECONDS) -> None:
        self._auth, self._engine, self._body_seconds = auth, desk.app.engine, body_seconds
        self._everywhere_secure = not bind_of(desk.settings.server.bind).loopback
        self._page = (FILES / "login.html").read_text(encoding="utf-8")

    async def page(self, request: Request) -> Response:
        """The page."""
        return HTMLResponse(self._page)

    async def enter(self, request: Request) -> Response:
        """Begin a session with a key: JSON for programs and our page, a form where there is no script."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
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
        session = self._auth.sessions.begin(found.key_id, self._engine.now())
        response: Response = (
            RedirectResponse(LOGIN, status_code=303)
            if kind == _FORM
            else JSONResponse(_told(found, self._auth.sessions.csrf(session)))
        )
        self._set_cookie(response, request, session)
        return response

    def _refused(self, reason: Response) -> Response:
        """The page with the reason, for whom a script cannot show it."""
        told = {name: reason.headers[name] for name in _KEPT if name in reason.headers}
        return HTMLResponse(self._page.replace(_HIDDEN, _SHOWN), reason.status_code, told)

    async def leave(self, request: Request) -> Response:
        """End the session. Also one that has expired, so no valid one is asked for; another site cannot do
        this to anybody: the cookie does not come along from there."""
        now = self._engine.now()
        session = self._auth.sessions.read(request.cookies.get(COOKIE, ""), now)
        if session is not None:
            self._auth.sessions.end(session, now)
        response = Response(status_code=204)
        response.delete_cookie(
            COOKIE, path="/", httponly=True, samesite="strict", secure=self._is_secure(request)
        )
        return response

    async def session(self, request: Request) -> Response:
        """Who is logged in, and the token that changes need."""
        found: Identity = request.state.identity
        return JSONResponse(_told(found, self._auth.sessions.csrf(found.session) if found.session else ""))

    def _set_cookie(self, response: Response, request: Request, session: Session) -> None:
        response.set_cookie(
            COOKIE,
            session.text,
            max_age=int((session.ends - session.began).total_seconds()),
            path="/",
            httponly=True,
            samesite="strict",
            secure=self._is_secure(request),
        )

    def _is_secure(self, request: Request) -> bool:
        return request.url.scheme == "https" or self._everywhere_secure


def routes(desk: Desk, auth: Auth) -> list[BaseRoute]:
    """The page, what it uses, and its files. The address of the server alone leads to it."""
    login = Login(desk, auth)

    async def start(request: Request) -> Response:
        return RedirectResponse(LOGIN, status_code=307)

    return [
        Route("/", start, methods=["GET"]),
        Route(LOGIN, login.page, methods=["GET"]),
        Route(LOGIN, login.enter, methods=["POST"]),
        Route("/logout", login.leave, methods=["POST"]),
        Route(f"{LOGIN}/session", login.session, methods=["GET"]),
        Mount("/static", StaticFiles(directory=FILES)),
    ]


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
