"""The client: a connection, and every operation as a method."""

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Self

from vestige.client.connection import API, Connection, open_http
from vestige.client.operations import Operations
from vestige.core.errors import ConfigError

if TYPE_CHECKING:
    import httpx

DEFAULT_URL = "http://127.0.0.1:3927"


class Client(Operations):
    """A Vestige server. Any number of threads may use one client. Close it, or use it as a context.

    `url` is the server's, with or without the path of its API. The environment is not asked for it or for
    the `key`: give what your program reads there.
    `scope` and `domain` narrow everything that is asked to a part of what the key reaches. What works
    through the whole memory, such as `dream`, may take `long_timeout_seconds`, and everything else
    `timeout_seconds`. `transport` sends the requests in another way than httpx does by itself.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        key: str | None = None,
        scope: str | None = None,
        domain: str | None = None,
        timeout_seconds: float = 30.0,
        long_timeout_seconds: float = 600.0,
        transport: "httpx.BaseTransport | None" = None,
    ) -> None:
        if key is not None and not key.strip():
            raise ConfigError(
                "The key is empty.", hint="Pass the key that `vestige keys create` prints, or omit `key`."
            )
        headers = {
            "Authorization": f"Bearer {key}" if key is not None else None,
            "X-Vestige-Scope": scope,
            "X-Vestige-Domain": domain,
        }
        given = {name: value for name, value in headers.items() if value is not None}
        self._http = open_http(url, given, transport)
        # Closing ends the pauses before a request is sent again.
        self._closed = threading.Event()
        super().__init__(
            Connection(
                self._http,
                url.rstrip("/").removesuffix(API),
                timeout_seconds=timeout_seconds,
                long_timeout_seconds=long_timeout_seconds,
                pause=self._closed.wait,
            )
        )

    def close(self) -> None:
        """Close the connections."""
        self._closed.set()
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
