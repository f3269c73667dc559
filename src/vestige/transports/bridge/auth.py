"""Authentication of the bridge: a bearer token, or anonymous access on this machine if that is allowed."""

import re
from hashlib import blake2b
from hmac import compare_digest

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from vestige.core.errors import ConfigError
from vestige.settings.settings import Settings, is_empty_variable
from vestige.transports.bridge.answers import BridgeRefused
from vestige.transports.http.auth.addresses import Bind, bind_of, sender_of
from vestige.transports.http.auth.failures import FailedLogins
from vestige.transports.http.problems import Refusal

TOKEN_VARIABLE = "VESTIGE_AUTH_TOKEN"
LONG_CHARS = 32
"""A token of this length, such as from `openssl rand -hex 32`, cannot be guessed."""
OPEN_PATHS = frozenset({"/health", "/readyz"})
UNAUTHENTICATED = Refusal(
    status=401,
    code="unauthenticated",
    message="Invalid or missing bearer token",
    hint="Send `Authorization: Bearer` with the token that the bridge was given.",
)


def token_of(settings: Settings) -> str | None:
    """The token that requests need; None for anonymous access; ConfigError if neither is configured. An empty
    token is a mistake of the deployment, such as a secret that was not mounted: the bridge does not start."""
    if is_empty_variable(TOKEN_VARIABLE):
        raise ConfigError(
            f"{TOKEN_VARIABLE} is set, but empty.",
            hint="Give it a value, or remove the variable.",
            details={"setting": "auth.token"},
        )
    token = settings.auth.token.get_secret_value()
    if not token and not settings.bridge.allow_anonymous:
        raise ConfigError(
            "The bridge has no token: every client that can connect could read and change all memories.",
            hint=f"Set {TOKEN_VARIABLE}. VESTIGE_ALLOW_ANONYMOUS=true allows every user of this machine.",
            details={"setting": "auth.token"},
        )
    return token or None


def bind_of_bridge(settings: Settings, token: str | None) -> Bind:
    """The address to listen on; ConfigError if it is not a loopback address and there is no token."""
    bind = bind_of(settings.bridge.bind)
    if token is None and not bind.loopback:
        raise ConfigError(
            f"refusing to bind {bind} without a token: every client that can connect could read and change "
            "all memories.",
            hint=f"Set {TOKEN_VARIABLE}, or listen on 127.0.0.1 with --bind.",
            details={"setting": "auth.token"},
        )
    return bind


class TokenGate:
    """Middleware that accepts requests with the token, or all of them if no token is needed."""

    def __init__(self, app: ASGIApp, token: str | None, failures: FailedLogins) -> None:
        self._app, self._failures = app, failures
        self._wanted = _digest(token.encode()) if token else None
        self._short = len(token or "") < LONG_CHARS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        free = self._wanted is None or scope["path"] in OPEN_PATHS
        refused = None if free else await self._refused(scope)
        await (refused or self._app)(scope, receive, send)

    async def _refused(self, scope: Scope) -> Response | None:
        sender, request_id = sender_of(scope), scope["state"]["request_id"]
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if not given:
            return self._failures.absent(sender, request_id)
        # While an address is locked, short tokens from it are not compared, or guessing could go on. A long
        # token cannot be guessed: failures of others at the address do not lock its owner out.
        locked = self._failures.locked(sender, request_id) if self._short else None
        if locked is None and self._is_token(given):
            return None
        return locked or await self._failures.wrong(sender, request_id)

    def _is_token(self, given: list[bytes]) -> bool:
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        # Digests have one length, so that the time of the comparison reveals nothing about the token.
        same = compare_digest(_digest(token.strip()), self._wanted or b"")
        return same and scheme.lower() == b"bearer"


def _digest(token: bytes) -> bytes:
    return blake2b(token, digest_size=32).digest()


# -- The agent that a request comes from: the header `X-Agent-Id`

# The agent states it itself, so it is an attribution: every client that has the token can send any name.

AGENT_HEADER = "X-Agent-Id"
# Printable ASCII. No slash, because it becomes part of a path; no bar, because that ends it in a context.
_AGENT = re.compile(r"[!-.0-\[\]-{}~]([ -.0-\[\]-{}~]{0,126}[!-.0-\[\]-{}~])?")

BAD_AGENT = Refusal(
    status=400,
    code="bad_agent_id",
    message=f"{AGENT_HEADER} is not the name of an agent.",
    hint="1 to 128 printable ASCII characters without slashes and bars; not `.` or `..`.",
)


def agent_of(headers: Headers) -> str | None:
    """The agent of a request; None without the header; BridgeRefused if the name is not valid."""
    given = headers.getlist(AGENT_HEADER)
    if not given:
        return None
    name = given[0].strip()
    if len(given) > 1 or not _AGENT.fullmatch(name) or name in (".", ".."):
        raise BridgeRefused(BAD_AGENT)
    return name
