"""MCP over stdin and stdout: the driver of the protocol core, and the console script `vestige-mcp`.

One thread owns the connection and all writing: it takes lines, reports of jobs and signals from one inbox, in
order. So no lock is needed and no reply can overtake a cancellation. A second thread reads stdin; jobs run in
`workers`.

At the end (stdin closed, SIGTERM, SIGINT, or a client that no longer reads) no new lines are taken, all
accepted jobs are finished and answered, and the application is closed. If the client went away, there is no
time limit: an accepted write is not lost. Only after a signal are jobs abandoned that report nothing for
`GRACE_SECONDS`; the exit code is then 1. A second signal ends the process at once.

Calls that arrive before the client's answer about its roots wait at most `ROOTS_SECONDS`, while the
application opens.
"""

import os
import signal
import sys
import threading
from queue import Empty, SimpleQueue
from time import monotonic

from vestige import __version__
from vestige.transports.mcp import catalog
from vestige.transports.mcp.options import USAGE, UsageError, parse_options
from vestige.transports.mcp.protocol.core import ClientConversation
from vestige.transports.mcp.protocol.jsonrpc import encode
from vestige.transports.mcp.protocol.messages import Action, Cancel, HoldJobs, Send, Start
from vestige.transports.mcp.workers import Finished, Progressed, Workers

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing (3 ms)
if TYPE_CHECKING:
    from collections.abc import Callable
    from io import FileIO
    from types import FrameType

    from vestige.transports.mcp.service import OpenApp, Service

GRACE_SECONDS = 10.0
ROOTS_SECONDS = 2.0
CLOSE_SECONDS = 1.0
ABANDONED = 1
"""Exit code if accepted jobs were left unfinished."""
MISUSED = 2
"""Exit code for an invalid command line, like `vestige` and most programs."""

GREETED_SECONDS = 0.5
LISTED_SECONDS = 0.05
_CHUNK_BYTES = 1 << 16


class Stop:
    """Why the conversation ends: a signal's number, or 0 if the client went away."""

    def __init__(self, number: int) -> None:
        self.signal = number


Inbox = SimpleQueue[bytes | Progressed | Finished | Stop]


