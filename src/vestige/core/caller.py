"""Callers: permissions, access and default scope."""

from dataclasses import dataclass

from vestige.core.models import EVERYTHING, Access, covers

PERMISSIONS = ("read", "write", "admin")
"""All permissions, from least to most."""


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
