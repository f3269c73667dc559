"""The login page, and the requests it makes: log in with a key, log out, show the session."""

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

from vestige.core.errors import TooLarge
from vestige.transports.arguments import invalid_argument
from vestige.transports.http.auth.addresses import bind_of
from vestige.transports.http.auth.cookies import COOKIE, Login
from vestige.transports.http.auth.credentials import Credential, Identity, Kind
from vestige.transports.http.auth.gate import Auth
from vestige.transports.http.context import ServerContext, media_type_of, request_id_of
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
"""How long the body of a login may take to arrive."""
_FORM = "application/x-www-form-urlencoded"
_KEPT = ("www-authenticate", "retry-after")
_HIDDEN, _SHOWN = '<p id="failure" role="alert" hidden>', '<p id="failure" role="alert">'
_WRONG_KEY = "Unknown, revoked or expired API key."

HERE_ONLY = Refusal(
    status=503,
    code="logged_out_here_only",
    message="You are logged out here, but this could not be stored: a copy of your cookie still "
    "works on other servers of this memory, and here after a restart, until it expires.",
    hint="If someone could have a copy, revoke the key.",
)


class Handlers:
    """The request handlers of the login page."""

    def __init__(self, context: ServerContext, auth: Auth, *, body_seconds: float = BODY_SECONDS) -> None:
        self._auth, self._engine, self._body_seconds = auth, context.app.engine, body_seconds
        self._everywhere_secure = not bind_of(context.settings.server.bind).loopback
        self._page = (FILES / "login.html").read_text(encoding="utf-8")

    async def page(self, request: Request) -> Response:
        """The login page. It shows the session without JavaScript, too."""
        found = None
        if COOKIE in request.cookies:
            found = await self._auth.admit(Credential(kind="cookie", text=request.cookies[COOKIE]), request)
        return HTMLResponse(_with(self._page, found) if isinstance(found, Identity) else self._page)

    async def enter(self, request: Request) -> Response:
        """Log in with a key: JSON for programs and our page, a form where there is no script."""
        # Another site could make a browser log in here with the site's own key, and read later what the user
        # writes. But browsers send the Origin of the page with a POST, and `Origins` accepts only ours and
        # allowed ones. Ours is sent too, and not as `null`, thanks to our Referrer-Policy.
        # A client that sends no Origin is not a current browser.
        kind = media_type_of(request.headers)
        if kind not in ("application/json", _FORM):
            return problem(UNSUPPORTED_MEDIA_TYPE, request_id_of(request))
        with anyio.move_on_after(self._body_seconds) as waiting:
            body = await _body(request)
        if waiting.cancelled_caught:
            return problem(TOO_SLOW, request_id_of(request))
        found = await self._auth.admit(_credential_in(body, is_form=kind == _FORM), request)
        if isinstance(found, Response):
            return self._refused(found) if kind == _FORM else found
        login = self._auth.logins.begin(found.key_id, self._engine.now())
        response: Response = RedirectResponse(LOGIN, status_code=303)
        if kind != _FORM:
            response = JSONResponse(_session_view(found, self._auth.logins.csrf(login)))
        self._set_cookie(response, request, login)
        return response

    def _refused(self, reason: Response) -> Response:
        """The page with the reason, for browsers without JavaScript."""
        kept = {name: reason.headers[name] for name in _KEPT if name in reason.headers}
        page = self._page.replace(_HIDDEN, _SHOWN)
        if reason.status_code != UNAUTHENTICATED.status:
            why = orjson.loads(reason.body)
            page = page.replace(_WRONG_KEY, escape(f"{why['detail']} {why.get('hint', '')}".strip()))
        return HTMLResponse(page, reason.status_code, kept)

    async def leave(self, request: Request) -> Response:
        """Log out. A valid cookie is not needed. Another site cannot cause this: browsers do not send the
        cookie from there."""
        everywhere = await self._auth.log_out(request.cookies.get(COOKIE, ""))
        is_form = media_type_of(request.headers) == _FORM
        done = RedirectResponse(LOGIN, status_code=303) if is_form else Response(status_code=204)
        response = done if everywhere else problem(HERE_ONLY, request_id_of(request))
        response.delete_cookie(
            COOKIE, path="/", httponly=True, samesite="strict", secure=self._is_secure(request)
        )
        return response

    async def session(self, request: Request) -> Response:
        """The session, with the CSRF token that changes need."""
        found: Identity = request.state.identity
        return JSONResponse(_session_view(found, self._auth.logins.csrf(found.login) if found.login else ""))

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


def routes(context: ServerContext, auth: Auth) -> list[BaseRoute]:
    """The routes of the page and its files. `/` redirects to it."""
    handlers = Handlers(context, auth)

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


def _with(page: str, found: Identity) -> str:
    who = _session_view(found, "")
    limits = [*(who["scopes"] or ()), *(who["domains"] or ())]
    for old, new in (
        ('<form id="login"', '<form id="login" hidden'),
        ('aria-live="polite" hidden>', 'aria-live="polite">'),
        ('id="label">', f'id="label">{escape(who["label"])}'),
        ('id="permissions">', f'id="permissions">{", ".join(who["permissions"])}'),
        ('id="reach">', f'id="reach">{escape(", ".join(limits) or "everything")}'),
    ):
        page = page.replace(old, new)
    return page


def _session_view(found: Identity, csrf: str) -> dict[str, Any]:
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
            raise TooLarge(
                f"The body of a login is larger than {MAX_BYTES:,} bytes.", details={"limit": MAX_BYTES}
            )
    return bytes(body)


def _credential_in(body: bytes, *, is_form: bool) -> Credential:
    """The key in a body, or the ticket of `vestige dashboard`."""
    try:
        if is_form:
            text = parse_qs(body.decode("utf-8"), strict_parsing=True)["api_key"][0]
            return Credential(kind="api-key", text=text.strip())
        given = orjson.loads(body)
        kind: Kind = "ticket" if "ticket" in given else "api-key"
        text = given["ticket" if kind == "ticket" else "api_key"]
    except (ValueError, KeyError, TypeError) as exc:  # the error could quote the key
        raise invalid_argument("api_key", "The body has no `api_key`.") from exc
    if not isinstance(text, str):
        raise invalid_argument("api_key", "`api_key` must be a string.")
    return Credential(kind=kind, text=text.strip())
