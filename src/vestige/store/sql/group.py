"""Group commit: the commits of several threads that wait for the one writer share a transaction.

The thread at the head of the queue leads: it begins a transaction, applies its own commit and those that wait
behind it, each in a savepoint, and ends it. No thread waits for a group to form: it is what came while the
transaction before was written. A commit returns after the transaction has ended, with its own events or its
own error, exactly as if it had come alone and in its turn.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field

from vestige.core.errors import StoreBusy, StoreError, StoreUnavailable, VestigeError
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Access, LogEvent
from vestige.store.contract.changes import Change, Claim, Forget
from vestige.store.sql.commit import Step, analyse
from vestige.store.sql.database import Database

MOST_TOGETHER = 32
"""The limit of commits in a transaction."""
MOST_CHANGES = 200
"""The number of changes in a transaction from which on no further commit joins it."""


@dataclass(slots=True, kw_only=True, eq=False)
class Commit:
    """One commit, and what became of it. `alone`: it shares no transaction. `leads`: its thread is to begin
    the next one."""

    steps: Sequence[Step]
    changes: Sequence[Change]
    access: Access
    claim: Claim | None
    alone: bool = False
    leads: bool = False
    taken: bool = False
    events: list[LogEvent] | None = None
    error: Exception | None = None
    woken: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def of(cls, changes: Sequence[Change], access: Access, claim: Claim | None) -> "Commit":
        """A commit with the slow part done that needs no database. A deletion is alone: the log is emptied of
        its text before it is acknowledged."""
        alone = any(isinstance(change, Forget) for change in changes)
        steps = [analyse(change) for change in changes]
        return cls(steps=steps, changes=changes, access=access, claim=claim, alone=alone)


Apply = Callable[[Database, Commit], list[LogEvent]]
Take = Callable[[], list[Commit]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWriter:
    """What a store does its own way: `write` begins a transaction, then takes a group, applies it with
    `apply_all` and commits; `conclude` does what follows. A commit waits `patience_seconds` for its turn."""

    write: Callable[[Take], object]
    conclude: Callable[[Sequence[Commit]], None]
    patience_seconds: float


def apply_all(db: Database, group: Sequence[Commit], apply: Apply) -> None:
    """Apply the commits of a group inside a transaction. One that is refused leaves nothing behind; an error
    of the database is raised, because it may have undone the others."""
    if len(group) == 1:
        group[0].events = apply(db, group[0])
        return
    for one in group:
        one.events, one.error = None, None
        db.execute("SAVEPOINT one_of_many")
        try:
            one.events = apply(db, one)
        except StoreError:
            raise
        except VestigeError as error:
            one.error = error
            db.execute("ROLLBACK TO SAVEPOINT one_of_many")
        db.execute("RELEASE SAVEPOINT one_of_many")


class CommitQueue:
    """The commits of one store that wait for its writer, first come, first served."""

    def __init__(self) -> None:
        self._waiting: deque[Commit] = deque()
        self._led = False
        self._lock = threading.Lock()

    def run(self, mine: Commit, writer: GroupWriter) -> list[LogEvent]:
        """Commit, alone or together with others. StoreBusy if its turn does not come in time."""
        with self._lock:
            self._waiting.append(mine)
            mine.leads = not self._led
            self._led = True
        try:
            if not mine.leads:
                self._wait(mine, writer.patience_seconds)
            while mine.leads and not self._is_done(mine, writer):
                pass
        finally:  # also when the thread is interrupted while it waits
            self._hand_over(mine)
        if mine.error is not None:
            raise mine.error
        return mine.events or []

    def _wait(self, mine: Commit, patience_seconds: float) -> None:
        """Wait until another thread has committed it, or hands the lead over."""
        if mine.woken.wait(patience_seconds):
            return
        with self._lock:
            if not (mine.taken or mine.leads):
                self._waiting.remove(mine)
                raise StoreBusy("Another thread is writing and did not finish in time.")
        mine.woken.wait()  # its transaction has begun, or is about to

    def _is_done(self, mine: Commit, writer: GroupWriter) -> bool:
        """Write the next transaction. False if a group failed as a whole: its members are to be committed one
        by one, so that the failure of one is not that of the others."""
        group: list[Commit] = []

        def take() -> list[Commit]:
            if not group:  # a transaction that is repeated has its group already
                group.extend(self._take(mine))
            return group

        try:
            writer.write(take)
        except Exception as error:
            if len(group) > 1 and not _may_be_kept(error):
                self._separate(group)
                return False
            for one in group or [mine]:
                one.error = error
        except BaseException:  # the thread is interrupted, maybe after the commit: the others must not wait
            for one in group:
                one.error = StoreError("The thread that wrote was interrupted: the outcome is unknown.")
            self._wake(mine, group)
            raise
        else:
            self._conclude(mine, group, writer)
        self._wake(mine, group)
        return True

    def _conclude(self, mine: Commit, group: Sequence[Commit], writer: GroupWriter) -> None:
        try:
            writer.conclude(group)
        except Exception as error:
            for one in group:
                one.error = one.error or error
        finally:
            self._wake(mine, group)

    def _wake(self, mine: Commit, group: Sequence[Commit]) -> None:
        for one in group:
            if one is not mine:
                one.woken.set()

    def _take(self, mine: Commit) -> list[Commit]:
        """The commits of the next transaction: the leader's, and those behind it up to the limits."""
        with self._lock:
            self._waiting.remove(mine)
            group, changes = [mine], len(mine.changes)
            while self._waiting and not mine.alone and not self._waiting[0].alone:
                changes += len(self._waiting[0].changes)
                if len(group) == MOST_TOGETHER or changes > MOST_CHANGES:
                    break
                group.append(self._waiting.popleft())
            for one in group:
                one.taken = True
        return group

    def _separate(self, group: Sequence[Commit]) -> None:
        """Put the commits of a group back to the head of the queue, to be committed one by one."""
        with self._lock:
            for one in reversed(group):
                one.alone, one.events, one.error = True, None, None
                self._waiting.appendleft(one)

    def _hand_over(self, mine: Commit) -> None:
        with self._lock:
            if mine in self._waiting:  # its transaction did not begin
                self._waiting.remove(mine)
            if not mine.leads:
                return
            self._led = bool(self._waiting)
            if self._led:
                self._waiting[0].leads = True
                self._waiting[0].woken.set()


def _may_be_kept(error: Exception) -> bool:
    """Whether the transaction may have been committed all the same: then it must not be repeated."""
    return isinstance(error, StoreUnavailable) and error.details.get("outcome") == "unknown"
