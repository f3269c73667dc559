"""The autopilot: events trigger reactions of the mechanisms, one at a time, after the commit that they
report.

No caller waits for a reaction, and none runs on a read-only store. A server has a worker thread for them; a
single command runs them when it ends. Each process reacts to its own events. Periodic chores are done by the
process that leads.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from vestige.core.errors import Cancelled, StoreBusy, StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from vestige.core.events import Event
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, Access
from vestige.engine.context import Call, Engine, WorkerStatus, access_of_cause, caused_by
from vestige.settings.settings import Settings

if TYPE_CHECKING:
    from vestige.engine.reactions.table import Reaction

logger = logging.getLogger(__name__)


# -- The worker: a thread that runs jobs one at a time, and chores while it is idle

MOST_WAITING = 10_000
"""The most jobs in the queue. Beyond it the oldest are dropped: a late reaction is worth less than memory."""
MOST_LATER = 1_000
"""The most jobs in the queue with which a search still leaves its trace to a reaction."""
IDLE_SECONDS = 60.0
"""The least time between two rounds of chores."""
LATE = 5
"""After this many times IDLE_SECONDS chores run although jobs wait: a busy server needs backups too."""
LOOK_SECONDS = 2.0
"""How often a process checks whether it leads, which is how soon it replaces a leader that is gone."""
PAUSE_SECONDS = 5.0
"""How long the loop rests after it failed."""
MOST_TRIES = 12
"""How often the loop repeats a job that found no store, with a pause before each: a minute or two."""
SETTLE_SECONDS = 30.0

Stop = Callable[[], bool]
"""Whether a job should end; long jobs call it now and then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactionJob:
    name: str
    run: Callable[[Stop], None]
    tries: int = 0
    on_drop: Callable[[], None] = lambda: None


class Worker:
    """A bounded queue of jobs and the thread that runs them. Its owner stops it."""

    def __init__(
        self,
        *,
        monotonic: Callable[[], float],
        chores: Sequence[ReactionJob] = (),
        leads: Callable[[], bool] = lambda: True,
        settle: Callable[[], None] = lambda: None,
        most_waiting: int = MOST_WAITING,
        idle_seconds: float = IDLE_SECONDS,
        look_seconds: float = LOOK_SECONDS,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self._monotonic = monotonic
        self._chores = chores
        self._leads = leads
        self._settle_store = settle
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
        """Queue a job. It never waits: if the queue is full, the oldest job is dropped."""
        with self._changed:
            if len(self._waiting) >= self._most_waiting:
                self._waiting.popleft().on_drop()
                self._dropped += 1
                if self._dropped == 1:  # once; how many there were is in the status
                    logger.warning("More than %d reactions wait; the oldest are dropped", self._most_waiting)
            self._waiting.append(job)
            self._changed.notify_all()

    def start(self) -> None:
        """Start the thread. Nothing happens if it was started before."""
        with self._changed:
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._serve, name="vestige-worker", daemon=True)
                self._thread.start()

    def stop(self, timeout_seconds: float) -> bool:
        """End the running job, and begin no other; False if it did not end in time."""
        with self._changed:
            self._stopping.set()
            self._changed.notify_all()
            thread = self._thread
        if thread is None:
            return True
        thread.join(timeout_seconds)
        return not thread.is_alive()

    def settle(self, timeout_seconds: float = SETTLE_SECONDS) -> bool:
        """Wait until the queue is empty, or run it here if there is no thread; False if time is up."""
        if not self._is_running():
            self.work_off(lambda: False)
            return True
        with self._changed:
            return self._changed.wait_for(lambda: not (self._waiting or self._busy), timeout_seconds)

    def work_off(self, stop: Stop) -> None:
        """Run the waiting jobs in the caller's thread, until `stop` says so."""
        for _ in range(self._most_waiting):  # jobs may make others, but not for ever
            job = None if stop() else self._take()
            if job is None:
                return
            self._do(job, stop)

    def rest(self, stop: Stop) -> None:
        """Run the chores in the caller's thread, if this process leads."""
        self._look()
        for chore in self._chores:
            if self._leader and not stop():
                with self._changed:
                    self._busy += 1
                self._do(chore, stop)

    def status(self) -> WorkerStatus:
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
        """The thread: runs the loop, and starts it again if it fails."""
        while not self._stopping.is_set():
            try:
                self._loop()
            except BaseException as error:  # whatever it was, later reactions need a running loop
                logger.exception("The worker failed; it starts again in %g s", self._pause_seconds)
                with self._changed:
                    self._restarts += 1
                    self._last_error = type(error).__name__
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
            if now >= look_at:  # also while jobs wait: otherwise no process might lead
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
        """Check whether this process leads, and let the store settle. A process without chores leaves that to
        others."""
        try:
            leader = bool(self._chores) and self._leads()
            if leader:
                self._settle_store()
        except StoreError as exc:  # its chores need the store too
            logger.debug("The store cannot say whether this process leads: %s", _obstacle(exc))
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
        """Run one job that was taken; with `again` it is queued again if the store is unavailable."""
        error: Exception | None = None
        later = False
        try:
            job.run(stop)
        except Cancelled:
            logger.info("%s was cancelled", job.name)
        except HINDRANCES as exc:  # trouble with the store, not a fault of the mechanism
            # A job whose outcome is unknown is not repeated.
            unavailable = isinstance(exc, StoreUnavailable) and exc.details.get("outcome") != "unknown"
            later = again and unavailable
            if later:
                self._put_back(job)
                return
            logger.warning("%s was not done: %s", job.name, _obstacle(exc))
            error = exc
        except Exception as exc:  # one failing mechanism must not stop the others
            logger.exception("%s failed", job.name)
            error = exc
        finally:
            with self._changed:
                self._busy -= 1
                self._handled += not later
                if error is not None:
                    self._failed += 1
                    # Without its text: that may quote a memory, and would be in the log.
                    self._last_error = f"{job.name}: {type(error).__name__}"
                self._changed.notify_all()

    def _put_back(self, job: ReactionJob) -> None:
        if not job.tries:  # once; how many wait is in the status
            logger.warning("%s waits: the store is unavailable", job.name)
        self.put(replace(job, tries=job.tries + 1))
        self._stopping.wait(self._pause_seconds)


