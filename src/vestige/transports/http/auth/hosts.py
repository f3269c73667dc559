"""Host and Origin checks: which names the server answers to, and which web pages may use it.

A page on another site can make a browser send requests here. Two headers that no page can forge reveal it:
`Host`, against names of an attacker that resolve to this server (DNS rebinding), and `Origin`, the site of
the page.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vestige.core.lazy_dataclass import dataclass
from vestige.transports.http.auth.addresses import LOCALHOST, Bind, literal_of
from vestige.transports.http.problems import Refusal, is_response_start, problem, respond_instead

PREFLIGHT_SECONDS = 600
METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
ALLOWED_HEADERS = (
    "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Mcp-Method, Mcp-Name, "
    "Mcp-Protocol-Version, Mcp-Session-Id, X-API-Key, X-Request-Id, X-Vestige-Domain, X-Vestige-Scope"
)
"""Headers that pages of allowed origins may send. Not X-CSRF-Token: cookies are for our own pages."""
EXPOSED_HEADERS = "Mcp-Protocol-Version, Mcp-Session-Id, Retry-After, WWW-Authenticate, X-Request-Id"
"""Headers of responses that they may read."""

WRONG_HOST = Refusal(
    status=421,
    code="wrong_host",
    message="The server does not answer to this name.",
    hint="Add the name to the setting `server.allowed_hosts`.",
)
WRONG_ORIGIN = Refusal(
    status=403,
    code="wrong_origin",
    message="Pages of this origin may not use the server.",
    hint="Add the origin to the setting `server.allowed_origins`.",
)
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_OF_PAGES = {"ws": "http", "wss": "https"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedNames:
    """The hosts and origins that are accepted."""

    hosts: frozenset[str]
    any_literal: bool
    origins: frozenset[str]

    @classmethod
    def of(cls, bind: Bind, hosts: Iterable[str], origins: Iterable[str]) -> "AllowedNames":
        """The names of a server that listens on this address. One that listens on every address accepts
        every IP address: rebinding needs a name, and in a container's network the server does not know
        its own address."""
        return cls(
            hosts=frozenset(
                name.lower() for name in (bind.host, LOCALHOST, "127.0.0.1", "::1", *map(_unbracketed, hosts))
            ),
            any_literal=bind.wildcard,
            origins=frozenset(map(_normal, origins)),
        )

    def answers_to(self, host: str) -> bool:
        """Whether a Host header names this server."""
        try:
            parts = urlsplit(f"//{host}")
            name, _ = parts.hostname, parts.port  # read, because it raises an error if it is not a number
        except ValueError:
            return False
        if name is None or "@" in host:
            return False
        return name in self.hosts or host.lower() in self.hosts or (self.any_literal and _is_literal(name))


class Hosts:
    """Middleware that refuses requests for another host."""

    def __init__(self, app: ASGIApp, names: AllowedNames) -> None:
        self._app, self._names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        hosts = Headers(scope=scope).getlist("host")
        if len(hosts) == 1 and self._names.answers_to(hosts[0]):
            await self._app(scope, receive, send)
        else:
            await respond_instead(problem(WRONG_HOST, scope["state"]["request_id"]), scope, receive, send)


class Origins:
    """Middleware that refuses requests of pages from other origins, and lets allowed ones read responses
    (CORS)."""

    def __init__(self, app: ASGIApp, names: AllowedNames) -> None:
        self._app, self._names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        given = headers.getlist("origin")
        if not given or (len(given) == 1 and is_same_origin(scope)):
            await self._app(scope, receive, send)
        elif len(given) > 1 or _normal(given[0]) not in self._names.origins:
            await respond_instead(problem(WRONG_ORIGIN, scope["state"]["request_id"]), scope, receive, send)
        elif scope.get("method") == "OPTIONS" and "access-control-request-method" in headers:
            await _preflight(given[0])(scope, receive, send)
        else:
            await self._app(scope, receive, _readable_by(given[0], send))


def is_same_origin(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    scheme = _OF_PAGES.get(scope["scheme"], scope["scheme"])
    return _normal(headers.get("origin", "")) == _normal(f"{scheme}://{headers.get('host', '')}")


def _preflight(origin: str) -> Response:
    return Response(
        status_code=204,
        headers={
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Methods": METHODS,
            "Access-Control-Allow-Headers": ALLOWED_HEADERS,
            "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
            "Vary": "Origin",
        },
    )


def _readable_by(origin: str, send: Send) -> Send:
    async def sending(message: Message) -> None:
        if is_response_start(message):
            headers = MutableHeaders(scope=message)
            headers["Access-Control-Allow-Origin"] = origin
            headers["Access-Control-Expose-Headers"] = EXPOSED_HEADERS
            headers.add_vary_header("Origin")
        await send(message)

    return sending


def _normal(origin: str) -> str:
    """An origin in normal form; other text is returned unchanged, and equals no origin."""
    try:
        parts = urlsplit(origin.strip().lower())
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    except ValueError:
        return origin
    if not parts.hostname or parts.path not in ("", "/") or parts.username is not None:
        return origin
    return f"{parts.scheme}://{parts.hostname}:{port}"


def _unbracketed(host: str) -> str:
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def _is_literal(name: str) -> bool:
    return literal_of(name) is not None
