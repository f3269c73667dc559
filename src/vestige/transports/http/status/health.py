"""Health checks: `/health` (the process answers) and `/readyz` (the store answers). Neither needs a key.

A process that acknowledges no more writes until it is restarted fails both. A server of several workers names
the state of each; whichever is asked, `/health` fails if one of them acknowledges no more writes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from vestige import __version__
from vestige.core.errors import VestigeError
from vestige.transports.http.context import ServerContext
from vestige.transports.http.workers.group import BEAT_SECONDS, WorkerGroup
from vestige.transports.http.workers.table import WorkerState

NO_WRITES = WorkerState.NO_WRITES.name.lower()
ANSWER_SECONDS = 2.0
"""How long the store may take to answer."""
FRESH_SECONDS = 1.0
"""How long a result is reused: every client may ask, and must not keep the store busy."""


class Readiness:
    """Whether the store answers."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        # Its own thread: the check must work when all others are busy.
        self._thread = anyio.CapacityLimiter(1)
        self._asking = False
        self._ready, self._asked_at = False, float("-inf")

    async def ready(self) -> bool:
        if self._context.stopping.is_set():
            return False
        if self._asking or self._context.monotonic() - self._asked_at < FRESH_SECONDS:
            return self._ready
        self._asking = True
        with anyio.move_on_after(ANSWER_SECONDS) as waiting:
            await run_sync(self._ask, limiter=self._thread, abandon_on_cancel=True)
        if waiting.cancelled_caught:
            self._ready = False
        return self._ready

    async def beat_on(self, group: WorkerGroup) -> None:
        """Tell the parent and the other workers how this one is."""
        while True:
            ready = await self.ready()
            if self._context.stopping.is_set():
                state = WorkerState.DRAINING
            elif self._context.app.engine.store.write_failure is not None:
                state = WorkerState.NO_WRITES
            else:
                state = WorkerState.SERVING if ready else WorkerState.STORE_AWAY
            group.beat(state)
            await anyio.sleep(BEAT_SECONDS)

    def _ask(self) -> None:
        try:
            store = self._context.app.engine.store
            store.claimed("readyz")  # an index lookup that finds nothing
            self._ready = store.write_failure is None
        except VestigeError:
            self._ready = False
        finally:
            self._asked_at = self._context.monotonic()
            self._asking = False


def routes(context: ServerContext) -> list[BaseRoute]:
    """The routes of both, and older names of `/health`."""
    readiness, group = Readiness(context), context.group

    def workers() -> dict[str, dict[str, str]]:
        return {"workers": group.states()} if group else {}

    @asynccontextmanager
    async def beating() -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            if group:
                tasks.start_soon(readiness.beat_on, group)
            yield
            tasks.cancel_scope.cancel()

    if group:
        context.owned.append(beating)

    async def health(request: Request) -> Response:
        states = workers()
        writes = context.app.engine.store.write_failure is None  # known without asking the store
        writes = writes and NO_WRITES not in states.get("workers", {}).values()
        status = {"status": "ok" if writes else "degraded", "version": __version__, **states}
        return JSONResponse(status, status_code=200 if writes else 503)

    async def readyz(request: Request) -> Response:
        ready = await readiness.ready()
        status = {"status": "ready" if ready else "unavailable", "version": __version__, **workers()}
        return JSONResponse(status, status_code=200 if ready else 503)

    paths = ("/health", "/api/health", "/api/v1/health")
    return [*(Route(path, health, methods=["GET"]) for path in paths), Route("/readyz", readyz)]
