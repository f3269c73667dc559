"""Who calls: what he may do, what he may reach, and where he is at home."""

from dataclasses import dataclass

from vestige.core.models import EVERYTHING, Access, covers

PERMISSIONS = ("read", "write", "admin")
"""What can be allowed, from least to most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Somebody who calls operations. `name` is for the log, `scope` what he is at home in if he says so."""

    name: str
    permissions: frozenset[str]
    access: Access = EVERYTHING
    scope: str | None = None

    def home(self, otherwise: str) -> str:
        """Where he writes and searches without naming a scope: never outside of what he may reach."""
        reach = self.access.scopes
        wanted = self.scope or otherwise
        if not reach or any(covers(scope, wanted) for scope in reach):
            return wanted
        return reach[0]


LOCAL_USER = Caller(name="local user", permissions=frozenset(PERMISSIONS))
"""Whoever can start Vestige on the machine of the store."""
