"""Who may use the bridge: whoever has its token."""

from hashlib import blake2b
from hmac import compare_digest

from starlette.types import ASGIApp, Receive, Scope, Send

from vestige.errors import ConfigError
from vestige.settings import Settings, is_empty_variable
from vestige.transports.http.problems import Refusal, problem

TOKEN_VARIABLE = "VESTIGE_AUTH_TOKEN"
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
            hint=f"Set {TOKEN_VARIABLE}. VESTIGE_ALLOW_ANONYMOUS=true lets everybody in.",
            details={"setting": "auth.token"},
        )
    return token or None


class Gate:
    """Lets requests with the token through. Without one, lets all of them through."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._wanted = _digest(token.encode()) if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or not."""
        if self._wanted is None or scope["path"] in OPEN_PATHS or self._has_token(scope):
            await self._app(scope, receive, send)
        else:
            await problem(UNAUTHENTICATED, scope["state"]["request_id"])(scope, receive, send)

    def _has_token(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        # Digests have one length, so that the time this takes says nothing about the token's.
        same = compare_digest(_digest(token.strip()), self._wanted or b"")
        return same and scheme.lower() == b"bearer"


def _digest(token: bytes) -> bytes:
    return blake2b(token, digest_size=32).digest()
