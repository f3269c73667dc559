"""Keeps one `vestige-mcp` running: starts it, initializes it, and replaces it when it dies or hangs.

Only the supervisor's task starts processes, one after another, so there are never two. Calls wait for the
current one. When the process dies, a call under way is sent again, once, if that is harmless. When the
process was killed because it hung, no call is sent again: any of them may be the cause.

A process that did not answer a call in time is probed: it must answer a ping soon. Its calls run one after
another, so one that never ends blocks the others, while pings are still answered. So a small call is sent as
well, behind the others, with the same time limit as the call had. The process is replaced if no call was
answered in all that time. One that is slow with a single call, or is busy, is left alone. Long work runs
beside the other calls and is not considered.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count

from vestige import __version__
from vestige.transports.bridge.child import Child, ChildLost, Fault, Message

logger = logging.getLogger(__name__)

PROTOCOL_VERSION = "2025-11-25"
CLIENT = "vestige-bridge"
START_SECONDS = 60.0
LIST_SECONDS = 10.0
PROBE_SECONDS = 5.0
"""How long a process that did not answer a call may take to answer a ping."""
OPENING_SECONDS = 600.0
"""Time limit of calls until the first one is answered: the process may be migrating an old database."""
SMALL_CALL: tuple[str, Message] = ("memory", {"action": "get", "id": "00000000-0000-0000-0000-000000000000"})
"""A call that every `vestige-mcp` answers at once and that changes nothing: the memory does not exist."""
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
MAX_FAILED_STARTS = 2
"""Failed starts in a row before waiting calls fail."""


class ChildDown(Exception):
    """No process is running, and starting one fails."""


class NoAnswer(Exception):
    """The process did not answer in time."""


class Supervisor:
    """Runs the process behind the bridge and sends calls to it."""

    def __init__(self, command: Sequence[str], *, probe_seconds: float = PROBE_SECONDS) -> None:
        self._command = command
        self._probe_seconds = probe_seconds
        self._ids = count(1)
        self._current: asyncio.Future[Child] | None = None
        self._probes: dict[tuple[Child, str], asyncio.Task[None]] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep a process running while the block runs; it is stopped afterwards."""
        self._current = asyncio.get_running_loop().create_future()
        keeper = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            for task in (keeper, *self._probes.values()):
                task.cancel()
            await asyncio.gather(keeper, *self._probes.values(), return_exceptions=True)
            self._current.cancel()
            self._current = None

    @property
    def child(self) -> Child | None:
        current = self._current
        if current is None or not current.done() or current.cancelled() or current.exception():
            return None
        return None if current.result().lost.is_set() else current.result()

    async def call(
        self, tool: str, arguments: Message, *, seconds: float, again: bool, long: bool = False
    ) -> Message:
        """Call a tool and return its result. `again`: the call may be sent twice. `long`: it runs beside the
        others. ChildLost if the process died and the call may or may not have been carried out, NoAnswer on
        timeout, ChildDown if there is no process, Fault if the process refuses the call."""
        child = None
        try:
            async with asyncio.timeout(seconds):
                child = await self._live()
                try:
                    return await _ask(child, tool, arguments, long=long)
                except ChildLost:
                    if not again or child.hung:
                        raise
                child = await self._live()
                return await _ask(child, tool, arguments, long=long)
        except TimeoutError:
            if child is not None:
                self._ping(child)
            if child is not None and not long:
                self._ask_for_little(child, seconds)
            raise NoAnswer from None

    async def answers(self, seconds: float) -> bool:
        """Whether the process runs and answers. One that does not is probed."""
        child = self.child
        if child is None:
            return False
        try:
            async with asyncio.timeout(seconds):
                await child.request("ping", {})
        except (ChildLost, Fault):
            return False
        except TimeoutError:
            self._ping(child)
            return False
        return True

    async def _live(self) -> Child:
        while self._current is not None:
            # Shielded: a caller that stops waiting must not cancel it for the others.
            child = await asyncio.shield(self._current)
            if not child.lost.is_set():
                return child
            await asyncio.sleep(0)  # the supervisor has not noticed yet
        raise ChildDown

    async def _keep(self) -> None:
        failures = 0
        while True:
            try:
                child = await self._start()
            except (OSError, ChildLost, Fault, TimeoutError) as exc:
                failures += 1
                logger.error("vestige-mcp does not start: %s", str(exc) or type(exc).__name__)  # noqa: TRY400  the trace says nothing
                self._report_failure(failures)
            else:
                failures = 0 if await self._until_lost(child) else failures + 1
            if failures:
                await asyncio.sleep(min(FIRST_PAUSE_SECONDS * 2 ** (failures - 1), LONGEST_PAUSE_SECONDS))

    async def _until_lost(self, child: Child) -> bool:
        """Use the process for calls until it is lost; returns whether it answered any."""
        assert self._current is not None
        self._current.set_result(child)
        try:
            await child.lost.wait()
        finally:
            self._current = asyncio.get_running_loop().create_future()
            await child.stop()
        logger.warning("vestige-mcp (process %d) ended with %s%s", child.pid, child.exit_code, _said(child))
        return child.useful

    def _report_failure(self, failures: int) -> None:
        assert self._current is not None
        if failures >= MAX_FAILED_STARTS:
            self._current.set_exception(ChildDown())
            self._current.exception()  # read, so that asyncio does not log it if no call waits
            self._current = asyncio.get_running_loop().create_future()

    async def _start(self) -> Child:
        child = await Child.spawn(self._command, self._ids)
        try:
            async with asyncio.timeout(START_SECONDS):
                greeting = await child.request("initialize", _introduction())
            child.notify("notifications/initialized", {})
            await _log_tools(child, greeting)
        except BaseException:
            child.kill()
            await child.stop()
            logger.warning("vestige-mcp (process %d) did not start%s", child.pid, _said(child))
            raise
        return child

    def _ping(self, child: Child) -> None:
        self._probe(child, "ping", lambda: child.request("ping", {}), self._probe_seconds)

    def _ask_for_little(self, child: Child, seconds: float) -> None:
        allowed = seconds if child.answers else max(seconds, OPENING_SECONDS)
        self._probe(child, "call", lambda: _ask(child, *SMALL_CALL, long=False), allowed)

    def _probe(self, child: Child, kind: str, ask: Callable[[], Awaitable[Message]], seconds: float) -> None:
        """Probe a process, and kill it if it hangs. One probe at a time."""
        key = child, kind
        if key not in self._probes and not child.lost.is_set():
            task = self._probes[key] = asyncio.create_task(_examine(child, ask, seconds))
            task.add_done_callback(lambda _: self._probes.pop(key, None))


