"""A `Filter` and an `Access` as SQL conditions over `memories m`, applied inside every search."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from vestige.core.errors import InvalidInput
from vestige.core.models import ROOT_SCOPE, SHARED_SCOPE, Access, Filter, enclosing
from vestige.store.sql.columns import SqlList, listed, moment_text

SHARES_DOMAIN = (
    "EXISTS (SELECT 1 FROM json_each(m.domains) d WHERE d.value IN (SELECT value FROM json_each(?)))"
)
LABELS = ("source", "author", "agent_id", "session_id", "thread", "position")

Param = str | int | float | SqlList


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition. `excluded` is its negation, where that names few rows and an index finds them. `keys` is
    SQL that selects the keys it lets through, where that needs no access to the memories themselves."""

    sql: str
    params: tuple[Param, ...] = ()
    excluded: str | None = None
    keys: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """Bounds on retention at `now`: applied by numpy, not by SQL."""

    now: datetime
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlConditions:
    """All conditions of a search."""

    conditions: tuple[Condition, ...]
    retained: Retained | None = None

    @property
    def sql(self) -> str:
        """The WHERE clause; always true when nothing filters."""
        return " AND ".join(f"({one.sql})" for one in self.conditions) or "TRUE"

    @property
    def params(self) -> tuple[Param, ...]:
        """The values of its placeholders, in order."""
        return tuple(param for one in self.conditions for param in one.params)

    def parted(self) -> tuple["SqlConditions", tuple[Condition, ...]]:
        """The conditions that select, and those that exclude only a few."""
        few = tuple(one for one in self.conditions if one.excluded is not None)
        rest = tuple(one for one in self.conditions if one.excluded is None)
        return SqlConditions(conditions=rest, retained=self.retained), few


def clause(where: Filter, access: Access, *, then: Sequence[int] = ()) -> SqlConditions:
    """The SQL of a filter within an access.

    With `known_at`, `then` are the keys of memories that were revised since and passed in their state at that
    time; the others are filtered by their present row. `history.clause_at` finds them.
    """
    asked = (*_placed(where), *_labelled(where), *_timed(where))
    if where.known_at is not None:
        asked = tuple(_known(where.known_at, asked, then))
    conditions = (*_accessible(access), *asked, *_visible(where), *_due(where))
    return SqlConditions(conditions=conditions, retained=_retained(where))


def within(column: str, scopes: Sequence[str]) -> Condition:
    """A condition that a scope column is one of `scopes` or below one. Scopes compare as byte strings and `0`
    is the character after `/`, so this is one range of the index, without siblings such as /a-b beside /a."""
    if ROOT_SCOPE in scopes:
        return Condition(sql="TRUE")
    one = f"({column} >= ? AND {column} < ? AND ({column} = ? OR {column} >= ?))"
    params = tuple(param for scope in scopes for param in (scope, f"{scope}0", scope, f"{scope}/"))
    return Condition(sql=" OR ".join([one] * len(scopes)) or "FALSE", params=params)


def shares_domain(domains: Sequence[str]) -> Condition:
    """A condition that a memory has one of the domains."""
    return Condition(sql=SHARES_DOMAIN, params=(listed(domains),))


def _accessible(access: Access) -> Iterator[Condition]:
    if access.scopes is not None and ROOT_SCOPE not in access.scopes:
        yield within("m.scope", access.scopes)
    if access.domains is not None:
        yield shares_domain(access.domains)


def _placed(where: Filter) -> Iterator[Condition]:
    if where.scope is not None and (where.scope != ROOT_SCOPE or where.scope_only):
        yield in_scope("m.scope", where.scope, inherited=where.inherited, only=where.scope_only)
    if where.domains:
        yield shares_domain(where.domains)
    if where.tags_any:
        yield _tagged("tag IN (SELECT value FROM json_each(?))", listed(where.tags_any))
    for tag in where.tags_all:
        yield _tagged("tag = ?", tag)


