"""The parent of the workers: accepts connections and passes them on, replaces workers that end, and stops or
restarts all of them. It opens no store and reads no request, so that nothing a client sends can end it."""

import logging
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import field
from pathlib import Path
from types import FrameType

from vestige.core.lazy_dataclass import dataclass
from vestige.transports.http.limits.connections import backlog
from vestige.transports.http.workers.channel import (
    CLOSED,
    CONNECTION,
    GIVEN_BACK,
    LEAVING,
    LISTENING,
    NOBODY,
    READY,
    STOP,
    Assignment,
)
from vestige.transports.http.workers.group import STALE_SECONDS, socket_of
from vestige.transports.http.workers.table import MAX_SEATS, SharedTable, WorkerState

logger = logging.getLogger(__name__)

RESTART = getattr(signal, "SIGUSR1", None)
"""The signal for a rolling restart. Not SIGHUP: a terminal that is closed sends that."""
FIRST_DELAY_SECONDS, MAX_DELAY_SECONDS = 0.5, 30.0
"""How long the parent waits before it replaces a worker that failed, the first time and at most."""
STEADY_SECONDS = 60.0
"""A worker that lived this long failed for another reason than the one before."""
KILL_SECONDS = 40.0
"""How long after `server.shutdown_seconds` a worker may take to end before it is killed."""
RETRY_SECONDS = 0.05
AT_ONCE = 64
"""Connections accepted before workers and signals have their turn."""
REPORT_BYTES = 4_096

Start = Callable[[socket.socket, int], "subprocess.Popen[bytes]"]
"""Starts a worker with its end of a channel and the descriptor of the shared table."""


@dataclass(slots=True, eq=False, kw_only=True)
class WorkerProcess:
    """A worker as its parent knows it. `replaces` is the one whose place it takes in a rolling restart,
    `connections` those that it has, and `handed` all that it ever got."""

    process: "subprocess.Popen[bytes]"
    channel: socket.socket
    index: int
    number: int
    since: float
    ready: bool = False
    draining: bool = False
    deaf: bool = False
    connections: int = 0
    handed: int = 0
    kill_at: float | None = None
    replaces: "WorkerProcess | None" = None


