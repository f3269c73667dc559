"""Callers (permissions, access and default scope) and `Invocation`, one call of an operation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import tzinfo
from typing import Any, Protocol

from vestige.core.errors import Forbidden
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, Access, covers, normal_scope, scope_filter
from vestige.core.origin import Origin

PERMISSIONS = ("read", "write", "admin")  # All permissions, from least to most.


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller of an operation. `name` is for the log; `scope` is its preferred default scope, `zone` the
    time zone it states."""

    name: str
    permissions: frozenset[str]
    access: Access = EVERYTHING
    scope: str | None = None
    zone: tzinfo | None = None

    def home(self, otherwise: str) -> str:
        """The scope for writes and searches that name none; always within the caller's access."""
        allowed = self.access.scopes
        wanted = self.scope or otherwise
        if not allowed or any(covers(scope, wanted) for scope in allowed):
            return wanted
        return allowed[0]


def narrowed(
    caller: Caller, scope: str | None, domain: str | None, refuse: Callable[[str], Forbidden]
) -> Caller:
    """The caller with access to a scope and a domain only, which must be within the access it has; else the
    error that `refuse` makes of "scope" or "domain"."""
    access = caller.access
    if scope is not None:
        scope = normal_scope(scope)
        if access.scopes is not None and not any(covers(one, scope) for one in access.scopes):
            raise refuse("scope")
        access = Access(scopes=scope_filter((scope,)), domains=access.domains)
        caller = replace(caller, scope=scope)
    if domain is not None:
        if access.domains is not None and domain not in access.domains:
            raise refuse("domain")
        access = Access(scopes=access.scopes, domains=(domain,))
    return replace(caller, access=access)


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
    engine's monotonic clock. `local` is set for the user of this machine, who may name any file. `origin` is
    that of the texts it brings, `client` the program that an MCP client says it is.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    caller: Caller = LOCAL_USER
    request_id: str = ""
    progress: Progress = ignore_progress
    cancelled: CancelSignal = field(default_factory=NeverCancelled)
    deadline: float | None = None
    roots: Sequence[str] = ()
    local: bool = False
    origin: Origin = Origin.ASSISTANT
    client: str | None = None
