"""Whether a memory, as it is or as it was, passes a filter: the one definition every store can use.

What a filter says about strength (`due_by`, retention) is not judged here, because strength has no past.
"""

from collections.abc import Callable
from datetime import datetime

from vestige.core.models import SHARED_SCOPE, Access, Filter, Memory, covers, enclosing

EQUAL_FIELDS = ("source", "author", "agent_id", "session_id", "thread", "position")


def passes(memory: Memory, where: Filter, access: Access) -> bool:
    """Whether a memory is within the access and what the filter asks for."""
    return passed(memory, where, access) and stands(memory, where)


def passed(memory: Memory, where: Filter, access: Access) -> bool:
    """Whether this state of a memory, perhaps an earlier one, is so, but for whether it `stands` now."""
    return access.allows(memory) and all(check(memory, where) for check in CHECKS)


def stands(memory: Memory, where: Filter) -> bool:
    """Whether a memory as it is now may come to mind: what is out of mind is so for every `known_at`."""
    if where.archived is not None and (memory.archived_at is not None) != where.archived:
        return False
    if where.suppressed_by is not None and not _suppressed_by(memory, where.suppressed_by):
        return False
    return where.include_suppressed or memory.suppression_count == 0


def _suppressed_by(memory: Memory, moment: datetime) -> bool:
    since = memory.suppressed_at
    return memory.suppression_count > 0 and since is not None and since <= moment


def _in_place(memory: Memory, where: Filter) -> bool:
    if where.scope is not None and not _in_scope(memory.scope, where.scope, where):
        return False
    return all(getattr(where, name) in (None, getattr(memory, name)) for name in EQUAL_FIELDS)


def inherits(scope: str, other: str) -> bool:
    """Whether what is in `other` holds in `scope` from above."""
    return covers(SHARED_SCOPE, other) or other in enclosing(scope)


def in_scope(scope: str, asked: str, *, inherited: bool) -> bool:
    """Whether a scope is the one asked for, or below it, or holds there from above."""
    return covers(asked, scope) or (inherited and inherits(asked, scope))


def _in_scope(scope: str, asked: str, where: Filter) -> bool:
    if where.scope_only:
        return scope == asked or (where.inherited and inherits(asked, scope))
    return in_scope(scope, asked, inherited=where.inherited)


def _labelled(memory: Memory, where: Filter) -> bool:
    tags, domains = set(memory.tags), set(memory.domains)
    if where.domains and domains.isdisjoint(where.domains):
        return False
    if where.tags_any and tags.isdisjoint(where.tags_any):
        return False
    return tags.issuperset(where.tags_all)


def _of_type(memory: Memory, where: Filter) -> bool:
    kind = memory.node_type
    return (not where.node_types or kind in where.node_types) and kind not in where.exclude_types


def _in_time(memory: Memory, where: Filter) -> bool:
    if where.created_from is not None and memory.created_at < where.created_from:
        return False
    if where.created_to is not None and memory.created_at >= where.created_to:
        return False
    return where.valid_at is None or memory.valid_at(where.valid_at)


def _pinned(memory: Memory, where: Filter) -> bool:
    return where.pinned in (None, memory.pinned)


CHECKS: tuple[Callable[[Memory, Filter], bool], ...] = (
    _in_place,
    _labelled,
    _of_type,
    _in_time,
    _pinned,
)
"""What a memory has to pass; each looks at a few fields of the filter."""