class StdioServer:
    """Serves one client on two unbuffered binary streams until it goes away."""

    def __init__(
        self,
        stdin: "FileIO",
        stdout: "FileIO",
        open_app: "OpenApp",
        tools: catalog.Catalog | None = None,
        grace_seconds: float = GRACE_SECONDS,
        roots_seconds: float = ROOTS_SECONDS,
    ) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._connection = ClientConversation(tools or catalog.packaged(), __version__)
        self._inbox: Inbox = SimpleQueue()
        self._workers = Workers(open_app, self._inbox.put)
        self._grace_seconds = grace_seconds
        self._roots_seconds = roots_seconds
        self._hold: HoldJobs | None = None
        self._hold_ends = 0.0
        self._warm = False
        self._broken = False
        self._abandoned = False
        self._stopped: Stop | None = None

    def stop(self, number: int = 0) -> None:
        """Ask the server to stop. Safe in a signal handler."""
        self._inbox.put(Stop(number))

    def run(self) -> tuple[int, bool]:
        """Serve until the end; returns the exit code, and whether all threads ended."""
        threading.Thread(target=self._read, name="vestige-stdin", daemon=True).start()
        while self._stopped is None:
            try:
                self._take(self._inbox.get(timeout=self._patience()))
            except Empty:
                if self._hold is not None:
                    self._start_held()
                else:
                    self.warm_up()
        self._start_held()  # no answer about roots will come any more
        cause = self._drain(self._stopped)
        clean = self._workers.close(CLOSE_SECONDS)
        if self._abandoned:
            return ABANDONED, clean
        return 128 + cause if cause == signal.SIGINT else 0, clean

    # -- Inbox

    def _read(self) -> None:
        """Split stdin into lines of any size. A last line without a newline counts."""
        parts: list[bytes] = []
        while self._stopped is None and (chunk := self._chunk()):
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                self._inbox.put(b"".join([*parts, line]))
                parts.clear()
            parts.append(rest)
        self._inbox.put(b"".join(parts))
        self._inbox.put(Stop(0))

    def _chunk(self) -> bytes | None:
        try:
            return self._stdin.read(_CHUNK_BYTES)
        except (OSError, ValueError):  # the terminal or socket is gone, or it was closed
            return None

    def _take(self, item: bytes | Progressed | Finished | Stop) -> None:
        if isinstance(item, bytes):
            self._act(self._connection.receive(item))
        elif isinstance(item, Progressed):
            self._act(self._connection.progress(item.job, item.value, item.total, item.message))
        elif isinstance(item, Finished):
            self._workers.forget(item.job)
            if item.outcome is not None:
                self._act(self._connection.finish(item.job, item.outcome))
        else:
            self._stopped = item

    def _act(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                self._write(encode(action.message))
            elif isinstance(action, Start):
                self._warm = True  # the job opens the application
                self._workers.start(action.job)
            elif isinstance(action, Cancel):
                self._workers.cancel(action.job)
            else:
                self._hold, self._hold_ends = action, monotonic() + self._roots_seconds
                if not self._warm:
                    self.warm_up()

    def _start_held(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None:
            self._act(self._connection.overdue(hold))

    def _write(self, line: bytes) -> None:
        if self._broken:
            return
        left = memoryview(line)
        try:
            while left:
                left = left[self._stdout.write(left) or 0 :]
        except (OSError, ValueError):  # the client closed its end
            self._broken = True
            self.stop()

    # -- Start and end

    def _patience(self) -> float | None:
        """The time to wait for held jobs, or to stay idle before opening the application. The client gets its
        first answers before anything heavy competes with them. Afterwards it usually waits for its user,
        which is the time to open the application."""
        if self._hold is not None:
            return max(0.0, self._hold_ends - monotonic())
        if self._warm or not self._connection.greeted:
            return None
        return LISTED_SECONDS if self._connection.listed_tools else GREETED_SECONDS

    def warm_up(self) -> None:
        """Open the application before the first call."""
        self._warm = True
        self._workers.warm_up()

    def _drain(self, stopped: Stop) -> int:
        """Finish the accepted jobs; returns the signal that caused the end, or 0."""
        number = stopped.signal
        while self._workers.unfinished:
            try:
                item = self._inbox.get(timeout=self._grace_seconds if number else None)
            except Empty:
                self._abandon()
                break
            if isinstance(item, Stop):
                number = item.signal or number
            elif not isinstance(item, bytes):
                self._take(item)
        return number

    def _abandon(self) -> None:
        self._abandoned = True
        jobs = self._workers.unfinished
        for job in jobs:
            self._workers.cancel(job)
        names = ", ".join(sorted({job.name for job in jobs}))
        _say(f"stopped without finishing {len(jobs)} jobs: {names}\n")


def main() -> int:
    """Run `vestige-mcp`; returns the exit code."""
    try:
        options = parse_options(sys.argv[1:], os.environ)
    except UsageError as error:
        _say(f"{error}\n\n{USAGE}")
        return MISUSED
    if options.question:
        sys.stdout.write(USAGE if options.question == "help" else f"vestige-mcp {__version__}\n")
        return 0

    def open_app() -> "Service":
        # Heavy imports, when they are first needed.
        from vestige.settings.libraries import prepare_libraries

        prepare_libraries()
        from vestige.app.app import open_server

        return open_server(options.settings)

    tools = catalog.packaged(options.profile, options.instructions)
    return serve_exclusively(open_app, tools) if options.exclusive else serve_process(open_app, tools)


def serve_exclusively(open_app: "OpenApp", tools: catalog.Catalog) -> int:
    """Like `serve_process`, but opens the store before the first answer and fails if it cannot."""
    from vestige.core.errors import VestigeError

    try:
        app = open_app()
    except VestigeError as error:
        _say(f"{error.message} {error.hint or ''}\n")
        return error.exit_code
    return serve_process(lambda: app, tools, opened=True)


def serve_process(
    open_app: "OpenApp",
    tools: catalog.Catalog | None = None,
    grace_seconds: float = GRACE_SECONDS,
    *,
    opened: bool = False,
) -> int:
    """Serve on this process's stdin and stdout until the end; returns the exit code. An application that is
    already `opened` is taken over at once, so that it is always closed."""
    try:
        stdin, stdout = _private_streams()
    except OSError as error:
        _say(f"stdin and stdout must be open: {error}\n")
        return 1
    server = StdioServer(stdin, stdout, open_app, tools, grace_seconds)
    if opened:
        server.warm_up()
    _on_signals(server.stop)
    code, clean = server.run()
    if not clean:
        # Threads are still running. Replies are unbuffered and the database survives a hard exit, so exit
        # without tearing down the interpreter under them.
        os._exit(code)
    return code


def _private_streams() -> "tuple[FileIO, FileIO]":
    """Take stdin and stdout over exclusively. The real streams move to private descriptors. Anything that
    prints to stdout, in Python or in C, now writes to stderr, and stdin is empty for other readers."""
    for descriptor in (0, 1):
        os.fstat(descriptor)
    try:
        os.fstat(2)
    except OSError:  # started without stderr: reserve its number
        os.open(os.devnull, os.O_WRONLY)
    streams = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    for descriptor in streams:
        os.set_blocking(descriptor, True)
    return open(streams[0], "rb", buffering=0), open(streams[1], "wb", buffering=0)  # noqa: PTH123 - no path


def _on_signals(stop: "Callable[[int], None]") -> None:
    """Let SIGTERM and SIGINT stop the server in order; a second signal of the same kind ends it at once."""

    def handle(number: int, _frame: "FrameType | None") -> None:
        signal.signal(number, signal.SIG_DFL)
        stop(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def _say(text: str) -> None:
    try:
        os.write(2, f"vestige-mcp: {text}".encode())
    except OSError:  # stderr may be closed, which is not a reason to fail
        return


if __name__ == "__main__":
    sys.exit(main())
