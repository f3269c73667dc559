"""The part of the store contract about peers."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from vestige.store.contract.answers import Notice
from vestige.store.contract.processes import Who


class StorePeers(Protocol):
    """The processes that share a store: locks, leader, notices."""

    def alone(self, purpose: str) -> AbstractContextManager[None]:
        """Get exclusive use for work that only one process at a time may do: migrating, embedding anew,
        purging, restoring.

        StoreBusy at once, naming the holder (pid, command, since, purpose), while another process or thread
        has it. Work that takes only a moment (`processes.BRIEF`) waits for its like as writes do, threads in
        their order, and for nothing else. Reads and ordinary writes go on. It ends with the block, or with
        the process.
        """

    def processes(self) -> list[Who]:
        """The processes that have this store open, as far as known, the first one first."""

    def has_peers(self) -> bool:
        """Whether another process may have this store open, even if it is not visible at the moment."""

    def leading(self) -> bool:
        """Whether this process leads the processes that use this store. The first process that asks becomes
        the leader, until it closes the store or ends, or until a database server restarts: so call it before
        each piece of a leader's work. A read-only store never leads."""

    @property
    def lingers_in(self) -> str | None:
        """The name of a file that still holds deleted text because a reader uses an earlier snapshot; None
        otherwise. The text is removed with the first write after that, or when any process closes the
        store."""

    def notify(self, process: str, messages: Sequence[str]) -> None:
        """Send messages to the other processes that use this store; the last `MOST_NOTICES` are kept.

        Messages are JSON objects. Deleting a memory removes all of them, because they may quote it, and one
        whose `quotes` (a list of ids) names a deleted memory is not stored. StoreBusy instead of a long wait.
        """

    def notices(self, after: int) -> list[Notice]:
        """The messages after a number, oldest first; all of them when that number is higher than every
        message: then the store was set back, by a restore or a server that lagged."""

    def listening(self) -> AbstractContextManager[Callable[[float], bool]]:
        """A function that waits up to the given seconds for a message, and returns whether there may be one:
        at the first call, when one arrives, after a failure, and whenever the store cannot know. StoreError
        when the store fails, after which it may be called again; it returns False early when the store is
        closed."""
