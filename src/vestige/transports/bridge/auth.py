"""Who may use the bridge: whoever has its token, or whoever is on this machine if that was said."""

from hashlib import blake2b
from hmac import compare_digest

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from vestige.core.errors import ConfigError
from vestige.settings.settings import Settings, is_empty_variable
from vestige.transports.http.auth.addresses import Bind, bind_of, sender_of
from vestige.transports.http.auth.failures import Guesses
from vestige.transports.http.problems import Refusal

TOKEN_VARIABLE = "VESTIGE_AUTH_TOKEN"
LONG_CHARS = 32
"""A token of so many characters, such as `openssl rand -hex 32` makes, is not found by trying."""
OPEN_PATHS = frozenset({"/health", "/readyz"})
UNAUTHENTICATED = Refusal(
    status=401,
    code="unauthenticated",
    message="Invalid or missing bearer token",
    hint="Send `Authorization: Bearer` with the token that the bridge was given.",
)


def token_of(settings: Settings) -> str | None:
    """The token that requests need, None if whoever comes is let in; ConfigError if neither was said.

    An empty token is a mistake in the deployment, such as a secret that was not mounted: nothing starts then.
    """
    if is_empty_variable(TOKEN_VARIABLE):
        raise ConfigError(
            f"{TOKEN_VARIABLE} is set, but empty.",
            hint="Give it a value, or take the variable away.",
            details={"setting": "auth.token"},
        )
    token = settings.auth.token.get_secret_value()
    if not token and not settings.bridge.allow_anonymous:
        raise ConfigError(
            "The bridge has no token: everybody who can reach it could read and change every memory.",
            hint=f"Set {TOKEN_VARIABLE}. VESTIGE_ALLOW_ANONYMOUS=true lets everybody on this machine in.",
            details={"setting": "auth.token"},
        )
    return token or None


def place_of(settings: Settings, token: str | None) -> Bind:
    """Where the bridge shall listen; ConfigError for what would let in everybody who can reach it."""
    bind = bind_of(settings.bridge.bind)
    if token is None and not bind.loopback:
        raise ConfigError(
            f"refusing to bind {bind} without a token: whoever can reach it could read and change every "
            "memory.",
            hint=f"Set {TOKEN_VARIABLE}, or listen on 127.0.0.1 with --bind.",
            details={"setting": "auth.token"},
        )
    return bind


class TokenGate:
    """Lets requests with the token through. Without one, lets all of them through."""

    def __init__(self, app: ASGIApp, token: str | None, guesses: Guesses) -> None:
        self._app, self._guesses = app, guesses
        self._wanted = _digest(token.encode()) if token else None
        self._short = len(token or "") < LONG_CHARS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or not."""
        free = self._wanted is None or scope["path"] in OPEN_PATHS
        refused = None if free else await self._refused(scope)
        await (refused or self._app)(scope, receive, send)

    async def _refused(self, scope: Scope) -> Response | None:
        sender, request_id = sender_of(scope), scope["state"]["request_id"]
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if not given:
            return self._guesses.absent(sender, request_id)
        # While an address is locked, what comes from it is not even compared, or guessing would go on. Nobody
        # guesses a long token: those who have it are not kept out by what others at their address do.
        locked = self._guesses.locked(sender, request_id) if self._short else None
        if locked is None and self._is_token(given):
            return None
        return locked or await self._guesses.wrong(sender, request_id)

    def _is_token(self, given: list[bytes]) -> bool:
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        # Digests have one length, so that the time this takes says nothing about the token's.
        same = compare_digest(_digest(token.strip()), self._wanted or b"")
        return same and scheme.lower() == b"bearer"


def _digest(token: bytes) -> bytes:
    return blake2b(token, digest_size=32).digest()
