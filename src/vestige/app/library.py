"""Vestige inside a Python program, without a server: `Memory` and `AsyncMemory`.

Both inherit the generated methods of `vestige.client`, so a program can change between a memory of its own
and a server by changing one line. A method runs its operation through the registry, like every transport.
"""

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from vestige.app.app import App, open_library
from vestige.app.blas import BLAS
from vestige.client.async_operations import AsyncOperations
from vestige.client.connection import as_json
from vestige.client.operations import Operations
from vestige.client.part import given_arguments
from vestige.core.caller import LOCAL_USER, Caller, CancelSignal, Invocation, NeverCancelled, narrowed
from vestige.core.clock import Clock
from vestige.core.errors import ConfigError, Forbidden, StoreError
from vestige.core.models import check_label

IN_MEMORY = ":memory:"
"""As the data directory: a store without a file, which ends with the process. SQLite has the same name for
it."""
ASYNC_THREADS = 8
"""Calls of an `AsyncMemory` that run at once; further ones wait for their turn."""

OpenApp = Callable[[], App]


class Memory(Operations):
    """A memory in this process. Any number of threads may use it. Close it, or use it as a context.

    `data_dir` is the directory of its files, by default the one that the command `vestige` uses; several
    processes may use the same one. `":memory:"` keeps nothing. `database_url` is a PostgreSQL server instead.
    `scope` and `domain` narrow everything to a part of the store. `settings` are further settings by their
    dotted names, such as `{"embeddings.provider": "off"}`; they win over `vestige.toml` and the environment.
    """

    def __init__(
        self,
        data_dir: str | Path | None = None,
        *,
        database_url: str | None = None,
        scope: str | None = None,
        domain: str | None = None,
        settings: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
    ) -> None:
        options = store_options(data_dir, database_url, settings)
        caller = narrowed_user(LOCAL_USER, scope, domain)
        self._opened = OpenedApp(partial(open_library, options, clock=clock))
        self._opened.app()
        self._caller = caller
        super().__init__(LocalChannel(self._opened, caller))

    def within(self, scope: str | None = None, *, domain: str | None = None) -> Operations:
        """The same memory, narrowed to a scope or domain, for one user or project of your program: what it
        stores goes there, and it sees nothing else. A memory that is narrowed itself can only be narrowed
        further. It closes with this memory."""
        return Operations(LocalChannel(self._opened, narrowed_user(self._caller, scope, domain)))

    def close(self) -> None:
        """Finish the calls of other threads and what runs in the background, and close the store. A call
        after this is refused. Closing twice does nothing."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncMemory(AsyncOperations):
    """A memory in this process for programs with an asyncio event loop. Its arguments are those of `Memory`,
    and its methods have the same names and are awaited. The store is opened by the first call, and all work
    is done in threads. A call that is cancelled stops as soon as it can. Close it, or use it as an
    asynchronous context.
    """

    def __init__(
        self,
        data_dir: str | Path | None = None,
        *,
        database_url: str | None = None,
        scope: str | None = None,
        domain: str | None = None,
        settings: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
    ) -> None:
        options = store_options(data_dir, database_url, settings)
        caller = narrowed_user(LOCAL_USER, scope, domain)
        self._opened = OpenedApp(partial(open_library, options, clock=clock))
        self._threads = ThreadPoolExecutor(ASYNC_THREADS, thread_name_prefix="vestige-memory")
        self._caller = caller
        super().__init__(AsyncLocalChannel(LocalChannel(self._opened, caller), self._threads))

    def within(self, scope: str | None = None, *, domain: str | None = None) -> AsyncOperations:
        """As `Memory.within`."""
        caller = narrowed_user(self._caller, scope, domain)
        return AsyncOperations(AsyncLocalChannel(LocalChannel(self._opened, caller), self._threads))

    async def close(self) -> None:
        """As `Memory.close`; calls that were made before it are finished."""
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        self._opened.close()
        self._threads.shutdown()

    async def __aenter__(self) -> Self:
        await asyncio.get_running_loop().run_in_executor(self._threads, self._opened.app)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class OpenedApp:
    """An app that is opened once, when it is first asked for, and closed once: by `close`, when it is no
    longer used, or when the program ends."""

    def __init__(self, open_app: OpenApp) -> None:
        self._open = open_app
        self._lock = threading.Condition()
        self._calls = 0
        self._app: App | None = None
        self._closing: weakref.finalize[[int, App], OpenedApp] | None = None
        self._process = os.getpid()
        self._closed = False

    def require_open(self) -> None:
        """Raise StoreError if it was closed, or opened before a fork."""
        self._require_process()
        if self._closed:
            raise StoreError("This memory is closed.", hint="Open it again.")

    def _require_process(self) -> None:
        if os.getpid() != self._process:
            # Its connections and locks are those of the parent.
            raise StoreError(
                "This memory was opened by another process.", hint="Open one in each process, after the fork."
            )

    @contextmanager
    def call(self) -> Iterator[None]:
        """A call, which `close` waits for. A part of a call that has begun is let in while it waits."""
        with self._lock:
            self._require_open_or_begun()
            self._calls += 1
        try:
            yield
        finally:
            with self._lock:
                self._calls -= 1
                self._lock.notify_all()

    def _require_open_or_begun(self) -> None:
        self._require_process()
        if not self._calls:
            self.require_open()

    def app(self) -> App:
        with self._lock:
            self._require_open_or_begun()
            if self._app is None:
                self._app = self._open()
                self._closing = weakref.finalize(self, _close_in, self._process, self._app)
            return self._app

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._lock.wait_for(lambda: not self._calls)
            self._app, closing = None, self._closing
        if closing is not None:
            closing()


def _close_in(process: int, app: App) -> None:
    """Close an app, unless this is a fork of its process, which must leave it alone."""
    if os.getpid() == process:
        app.close()


class LocalChannel:
    """Runs the operations of an app for a caller."""

    def __init__(self, opened: OpenedApp, caller: Caller) -> None:
        self.opened = opened
        self._caller = caller

    def ask(self, operation: str, arguments: Mapping[str, Any]) -> Any:  # JSON, as of a server
        self.opened.require_open()
        return self.run(operation, given_arguments(arguments), NeverCancelled())

    def run(self, operation: str, given: Mapping[str, Any], cancelled: CancelSignal) -> Any:
        # Through JSON, so that an argument means the same here and on a server.
        sent = orjson.loads(as_json(given))
        with self.opened.call(), BLAS.one_thread():
            return self.opened.app().call_operation(
                Invocation(
                    name=operation, arguments=sent, caller=self._caller, cancelled=cancelled, local=True
                )
            )


class AsyncLocalChannel:
    """Runs the operations of a channel in threads."""

    def __init__(self, channel: LocalChannel, threads: ThreadPoolExecutor) -> None:
        self._channel = channel
        self._threads = threads

    async def ask(self, operation: str, arguments: Mapping[str, Any]) -> Any:  # as in LocalChannel
        self._channel.opened.require_open()
        cancelled = threading.Event()
        work = partial(self._channel.run, operation, given_arguments(arguments), cancelled)
        try:
            with self._channel.opened.call():
                return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except asyncio.CancelledError:
            cancelled.set()
            raise


def store_options(
    data_dir: str | Path | None, database_url: str | None, settings: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The settings that the arguments of a memory mean."""
    options = dict(settings or {})
    if database_url is not None:
        if data_dir is not None and str(data_dir) == IN_MEMORY:
            raise ConfigError('Give either `database_url` or ":memory:".', hint="Leave one of them out.")
        options |= {"storage.backend": "postgres", "storage.postgres.url": database_url}
    if data_dir is not None and str(data_dir) == IN_MEMORY:
        options["storage.backend"] = "memory"
    elif data_dir is not None:
        options["data_dir"] = str(data_dir)
    return options


def narrowed_user(user: Caller, scope: str | None, domain: str | None) -> Caller:
    """The user with access to a scope and a domain only, as a server narrows a key."""
    if scope is None and domain is None:
        return user
    if domain is not None:
        check_label("domain", domain)
    return narrowed(user, scope, domain, _outside)


def _outside(what: str) -> Forbidden:
    return Forbidden(
        f"This memory is narrowed to another {what}.",
        hint=f"Name a {what} within it, or open a memory that is not narrowed.",
        details={"argument": what},
    )
