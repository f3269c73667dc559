"""Which scopes there are."""

from vestige.engine.context import Call
from vestige.errors import NotFound
from vestige.models import Filter
from vestige.nearest import nearest_name


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
