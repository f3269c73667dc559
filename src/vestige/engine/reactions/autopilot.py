"""What reacts to what: events drive the mechanisms, one reaction at a time, after the commit they tell of.

Nobody waits for a reaction, and none runs where nothing can be written. A server has a thread for them;
a single command works them off when it ends. Each process reacts to what happens in it; what is done from
time to time is done by the one that leads.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

from vestige.core.events import (
    Happening,
    ImportanceScored,
    MemoryCreated,
    MemoryPromoted,
    MemorySuppressed,
    SearchPerformed,
)
from vestige.core.models import EVERYTHING, Access
from vestige.engine import intentions
from vestige.engine.care import backup
from vestige.engine.context import Call, Engine, on_behalf_of, reach_of_cause
from vestige.engine.memory import link, suppress
from vestige.engine.reactions import capture, competition, reconsolidation, searches
from vestige.engine.reactions.worker import ReactionJob, Stop, Worker, WorkerStatus
from vestige.engine.sleep import schedule
from vestige.settings.settings import Settings

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 0.5
"""How long the end of a process may take to work off what waits."""
CLOSE_PATIENCE_SECONDS = 0.2
"""How long a reaction waits for other writers then: whoever gave the command waits for its end."""

Event = TypeVar("Event", bound=Happening)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """What a mechanism does when something happened. It goes as far as who caused that reaches, unless it is
    only about what the store itself knows (`own`)."""

    name: str
    event: type[Happening]
    run: Callable[[Call, Happening], None]
    own: bool = False


def _driven(settings: Settings) -> bool:
    return settings.mechanisms.autopilot


def _scheduled(settings: Settings) -> bool:
    """Backups are what the user asked for, no mechanism of memory."""
    return settings.backup.every_hours > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """What is done from time to time, where it is `wanted`; told when somebody last asked for something."""

    name: str
    run: Callable[[Call, datetime], None]
    wanted: Callable[[Settings], bool] = _driven


def on(event: type[Event], reaction: Callable[[Call, Event], None], *, own: bool = False) -> Reaction:
    """A reaction to events of one type."""

    def run(call: Call, happening: Happening) -> None:
        if isinstance(happening, event):
            reaction(call, happening)

    name = f"{reaction.__module__.rpartition('.')[2]}.{reaction.__name__}"
    return Reaction(name=name, event=event, run=run, own=own)


def _poll(call: Call, _last_activity: datetime) -> None:
    intentions.poll(call)


def _sweep(call: Call, _last_activity: datetime) -> None:
    suppress.sweep(call)


def _sleep(call: Call, last_activity: datetime) -> None:
    if schedule.due(call, last_activity):
        schedule.run(call)


def _back_up(call: Call, _last_activity: datetime) -> None:
    backup.make_due(call)


REACTIONS: tuple[Reaction, ...] = (
    on(MemoryCreated, capture.on_created),
    on(MemoryCreated, intentions.on_created, own=True),
    on(ImportanceScored, capture.on_scored),
    on(MemoryPromoted, capture.on_promoted),
    on(MemoryPromoted, link.on_promoted),
    on(MemoryPromoted, competition.on_promoted),
    on(MemoryPromoted, searches.on_promoted, own=True),
    on(SearchPerformed, reconsolidation.on_search),
    on(SearchPerformed, searches.on_search, own=True),
    on(MemorySuppressed, suppress.on_suppressed),
)
CHORES: tuple[Chore, ...] = (
    Chore(name="intentions.poll", run=_poll),
    Chore(name="suppression.sweep", run=_sweep),
    Chore(name="backup", run=_back_up, wanted=_scheduled),
    Chore(name="sleep", run=_sleep),
)


class Autopilot:
    """Hears what happens and has the mechanisms react. Close it before the store."""

    def __init__(
        self,
        engine: Engine,
        *,
        reactions: Sequence[Reaction] = REACTIONS,
        chores: Sequence[Chore] = CHORES,
    ) -> None:
        self._engine = engine
        self._reactions = reactions
        self._active_at = engine.now()
        self._patience_seconds: float | None = None
        driven, writable = _driven(engine.settings), not engine.store.read_only
        wanted = [chore for chore in chores if writable and chore.wanted(engine.settings)]
        self._worker = Worker(
            monotonic=engine.monotonic,
            leads=engine.store.leading,
            chores=[ReactionJob(name=chore.name, run=partial(self._rest, chore)) for chore in wanted],
        )
        self._listening = ExitStack()
        self.enabled = bool(wanted) or (driven and writable)
        if driven and writable:
            self._listening.enter_context(engine.events.listening(self._hear))

    def start(self) -> None:
        """React in the background from now on."""
        if self.enabled:
            self._worker.start()

    def settle(self) -> None:
        """Have everything that has happened so far reacted to."""
        self._worker.settle()

    def tick(self) -> None:
        """Do now what is otherwise done from time to time, if this process leads."""
        if self.enabled:
            self._worker.rest(lambda: False)

    def touch(self) -> None:
        """Somebody asked for something: the memory is not idle."""
        self._active_at = self._engine.now()

    def close(self, timeout_seconds: float) -> bool:
        """Stop, and work off what waits as far as that is quick; False if a reaction would not end."""
        self._listening.close()
        if not self._worker.stop(timeout_seconds):
            return False
        self._patience_seconds = CLOSE_PATIENCE_SECONDS
        until = self._engine.monotonic() + CLOSE_SECONDS
        self._worker.work_off(lambda: self._engine.monotonic() > until)
        left = self._worker.status().waiting
        if left:
            logger.info("Closing with %d reactions left undone", left)
        return True

    def status(self) -> WorkerStatus:
        """How it is going."""
        return self._worker.status()

    def _hear(self, happening: Happening) -> None:
        for reaction in self._reactions:
            if isinstance(happening, reaction.event):
                reach = EVERYTHING if reaction.own else reach_of_cause()
                run = partial(self._react, reaction, happening, reach)
                self._worker.put(ReactionJob(name=reaction.name, run=run))

    def _react(self, reaction: Reaction, happening: Happening, reach: Access, stop: Stop) -> None:
        patience = self._patience_seconds
        call = Call(engine=self._engine, access=reach, cancelled=stop, patience_seconds=patience)
        with on_behalf_of(reach):
            reaction.run(call, happening)

    def _rest(self, chore: Chore, stop: Stop) -> None:
        chore.run(Call(engine=self._engine, cancelled=stop), self._active_at)