async def _ask(child: Child, tool: str, arguments: Message, *, long: bool) -> Message:
    result = await child.request("tools/call", {"name": tool, "arguments": arguments})
    child.useful = True
    child.answers += not long
    return result


async def _examine(child: Child, ask: Callable[[], Awaitable[Message]], seconds: float) -> None:
    before = child.answers
    try:
        async with asyncio.timeout(seconds):
            await ask()
    except TimeoutError:
        if child.answers == before:
            logger.warning("vestige-mcp (process %d) hangs and is replaced", child.pid)
            child.hung = True
            child.kill()
    except (ChildLost, Fault):
        return  # the process is gone, or it answers


async def _log_tools(child: Child, greeting: Message) -> None:
    """Log the tools of the process. One that cannot list them may work all the same."""
    server = greeting.get("serverInfo")
    try:
        async with asyncio.timeout(LIST_SECONDS):
            listed = (await child.request("tools/list", {})).get("tools")
    except (TimeoutError, Fault) as exc:
        logger.warning("vestige-mcp does not list its tools: %s", str(exc) or type(exc).__name__)
        return
    names = [str(tool.get("name")) for tool in listed] if isinstance(listed, list) else []
    logger.info("vestige-mcp (process %d, %s) has the tools %s", child.pid, server, ", ".join(names))


def _said(child: Child) -> str:
    return f"; it said: {child.last_words}" if child.last_words else ""


def _introduction() -> Message:
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "capabilities": {},
        "clientInfo": {"name": CLIENT, "version": __version__},
    }
