"""One `vestige-mcp` process: JSON lines in both directions, responses matched to requests by id. Lines may
have any length, so they are split here: asyncio's reader stops at 64 KiB. Standard error of the process is
read all the time, or the process would block when the pipe is full."""

import asyncio
import logging
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress

import orjson

logger = logging.getLogger(__name__)

Message = dict[str, object]

CHUNK_BYTES = 1 << 18
LAST_LINES = 10
MAX_LOGGED_BYTES = 8_192
"""Most bytes of one line of standard error that are logged."""
CLOSE_SECONDS = 10.0
"""How long a process may take to finish its work when its input is closed."""
TERMINATE_SECONDS = 5.0
READ_SECONDS = 1.0
"""How long reading the output of an ended process may take."""
METHOD_NOT_FOUND = -32601


class ChildLost(Exception):
    """The process ended, or was killed, before it answered."""


class Fault(Exception):
    """The process answered with a protocol error."""


class Child:
    """A running process. Created by `spawn`; must be stopped."""

    def __init__(self, process: Process, ids: Iterator[int]) -> None:
        self._process, self._ids = process, ids
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self.lost = asyncio.Event()
        """Set when the process answers no more."""
        self.useful = False
        """Whether the process has answered a tool call. One that never did is not restarted at once."""
        self.answers = 0
        """The number of answered tool calls of those that run one after another."""
        self.hung = False
        """Whether the process was killed because it hung."""
        self._said: deque[str] = deque(maxlen=LAST_LINES)
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._drain())]

    @classmethod
    async def spawn(cls, command: Sequence[str], ids: Iterator[int]) -> "Child":
        """Start the process; OSError if that cannot be done. `ids` number the requests."""
        # Its own session: Ctrl-C goes to the bridge, which then lets the process finish.
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=CHUNK_BYTES, start_new_session=True
        )
        return cls(process, ids)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while the process runs."""
        return self._process.returncode

    @property
    def last_words(self) -> str:
        """The last lines of standard error."""
        return "\n".join(self._said)

    async def request(self, method: str, params: Message) -> Message:
        """Send a request and wait for its result; ChildLost or Fault without one. A caller that stops
        waiting cancels the request."""
        if self.lost.is_set():
            raise ChildLost
        number, answer = next(self._ids), asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            await self._written()
            result: Message = await answer
        except asyncio.CancelledError:
            self.notify(
                "notifications/cancelled", {"requestId": number, "reason": "the client stopped waiting"}
            )
            raise
        finally:
            del self._waiting[number]
            if answer.done() and not answer.cancelled():
                answer.exception()  # read, so that asyncio does not log it as lost
        return result

    def notify(self, method: str, params: Message) -> None:
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    def _write(self, message: Message) -> None:
        assert self._process.stdin is not None
        if not self.lost.is_set():
            self._process.stdin.write(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))

    async def _written(self) -> None:
        """Wait until the process has read what was written."""
        assert self._process.stdin is not None
        try:
            await self._process.stdin.drain()
        except OSError:
            raise ChildLost from None

    async def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            async for line in _lines(self._process.stdout):
                self._take(line)
        finally:
            self._lose()

    def _take(self, line: bytes) -> None:
        try:
            message = orjson.loads(line) if line.strip() else None
        except ValueError:
            logger.debug("vestige-mcp wrote a line that is not JSON (%d bytes)", len(line))
            return
        if not isinstance(message, dict):
            return
        if "method" in message:
            self._refuse(message)
            return
        number = message.get("id")
        answer = self._waiting.get(number) if isinstance(number, int) else None
        if answer is None or answer.done():
            return  # the client has stopped waiting
        result = message.get("result")
        if isinstance(result, dict):
            answer.set_result(result)
        else:
            answer.set_exception(Fault(_reason(message.get("error"))))

    def _refuse(self, message: Message) -> None:
        """Refuse requests of the process: the bridge offers no client features."""
        if "id" in message:
            error = {"code": METHOD_NOT_FOUND, "message": "The bridge answers no requests."}
            self._write({"jsonrpc": "2.0", "id": message["id"], "error": error})

    def _lose(self) -> None:
        self.lost.set()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ChildLost())

    async def _drain(self) -> None:
        assert self._process.stderr is not None
        async for line in _lines(self._process.stderr, MAX_LOGGED_BYTES):
            self._said.append(line.decode("utf-8", "replace").rstrip())
            logger.debug("vestige-mcp: %s", self._said[-1])

    def kill(self) -> None:
        self._lose()  # responses after this must not reach clients
        with suppress(ProcessLookupError):
            self._process.kill()

    async def stop(self) -> None:
        """End the process: close its input, then terminate, then kill it. Its pipes are closed afterwards."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        for seconds, harder in (
            (CLOSE_SECONDS, self._process.terminate),
            (TERMINATE_SECONDS, self._process.kill),
        ):
            if await self._ended(seconds):
                break
            with suppress(ProcessLookupError):
                harder()
        await self._ended(TERMINATE_SECONDS)
        await asyncio.wait(self._tasks, timeout=READ_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._lose()

    async def _ended(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()
        return self._process.returncode is not None


async def _lines(stream: asyncio.StreamReader, most_bytes: int | None = None) -> AsyncIterator[bytes]:
    """The lines of a stream, truncated to `most_bytes`."""
    parts: list[bytes] = []
    size = 0
    while chunk := await stream.read(CHUNK_BYTES):
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            yield b"".join([*parts, line])[:most_bytes]
            parts.clear()
            size = 0
        if most_bytes is None or size < most_bytes:
            parts.append(rest)
            size += len(rest)
    if parts:
        yield b"".join(parts)[:most_bytes]


def _reason(error: object) -> str:
    return str(error.get("message")) if isinstance(error, dict) else "a response without a result"