HINDRANCES = (StoreBusy, StoreFull, StoreReadOnly, StoreUnavailable)


def _obstacle(error: StoreError) -> str:
    """What is in the way, without quoting the store: only the message of StoreBusy is free of its data."""
    return error.message if isinstance(error, StoreBusy) else (type(error).__doc__ or "")


# -- The autopilot: which event triggers which reaction

CLOSE_SECONDS = 0.5
"""How long a process that ends may run waiting reactions."""
CLOSE_PATIENCE_SECONDS = 0.2
"""How long a reaction waits for other writers then: the user waits for the command to end."""


def _is_enabled(settings: Settings) -> bool:
    return settings.mechanisms.autopilot


def _scheduled(settings: Settings) -> bool:
    """Whether backups are scheduled. They are a setting of the user, not a mechanism of memory."""
    return settings.backup.every_hours > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """A periodic job, if it is `wanted`. `run` gets the time of the last request."""

    name: str
    run: Callable[[Call, datetime], object]
    wanted: Callable[[Settings], bool] = _is_enabled


def _poll_intentions(call: Call, _last_activity: datetime) -> None:
    from vestige.engine import intentions

    intentions.poll(call)


def _sweep_suppressed(call: Call, _last_activity: datetime) -> None:
    from vestige.engine.memory import suppress

    suppress.sweep(call)


def _back_up(call: Call, _last_activity: datetime) -> None:
    from vestige.engine.care import backup

    backup.back_up_if_due(call)


def _sleep(call: Call, last_activity: datetime) -> None:
    from vestige.engine.sleep import schedule

    if schedule.due(call, last_activity):
        schedule.run(call)


# Each imports what it does when it is first done: a command that only reads does none of it.
CHORES: tuple[Chore, ...] = (
    Chore(name="intentions.poll", run=_poll_intentions),
    Chore(name="suppression.sweep", run=_sweep_suppressed),
    Chore(name="backup", run=_back_up, wanted=_scheduled),
    Chore(name="sleep", run=_sleep),
)