def _tagged(which: str, param: Param) -> Condition:
    tagged = f"key FROM memory_tags WHERE {which}"
    return Condition(sql=f"m.key IN (SELECT {tagged})", params=(param,), keys=f"SELECT DISTINCT {tagged}")


def in_scope(column: str, scope: str, *, inherited: bool, only: bool = False) -> Condition:
    """A condition that a scope column is `scope`, or (unless `only`) below it, or (with `inherited`) above
    it."""
    own = Condition(sql=f"{column} = ?", params=(scope,)) if only else within(column, (scope,))
    if not inherited:
        return own
    above, shared = enclosing(scope), within(column, (SHARED_SCOPE,))
    marks = ", ".join("?" * len(above))
    return Condition(
        sql=f"({own.sql} OR {shared.sql} OR {column} IN ({marks}))",
        params=(*own.params, *shared.params, *above),
    )


def _labelled(where: Filter) -> Iterator[Condition]:
    if where.node_types:
        yield Condition(
            sql="m.node_type IN (SELECT value FROM json_each(?))", params=(listed(where.node_types),)
        )
    if where.exclude_types:
        yield Condition(
            sql="m.node_type NOT IN (SELECT value FROM json_each(?))",
            params=(listed(where.exclude_types),),
        )
    for label in LABELS:
        value: Param | None = getattr(where, label)
        if value is not None:
            yield Condition(sql=f"m.{label} = ?", params=(value,))
    if where.pinned is not None:
        yield Condition(sql="m.pinned = ?", params=(int(where.pinned),))


def _timed(where: Filter) -> Iterator[Condition]:
    if where.created_from is not None:
        yield Condition(sql="m.created_at >= ?", params=(moment_text(where.created_from),))
    if where.created_to is not None:
        yield Condition(sql="m.created_at < ?", params=(moment_text(where.created_to),))
    if where.valid_at is not None:
        then = (moment_text(where.valid_at),)
        yield Condition(
            sql="m.valid_from IS NULL OR m.valid_from <= ?", params=then, excluded="m.valid_from > ?"
        )
        yield Condition(
            sql="m.valid_until IS NULL OR m.valid_until > ?", params=then, excluded="m.valid_until <= ?"
        )


def _known(known_at: datetime, asked: Iterable[Condition], then: Sequence[int]) -> Iterator[Condition]:
    """Conditions that a memory existed at a moment and matched then."""
    moment = moment_text(known_at)
    yield Condition(sql="m.created_at <= ?", params=(moment,))
    present = SqlConditions(conditions=(Condition(sql="m.updated_at <= ?", params=(moment,)), *asked))
    yield Condition(
        sql=f"({present.sql}) OR m.key IN (SELECT value FROM json_each(?))",
        params=(*present.params, listed(then)),
    )


def _visible(where: Filter) -> Iterator[Condition]:
    """Conditions on suppression and archive, for the present state whatever `known_at`."""
    if not where.include_suppressed:
        yield Condition(sql="m.suppression_count = 0", excluded="m.suppression_count > 0")
    if where.suppressed_by is not None:
        since = moment_text(where.suppressed_by)
        yield Condition(sql="m.suppression_count > 0 AND m.suppressed_at <= ?", params=(since,))
    if where.archived is not None:
        inside, outside = "m.archived_at IS NOT NULL", "m.archived_at IS NULL"
        yield Condition(sql=inside) if where.archived else Condition(sql=outside, excluded=inside)


def _due(where: Filter) -> Iterator[Condition]:
    if where.due_by is not None:
        yield Condition(
            sql="m.key IN (SELECT key FROM strengths WHERE due_at <= ?)", params=(moment_text(where.due_by),)
        )


def _retained(where: Filter) -> Retained | None:
    if where.min_retention is None and where.max_retention is None:
        return None
    low = float("-inf") if where.min_retention is None else where.min_retention
    high = float("inf") if where.max_retention is None else where.max_retention
    return Retained(now=moment_of(where), low=low, high=high)


def moment_of(where: Filter) -> datetime:
    """The moment at which retention is computed."""
    if where.now is None:
        raise InvalidInput("A filter or an order by retention needs `now`.")
    return where.now
