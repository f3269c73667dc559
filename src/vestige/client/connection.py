"""HTTP requests to a server: format, timeouts and retries."""

from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import orjson

from vestige.client.failures import Unreachable, error_of
from vestige.client.part import given_arguments
from vestige.client.routes import ROUTES, RestRoute
from vestige.core.errors import ConfigError, DeadlineExceeded, InvalidInput, MissingExtra

if TYPE_CHECKING:
    import httpx

API = "/api/v1"
TRIES = 4
LONGEST_PAUSE_SECONDS = 30.0
_FIRST_PAUSE_SECONDS = 0.25
_BUSY = (429, 503)
_KEY = "idempotency_key"


@dataclass(frozen=True, slots=True)
class Pause:
    """A wait before a request is sent again."""

    seconds: float


Exchange = Generator["httpx.Request | Pause", Any, Any]  # what comes in depends on what went out
"""One call of an operation as steps: it yields a request, to be sent, and is resumed with its response or
error; it yields a pause, and is resumed with whether to give up. It returns the answer."""


class Requests:
    """Requests to a server and what follows from its responses, without sending anything: threads and event
    loops send them in their own ways.

    A request is retried if that is safe: when no connection was made, and, if it is idempotent, when the
    server asks to retry later or the connection breaks.
    """

    def __init__(
        self,
        http: "httpx.Client | httpx.AsyncClient",
        url: str,
        *,
        timeout_seconds: float,
        long_timeout_seconds: float,
    ) -> None:
        self._http = http
        self._url = url.rstrip("/").removesuffix(API)
        self._timeouts = {False: timeout_seconds, True: long_timeout_seconds}

    def exchange(self, operation: str, arguments: Mapping[str, Any]) -> Exchange:
        """The steps of a call. `arguments` are all local variables of a method of a `Part`."""
        route, given = ROUTES[operation], given_arguments(arguments)
        repeatable = route.repeatable or _KEY in given
        request = self._request(route, given)
        tries = 1
        while True:
            outcome: httpx.Response | httpx.TransportError = yield request
            if tries == TRIES or not _worth_another(outcome, repeatable=repeatable):
                break
            if (yield Pause(_pause_seconds(outcome, tries))):
                break
            tries += 1
        if isinstance(outcome, Exception):
            raise self._failure(outcome, request) from outcome
        return _answer(outcome)

    def _request(self, route: RestRoute, given: dict[str, Any]) -> "httpx.Request":
        timeout_seconds = self._timeouts[route.long]
        places = [name for name in given if f"{{{name}}}" in route.path]
        filled = route.path.format_map({name: _segment(name, given.pop(name)) for name in places})
        url = f"{self._url}{API}{filled}"
        if route.method in ("GET", "DELETE"):
            return self._http.build_request(
                route.method, url, params=list(_pairs(given)), timeout=timeout_seconds
            )
        return self._http.build_request(
            route.method,
            url,
            content=as_json(given),
            headers={"Content-Type": "application/json"},
            timeout=timeout_seconds,
        )

    def _failure(self, error: Exception, request: "httpx.Request") -> Exception:
        import httpx

        if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
            seconds = request.extensions["timeout"]["read"]
            return DeadlineExceeded(
                f"The server at {self._url} did not answer within {seconds:g} seconds.",
                hint="The operation may have succeeded. Check before repeating it, or give the client a "
                "longer timeout.",
            )
        return Unreachable(
            f"The server at {self._url} is unreachable: {error} ({type(error).__name__}).",
            hint="Check the URL, and that `vestige serve` is running.",
        )


class Connection:
    """A server connection, usable from any number of threads. `pause` waits a number of seconds and returns
    whether to give up."""

    def __init__(self, http: "httpx.Client", requests: Requests, *, pause: Callable[[float], bool]) -> None:
        self._http = http
        self._requests = requests
        self._pause = pause

    def ask(self, operation: str, arguments: Mapping[str, Any]) -> Any:  # JSON; the caller knows its type
        exchange = self._requests.exchange(operation, arguments)
        try:
            step = next(exchange)
            while True:
                step = exchange.send(
                    self._pause(step.seconds) if isinstance(step, Pause) else self._sent(step)
                )
        except StopIteration as done:
            return done.value

    def _sent(self, request: "httpx.Request") -> "httpx.Response | httpx.TransportError":
        import httpx

        try:
            return self._http.send(request)
        except httpx.TransportError as error:
            return error


