"""Who may come in: turns the credential of a request into its caller, or refuses it."""

import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from functools import partial

import anyio
from anyio.to_thread import run_sync
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from vestige.core.caller import Caller
from vestige.core.checks import check_label
from vestige.core.errors import Forbidden, InvalidInput, StoreError, VestigeError
from vestige.core.models import Access, covers, normal_scope, scope_filter
from vestige.transports.http.auth.addresses import sender_of
from vestige.transports.http.auth.cookies import CSRF_HEADER, Logins
from vestige.transports.http.auth.credentials import ANYONE, Credential, Holders, Identity, Usage, shown
from vestige.transports.http.auth.failures import Guesses
from vestige.transports.http.auth.hosts import is_same_origin
from vestige.transports.http.context import Desk, run
from vestige.transports.http.limits.bodies_and_rates import PROBES
from vestige.transports.http.middleware.security_headers import STATIC
from vestige.transports.http.problems import STORE_AWAY, UNAUTHENTICATED, Refusal, answer_instead, problem

logger = logging.getLogger(__name__)


# -- Headers by which a request says where it is at home: they can only take from what its key may reach.

SCOPE_HEADER = "X-Vestige-Scope"
DOMAIN_HEADER = "X-Vestige-Domain"


def narrowed(caller: Caller, headers: Headers) -> Caller:
    """The caller within the scope and the domain that the headers name; Forbidden outside of his reach."""
    scope, domain = _one(headers, SCOPE_HEADER), _one(headers, DOMAIN_HEADER)
    reach = caller.access
    if scope is not None:
        check_label(SCOPE_HEADER, scope)
        scope = normal_scope(scope)
        if reach.scopes is not None and not any(covers(one, scope) for one in reach.scopes):
            raise _outside("scope", SCOPE_HEADER)
        reach = Access(scopes=scope_filter((scope,)), domains=reach.domains)
        caller = replace(caller, scope=scope)
    if domain is not None:
        check_label(DOMAIN_HEADER, domain)
        if reach.domains is not None and domain not in reach.domains:
            raise _outside("domain", DOMAIN_HEADER)
        reach = Access(scopes=reach.scopes, domains=(domain,))
    return replace(caller, access=reach)


def _outside(what: str, header: str) -> Forbidden:
    return Forbidden(
        f"Your key does not reach this {what}.",
        hint=f"Name a {what} within the reach of the key in {header}, or leave it out.",
        details={"header": header},
    )


def _one(headers: Headers, name: str) -> str | None:
    given = headers.getlist(name)
    if len(given) > 1:
        raise InvalidInput(f"The header {name} is there more than once.", details={"header": name})
    if not given:
        return None
    try:
        # Header values are bytes; ours are UTF-8, which the framework reads as Latin-1.
        return given[0].encode("latin-1").decode("utf-8").strip()
    except UnicodeError as exc:
        raise InvalidInput(f"The header {name} is not UTF-8.", details={"header": name}) from exc


# -- auth

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
PUBLIC = PROBES | {"/", "/login", "/logout"}
LOOKUP_THREADS = 8

WRONG_KEY = Refusal(
    status=401,
    code="unauthenticated",
    message="This key opens nothing.",
    hint="Check the key: it is mistyped, revoked, expired or another server's. "
    "`vestige keys list` shows those that work.",
)
LOGIN_OVER = Refusal(
    status=401, code="unauthenticated", message="This login is over.", hint="Log in again at /login."
)
CSRF = Refusal(
    status=403,
    code="csrf",
    message=f"A change with a cookie needs its token in the header {CSRF_HEADER}.",
    hint="GET /login/session tells it.",
)
NOT_OUR_PAGE = Refusal(
    status=403,
    code="wrong_origin",
    message="A cookie opens a WebSocket only from a page of this server.",
)


