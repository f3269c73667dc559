"""A thread that works off jobs one at a time, and does chores while it is idle or when they are late. It has
an owner and a stop.

Of all processes at work on a store only the one that leads does chores.

A job that fails is logged and counted, and the next one goes on. What gets past that ends the loop, which is
begun again after a pause. Without a thread, jobs wait until somebody works them off.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from vestige.core.errors import (
    Cancelled,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)

logger = logging.getLogger(__name__)

MOST_WAITING = 10_000
"""Of more jobs the oldest are dropped: a reaction that comes late is worth less than memory."""
IDLE_SECONDS = 60.0
"""How often the chores are done, at most."""
LATE = 5
"""After so many times as long they are done although jobs wait: a busy server needs its backups too."""
LOOK_SECONDS = 2.0
"""How often a process looks whether it leads: so soon it stands in for a leader that is gone."""
PAUSE_SECONDS = 5.0
"""How long the loop rests after it broke down."""
MOST_TRIES = 12
"""How often the loop does a job again that found no store, with a pause before each: a minute or two."""
SETTLE_SECONDS = 30.0

Stop = Callable[[], bool]
"""Says whether a job should end; long ones ask now and then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactionJob:
    """Something to do, with a name for the log."""

    name: str
    run: Callable[[Stop], None]
    tries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """How the work is going since the start of the process."""

    running: bool = False
    leader: bool = False
    waiting: int = 0
    handled: int = 0
    failed: int = 0
    dropped: int = 0
    restarts: int = 0
    last_error: str | None = None


