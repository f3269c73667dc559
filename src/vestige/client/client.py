"""The clients: a connection to a server, and every operation as a method that is called or awaited."""

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Self

from vestige.client.async_operations import AsyncOperations
from vestige.client.connection import AsyncConnection, Connection, Requests, ServerAccess, require_httpx
from vestige.client.operations import Operations

if TYPE_CHECKING:
    import httpx

DEFAULT_URL = "http://127.0.0.1:3927"
TIMEOUT_SECONDS = 30.0
LONG_TIMEOUT_SECONDS = 600.0


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
        timeout_seconds: float = TIMEOUT_SECONDS,
        long_timeout_seconds: float = LONG_TIMEOUT_SECONDS,
        transport: "httpx.BaseTransport | None" = None,
    ) -> None:
        require_httpx()
        import httpx

        access = ServerAccess(url=url, key=key, scope=scope, domain=domain)
        self._http = httpx.Client(
            headers=access.headers, trust_env=access.trusts_environment, transport=transport
        )
        requests = Requests(
            self._http, url, timeout_seconds=timeout_seconds, long_timeout_seconds=long_timeout_seconds
        )
        # Closing ends the pauses before a request is sent again.
        self._closed = threading.Event()
        super().__init__(Connection(self._http, requests, pause=self._closed.wait))

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


class AsyncClient(AsyncOperations):
    """A Vestige server for programs with an event loop, asyncio or trio. Its arguments are those of `Client`,
    and its methods have the same names and are awaited. Close it, or use it as an asynchronous context."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        key: str | None = None,
        scope: str | None = None,
        domain: str | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        long_timeout_seconds: float = LONG_TIMEOUT_SECONDS,
        transport: "httpx.AsyncBaseTransport | None" = None,
    ) -> None:
        require_httpx()
        import anyio  # httpx brings it
        import httpx

        access = ServerAccess(url=url, key=key, scope=scope, domain=domain)
        self._http = httpx.AsyncClient(
            headers=access.headers, trust_env=access.trusts_environment, transport=transport
        )
        requests = Requests(
            self._http, url, timeout_seconds=timeout_seconds, long_timeout_seconds=long_timeout_seconds
        )
        self._closed = anyio.Event()
        super().__init__(AsyncConnection(self._http, requests, pause=self._pause))

    async def close(self) -> None:
        """Close the connections."""
        self._closed.set()
        await self._http.aclose()

    async def _pause(self, seconds: float) -> bool:
        import anyio

        with anyio.move_on_after(seconds):
            await self._closed.wait()
        return self._closed.is_set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
