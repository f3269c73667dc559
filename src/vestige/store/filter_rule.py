"""The rule by which a memory, present or past, passes a filter. Every store obeys it.

Conditions on strength (`due_by`, `recalled`, retention) are not checked here, because strength has no past.
"""

from collections.abc import Callable

from vestige.core.models import SHARED_SCOPE, Access, Filter, Memory, covers, enclosing

EQUAL_FIELDS = ("source", "author", "agent_id", "session_id", "thread", "position", "origin")


def passes(memory: Memory, where: Filter, access: Access) -> bool:
    return passed(memory, where, access) and stands(memory, where)


def passed(memory: Memory, where: Filter, access: Access) -> bool:
    """The same for a state of a memory, perhaps an earlier one, without the conditions of `stands`."""
    return access.allows(memory) and all(check(memory, where) for check in CHECKS)


def stands(memory: Memory, where: Filter) -> bool:
    """Whether a memory is visible now: a suppressed or archived one is hidden for every `known_at`."""
    if where.archived is not None and (memory.archived_at is not None) != where.archived:
        return False
    since = memory.suppressed_at if memory.suppression_count > 0 else None
    if where.suppressed_by is not None and (since is None or since > where.suppressed_by):
        return False
    return where.include_suppressed or memory.suppression_count == 0


def _in_place(memory: Memory, where: Filter) -> bool:
    if where.scope is not None and not _in_scope(memory.scope, where.scope, where):
        return False
    wanted = ((name, getattr(where, name)) for name in EQUAL_FIELDS)
    return all(value is None or value == getattr(memory, name) for name, value in wanted)


def inherits(scope: str, other: str) -> bool:
    return covers(SHARED_SCOPE, other) or other in enclosing(scope)


def in_scope(scope: str, asked: str, *, inherited: bool) -> bool:
    """Whether a scope is the requested one, below it, or (with `inherited`) above it."""
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


CHECKS: tuple[Callable[[Memory, Filter], bool], ...] = (_in_place, _labelled, _of_type, _in_time, _pinned)
"""The conditions of a filter; each checks a few of its fields."""
