"""What an operation works with: the `Engine` (one per process) and the `Call` (one per request).

Below them are the checks of a caller's access that the store does not make itself.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from vestige.core.caller import NeverCancelled, Progress, ignore_progress
from vestige.core.errors import Cancelled, DeadlineExceeded, Forbidden, InvalidInput, NotFound, nearest_name
from vestige.core.events import Actor, Event, EventBus
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import (
    EVERYTHING,
    PROJECTS_SCOPE,
    ROOT_SCOPE,
    SHARED_SCOPE,
    Access,
    Filter,
    Memory,
    covers,
)
from vestige.core.origin import Origin
from vestige.embed.background import EmbedderSource
from vestige.embed.rerank import RerankerSource
from vestige.settings.settings import Settings
from vestige.store.contract.code_index import NO_INDEXES, CodeIndexes
from vestige.store.contract.store import MemoryStore

if TYPE_CHECKING:
    from vestige.store.contract.sessions import SessionSource


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """The state of the background worker, with counts since the process started."""

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
    """The parts of a running Vestige. The application passes in the clock and the source of ids."""

    store: MemoryStore
    embedders: EmbedderSource
    reranker: RerankerSource
    settings: Settings
    events: EventBus
    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    new_id: Callable[[], str]
    entropy: Callable[[int], bytes]
    sessions: "SessionSource"
    background: Callable[[], WorkerStatus] = WorkerStatus
    react: Callable[[Event], bool] = lambda _event: False
    """React to an event that is not sent to listeners; False if nothing does so soon."""
    code_indexes: CodeIndexes = NO_INDEXES
    scope_of: Callable[[Path], str] = lambda _folder: ROOT_SCOPE
    """The scope of the project around a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request: its access, permissions, deadline, cancellation and progress callback.

    `scope` is the default scope of the caller: it writes and searches there if it names no scope. `folder` is
    where the caller works, if that is known and the caller may see it. `local` is set for the user at the
    command line, who may name any file; `on_this_machine` also for an agent of that user, over stdio or the
    socket for hooks, and never for a client of the network. `zone` is the time zone in which the caller's
    words are read and times are printed for the caller; times in fields are UTC. `origin` is that of the
    texts it brings. `in_context` is set if a model reads the answer, as that of an MCP tool.
    `patience_seconds` is how long a reaction waits for other writers, if that is less than the store's own
    setting. `actor` is named by the events of the call.
    """

    engine: Engine
    access: Access = EVERYTHING
    scope: str = ROOT_SCOPE
    folder: Path | None = None
    local: bool = False
    on_this_machine: bool = False
    zone: tzinfo = UTC
    origin: Origin = Origin.ASSISTANT
    in_context: bool = False
    permissions: frozenset[str] = field(default_factory=lambda: frozenset({"read", "write", "admin"}))
    deadline: float | None = None
    patience_seconds: float | None = None
    cancelled: Callable[[], bool] = NeverCancelled().is_set
    progress: Progress = ignore_progress
    request_id: str = ""
    actor: Actor | None = None

    def local_now(self) -> datetime:
        """The time, in the caller's zone."""
        return self.engine.now().astimezone(self.zone)

    @property
    def sees_installation(self) -> bool:
        """Whether the caller may see the files, addresses and processes of this Vestige: only an
        administrator with access to everything."""
        return "admin" in self.permissions and self.access == EVERYTHING

    def check(self) -> None:
        """Raise Cancelled or DeadlineExceeded if the caller has gone or time is up. Long work calls it."""
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
        """Raise Forbidden if the caller's access is limited to scopes or domains."""
        if self.access != EVERYTHING:
            raise Forbidden(
                "This needs access to the whole store, and your access is limited.",
                hint="Use a key that is not limited to scopes or domains.",
            )


# -- The access of the caller behind an event, so that reactions never exceed it

_CAUSE_ACCESS: ContextVar[Access] = ContextVar("cause_access", default=EVERYTHING)


@contextmanager
def caused_by(access: Access) -> Iterator[None]:
    """Run a block for a caller with this access. Reactions to its events get the same access."""
    before = _CAUSE_ACCESS.set(access)
    try:
        yield
    finally:
        _CAUSE_ACCESS.reset(before)


def access_of_cause() -> Access:
    """The access of the caller whose request runs on this thread."""
    return _CAUSE_ACCESS.get()


# -- What a caller with limited access may see and write


def inaccessible_ids(call: Call, memory_ids: Iterable[str]) -> set[str]:
    """Those of these memory ids that the caller must not see: not accessible, or deleted."""
    asked = set(memory_ids)
    if call.access == EVERYTHING or not asked:
        return set()
    found = call.engine.store.get_many(sorted(asked), access=call.access)
    return asked - {record.memory.id for record in found}


def in_writable_domain(call: Call, memory: Memory) -> Memory:
    """The memory in a domain that the caller may write to: its own, or the caller's only one. Raises
    InvalidInput if the caller has several domains and names none, Forbidden if it names only others."""
    domains = call.access.domains
    if domains is None or set(domains) & set(memory.domains):
        return memory
    names = ", ".join(domains)
    if memory.domains:
        raise Forbidden(f"You may write only to the domains {names}.", details={"domains": list(domains)})
    if len(domains) != 1:
        raise InvalidInput(
            f"Name the domain of the memory: one of {names}.",
            hint="Give it in `domains`, or use a key that is limited to one domain.",
            details={"argument": "domains", "domains": list(domains)},
        )
    return replace(memory, domains=domains)


def user_scope(call: Call) -> str | None:
    """The scope of what is about the user and names no scope. None where that stays in the caller's scope:
    `memory.isolate` is set, the caller's scope was chosen (it is neither the root nor a project), or the
    caller may not write there."""
    chosen = call.scope != ROOT_SCOPE and not covers(PROJECTS_SCOPE, call.scope)
    if chosen or call.engine.settings.memory.isolate:
        return None
    return SHARED_SCOPE if may_write_to(call, SHARED_SCOPE) else None


def may_write_to(call: Call, scope: str) -> bool:
    return call.access.scopes is None or any(covers(allowed, scope) for allowed in call.access.scopes)


def require_writable(call: Call, scope: str) -> None:
    """Raise Forbidden for a scope outside the caller's access."""
    if not may_write_to(call, scope):
        allowed = ", ".join(call.access.scopes or ())
        raise Forbidden(
            f"You may not write into the scope {scope}.",
            hint=f"Choose a scope at or below {allowed}, or use a key with access to {scope}.",
            details={"scope": scope},
        )


def visible_scope(call: Call, scope: str) -> str:
    """The scope under which a search is announced and learned from: the one that was searched, or the
    caller's default scope without access to that."""
    return scope if may_write_to(call, scope) else call.scope


def require_scope(call: Call, scope: str | None) -> None:
    """Raise NotFound for a scope that holds no memory, and suggest the nearest name that does."""
    store = call.engine.store
    if scope is None or store.count(Filter(scope=scope), access=call.access):
        return
    known = store.stats(access=call.access, now=call.engine.now()).by_scope
    close = nearest_name(scope, list(known))
    raise NotFound(
        f"There is no memory in the scope {scope}.",
        hint=f"Did you mean {close}?" if close else "Leave `scope` out to use the default scope.",
        details={"scope": scope},
    )
