"""HTTP requests to a server: format, timeouts and retries."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import orjson

from vestige.client.failures import Unreachable, error_of
from vestige.core.errors import ConfigError, DeadlineExceeded, InvalidInput, MissingExtra

if TYPE_CHECKING:
    import httpx

API = "/api/v1"
TRIES = 4
LONGEST_PAUSE_SECONDS = 30.0
_FIRST_PAUSE_SECONDS = 0.25
_BUSY = (429, 503)
_KEY = "idempotency_key"


class Connection:
    """A server connection, usable from any number of threads.

    A request is retried if that is safe: when no connection was made, and, if it is idempotent, when the
    server asks to retry later or the connection breaks. `pause` waits a number of seconds and returns whether
    to give up.
    """

    def __init__(
        self,
        http: "httpx.Client",
        url: str,
        *,
        timeout_seconds: float,
        long_timeout_seconds: float,
        pause: Callable[[float], bool],
    ) -> None:
        self._http = http
        self._url = url
        self._timeouts = {False: timeout_seconds, True: long_timeout_seconds}
        self._pause = pause

    def ask(
        self,
        method: str,
        path: str,
        arguments: Mapping[str, Any],
        *,
        repeatable: bool = False,
        long: bool = False,
    ) -> Any:  # JSON; the caller knows its type
        """The answer of an operation.

        `arguments` are all local variables of a method of a `Part`. `self` and null ones are not sent. The
        name of one that is a keyword, such as `from`, has a trailing `_`.
        """
        given = {
            name.removesuffix("_"): value
            for name, value in arguments.items()
            if value is not None and name != "self"
        }
        request = self._request(method, path, given, self._timeouts[long])
        response = self._sent(request, repeatable=repeatable or _KEY in given)
        if not response.is_success:
            raise error_of(response.status_code, response.content)
        try:
            return orjson.loads(response.content)
        except orjson.JSONDecodeError as exc:
            raise error_of(response.status_code, response.content) from exc

    def _request(
        self, method: str, path: str, given: dict[str, Any], timeout_seconds: float
    ) -> "httpx.Request":
        places = [name for name in given if f"{{{name}}}" in path]
        filled = path.format_map({name: _segment(name, given.pop(name)) for name in places})
        url = f"{self._url}{API}{filled}"
        if method in ("GET", "DELETE"):
            return self._http.build_request(method, url, params=list(_pairs(given)), timeout=timeout_seconds)
        return self._http.build_request(
            method,
            url,
            content=orjson.dumps(given),
            headers={"Content-Type": "application/json"},
            timeout=timeout_seconds,
        )

    def _sent(self, request: "httpx.Request", *, repeatable: bool) -> "httpx.Response":
        tries = 1
        while True:
            outcome = self._try(request)
            if tries == TRIES or not _worth_another(outcome, repeatable=repeatable):
                break
            if self._pause(_pause_seconds(outcome, tries)):
                break
            tries += 1
        if isinstance(outcome, Exception):
            raise self._failure(outcome, request) from outcome
        return outcome

    def _try(self, request: "httpx.Request") -> "httpx.Response | httpx.TransportError":
        import httpx

        try:
            return self._http.send(request)
        except httpx.TransportError as error:
            return error

    def _failure(self, error: "httpx.TransportError", request: "httpx.Request") -> Exception:
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


class Part:
    """A group of operations of a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection


def open_http(
    url: str, headers: Mapping[str, str], transport: "httpx.BaseTransport | None" = None
) -> "httpx.Client":
    """The HTTP client for this URL."""
    try:
        import httpx
    except ImportError as error:
        raise MissingExtra.named("client", "The client") from error
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            "The URL of the server is not an http(s) URL.", hint="Give one such as http://127.0.0.1:3927"
        )
    if parts.username or parts.password:
        # It would appear wherever a URL does: in logs and errors.
        raise ConfigError("The URL of the server contains a password.", hint="Pass the key as `key`.")
    # Connect directly to a server on this machine: a proxy would see the texts.
    direct = parts.hostname in ("localhost", "127.0.0.1", "::1")
    # As text they would have to be ASCII; the server reads UTF-8.
    sent = {name.encode("ascii"): value.encode("utf-8") for name, value in headers.items()}
    return httpx.Client(headers=sent, trust_env=not direct, transport=transport)


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
