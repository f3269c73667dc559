"""Callers (permissions, access and default scope) and `Invocation`, one call of an operation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from vestige.core.models import EVERYTHING, Access, covers

PERMISSIONS = ("read", "write", "admin")  # All permissions, from least to most.


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller of an operation. `name` is for the log; `scope` is its preferred default scope."""

    name: str
    permissions: frozenset[str]
    access: Access = EVERYTHING
    scope: str | None = None

    def home(self, otherwise: str) -> str:
        """The scope for writes and searches that name none; always within the caller's access."""
        allowed = self.access.scopes
        wanted = self.scope or otherwise
        if not allowed or any(covers(scope, wanted) for scope in allowed):
            return wanted
        return allowed[0]


LOCAL_USER = Caller(name="local user", permissions=frozenset(PERMISSIONS))
"""The user of the machine that the store is on."""


# -- One call of an operation, a tool or a resource: everything a transport passes

Progress = Callable[[float, float | None, str | None], None]
"""Called with (done, total, message) while a long call runs."""


def ignore_progress(done: float, total: float | None, message: str | None) -> None:
    """The progress callback of a call that no one watches."""


class CancelSignal(Protocol):
    """Reports whether a call was cancelled, such as a `threading.Event`."""

    def is_set(self) -> bool:
        """Whether the call was cancelled."""


class NeverCancelled:
    """The signal of a call that cannot be cancelled."""

    def is_set(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """A request for one operation (by name), one MCP tool (by name) or one MCP resource (by URI).

    `roots` are the URIs of the folders the client works in, if known. `deadline` is a time of the
    engine's monotonic clock.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    caller: Caller = LOCAL_USER
    request_id: str = ""
    progress: Progress = ignore_progress
    cancelled: CancelSignal = field(default_factory=NeverCancelled)
    deadline: float | None = None
    roots: Sequence[str] = ()