class Worker:
    """A bounded queue of jobs and the thread that works it off."""

    def __init__(
        self,
        *,
        monotonic: Callable[[], float],
        chores: Sequence[ReactionJob] = (),
        leads: Callable[[], bool] = lambda: True,
        most_waiting: int = MOST_WAITING,
        idle_seconds: float = IDLE_SECONDS,
        look_seconds: float = LOOK_SECONDS,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self._monotonic = monotonic
        self._chores = chores
        self._leads = leads
        self._leader = False
        self._most_waiting = most_waiting
        self._idle_seconds = idle_seconds
        self._look_seconds = look_seconds
        self._pause_seconds = pause_seconds
        self._changed = threading.Condition()
        self._waiting: deque[ReactionJob] = deque()
        self._busy = 0
        self._handled = self._failed = self._dropped = self._restarts = 0
        self._last_error: str | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def put(self, job: ReactionJob) -> None:
        """Have a job done soon. It never waits: when too many do, the oldest one is dropped."""
        with self._changed:
            if len(self._waiting) >= self._most_waiting:
                self._waiting.popleft()
                self._dropped += 1
                if self._dropped == 1:  # once; how many there were is in the status
                    logger.warning("More than %d reactions wait; the oldest are dropped", self._most_waiting)
            self._waiting.append(job)
            self._changed.notify_all()

    def start(self) -> None:
        """Begin to work in the background. Nothing happens when that was done before."""
        with self._changed:
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._serve, name="vestige-worker", daemon=True)
                self._thread.start()

    def stop(self, timeout_seconds: float) -> bool:
        """Have the job under way end, and begin no other; False if it would not end in time."""
        with self._changed:
            self._stopping.set()
            self._changed.notify_all()
            thread = self._thread
        if thread is None:
            return True
        thread.join(timeout_seconds)
        return not thread.is_alive()

    def settle(self, timeout_seconds: float = SETTLE_SECONDS) -> bool:
        """Wait until everything that waits is done, or do it here if no thread does; False if time is up."""
        if not self._is_running():
            self.work_off(lambda: False)
            return True
        with self._changed:
            return self._changed.wait_for(lambda: not (self._waiting or self._busy), timeout_seconds)

    def work_off(self, stop: Stop) -> None:
        """Do what waits in the caller's thread, until it is to stop."""
        for _ in range(self._most_waiting):  # jobs may make others, but not for ever
            job = None if stop() else self._take()
            if job is None:
                return
            self._do(job, stop)

    def rest(self, stop: Stop) -> None:
        """Do the chores in the caller's thread, if this process leads."""
        self._look()
        for chore in self._chores:
            if self._leader and not stop():
                with self._changed:
                    self._busy += 1
                self._do(chore, stop)

    def status(self) -> WorkerStatus:
        """How it is going."""
        with self._changed:
            return WorkerStatus(
                running=self._is_running(),
                leader=self._leader and not self._stopping.is_set(),
                waiting=len(self._waiting),
                handled=self._handled,
                failed=self._failed,
                dropped=self._dropped,
                restarts=self._restarts,
                last_error=self._last_error,
            )

    def _is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _serve(self) -> None:
        """The thread: the loop, begun again when it breaks down."""
        while not self._stopping.is_set():
            try:
                self._loop()
            except BaseException as error:  # whatever it was, the next reaction must not find nobody there
                logger.exception("The worker broke down; it goes on in %g s", self._pause_seconds)
                with self._changed:
                    self._restarts += 1
                    self._last_error = _told(error)
                self._stopping.wait(self._pause_seconds)

    def _loop(self) -> None:
        rested = looked = self._monotonic()
        self._look()
        while not self._stopping.is_set():
            look_at, rest_at = looked + self._look_seconds, rested + self._idle_seconds
            soonest = min(look_at, rest_at) if self._leader else look_at
            with self._changed:
                self._changed.wait_for(
                    lambda: self._waiting or self._stopping.is_set(), max(0.0, soonest - self._monotonic())
                )
            if self._stopping.is_set():
                return
            now = self._monotonic()
            if now >= look_at:  # also while there is much to do: else nobody might lead
                self._look()
                looked = now
            late = self._leader and now >= rested + LATE * self._idle_seconds
            job = None if late else self._take()
            if job is not None:
                self._do(job, self._stopping.is_set, again=job.tries < MOST_TRIES)
            elif self._leader and now >= rest_at:
                self.rest(self._stopping.is_set)
                rested = self._monotonic()

    def _look(self) -> None:
        """See whether this process leads. One that has no chores leaves that to others."""
        try:
            leader = bool(self._chores) and self._leads()
        except StoreError as exc:  # its chores need the store too
            logger.debug("Whether this process leads cannot be told: %s", _obstacle(exc))
            leader = False
        if leader != self._leader:
            logger.info("This process %s the background work", "leads" if leader else "no longer leads")
        self._leader = leader

    def _take(self) -> ReactionJob | None:
        with self._changed:
            if not self._waiting:
                return None
            self._busy += 1
            return self._waiting.popleft()

    def _do(self, job: ReactionJob, stop: Stop, *, again: bool = False) -> None:
        """Run one job that was taken; with `again` it waits for another turn if the store is away."""
        error: Exception | None = None
        later = False
        try:
            job.run(stop)
        except Cancelled:
            logger.info("%s was ended before it was done", job.name)
        except HINDRANCES as exc:  # the user's matter, no fault in the mechanism
            later = again and _was_away(exc)
            if later:
                self._put_back(job)
                return
            logger.warning("%s was not done: %s", job.name, _obstacle(exc))
            error = exc
        except Exception as exc:  # one mechanism's failure is not another's
            logger.exception("%s failed", job.name)
            error = exc
        finally:
            with self._changed:
                self._busy -= 1
                self._handled += not later
                if error is not None:
                    self._failed += 1
                    self._last_error = f"{job.name}: {_told(error)}"
                self._changed.notify_all()

    def _put_back(self, job: ReactionJob) -> None:
        if not job.tries:  # once; how many wait is in the status
            logger.warning("%s waits: the store cannot be reached", job.name)
        self.put(replace(job, tries=job.tries + 1))
        self._stopping.wait(self._pause_seconds)


HINDRANCES = (StoreBusy, StoreFull, StoreReadOnly, StoreUnavailable)


def _was_away(error: StoreError) -> bool:
    """Whether nothing was done because there was no store. What may have been kept is not done twice."""
    return isinstance(error, StoreUnavailable) and error.details.get("outcome") != "unknown"


def _obstacle(error: StoreError) -> str:
    """What is in the way, in our words: only who keeps a store busy is told in them throughout."""
    return error.message if isinstance(error, StoreBusy) else (type(error).__doc__ or "")


def _told(error: BaseException) -> str:
    """An error in a line, without its text: that may quote a memory, and is in the log."""
    return type(error).__name__
