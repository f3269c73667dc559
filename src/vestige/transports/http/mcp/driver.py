"""Runs the MCP core for clients on the network: jobs in threads, every message on the response it belongs
to.

Everything here happens on the event loop's thread; the thread of a job only passes reports to it. The jobs
of one conversation run in the order they arrived, so that a client that stores something and then searches
finds it. Long jobs run beside them (`worker_pool`). A job belongs to the task of the request that sent it.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import field
from typing import Any

import anyio
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync

from vestige.core.caller import Caller, Invocation
from vestige.core.errors import DeadlineExceeded, StoreError, TooLarge
from vestige.core.lazy_dataclass import dataclass
from vestige.transports.http.context import ServerContext
from vestige.transports.http.limits.fair_queue import OVERLOADED, Reservation
from vestige.transports.http.limits.responses import NO_ROOM, SMALL_BYTES, check_size, check_texts, encoded
from vestige.transports.http.limits.worker_pool import PoolFull, PoolTimeout
from vestige.transports.http.mcp.streams import Outbox
from vestige.transports.http.problems import STORE_AWAY, UNAUTHENTICATED, Refusal
from vestige.transports.mcp.protocol.core import ClientConversation
from vestige.transports.mcp.protocol.messages import (
    TOOL,
    Action,
    Cancel,
    Done,
    Failed,
    HoldJobs,
    Job,
    Outcome,
    Send,
    Start,
)
from vestige.transports.mcp.service import ServerApplication
from vestige.transports.mcp.workers import attempt

ROOTS_SECONDS = 2.0
"""How long calls wait for the client to list its root folders."""
RECHECK_SECONDS = 0.1
"""The key of a call that waited longer than this is checked again before it runs."""
MAX_UNFINISHED = 200
"""Most calls of one conversation that wait or run."""

Report = Callable[[ClientConversation], list[Action]]
"""A report of a job, given to the connection on the event loop's thread."""

Post = Callable[[Report], None]


