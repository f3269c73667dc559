"""The process of the server: its socket, its start and its shutdown."""

import asyncio
import errno
import gc
import logging
import math
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any, Literal

import anyio
import uvicorn
from starlette.types import ASGIApp
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from vestige.core.caller import CancelSignal, Invocation
from vestige.core.errors import ConfigError, Conflict
from vestige.core.lazy_dataclass import dataclass
from vestige.engine.context import Engine
from vestige.operations.registry.groups import registry
from vestige.settings.settings import Settings
from vestige.transports.http.app import build_app
from vestige.transports.http.auth.addresses import Bind, bind_of, bracketed, is_loopback
from vestige.transports.http.auth.cookies import secret_of
from vestige.transports.http.auth.gate import Auth
from vestige.transports.http.context import ServerContext
from vestige.transports.http.events.endpoints import MAX_FRAME_BYTES
from vestige.transports.http.limits.connections import (
    KEEP_ALIVE_SECONDS,
    MAX_HEADER_BYTES,
    ConnectionGuard,
    ConnectionLimits,
    Connections,
    LimitedListener,
    affordable,
    backlog,
)
from vestige.transports.http.limits.watchdog import Watchdog
from vestige.transports.http.workers.channel import LEAVING, NOBODY, READY, HandedListener
from vestige.transports.http.workers.group import WorkerGroup
from vestige.transports.http.workers.peer_relay import pass_sessions_on
from vestige.transports.http.workers.table import WorkerState
from vestige.transports.mcp.service import ServerApplication

logger = logging.getLogger(__name__)


# -- Shutdown: running calls may finish, and are cancelled when the time is up


@dataclass(frozen=True, slots=True)
class _EitherSignal:
    """A signal that is set when one of two is."""

    one: CancelSignal
    other: CancelSignal

    def is_set(self) -> bool:
        return self.one.is_set() or self.other.is_set()


class CancellableApp:
    """An application whose calls can all be cancelled, for the end of a shutdown. Work in a thread cannot be
    stopped from outside; it checks its signal between steps, and the watchdog reports what does not."""

    def __init__(self, app: ServerApplication) -> None:
        self._app, self.cancel_all = app, threading.Event()
        self.watchdog = Watchdog(app.engine.monotonic)

    @property
    def engine(self) -> Engine:
        return self._app.engine

    def call_operation(self, invocation: Invocation) -> dict[str, Any]:
        with self.watchdog.watching(invocation):
            return self._app.call_operation(self._cancellable(invocation))

    def call_tool(self, invocation: Invocation) -> dict[str, Any]:
        with self.watchdog.watching(invocation):
            return self._app.call_tool(self._cancellable(invocation))

    def read_resource(self, invocation: Invocation) -> dict[str, Any]:
        with self.watchdog.watching(invocation):
            return self._app.read_resource(self._cancellable(invocation))

    def _cancellable(self, invocation: Invocation) -> Invocation:
        return replace(invocation, cancelled=_EitherSignal(invocation.cancelled, self.cancel_all))