class Auth:
    """Lets people in. Used by the event loop; what reads the store runs in threads of its own, which do not
    wait for the long work of others."""

    def __init__(
        self, desk: Desk, secret: bytes, *, pause: Callable[[float], Awaitable[None]] = anyio.sleep
    ) -> None:
        settings, per_minute = desk.settings.auth, desk.settings.server.requests_per_minute
        self.logins = Logins(secret, hours=settings.session_hours, entropy=desk.entropy)
        self.usage = Usage(desk)
        self._enabled, self._desk, self._engine = settings.enabled, desk, desk.app.engine
        self._holders = Holders(self._engine, self.logins, settings.token.get_secret_value())
        self._guesses = Guesses(UNAUTHENTICATED, per_minute, desk.monotonic, wrong=WRONG_KEY, pause=pause)
        self._threads = anyio.CapacityLimiter(LOOKUP_THREADS)
        desk.owned.append(self.usage.writing)

    async def identify(self, connection: HTTPConnection) -> Identity | Response:
        """Who sent a request, or why he is not let in."""
        if not self._enabled:
            return Identity(caller=ANYONE, via="open")
        credential = shown(connection)
        if credential is None:
            return self._guesses.absent(sender_of(connection.scope), connection.state.request_id)
        return await self.admit(credential, connection)

    async def admit(self, credential: Credential, connection: HTTPConnection) -> Identity | Response:
        """Who shows this credential, or why he is not let in."""
        sender, request_id = sender_of(connection.scope), connection.state.request_id
        if not credential.text:  # such as a header with a variable that is not set
            return self._guesses.absent(sender, request_id)
        locked = self._guesses.locked(sender, request_id) if credential.guessed else None
        if locked is not None:
            return locked
        try:
            found = await run_sync(self._holders.of, credential, limiter=self._threads)
        except StoreError as error:
            # Nobody is known yet, and what it tells of the installation is not for everybody.
            logger.warning("Request %s was not let in: %s", request_id, error.message)
            return problem(STORE_AWAY, request_id)
        if found is not None:
            if self._holders.is_key(found):
                self.usage.note(found.key_id, self._engine.now())
            return found
        if credential.kind == "cookie":  # has expired, most likely; nobody guesses a signature
            return self._guesses.absent(sender, request_id, LOGIN_OVER)
        return await self._guesses.wrong(sender, request_id)

    async def log_out(self, cookie: str) -> bool:
        """End the login of a cookie; whether it is over at every server of the store and stays so, or only at
        this one until it stops."""
        login = self.logins.read(cookie, self._engine.now())
        if login is None:
            return True
        try:
            await run(self._desk, self._holders.end, login)
        except StoreError as error:
            logger.warning("Somebody is logged out at this server only: %s", error.message)
            self.logins.end_here(login, self._engine.now())
            return False
        return True

    def recheck(self, identity: Identity) -> Callable[[], bool]:
        """What tells whether somebody who was let in still would be."""
        return partial(self._holders.still, identity)


def public(others: Collection[str]) -> Callable[[str], bool]:
    """What tells whether a path needs no key: those that everybody may see anyway, and these others."""
    paths = PUBLIC | frozenset(others)
    return lambda path: path in paths or path.startswith(STATIC)


class Gate:
    """The layer that lets a request through with its caller, or answers why not."""

    def __init__(self, app: ASGIApp, auth: Auth, is_public: Callable[[str], bool]) -> None:
        self._app, self._auth, self._is_public = app, auth, is_public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or not."""
        if scope["type"] == "http" and self._is_public(scope["path"]):
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        try:
            refused = await self._enter(connection)
        except VestigeError as error:
            refused = problem(error, connection.state.request_id)
        if refused is None:
            await self._app(scope, receive, send)
        else:
            await answer_instead(refused, scope, receive, send)

    async def _enter(self, connection: HTTPConnection) -> Response | None:
        found = await self._auth.identify(connection)
        if isinstance(found, Response):
            return found
        refusal = self._forged(found, connection)
        if refusal is not None:
            return problem(refusal, connection.state.request_id)
        connection.state.caller = narrowed(found.caller, connection.headers)
        connection.state.via, connection.state.key_id = found.via, found.key_id
        connection.state.recheck = self._auth.recheck(found)
        connection.state.identity = found
        return None

    def _forged(self, found: Identity, connection: HTTPConnection) -> Refusal | None:
        """Whether a browser could have been made to send this with a cookie that it keeps."""
        if found.login is None:
            return None
        if connection.scope["type"] == "websocket":
            return None if is_same_origin(connection.scope) else NOT_OUR_PAGE
        if connection.scope["method"] in SAFE:
            return None
        given = connection.headers.get(CSRF_HEADER, "")
        return None if self._auth.logins.is_csrf(found.login, given) else CSRF