@dataclass(eq=False, slots=True, kw_only=True)
class Exchange:
    """One HTTP request: its sender, the messages to send back, and its tasks.

    `arrived` is when the whole request had been received. `release_slot` is called when one of its calls
    begins to wait; `recheck` returns whether its key is still valid. Its responses so far have `size` bytes,
    reserved in `unsent`. It is settled when everything in it is answered or cancelled, which may be long
    after the client has disconnected.
    """

    caller: Caller
    key: str
    unsent: Reservation
    request_id: str
    arrived: float
    tasks: TaskGroup
    release_slot: Callable[[], None]
    recheck: Callable[[], bool]
    outbox: Outbox = field(default_factory=Outbox)
    size: int = 0
    settled: anyio.Event = field(default_factory=anyio.Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpWork:
    """A job with everything it needs to run in a thread."""

    job: Job
    exchange: Exchange
    cancelled: threading.Event
    deadline: float
    post: Post


Run = Callable[[ServerApplication, McpWork], Outcome]


def run_job(app: ServerApplication, work: McpWork) -> Outcome:
    job, exchange = work.job, work.exchange

    def progress(value: float, total: float | None = None, message: str | None = None) -> None:
        work.post(lambda connection: connection.progress(job, value, total, message))

    def call(job: Job) -> dict[str, object]:
        invocation = Invocation(
            name=job.name,
            arguments=job.arguments,
            caller=exchange.caller,
            request_id=exchange.request_id,
            progress=progress,
            cancelled=work.cancelled,
            deadline=work.deadline,
            roots=job.roots,
            client=job.client,
        )
        return app.call_tool(invocation) if job.kind == TOOL else app.read_resource(invocation)

    return attempt(job, call)


class _Stop:
    """Stops a job: sets the signal that it checks while it runs, and cancels the scope while it waits."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.waiting = anyio.CancelScope()

    def now(self) -> None:
        self.cancelled.set()
        self.waiting.cancel()


class Conversation:
    """The connection of one client, and its requests under way."""

    def __init__(self, context: ServerContext, connection: ClientConversation, do: Run) -> None:
        self._context = context
        self._connection = connection
        self._do = do
        self._loop = asyncio.get_running_loop()
        self._order = anyio.Lock()
        self._stops: dict[Job, _Stop] = {}
        self._held: HoldJobs | None = None
        self._exchanges: list[Exchange] = []
        self.listener = Outbox()
        """Messages that answer no request."""
        self.listening = False
        """Whether a stream delivers them."""

    def state(self) -> dict[str, Any]:
        """What another process needs to go on with this client."""
        return self._connection.state()

    @property
    def busy(self) -> bool:
        """Whether requests are under way or a stream is open."""
        return self.listening or bool(self._exchanges)

    def has_room_for(self, calls: int) -> bool:
        """Whether this number of further calls may wait or run."""
        held = len(self._held.jobs) if self._held else 0
        return len(self._stops) + held + calls <= MAX_UNFINISHED

    def take(self, message: object, size: int, exchange: Exchange) -> None:
        """Handle the messages of a request; its outbox is closed once all of them are answered."""
        self._exchanges.append(exchange)
        self._act(self._connection.take(message, size, exchange))

    def leave(self, exchange: Exchange) -> None:
        """Cancel the calls of a request whose client has disconnected."""
        self._act(self._connection.abandon(exchange))

    def end(self) -> None:
        for exchange in list(self._exchanges):
            self.leave(exchange)
        self.listener.close()

    def _act(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                (action.origin.outbox if isinstance(action.origin, Exchange) else self.listener).put(
                    action.message
                )
            elif isinstance(action, Start):
                self._start(action.job)
            elif isinstance(action, Cancel):
                if stop := self._stops.get(action.job):
                    stop.now()
            else:
                self._hold(action)
        for exchange in [one for one in self._exchanges if not self._connection.serves(one)]:
            self._exchanges.remove(exchange)
            exchange.outbox.close()
            exchange.settled.set()

    def _hold(self, hold: HoldJobs) -> None:
        """Send a question to the client on the stream of this request, if no other stream is open."""
        self._held = hold
        exchange = hold.jobs[0].origin
        if isinstance(exchange, Exchange) and not self.listening:
            for message in self.listener.drain():
                exchange.outbox.put(message)
        self._loop.call_later(ROOTS_SECONDS, lambda: self._act(self._connection.overdue(hold)))

    def _start(self, job: Job) -> None:
        self._held = None  # held jobs start together, before any other
        if isinstance(job.origin, Exchange):  # as every job of this driver
            self._stops[job] = _Stop()
            job.origin.tasks.start_soon(self._run, job, job.origin)

    async def _run(self, job: Job, exchange: Exchange) -> None:
        stop = self._stops[job]
        work = McpWork(
            job=job,
            exchange=exchange,
            cancelled=stop.cancelled,
            deadline=self._context.deadline(exchange.arrived, long=job.long),
            post=self._post,
        )
        outcome: Outcome | None = None
        try:
            with stop.waiting:
                outcome = await self._outcome(work)
        finally:
            stop.cancelled.set()  # when the server stops waiting, the thread must stop too
            del self._stops[job]
        if outcome is not None:
            self._act(self._connection.finish(job, self._counted(outcome, exchange)))

    def _counted(self, outcome: Outcome, exchange: Exchange) -> Outcome:
        """The outcome of a job, if there is room for it until the client has read it."""
        size = len(outcome.text) if isinstance(outcome, Done) and outcome.text else 0
        try:
            check_size(exchange.size + size, self._context.most_answer)
        except TooLarge as error:
            return Failed(error.value())
        if size > SMALL_BYTES and not exchange.unsent.take(size):
            return _refused(NO_ROOM)
        exchange.size += size
        return outcome

    async def _outcome(self, work: McpWork) -> Outcome:
        if not work.job.long:
            if self._order.locked():
                work.exchange.release_slot()
            async with self._order:
                return await self._done(work)
        work.exchange.release_slot()  # long work waits for threads of its own
        try:
            return await self._done(work)
        except PoolTimeout:
            return Failed(DeadlineExceeded().value())
        except PoolFull:
            return _refused(OVERLOADED)

    async def _done(self, work: McpWork) -> Outcome:
        key, long = work.exchange.key, work.job.long
        left = work.deadline - self._context.monotonic()
        async with self._context.pools.turn(key, long=long, seconds=left) as threads:
            return await run_sync(self._checked, work, limiter=threads)

    def _checked(self, work: McpWork) -> Outcome:
        """Run a job in a thread, if its key is still valid when its turn comes."""
        waited = self._context.monotonic() - work.exchange.arrived
        try:
            if waited > RECHECK_SECONDS and not work.exchange.recheck():
                return _refused(UNAUTHENTICATED)
        except StoreError:
            return _refused(STORE_AWAY)
        return _written(self._do(self._context.app, work), self._context.most_answer)

    def _post(self, report: Report) -> None:
        self._loop.call_soon_threadsafe(lambda: self._act(report(self._connection)))


def _refused(refusal: Refusal) -> Failed:
    return Failed({"code": refusal.code, "message": refusal.message, "hint": refusal.hint})


def _written(outcome: Outcome, most: int) -> Outcome:
    """The outcome with its text, encoded in the thread of the job: on the event loop it would block other
    requests."""
    if isinstance(outcome, Failed):
        return outcome
    try:
        check_texts(outcome.value, most)
        return Done(outcome.value, encoded(outcome.value).decode())
    except TooLarge as error:
        return Failed(error.value())
    except (ValueError, TypeError, RecursionError):  # the core reports it
        return outcome
