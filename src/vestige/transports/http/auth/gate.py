"""Authentication: turns the credential of a request into its caller, or refuses it."""

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

from vestige.core.caller import Caller, narrowed
from vestige.core.errors import Forbidden, InvalidInput, StoreError, VestigeError
from vestige.core.models import check_label
from vestige.core.timezone import zone_of
from vestige.transports.http.auth.addresses import is_local, sender_of
from vestige.transports.http.auth.cookies import CSRF_HEADER, Logins
from vestige.transports.http.auth.credentials import (
    ANYONE,
    Credential,
    Identity,
    IdentityLookup,
    KeyUsage,
    credential_of,
)
from vestige.transports.http.auth.failures import FailedLogins
from vestige.transports.http.auth.hosts import is_same_origin
from vestige.transports.http.context import ServerContext, run_in_thread
from vestige.transports.http.limits.bodies_and_rates import PROBES
from vestige.transports.http.middleware.security_headers import STATIC
from vestige.transports.http.problems import STORE_AWAY, UNAUTHENTICATED, Refusal, problem, respond_instead
from vestige.transports.http.workers.group import rows_of

logger = logging.getLogger(__name__)


# -- Headers that narrow a request to a scope or domain, within the access of its key, or state a time zone

SCOPE_HEADER = "X-Vestige-Scope"
DOMAIN_HEADER = "X-Vestige-Domain"
ZONE_HEADER = "X-Vestige-Timezone"


NARROWING = {"scope": SCOPE_HEADER, "domain": DOMAIN_HEADER}


def narrowed_caller(caller: Caller, headers: Headers) -> Caller:
    """The caller with the time zone of the headers, narrowed to their scope and domain; Forbidden outside of
    its access."""
    zone = _header(headers, ZONE_HEADER)
    if zone is not None:
        caller = replace(caller, zone=zone_of(zone))
    asked = {name: _header(headers, header) for name, header in NARROWING.items()}
    for name, value in asked.items():
        if value is not None:
            check_label(NARROWING[name], value)
    return narrowed(caller, asked["scope"], asked["domain"], _outside)


def _outside(what: str) -> Forbidden:
    header = NARROWING[what]
    return Forbidden(
        f"Your key has no access to this {what}.",
        hint=f"Send a {what} that the key has access to in {header}, or leave it out.",
        details={"header": header},
    )


def _header(headers: Headers, name: str) -> str | None:
    given = headers.getlist(name)
    if len(given) > 1:
        raise InvalidInput(f"The header {name} is given more than once.", details={"header": name})
    if not given:
        return None
    try:
        # Header values are bytes; ours are UTF-8, which the framework reads as Latin-1.
        return given[0].encode("latin-1").decode("utf-8").strip()
    except UnicodeError as exc:
        raise InvalidInput(f"The header {name} is not UTF-8.", details={"header": name}) from exc


# -- Authentication

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
PUBLIC = PROBES | {"/", "/login", "/logout"}
LOOKUP_THREADS = 8

WRONG_KEY = Refusal(
    status=401,
    code="unauthenticated",
    message="Unknown, revoked or expired API key.",
    hint="Check for typing errors, and that the key belongs to this server. `vestige keys list` "
    "shows the valid ones.",
)
LOGIN_ENDED = Refusal(
    status=401, code="unauthenticated", message="This login has ended.", hint="Log in again at /login."
)
USED_TICKET = Refusal(
    status=401,
    code="unauthenticated",
    message="This link was used already, or is older than a minute.",
    hint="Run `vestige dashboard` again, or log in with an API key.",
)
CSRF = Refusal(
    status=403,
    code="csrf",
    message=f"A request with a login cookie that changes data needs the CSRF token in {CSRF_HEADER}.",
    hint="GET /login/session returns it.",
)
NOT_OUR_PAGE = Refusal(
    status=403,
    code="wrong_origin",
    message="A WebSocket can be opened with a cookie only from a page of this server.",
)