@dataclass(slots=True, kw_only=True)
class WorkerSupervisor:
    """Runs the workers of a server until a signal ends it. `assign` makes the assignment of a worker from
    its index, its number and whether it is the first one."""

    opened: socket.socket
    table: SharedTable
    folder: Path
    count: int
    most_connections: int
    shutdown_seconds: float
    start: Start
    assign: Callable[[int, int, bool], Assignment]
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector, init=False)
    _workers: list[WorkerProcess] = field(default_factory=list, init=False)
    _to_replace: deque[WorkerProcess] = field(default_factory=deque, init=False)
    _waiting: deque[socket.socket] = field(default_factory=deque, init=False)
    _due: list[float] = field(default_factory=list, init=False)
    _failures: int = field(default=0, init=False)
    _started: int = field(default=0, init=False)
    _accepts: bool = field(default=False, init=False)
    _listens: bool = field(default=False, init=False)
    _stopping: bool = field(default=False, init=False)
    _restart: bool = field(default=False, init=False)
    _signal: int = field(default=0, init=False)
    _exit_code: int = field(default=0, init=False)

    def run(self) -> int:
        """Serve until the end; the exit code."""
        with ExitStack() as stack:
            stack.callback(self._selector.close)
            woken = stack.enter_context(self._signals())
            self._selector.register(woken, selectors.EVENT_READ)
            self.opened.setblocking(False)
            self._begin(None)
            try:
                while self._workers or self._due:
                    self._turn(woken)
            finally:
                self._kill_all()
        return self._exit_code

    def _turn(self, woken: socket.socket) -> None:
        for key, _ in self._selector.select(self._timeout()):
            if key.fileobj is woken:
                with suppress(BlockingIOError):
                    woken.recv(REPORT_BYTES)
            elif key.fileobj is self.opened:
                self._accept()
            else:
                self._hear(key.data)
        self._obey_signals()
        self._bury()
        self._start_due()
        self._hand_out_waiting()
        self._kill_overdue()

    def _timeout(self) -> float:
        """The seconds until something has to be done without an event."""
        if self._waiting:
            return RETRY_SECONDS
        times = [*self._due, *(one.kill_at for one in self._workers if one.kill_at is not None)]
        return max(0.0, min([*times, time.monotonic() + STALE_SECONDS]) - time.monotonic())

    # -- Signals

    @contextmanager
    def _signals(self) -> Iterator[socket.socket]:
        """Handle signals in the loop: a socket becomes readable when one arrives."""
        reading, writing = socket.socketpair()
        handlers: dict[int, Callable[[int, FrameType | None], None]] = {
            signal.SIGTERM: self._on_stop,
            signal.SIGINT: self._on_stop,
            signal.SIGCHLD: lambda sig, frame: None,
        }
        if RESTART is not None:
            handlers[RESTART] = self._on_restart
        with reading, writing:
            reading.setblocking(False)
            writing.setblocking(False)
            wakeup = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
            before = {one: signal.signal(one, handler) for one, handler in handlers.items()}
            try:
                yield reading
            finally:
                for one, handler in before.items():
                    signal.signal(one, handler)
                signal.set_wakeup_fd(wakeup)

    def _on_stop(self, sig: int, frame: FrameType | None) -> None:
        if self._signal:  # the second one
            self._kill_all()
            os._exit(128 + sig)
        self._signal = sig

    def _on_restart(self, sig: int, frame: FrameType | None) -> None:
        self._restart = True

    def _obey_signals(self) -> None:
        if self._signal and not self._stopping:
            self._stop()
        if self._restart and not self._stopping:
            self._restart = False
            if self._to_replace:
                logger.warning("A rolling restart is under way already.")
                return
            self._to_replace = deque(one for one in self._workers if one.ready and not one.draining)
            logger.warning("Rolling restart of %d workers", len(self._to_replace))
            self._replace_next()

    def _stop(self) -> None:
        """Pass on what has connected, then let all workers finish."""
        self._stopping = True
        if self._listens:
            while self._accept():
                pass
        self._set_accepting(False)
        self.opened.close()
        self._due.clear()
        self._to_replace.clear()
        for worker in list(self._workers):
            if worker.ready:
                self._drain(worker, None)
            else:  # it has no clients yet
                worker.process.terminate()
                worker.kill_at = time.monotonic() + KILL_SECONDS

    # -- Workers

    def _begin(self, replaces: WorkerProcess | None) -> None:
        taken = {one.index for one in self._workers}
        index = next(one for one in range(MAX_SEATS) if one not in taken)
        self._started += 1
        ours, theirs = socket.socketpair()
        with theirs:
            process = self.start(theirs, self.table.handle)
        self.table.take_seat(index, self._started, process.pid)
        worker = WorkerProcess(
            process=process,
            channel=ours,
            index=index,
            number=self._started,
            since=time.monotonic(),
            replaces=replaces,
        )
        self._workers.append(worker)
        self._selector.register(ours, selectors.EVENT_READ, worker)
        with suppress(OSError):  # its end is reported like any other
            self.assign(index, self._started, self._started == 1).send(ours)
        ours.setblocking(False)

    def _hear(self, worker: WorkerProcess) -> None:
        """Take the reports of a worker."""
        try:
            reports, handles, _, _ = socket.recv_fds(worker.channel, REPORT_BYTES, AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            reports, handles = b"", []
        given_back = iter(handles)
        if not reports:
            self._selector.unregister(worker.channel)
            worker.deaf = True
        for report in (reports[at : at + 1] for at in range(len(reports))):
            if report == READY:
                self._ready(worker)
            elif report == CLOSED:
                worker.connections -= 1
            elif report == LEAVING:
                self._leaving(worker)
            elif report == GIVEN_BACK and (handle := next(given_back, None)) is not None:
                os.set_inheritable(handle, False)
                self._waiting.append(socket.socket(fileno=handle))

    def _ready(self, worker: WorkerProcess) -> None:
        worker.ready = True
        if self._stopping:
            self._drain(worker, None)
            return
        if not self._listens:
            self._listens = True
            self.opened.listen(backlog(self.most_connections))
            self._order(worker, LISTENING)
            self._due += [time.monotonic()] * (self.count - len(self._workers))
        self._set_accepting(True)
        if worker.replaces is not None:
            old, worker.replaces = worker.replaces, None
            self._drain(old, worker)

    def _leaving(self, worker: WorkerProcess) -> None:
        """A worker got a signal to end: another one starts in its place."""
        if worker.draining or self._stopping:
            return
        logger.warning("Worker %d (pid %d) ends by a signal", worker.index, worker.process.pid)
        self._drain(worker, self._least_busy(without=worker))
        if not self._release_successor(worker):
            self._due.append(time.monotonic())

    def _drain(self, worker: WorkerProcess, heir: WorkerProcess | None) -> None:
        worker.draining = True
        worker.kill_at = time.monotonic() + self.shutdown_seconds + KILL_SECONDS
        self.table.set_state(worker.index, WorkerState.DRAINING)
        self._order(worker, STOP + bytes([NOBODY if heir is None else heir.index]))
        if self._serving() == []:
            self._set_accepting(False)

    def _order(self, worker: WorkerProcess, order: bytes) -> None:
        try:
            worker.channel.send(order)
        except OSError:  # it has ended, or takes nothing any more
            worker.process.terminate()

    def _replace_next(self) -> None:
        while self._to_replace:
            old = self._to_replace[0]
            if old in self._workers and not old.draining:
                self._begin(old)
                return
            self._to_replace.popleft()
        logger.warning("The rolling restart is complete.")

    def _bury(self) -> None:
        """Remove the workers that have ended, and replace those that were not meant to."""
        for worker in [one for one in self._workers if one.process.poll() is not None]:
            self._workers.remove(worker)
            if not worker.deaf:
                self._selector.unregister(worker.channel)
            worker.channel.close()
            self.table.clear_seat(worker.index)
            path = socket_of(self.folder, worker.number)
            if not path.is_symlink():
                path.unlink(missing_ok=True)
            self._ended(worker)
        if not self._serving():
            self._set_accepting(False)

    def _ended(self, worker: WorkerProcess) -> None:
        if self._stopping:
            return
        if worker.draining:
            if self._to_replace and self._to_replace[0] is worker:
                self._to_replace.popleft()
                self._replace_next()
            return
        code = worker.process.returncode
        if not self._listens:  # the first one could not start, and has said why
            self._exit_code = code if code > 0 else 1
            self._stop()
            return
        if worker.replaces is not None:
            logger.error(
                "Worker %d (pid %d) could not start: %s. The rolling restart ends here; workers that were "
                "not replaced go on.",
                worker.index,
                worker.process.pid,
                _how(code),
            )
            self._to_replace.clear()
            return
        if self._release_successor(worker):
            logger.error(
                "Worker %d (pid %d) ended unexpectedly: %s. Its connections are lost; its successor starts.",
                worker.index,
                worker.process.pid,
                _how(code),
            )
            self._to_replace.remove(worker)
            self._replace_next()
            return
        lived = time.monotonic() - worker.since
        self._failures = 1 if lived > STEADY_SECONDS else self._failures + 1
        delay = min(MAX_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2 ** (self._failures - 1))
        self._due.append(time.monotonic() + delay)
        logger.error(
            "Worker %d (pid %d) ended unexpectedly: %s. Its connections are lost; another starts in %.1f s.",
            worker.index,
            worker.process.pid,
            _how(code),
            delay,
        )
        if self._to_replace and worker in self._to_replace:
            self._to_replace.remove(worker)

    def _release_successor(self, worker: WorkerProcess) -> bool:
        """Let a worker that already starts in the place of this one count as its own; returns whether there
        is one."""
        successor = next((one for one in self._workers if one.replaces is worker), None)
        if successor is not None:
            successor.replaces = None
        return successor is not None

    def _start_due(self) -> None:
        now = time.monotonic()
        for due in [one for one in self._due if one <= now]:
            self._due.remove(due)
            self._begin(None)

    def _kill_overdue(self) -> None:
        for worker in self._workers:
            if worker.kill_at is not None and time.monotonic() >= worker.kill_at:
                worker.kill_at = None
                logger.error("Worker %d (pid %d) did not end in time", worker.index, worker.process.pid)
                worker.process.kill()

    def _kill_all(self) -> None:
        for worker in self._workers:
            with suppress(OSError):
                worker.process.kill()

    # -- Connections

    def _set_accepting(self, wanted: bool) -> None:
        if wanted and not self._accepts and not self._stopping:
            self._selector.register(self.opened, selectors.EVENT_READ)
        elif not wanted and self._accepts:
            self._selector.unregister(self.opened)
        else:
            return
        self._accepts = wanted

    def _accept(self) -> bool:
        """Accept what has connected, up to a limit; returns whether there was something."""
        accepted = 0
        for _ in range(AT_ONCE):
            try:
                connection, _ = self.opened.accept()
            except (BlockingIOError, ConnectionAbortedError):
                break
            except OSError as exc:  # no descriptors left: workers close theirs
                logger.warning("A connection could not be accepted: %s", exc.strerror)
                break
            accepted += 1
            self._waiting.append(connection)
        self._hand_out_waiting()
        return accepted > 0

    def _hand_out_waiting(self) -> None:
        while self._waiting:
            if not self._hand_out(self._waiting[0]):
                # When the server ends, nobody is left for them.
                if not self._serving() and self._stopping:
                    self._waiting.popleft().close()
                    continue
                return
            self._waiting.popleft().close()

    def _hand_out(self, connection: socket.socket) -> bool:
        """Pass a connection to the worker with the fewest; returns whether one took it."""
        tried: set[int] = set()
        while (worker := self._least_busy(tried=tried)) is not None:
            try:
                socket.send_fds(worker.channel, [CONNECTION], [connection.fileno()])
            except OSError:  # it takes nothing now, or has ended
                tried.add(worker.index)
            else:
                worker.connections += 1
                worker.handed += 1
                return True
        return False

    def _serving(self) -> list[WorkerProcess]:
        return [one for one in self._workers if one.ready and not one.draining and not one.deaf]

    def _least_busy(
        self, *, tried: "set[int] | frozenset[int]" = frozenset(), without: WorkerProcess | None = None
    ) -> WorkerProcess | None:
        """The worker with the fewest connections; one that stands still only if there is no other."""
        now = time.monotonic()
        still = {seat.index for seat in self.table.seats() if now - seat.beaten_at > STALE_SECONDS}
        found = [one for one in self._serving() if one.index not in tried and one is not without]
        return min(found, key=lambda one: (one.index in still, one.connections, one.handed), default=None)


def _how(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


@contextmanager
def peer_folder() -> Iterator[Path]:
    """A folder for the sockets of workers, which only this user can enter."""
    with tempfile.TemporaryDirectory(prefix="vestige-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
