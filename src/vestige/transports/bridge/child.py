"""One life of a `vestige-mcp` process: JSON lines out and in, answers matched to requests by id.

Lines may have any length, so they are cut here: asyncio's own reader gives up at 64 KiB. Whatever the process
writes to standard error is read all the time, or it would block when the pipe is full.
"""

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
"""How long a process may take to finish what it has begun when its input is closed."""
TERMINATE_SECONDS = 5.0
READ_SECONDS = 1.0
"""How long what a dead process wrote may take to be read."""
METHOD_NOT_FOUND = -32601


class ChildLost(Exception):
    """The process ended, or was ended, before it answered."""


class Fault(Exception):
    """The process answered with an error of the protocol."""


class Child:
    """A running process. Made by `spawn`; to be stopped."""

    def __init__(self, process: Process, ids: Iterator[int]) -> None:
        self._process, self._ids = process, ids
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self.lost = asyncio.Event()
        """Set when it will answer nothing more."""
        self.useful = False
        """Whether it has answered a tool call: one that never does is not worth starting again at once."""
        self.answers = 0
        """How many tool calls it has answered of those that wait for each other."""
        self.hung = False
        """Whether it was ended because it hung."""
        self._said: deque[str] = deque(maxlen=LAST_LINES)
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._drain())]

    @classmethod
    async def spawn(cls, command: Sequence[str], ids: Iterator[int]) -> "Child":
        """Start the process; OSError if that cannot be done. `ids` number the requests."""
        # A session of its own: Ctrl-C is for the bridge, which then lets the process finish.
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=CHUNK_BYTES, start_new_session=True
        )
        return cls(process, ids)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """What it ended with; None while it runs."""
        return self._process.returncode

    @property
    def last_words(self) -> str:
        """The end of what it wrote to standard error."""
        return "\n".join(self._said)

    # -- requests --------------------------------------------------------------------------------

    async def request(self, method: str, params: Message) -> Message:
        """Ask, and wait for the result; ChildLost or Fault without one.

        Whoever stops waiting, because time is up, takes the request back with it.
        """
        if self.lost.is_set():
            raise ChildLost
        number, answer = next(self._ids), asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            await self._written()
            result: Message = await answer
        except asyncio.CancelledError:
            self.notify("notifications/cancelled", {"requestId": number, "reason": "nobody waits any more"})
            raise
        finally:
            del self._waiting[number]
            if answer.done() and not answer.cancelled():
                answer.exception()  # asked for: whoever could not even write does not wait for it
        return result

    def notify(self, method: str, params: Message) -> None:
        """Tell something that needs no answer."""
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    def _write(self, message: Message) -> None:
        assert self._process.stdin is not None
        if not self.lost.is_set():
            self._process.stdin.write(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))

    async def _written(self) -> None:
        """Wait while the process takes less than it is told."""
        assert self._process.stdin is not None
        try:
            await self._process.stdin.drain()
        except OSError:
            raise ChildLost from None

    # -- what comes back -------------------------------------------------------------------------

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
            logger.debug("vestige-mcp wrote a line that is no JSON (%d bytes)", len(line))
            return
        if not isinstance(message, dict):
            return
        if "method" in message:
            self._refuse(message)
            return
        number = message.get("id")
        answer = self._waiting.get(number) if isinstance(number, int) else None
        if answer is None or answer.done():
            return  # nobody waits for it any more
        result = message.get("result")
        if isinstance(result, dict):
            answer.set_result(result)
        else:
            answer.set_exception(Fault(_reason(message.get("error"))))

    def _refuse(self, message: Message) -> None:
        """The process asks or tells us something, though we offer nothing."""
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

    # -- the end ---------------------------------------------------------------------------------

    def kill(self) -> None:
        """End the process at once."""
        self._lose()  # its last words would be answers that nobody should get
        with suppress(ProcessLookupError):
            self._process.kill()

    async def stop(self) -> None:
        """End the process: ask it, tell it, then make it. It is gone afterwards, and so are its pipes."""
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
    """The lines of a stream. What is longer than `most_bytes` is cut there."""
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
    return str(error.get("message")) if isinstance(error, dict) else "an answer without a result"
