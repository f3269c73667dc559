"""The part of the store contract about peers."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from vestige.store.contract.answers import Notice
from vestige.store.contract.processes import Who


class StorePeers(Protocol):
    """The processes that share a store: locks, leader, notices."""

    def alone(self, purpose: str) -> AbstractContextManager[None]:
        """Hold what only one process at a time may do: migrating, embedding anew, purging, restoring.

        StoreBusy at once, naming who holds it (pid, command, since, purpose), while another does; so also for
        another thread. What is over in a moment (`processes.BRIEF`) waits for its like as writes do, threads
        in their order and for each other anew, and for nothing else. Reads and ordinary writes go on. It ends
        with the block, or with the process.
        """

    def processes(self) -> list[Who]:
        """Who has this store open, as far as that can be told, the one that came first before the others."""

    def has_company(self) -> bool:
        """Whether another process may have this store open; also when it cannot be seen at the moment."""

    def leading(self) -> bool:
        """Whether this process leads those at work on this store. Who asks while nobody does leads from then
        on, until the store is closed, the process ends, however, or a database server forgets it, as with a
        restart: so it is asked before any work of a leader. A read-only store never leads."""

    @property
    def lingers_in(self) -> str | None:
        """The name of a file in which deleted text still lies, because somebody reads the store as it was
        before; None when there is none. It goes with the first write after that, or when a process closes
        the store, whoever deleted it."""

    def notify(self, process: str, messages: Sequence[str]) -> None:
        """Tell the other processes at work on this store; the last `MOST_NOTICES` are kept.

        Messages are JSON objects. Deleting a memory takes all of them away, because they may speak of it, and
        one whose `quotes` (a list of ids) names a deleted memory is not taken. StoreBusy rather than a long
        wait.
        """

    def notices(self, after: int) -> list[Notice]:
        """What was told after a notice, oldest first; everything when all there is came before: then the
        store was set back, by a restore or a server that lagged."""

    def listening(self) -> AbstractContextManager[Callable[[float], bool]]:
        """What it gives waits for a notice for so many seconds, and says whether there may be one: at the
        first call, when one is told, after a failure, and whenever the store cannot know. StoreError when the
        store fails, after which it may be called again; it ends early, with False, when the store is closed.
        """
