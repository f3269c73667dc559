"""What an operation works with: the `Engine` (one per process) and the `Call` (one per request)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime

from vestige.core.errors import Cancelled, DeadlineExceeded, Forbidden
from vestige.core.events import EventBus
from vestige.core.invocation import Progress, ignore_progress
from vestige.core.models import EVERYTHING, ROOT_SCOPE, Access
from vestige.embed.background import EmbedderSource
from vestige.embed.rerank import RerankerSource
from vestige.engine.reactions.worker import WorkerStatus
from vestige.settings.settings import Settings
from vestige.store.contract.store import MemoryStore


def _never_cancelled() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The parts of a running Vestige. Clock and ids come from outside (app.py)."""

    store: MemoryStore
    embedders: EmbedderSource
    reranker: RerankerSource
    settings: Settings
    events: EventBus
    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    new_id: Callable[[], str]
    entropy: Callable[[int], bytes]
    background: Callable[[], WorkerStatus] = WorkerStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request: what it may reach, how long it may take, whom it tells how far it is.

    `scope` is where the caller is at home: what it writes and searches without naming a scope. `local` is
    the user at the command line, who may name any file of his own. `patience_seconds` is how long a reaction
    may wait for other writers, where that is less than the store is set to wait.
    """

    engine: Engine
    access: Access = EVERYTHING
    scope: str = ROOT_SCOPE
    local: bool = False
    permissions: frozenset[str] = field(default_factory=lambda: frozenset({"read", "write", "admin"}))
    deadline: float | None = None
    patience_seconds: float | None = None
    cancelled: Callable[[], bool] = _never_cancelled
    progress: Progress = ignore_progress
    request_id: str = ""

    @property
    def sees_installation(self) -> bool:
        """Whether the caller may hear where and how this Vestige runs, its files, addresses and processes:
        whoever may do everything with all of it, as the user of its machine may."""
        return "admin" in self.permissions and self.access == EVERYTHING

    def check(self) -> None:
        """Stop here if the caller has gone or time is up. Long work calls this between steps."""
        if self.cancelled():
            raise Cancelled()
        if self.deadline is not None and self.engine.monotonic() > self.deadline:
            raise DeadlineExceeded()

    def require(self, permission: str) -> None:
        """Raise Forbidden unless the caller has this permission."""
        if permission not in self.permissions:
            raise Forbidden(
                f"This needs the permission `{permission}`.",
                hint="Use a key that has it; "
                f"`vestige keys create --label NAME --permissions {permission}` makes one.",
                details={"permission": permission},
            )

    def require_everything(self) -> None:
        """Raise Forbidden if there are memories that the caller may not reach."""
        if self.access != EVERYTHING:
            raise Forbidden(
                "This is about the whole store, and you may reach only a part of it.",
                hint="Use a key without filters for scopes and domains.",
            )


# -- On whose behalf something happens: what reacts to it goes no further than he does.

_REACH: ContextVar[Access] = ContextVar("reach", default=EVERYTHING)


@contextmanager
def on_behalf_of(access: Access) -> Iterator[None]:
    """Do what the block does for somebody with this reach."""
    before = _REACH.set(access)
    try:
        yield
    finally:
        _REACH.reset(before)


def reach_of_cause() -> Access:
    """The reach of whoever is behind what happens on this thread."""
    return _REACH.get()