class AsyncConnection:
    """A server connection of an event loop. `pause` is as in `Connection`, and awaited."""

    def __init__(
        self, http: "httpx.AsyncClient", requests: Requests, *, pause: Callable[[float], Awaitable[bool]]
    ) -> None:
        self._http = http
        self._requests = requests
        self._pause = pause

    async def ask(self, operation: str, arguments: Mapping[str, Any]) -> Any:  # as in Connection
        exchange = self._requests.exchange(operation, arguments)
        try:
            step = next(exchange)
            while True:
                step = exchange.send(
                    await self._pause(step.seconds) if isinstance(step, Pause) else await self._sent(step)
                )
        except StopIteration as done:
            return done.value

    async def _sent(self, request: "httpx.Request") -> "httpx.Response | httpx.TransportError":
        import httpx

        try:
            return await self._http.send(request)
        except httpx.TransportError as error:
            return error


def as_json(given: Mapping[str, Any]) -> bytes:
    """Arguments as JSON; InvalidInput if one of them cannot be."""
    try:
        return orjson.dumps(given)
    except orjson.JSONEncodeError as error:
        raise InvalidInput(f"An argument is not JSON: {error}.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAccess:
    """The server of a client, and what a request to it carries. See `Client`."""

    url: str
    key: str | None
    scope: str | None
    domain: str | None

    def __post_init__(self) -> None:
        if self.key is not None and not self.key.strip():
            raise ConfigError(
                "The key is empty.", hint="Pass the key that `vestige keys create` prints, or omit `key`."
            )
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                "The URL of the server is not an http(s) URL.", hint="Give one such as http://127.0.0.1:3927"
            )
        if parts.username or parts.password:
            # It would appear wherever a URL does: in logs and errors.
            raise ConfigError("The URL of the server contains a password.", hint="Pass the key as `key`.")

    @property
    def trusts_environment(self) -> bool:
        """Whether a proxy may be used. Not for a server on this machine: a proxy would see the texts."""
        return urlsplit(self.url).hostname not in ("localhost", "127.0.0.1", "::1")

    @property
    def headers(self) -> dict[bytes, bytes]:
        given = {
            "Authorization": f"Bearer {self.key}" if self.key is not None else None,
            "X-Vestige-Scope": self.scope,
            "X-Vestige-Domain": self.domain,
        }
        # As text they would have to be ASCII; the server reads UTF-8.
        return {
            name.encode("ascii"): value.encode("utf-8") for name, value in given.items() if value is not None
        }


def require_httpx() -> None:
    """Raise MissingExtra without the library that the client needs."""
    try:
        import httpx  # noqa: F401 only whether it is there
    except ImportError as error:
        raise MissingExtra.named("client", "The client") from error


def _answer(response: "httpx.Response") -> Any:  # JSON
    if not response.is_success:
        raise error_of(response.status_code, response.content)
    try:
        return orjson.loads(response.content)
    except orjson.JSONDecodeError as exc:
        raise error_of(response.status_code, response.content) from exc


def _segment(name: str, value: object) -> str:
    """An argument as a path segment. Some values would change the path however they are escaped."""
    if str(value) in ("", ".", ".."):
        raise InvalidInput(f"`{name}` cannot be {value!r}.", details={"argument": name})
    return quote(str(value), safe="")


def _pairs(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Arguments as a query; a list repeats its name."""
    for name, value in given.items():
        for one in [value] if isinstance(value, str) or not isinstance(value, Sequence) else value:
            yield name, _text(one)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _worth_another(outcome: "httpx.Response | httpx.TransportError", *, repeatable: bool) -> bool:
    """Whether a retry may succeed and cannot run the operation twice."""
    import httpx

    if isinstance(outcome, httpx.ConnectError | httpx.ConnectTimeout):
        return True
    if not repeatable:
        return False
    if isinstance(outcome, httpx.Response):
        return outcome.status_code in _BUSY and "retry-after" in outcome.headers
    return isinstance(outcome, httpx.RemoteProtocolError | httpx.ReadError | httpx.WriteError)


def _pause_seconds(outcome: "httpx.Response | httpx.TransportError", tries: int) -> float:
    """The pause that the server asks for, or twice as long each time; at most half a minute."""
    asked = getattr(outcome, "headers", {}).get("retry-after", "")
    pause = float(asked) if asked.isdecimal() else _FIRST_PAUSE_SECONDS * 2.0 ** (tries - 1)
    return min(pause, LONGEST_PAUSE_SECONDS)
