"""Drives the pure MCP core for a client on the network: jobs in the server's threads, every message onto the
response it belongs to.

Everything here happens on the event loop's thread; a job's thread only hands over reports. The jobs of one
conversation run in the order they arrived, so that a client that stores something and then searches finds it;
those marked long run beside them, in lanes.py. A job lives in the task of the request that asked for it.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync

from vestige.core.caller import Caller
from vestige.core.errors import DeadlineExceeded, StoreError, TooLarge
from vestige.core.invocation import Invocation
from vestige.transports.http.context import Desk, ServerApplication
from vestige.transports.http.limits.fair_queue import OVERLOADED, HeldShare
from vestige.transports.http.limits.responses import NO_ROOM, SMALL_BYTES, check_size, check_texts, encoded
from vestige.transports.http.limits.worker_pool import Crowded, TooLate
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
from vestige.transports.mcp.workers import attempt

ROOTS_SECONDS = 2.0
"""How long calls wait for their client to say which folders it works in."""
RECHECK_SECONDS = 0.1
"""A call that had to wait longer than this for its turn is done only if its key still opens anything."""
MOST_UNFINISHED = 200
"""Calls of one conversation that wait or run."""

Report = Callable[[ClientConversation], list[Action]]
"""What a job has to say, put to the connection on the event loop's thread."""

Post = Callable[[Report], None]


class Exchange:
    """One request over HTTP: who sent it, what is to be sent back, and the tasks that live as long as it.

    `arrived` is when all of it was there; `give_place_back` is called when one of its calls begins to wait
    for others, and `recheck` says whether its key still opens anything. Its answers so far have `size` bytes,
    for which it has room in `unsent`. It is settled when all that it brought is answered or taken back; a
    client may be gone long before.
    """

    def __init__(
        self,
        caller: Caller,
        *,
        key: str,
        unsent: HeldShare,
        request_id: str,
        arrived: float,
        tasks: TaskGroup,
        give_place_back: Callable[[], None],
        recheck: Callable[[], bool],
    ) -> None:
        self.caller = caller
        self.key = key
        self.unsent = unsent
        self.request_id = request_id
        self.arrived = arrived
        self.tasks = tasks
        self.give_place_back = give_place_back
        self.recheck = recheck
        self.outbox = Outbox()
        self.size = 0
        self.settled = anyio.Event()


@dataclass(frozen=True, slots=True, kw_only=True)
class McpWork:
    """A job with all that is needed to do it, in a thread."""

    job: Job
    exchange: Exchange
    cancelled: threading.Event
    deadline: float
    post: Post


Run = Callable[[ServerApplication, McpWork], Outcome]


def run_job(app: ServerApplication, work: McpWork) -> Outcome:
    """Do a job with the application."""
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
        )
        return app.call_tool(invocation) if job.kind == TOOL else app.read_resource(invocation)

    return attempt(job, call)


