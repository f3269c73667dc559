"""What an operation works with: the `Engine` (one per process) and the `Call` (one per request)."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime

from vestige.core.errors import Cancelled, DeadlineExceeded, Forbidden, InvalidInput, NotFound
from vestige.core.events import EventBus
from vestige.core.invocation import Progress, ignore_progress
from vestige.core.models import EVERYTHING, ROOT_SCOPE, Access, Filter, Memory, covers
from vestige.core.nearest import nearest_name
from vestige.embed.background import EmbedderSource
from vestige.embed.rerank import RerankerSource
from vestige.settings.settings import Settings
from vestige.store.contract.store import MemoryStore


def _never_cancelled() -> bool:
    return False


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


# -- What a caller with a limited reach is told and may write, where that is not the store's own matter.


def unseen(call: Call, memory_ids: Iterable[str]) -> set[str]:
    """Those of these memories that the caller must not hear of, because they are out of reach or gone."""
    asked = set(memory_ids)
    if call.access == EVERYTHING or not asked:
        return set()
    found = call.engine.store.get_many(sorted(asked), access=call.access)
    return asked - {record.memory.id for record in found}


def placed(call: Call, memory: Memory) -> Memory:
    """A new memory where its teller reaches it: one without domains gets his own.

    InvalidInput where he has several, Forbidden where he names others only.
    """
    domains = call.access.domains
    if domains is None or set(domains) & set(memory.domains):
        return memory
    told = ", ".join(domains)
    if memory.domains:
        raise Forbidden(
            f"This caller may write only into the domains {told}.", details={"domains": list(domains)}
        )
    if len(domains) != 1:
        raise InvalidInput(
            f"Say into which of the domains {told} it belongs.",
            hint="Give one of them in `domains`, or use a key that is limited to one.",
            details={"argument": "domains", "domains": list(domains)},
        )
    return replace(memory, domains=domains)


def searched(call: Call, scope: str) -> str:
    """Where a search in a scope is told and learned: there, or at its caller's home if that is beyond his
    reach."""
    reach = call.access.scopes
    return scope if reach is None or any(covers(one, scope) for one in reach) else call.scope


# -- Which scopes there are.


def require_scope(call: Call, scope: str | None) -> None:
    """Raise NotFound for a scope that was asked for and holds nothing, and name the nearest that does."""
    store = call.engine.store
    if scope is None or store.count(Filter(scope=scope), access=call.access):
        return
    known = store.stats(access=call.access, now=call.engine.now()).by_scope
    close = nearest_name(scope, list(known))
    raise NotFound(
        f"There is no memory in the scope {scope}.",
        hint=f"Did you mean {close}?" if close else "Leave `scope` out to look where you are.",
        details={"scope": scope},
    )