class SignalledServer(uvicorn.Server):
    """uvicorn's server. It calls `started` when it accepts requests. The first signal starts a shutdown, in
    which requests may finish; the second ends the process."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start the shutdown, or end the process if it has started."""
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while serving. They are not raised again afterwards, as uvicorn would."""
        watched = (signal.SIGINT, signal.SIGTERM)
        before = {one: signal.signal(one, self.handle_exit) for one in watched}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


# -- The server and its sockets

STREAM_SECONDS = 0.5
"""How long WebSockets may take to close."""
POLL_SECONDS = 0.02
CANCEL_SECONDS = 2
"""How long cancelled work may take to stop."""
CLOSE_SECONDS = 30.0
"""How long the rest of the shutdown may take before the process is ended."""


def check_bind(settings: Settings) -> Bind:
    """The address to listen on; ConfigError if it is not a loopback address and authentication is off."""
    bind = bind_of(settings.server.bind)
    if not settings.auth.enabled and not bind.loopback:
        raise ConfigError(
            f"refusing to bind {bind} without authentication: every client that can connect could read and "
            "change all memories.",
            hint="Leave authentication on (`vestige keys create` makes a key), or listen on 127.0.0.1.",
            details={"setting": "auth.enabled"},
        )
    return bind


@contextmanager
def listening(bind: Bind, *, only_loopback: bool) -> Iterator[LimitedListener]:
    """A socket that is bound, so that no other process takes the port, but does not listen yet."""
    try:
        found = socket.getaddrinfo(bind.host, bind.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as exc:
        raise ConfigError(
            f"The host {bind.host} has no address to listen on: {exc.strerror}.",
            details={"setting": "server.bind"},
        ) from exc
    # For a name with both kinds of addresses, the one that all clients can use.
    family, kind, protocol, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    if only_loopback and not is_loopback(str(address[0])):
        raise ConfigError(f"refusing to bind {bind} without authentication: it is {address[0]} here.")
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(LimitedListener(family, kind, protocol))
            if os.name == "posix":  # elsewhere it would let two servers share a port
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(not bind.wildcard))
            opened.bind(address)
        except OSError as exc:
            raise _cannot(bind, exc) from exc
        yield opened


def _cannot(bind: Bind, exc: OSError) -> ConfigError | Conflict:
    if exc.errno == errno.EADDRINUSE:
        return Conflict(
            f"Another program already listens on {bind}.",
            hint="Stop it, or choose another address with --bind. Port 0 takes a free one.",
            details={"bind": str(bind)},
        )
    return ConfigError(
        f"The server cannot listen on {bind}: {exc.strerror}.", hint="Choose another address with --bind."
    )


def url_of(opened: socket.socket) -> str:
    """The URL of a socket for clients on this machine."""
    host, port = opened.getsockname()[:2]
    local = {"0.0.0.0": "127.0.0.1", "::": "::1"}
    return f"http://{bracketed(local.get(host, host))}:{port}"


def serve(
    app: ServerApplication,
    opened: LimitedListener,
    started: Callable[[], None],
    group: WorkerGroup | None = None,
) -> None:
    """Serve an application until a signal ends it. `started` is called when requests are accepted. A worker
    of a `group` gets its connections from its parent."""
    engine = app.engine
    settings = group.share_of(engine.settings) if group else engine.settings
    server = settings.server
    cancellable = CancellableApp(app)
    connections = Connections(limits=ConnectionLimits(most=affordable(server.max_connections)))
    context = ServerContext(
        app=cancellable,
        settings=settings,
        registry=registry,
        monotonic=engine.monotonic,
        entropy=engine.entropy,
        limiter=anyio.CapacityLimiter(server.max_concurrent),
        affordable=connections.limits.most,
        group=group,
    )
    context.owned.append(cancellable.watchdog.running)
    auth = Auth(context, secret_of(engine.settings, engine.entropy))
    config = server_config(
        build_app(context, auth),
        settings,
        connections,
        ws="websockets-sansio",
        end_seconds=math.ceil(server.shutdown_seconds) + CANCEL_SECONDS,
    )
    opened.connections = connections
    gc.freeze()  # what was imported stays: the collector need not look through it
    if group is None:
        HttpServer(context, cancellable.cancel_all, connections, config, started).run(sockets=[opened])
        return
    assert isinstance(opened, HandedListener)
    worker = WorkerServer(context, cancellable.cancel_all, connections, config, started)
    worker.join(group, opened)
    with group.listen() as peers:
        worker.run(sockets=[opened, peers])
    group.leave()


def server_config(
    app: ASGIApp,
    settings: Settings,
    connections: Connections,
    *,
    ws: Literal["none", "websockets-sansio"],
    end_seconds: int,
) -> uvicorn.Config:
    """The options of uvicorn, for an application behind the limits of connections."""
    most = connections.limits.most
    proxies = list(settings.server.trusted_proxies)
    if proxies:
        # Not by uvicorn's option: the guard below needs the address of the connection itself.
        inner: Any = app  # uvicorn and Starlette have different types for the same ASGI
        behind_proxy: Any = ProxyHeadersMiddleware(inner, trusted_hosts=proxies)
        app = behind_proxy
    return uvicorn.Config(
        ConnectionGuard(app, connections),
        # Pure Python: available on every platform, and one parser decides what a request is.
        http="h11",
        ws=ws,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        # The listener has a lower limit; this one is for systems where it cannot count connections.
        limit_concurrency=most + backlog(most),
        backlog=backlog(most),
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws_max_size=MAX_FRAME_BYTES,
        ws_per_message_deflate=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=end_seconds,
    )


class HttpServer(SignalledServer):
    """uvicorn's server, with our shutdown. The first signal lets requests finish within
    `server.shutdown_seconds`; the second ends the process."""

    def __init__(
        self,
        context: ServerContext,
        cancel_all: threading.Event,
        connections: Connections,
        config: uvicorn.Config,
        started: Callable[[], None],
    ) -> None:
        super().__init__(config, started)
        self._context, self._cancel_all, self._connections = context, cancel_all, connections

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        seconds = self._context.settings.server.shutdown_seconds
        last_resort = threading.Timer(seconds + CLOSE_SECONDS, os._exit, [1])
        last_resort.daemon = True
        last_resort.start()
        try:
            await self._end(seconds, sockets)
        finally:
            last_resort.cancel()
            last_resort.join()

    async def _end(self, seconds: float, sockets: list[socket.socket] | None) -> None:
        for server in self.servers:
            server.close()
        self._context.stopping.set()
        await self._end_requests(seconds, sockets)

    async def _end_requests(self, seconds: float, sockets: list[socket.socket] | None) -> None:
        # uvicorn would close WebSockets as well, but with the code of a server that restarts.
        with anyio.move_on_after(STREAM_SECONDS):
            while self._connections.websockets:
                await anyio.sleep(POLL_SECONDS)
        timer = asyncio.get_running_loop().call_later(seconds, self._cancel_requests)
        await super().shutdown(sockets)
        timer.cancel()

    def _cancel_requests(self) -> None:
        if self._connections.requests:
            logger.warning("Cancelling %d requests that did not end in time", self._connections.requests)
        self._cancel_all.set()


class WorkerServer(HttpServer):
    """The server of a worker. It ends when its parent says so. If another worker takes over, idle connections
    and sessions are passed on to it: a client notices nothing."""

    _group: WorkerGroup
    _channel: HandedListener
    _heir = NOBODY

    def join(self, group: WorkerGroup, channel: HandedListener) -> None:
        """Take orders from the parent."""
        self._group, self._channel = group, channel
        channel.stop = self._stop

    def _stop(self, heir: int) -> None:
        self._heir, self.should_exit = heir, True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Ask the parent to be ended, so that no connection is on its way. Ctrl-C in a terminal reaches the
        parent as well, which decides."""
        if sig == signal.SIGTERM:
            self._channel.report(LEAVING)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._group.beat(WorkerState.SERVING)
            self._channel.report(READY)

    async def _end(self, seconds: float, sockets: list[socket.socket] | None) -> None:
        self._group.beat(WorkerState.DRAINING)
        self._context.stopping.set()
        heir = next((one for one in self._group.others() if one.index == self._heir), None)
        if heir is not None:
            with anyio.move_on_after(seconds):
                await self._pass_connections_on()
        for server in self.servers:
            server.close()
        await self._end_requests(seconds, sockets)
        if heir is not None:
            await pass_sessions_on(self._group, heir)

    async def _pass_connections_on(self) -> None:
        """Give every connection back to the parent as soon as it has no request under way."""
        while len(self._connections):
            for protocol in list(self.server_state.connections):
                transport = getattr(protocol, "transport", None)
                client = getattr(protocol, "client", None)
                cycle = getattr(protocol, "cycle", None)
                idle = self._connections.idle(client) if client else None
                under_way = cycle is not None and not cycle.response_complete
                if idle is None or under_way or transport is None or transport.get_write_buffer_size():
                    continue
                with closing_handle(os.dup(idle.fileno())) as handle:
                    if not self._channel.give_back(handle):
                        return
                transport.close()
            await anyio.sleep(POLL_SECONDS)


@contextmanager
def closing_handle(handle: int) -> Iterator[int]:
    """A file descriptor that is closed at the end of the block."""
    try:
        yield handle
    finally:
        os.close(handle)