class _Stop:
    """What ends a job: it looks at the signal while it runs, and leaves the scope while it waits to."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.waiting = anyio.CancelScope()

    def now(self) -> None:
        self.cancelled.set()
        self.waiting.cancel()


class Conversation:
    """One client's connection, and the requests that are being answered on it."""

    def __init__(self, desk: Desk, connection: ClientConversation, do: Run) -> None:
        self._desk = desk
        self._connection = connection
        self._do = do
        self._loop = asyncio.get_running_loop()
        self._order = anyio.Lock()
        self._stops: dict[Job, _Stop] = {}
        self._held: HoldJobs | None = None
        self._exchanges: list[Exchange] = []
        self.listener = Outbox()
        """What we have to say unasked."""
        self.listening = False
        """Whether a stream takes it to the client."""

    @property
    def busy(self) -> bool:
        """Whether somebody waits for an answer or listens."""
        return self.listening or bool(self._exchanges)

    def has_room_for(self, calls: int) -> bool:
        """Whether so many more may wait or run."""
        held = len(self._held.jobs) if self._held else 0
        return len(self._stops) + held + calls <= MOST_UNFINISHED

    def take(self, message: object, size: int, exchange: Exchange) -> None:
        """Take what a request brought; its outbox is closed once all of it is answered."""
        self._exchanges.append(exchange)
        self._act(self._connection.take(message, size, exchange))

    def leave(self, exchange: Exchange) -> None:
        """The client does not want the answers to this request any more."""
        self._act(self._connection.abandon(exchange))

    def end(self) -> None:
        """Stop everything."""
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
        """Have the client asked on this request's stream if none other takes the question to it."""
        self._held = hold
        exchange = hold.jobs[0].origin
        if isinstance(exchange, Exchange) and not self.listening:
            for message in self.listener.drain():
                exchange.outbox.put(message)
        self._loop.call_later(ROOTS_SECONDS, lambda: self._act(self._connection.overdue(hold)))

    def _start(self, job: Job) -> None:
        self._held = None  # what is held starts all at once, before anything else
        if isinstance(job.origin, Exchange):  # as all that this driver hands over
            self._stops[job] = _Stop()
            job.origin.tasks.start_soon(self._run, job, job.origin)

    async def _run(self, job: Job, exchange: Exchange) -> None:
        stop = self._stops[job]
        work = McpWork(
            job=job,
            exchange=exchange,
            cancelled=stop.cancelled,
            deadline=self._desk.deadline(exchange.arrived, long=job.long),
            post=self._post,
        )
        outcome: Outcome | None = None
        try:
            with stop.waiting:
                outcome = await self._outcome(work)
        finally:
            stop.cancelled.set()  # when the server gives up waiting, the thread shall not go on for nobody
            del self._stops[job]
        if outcome is not None:
            self._act(self._connection.finish(job, self._counted(outcome, exchange)))

    def _counted(self, outcome: Outcome, exchange: Exchange) -> Outcome:
        """What a job came to, if there is room for it until it is taken."""
        size = len(outcome.text) if isinstance(outcome, Done) and outcome.text else 0
        try:
            check_size(exchange.size + size, self._desk.most_answer)
        except TooLarge as error:
            return Failed(error.value())
        if size > SMALL_BYTES and not exchange.unsent.take(size):
            return _refused(NO_ROOM)
        exchange.size += size
        return outcome

    async def _outcome(self, work: McpWork) -> Outcome:
        if not work.job.long:
            if self._order.locked():
                work.exchange.give_place_back()
            async with self._order:
                return await self._done(work)
        work.exchange.give_place_back()  # it has threads of its own, and waits for them
        try:
            return await self._done(work)
        except TooLate:
            return Failed(DeadlineExceeded().value())
        except Crowded:
            return _refused(OVERLOADED)

    async def _done(self, work: McpWork) -> Outcome:
        key, long = work.exchange.key, work.job.long
        left = work.deadline - self._desk.monotonic()
        async with self._desk.lanes.turn(key, long=long, seconds=left) as threads:
            return await run_sync(self._checked, work, limiter=threads)

    def _checked(self, work: McpWork) -> Outcome:
        """Do a job in a thread, if who sent it still may when its turn comes."""
        waited = self._desk.monotonic() - work.exchange.arrived
        try:
            if waited > RECHECK_SECONDS and not work.exchange.recheck():
                return _refused(UNAUTHENTICATED)
        except StoreError:
            return _refused(STORE_AWAY)
        return _written(self._do(self._desk.app, work), self._desk.most_answer)

    def _post(self, report: Report) -> None:
        self._loop.call_soon_threadsafe(lambda: self._act(report(self._connection)))


def _refused(refusal: Refusal) -> Failed:
    return Failed({"code": refusal.code, "message": refusal.message, "hint": refusal.hint})


def _written(outcome: Outcome, most: int) -> Outcome:
    """The outcome with its text: to write that takes a while, and on the loop everybody else would wait."""
    if isinstance(outcome, Failed):
        return outcome
    try:
        check_texts(outcome.value, most)
        return Done(outcome.value, encoded(outcome.value).decode())
    except TooLarge as error:
        return Failed(error.value())
    except (ValueError, TypeError, RecursionError):  # the core says so
        return outcome