class Auth:
    """Authenticates requests. Used on the event loop; lookups in the store run in threads of their own,
    which never wait for long work."""

    def __init__(
        self,
        context: ServerContext,
        secret: bytes,
        *,
        pause: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        settings, per_minute = context.settings.auth, context.settings.server.requests_per_minute
        self.logins = Logins(secret, hours=settings.session_hours, entropy=context.entropy)
        self.usage = KeyUsage(context)
        self.zone = context.settings.zone
        self._enabled, self._context, self._engine = settings.enabled, context, context.app.engine
        self._identities = IdentityLookup(self._engine, self.logins, settings.token.get_secret_value())
        self._failures = FailedLogins(
            UNAUTHENTICATED,
            per_minute,
            context.monotonic,
            wrong=WRONG_KEY,
            pause=pause,
            rows=partial(rows_of, context.group),
        )
        self._threads = anyio.CapacityLimiter(LOOKUP_THREADS)
        context.owned.append(self.usage.writing)

    async def identify(self, connection: HTTPConnection) -> Identity | Response:
        """The identity of a request, or the response that refuses it."""
        if not self._enabled:
            return Identity(caller=ANYONE, via="open")
        credential = credential_of(connection)
        if credential is None:
            return self._failures.absent(sender_of(connection.scope), connection.state.request_id)
        return await self.admit(credential, connection)

    async def admit(self, credential: Credential, connection: HTTPConnection) -> Identity | Response:
        """The identity of a credential, or the response that refuses it."""
        sender, request_id = sender_of(connection.scope), connection.state.request_id
        if not credential.text:  # such as a header made from an environment variable that is not set
            return self._failures.absent(sender, request_id)
        locked = self._failures.locked(sender, request_id) if credential.is_guessable else None
        if locked is not None:
            return locked
        try:
            found = await run_sync(self._identities.of, credential, limiter=self._threads)
        except StoreError as error:
            # The caller is not known yet, and the error describes the installation: details stay in the log.
            logger.warning("Request %s could not be authenticated: %s", request_id, error.message)
            return problem(STORE_AWAY, request_id)
        if found is not None:
            if self._identities.is_key(found):
                self.usage.note(found.key_id, self._engine.now())
            return found
        if credential.kind == "cookie":  # it has most likely expired; a signature cannot be guessed
            return self._failures.absent(sender, request_id, LOGIN_ENDED)
        if credential.kind == "ticket":
            return self._failures.absent(sender, request_id, USED_TICKET)
        return await self._failures.wrong(sender, request_id)

    async def log_out(self, cookie: str) -> bool:
        """End the login of a cookie. Returns whether it ended on every server of the store, or only on this
        one until it stops."""
        login = self.logins.read(cookie, self._engine.now())
        if login is None:
            return True
        try:
            await run_in_thread(self._context, self._identities.end, login)
        except StoreError as error:
            logger.warning("A logout took effect on this server only: %s", error.message)
            self.logins.end_here(login, self._engine.now())
            return False
        return True

    def recheck(self, identity: Identity) -> Callable[[], bool]:
        """A function that returns whether an accepted identity is still valid."""
        return partial(self._identities.still, identity)


def public_paths(others: Collection[str]) -> Callable[[str], bool]:
    """A function that returns whether a path needs no key: the public paths, and the given ones. One that
    ends with `/*` stands for all below it."""
    paths = PUBLIC | frozenset(others)
    below = (STATIC, *(path.removesuffix("*") for path in others if path.endswith("/*")))
    return lambda path: path in paths or path.startswith(below)


class Gate:
    """Middleware that authenticates each request, and answers those that it refuses."""

    def __init__(self, app: ASGIApp, auth: Auth, is_public: Callable[[str], bool]) -> None:
        self._app, self._auth, self._is_public = app, auth, is_public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
            await respond_instead(refused, scope, receive, send)

    async def _enter(self, connection: HTTPConnection) -> Response | None:
        found = await self._auth.identify(connection)
        if isinstance(found, Response):
            return found
        refusal = self._forged(found, connection)
        if refusal is not None:
            return problem(refusal, connection.state.request_id)
        caller = narrowed_caller(found.caller, connection.headers)
        if caller.zone is None and is_local(connection):
            caller = replace(caller, zone=self._auth.zone)
        connection.state.caller = caller
        connection.state.via, connection.state.key_id = found.via, found.key_id
        connection.state.recheck = self._auth.recheck(found)
        connection.state.identity = found
        return None

    def _forged(self, found: Identity, connection: HTTPConnection) -> Refusal | None:
        """Whether another site could have made a browser send this request with its cookie (CSRF)."""
        if found.login is None:
            return None
        if connection.scope["type"] == "websocket":
            return None if is_same_origin(connection.scope) else NOT_OUR_PAGE
        if connection.scope["method"] in SAFE:
            return None
        given = connection.headers.get(CSRF_HEADER, "")
        return None if self._auth.logins.is_csrf(found.login, given) else CSRF