class Autopilot:
    """Listens to events and runs the reactions of the mechanisms. Close it before the store."""

    def __init__(
        self,
        engine: Engine,
        *,
        reactions: "Sequence[Reaction] | None" = None,
        chores: Sequence[Chore] = CHORES,
    ) -> None:
        """Without `reactions`, they are those of `table`, which are imported at the first event of a kind."""
        self._engine = engine
        self._given_reactions = reactions
        self._reactions: dict[Callable[[], Sequence[Reaction]], Sequence[Reaction]] = {}
        self._lock = threading.Lock()
        self._open: dict[tuple[str, Access], list[Event]] = {}
        self._active_at = engine.now()
        self._patience_seconds: float | None = None
        enabled, writable = _is_enabled(engine.settings), not engine.store.read_only
        wanted = [chore for chore in chores if writable and chore.wanted(engine.settings)]
        self._worker = Worker(
            monotonic=engine.monotonic,
            leads=engine.store.leading,
            settle=engine.store.settle,
            chores=[ReactionJob(name=chore.name, run=partial(self._rest, chore)) for chore in wanted],
        )
        self._listening = ExitStack()
        self.enabled = bool(wanted) or (enabled and writable)
        self._listens = enabled and writable
        if self._listens:
            self._listening.enter_context(engine.events.listening(self._on_event))

    def start(self) -> None:
        """React in the background from now on."""
        if self.enabled:
            self._worker.start()

    def settle(self) -> None:
        """Wait until every event so far has been reacted to."""
        self._worker.settle()

    def react(self, event: Event) -> bool:
        """Queue the reactions to an event that is not sent to listeners; False, without doing so, if there is
        none, or so much waits that this would soon push reactions out of the queue."""
        reactions = self._reactions_to(type(event)) if self._listens else ()
        if not reactions or self._worker.status().waiting >= MOST_LATER:
            return False
        self._on_event(event)
        return True

    def tick(self) -> None:
        """Run the periodic chores now, if this process leads."""
        if self.enabled:
            self._worker.rest(lambda: False)

    def touch(self) -> None:
        """Note that a request came: the memory is not idle."""
        self._active_at = self._engine.now()

    def close(self, timeout_seconds: float) -> bool:
        """Stop, and run the waiting reactions as far as that is quick; False if a reaction did not end."""
        self._listens = False
        self._listening.close()
        if not self._worker.stop(timeout_seconds):
            return False
        self._patience_seconds = CLOSE_PATIENCE_SECONDS
        until = self._engine.monotonic() + CLOSE_SECONDS
        self._worker.work_off(lambda: self._engine.monotonic() > until)
        left = self._worker.status().waiting
        if left:
            logger.info("Closing; %d reactions were not run", left)
        return True

    def status(self) -> WorkerStatus:
        return self._worker.status()

    def _reactions_to(self, kind: type[Event]) -> "Sequence[Reaction]":
        if self._given_reactions is not None:
            return [one for one in self._given_reactions if issubclass(kind, one.event)]
        with self._lock:
            from vestige.engine.reactions.table import REACTIONS

            make = REACTIONS.get(kind, tuple)
            if make not in self._reactions:  # several kinds of event may have the same reactions
                self._reactions[make] = make()
            return self._reactions[make]

    def _on_event(self, event: Event) -> None:
        for reaction in self._reactions_to(type(event)):
            self._queue(reaction, event, access_of_cause())

    def _queue(self, reaction: "Reaction", event: Event, cause: Access) -> None:
        """Add an event to the batch that waits for this reaction, or queue a new batch."""
        key = (reaction.name, cause)
        with self._lock:
            batch = self._open.get(key)
            if batch is not None and len(batch) < reaction.most:
                batch.append(event)
                return
            batch = self._open[key] = [event]
        self._worker.put(
            ReactionJob(
                name=reaction.name,
                run=partial(self._react, reaction, batch, cause),
                on_drop=partial(self._close, key, batch),
            )
        )

    def _close(self, key: tuple[str, Access], batch: list[Event]) -> None:
        """Let no event join this batch any more."""
        with self._lock:
            if self._open.get(key) is batch:
                del self._open[key]

    def _react(self, reaction: "Reaction", batch: list[Event], cause: Access, stop: Stop) -> None:
        self._close((reaction.name, cause), batch)
        call = Call(
            engine=self._engine,
            access=EVERYTHING if reaction.own else cause,
            cancelled=stop,
            patience_seconds=self._patience_seconds,
        )
        with caused_by(cause):
            reaction.run(call, batch)

    def _rest(self, chore: Chore, stop: Stop) -> None:
        chore.run(Call(engine=self._engine, cancelled=stop), self._active_at)
