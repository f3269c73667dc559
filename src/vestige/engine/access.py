"""What a caller with a limited reach is told and may write, where that is not the store's own matter."""

from collections.abc import Iterable
from dataclasses import replace

from vestige.core.errors import Forbidden, InvalidInput, NotFound
from vestige.core.models import EVERYTHING, Filter, Memory, covers
from vestige.core.nearest import nearest_name
from vestige.engine.context import Call


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
