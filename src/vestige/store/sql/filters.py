"""SQL conditions made from filters, and values converted to columns and back (times, JSON, vectors)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import (
    NO_METADATA,
    ROOT_SCOPE,
    SHARED_SCOPE,
    Access,
    Filter,
    LearningState,
    check_text,
    enclosing,
    nul_in_json,
    utc,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
UNMATCHABLE_TEXT = "\u2028\u205f\u2028"
"""Blank, so it is never a label."""


def moment_text(moment: datetime) -> str:
    """A time as fixed-width text in UTC: sorting the text sorts the times."""
    return (moment if moment.tzinfo is UTC else utc(moment)).isoformat(timespec="microseconds")


def optional_text(moment: datetime | None) -> str | None:
    return None if moment is None else moment_text(moment)


def optional_moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def microseconds(moment: datetime) -> int:
    """A time as an integer, exactly."""
    return (utc(moment) - EPOCH) // MICROSECOND


def from_microseconds(count: int) -> datetime:
    return EPOCH + timedelta(microseconds=count)


def json_text(value: object) -> str:
    """A value as compact JSON; InvalidInput for what JSON cannot hold."""
    try:
        return orjson.dumps(value, default=_plain).decode("utf-8")
    except TypeError as exc:
        raise InvalidInput(f"A value cannot be stored as JSON: {exc}.") from exc


def json_mapping(text: str) -> Mapping[str, Any]:
    """A mapping back from its JSON, closed against changes; TypeError for anything else."""
    if text == "{}":
        return NO_METADATA
    read = orjson.loads(text)
    if not isinstance(read, dict):
        raise TypeError("it is not a JSON object")
    return MappingProxyType(read)


def json_strings(text: str) -> tuple[str, ...]:
    if text == "[]":
        return ()
    read = orjson.loads(text)
    if not isinstance(read, list) or not all(isinstance(one, str) for one in read):
        raise ValueError("it is not a JSON list of texts")
    return tuple(read)


class SqlList(list[Any]):
    """Values for `IN (SELECT value FROM json_each(?))`: one statement text for any number of them, so that
    it is prepared once. SQLite gets a JSON array; PostgreSQL has arrays of its own."""

    def __conform__(self, _protocol: object) -> str:
        try:
            written = orjson.dumps(list(self))
        except orjson.JSONEncodeError:
            return json_text(storable_params(self))
        # SQLite would read a text only up to the NUL, and find what is called so.
        return json_text(storable_params(self)) if nul_in_json(written) else written.decode()


def storable_params(values: Sequence[Any]) -> list[Any]:
    """The values of a query, with a name that nothing has in place of text that no store can hold."""
    return [
        SqlList(storable_params(one)) if isinstance(one, list) else UNMATCHABLE_TEXT if _unfit(one) else one
        for one in values
    ]


def is_read_only(sql: str) -> bool:
    """Whether a statement only reads."""
    return sql.startswith(("SELECT", "WITH"))


def _unfit(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        check_text("text", value)
    except InvalidInput:
        return True
    return False


def listed(values: NDArray[np.int64] | Iterable[str] | Iterable[int]) -> SqlList:
    """Keys, ids or other names as one parameter."""
    return SqlList(values.tolist() if isinstance(values, np.ndarray) else values)


def keys_from_text(text: str | None) -> NDArray[np.int64]:
    """The keys of a `group_concat`: one text costs half as much as a row for each."""
    return np.fromstring(text, dtype=np.int64, sep=",") if text else np.empty(0, dtype=np.int64)


class VectorBytes(bytes):
    """A vector as it is written. SQLite keeps the bytes; PostgreSQL has a type for vectors."""


def vector_bytes(vector: NDArray[np.float32]) -> VectorBytes:
    """A vector as little-endian float32, whatever the machine."""
    return VectorBytes(np.ascontiguousarray(vector, dtype="<f4").tobytes())


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


T = TypeVar("T")
Convert = Callable[[Any], Any]  # between a field and what the driver takes and gives

KINDS: Mapping[str, tuple[Convert, Convert]] = {
    "moment": (moment_text, datetime.fromisoformat),
    "microseconds": (microseconds, from_microseconds),
    "strings": (json_text, json_strings),
    "mapping": (json_text, json_mapping),
    "flag": (int, bool),
    "state": (attrgetter("value"), LearningState),
}
"""The kinds of fields that a driver does not take as they are: how they are written and read."""


class RowCodec:
    """The columns of a table that have the names of a value's fields, from their names and kinds, such as
    `id tags:strings expires_at:moment?`, where `?` means that the field may be None."""

    def __init__(self, spec: str) -> None:
        named = [one.partition(":")[::2] for one in spec.split()]
        self.columns = tuple(name for name, _ in named)
        self.readers = {name: KINDS[kind.removesuffix("?")][1] for name, kind in named if kind}
        self._reads = [
            (at, self.readers[name], kind.endswith("?")) for at, (name, kind) in enumerate(named) if kind
        ]
        self._values = attrgetter(*self.columns)
        self._writers = [(at, KINDS[kind.removesuffix("?")][0]) for at, (_, kind) in enumerate(named) if kind]

    def to_row(self, value: object) -> tuple[Any, ...]:
        row = list(self._values(value))
        for at, write in self._writers:
            if row[at] is not None:
                row[at] = write(row[at])
        return tuple(row)

    def fields(self, row: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.columns, self._values_of(row), strict=True))

    def reader(self, kind: type[T]) -> Callable[[Sequence[Any]], T]:
        """A function from a row to a frozen value with exactly these fields, as it was stored: without the
        checks that it passed then."""
        setters = [vars(kind)[name].__set__ for name in self.columns]

        def read(row: Sequence[Any]) -> T:
            made = object.__new__(kind)
            for put, value in zip(setters, self._values_of(row), strict=True):
                put(made, value)
            return made

        return read

    def _values_of(self, row: Sequence[Any]) -> list[Any]:
        found = list(row)
        for at, read, optional in self._reads:
            if not optional or found[at] is not None:
                found[at] = read(found[at])
        return found


# -- A `Filter` and an `Access` as SQL conditions over `memories m`, applied inside every search

SHARES_DOMAIN = (
    "EXISTS (SELECT 1 FROM json_each(m.domains) d WHERE d.value IN (SELECT value FROM json_each(?)))"
)
LABELS = ("source", "author", "agent_id", "session_id", "thread", "position", "origin")

Param = str | int | float | SqlList


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition. `excluded` is its negation, where that names few rows and an index finds them. `keys` is
    SQL that selects the keys it lets through, where that needs no access to the memories themselves. `bound`
    names the time that its only parameter is compared with. The keys that a `fleeting` one lets
    through are not worth keeping for a later search, or depend on more than the memories."""

    sql: str
    params: tuple[Param, ...] = ()
    excluded: str | None = None
    keys: str | None = None
    bound: str | None = None
    fleeting: bool = False

    @classmethod
    def of(cls, sql: str, *params: Param, fleeting: bool = False) -> "Condition":
        return cls(sql=sql, params=params, fleeting=fleeting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """Bounds on retention at `now`: applied by numpy, not by SQL."""

    now: datetime
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlConditions:
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

    def by_creation(self) -> tuple["SqlConditions", "SqlConditions"]:
        """The conditions on the time of creation, and the others."""
        return self.apart("created_from", "created_to")

    def apart(self, *bounds: str) -> tuple["SqlConditions", "SqlConditions"]:
        """The conditions with these bounds, and the others."""
        timed = tuple(one for one in self.conditions if one.bound in bounds)
        rest = tuple(one for one in self.conditions if one not in timed)
        return SqlConditions(conditions=timed), SqlConditions(conditions=rest, retained=self.retained)

    @property
    def selects(self) -> bool:
        """Whether some condition does more than to exclude a few."""
        return any(one.excluded is None for one in self.conditions)

    def parted(self) -> tuple["SqlConditions", tuple[Condition, ...]]:
        """The conditions that select, and those that exclude only a few."""
        few = tuple(one for one in self.conditions if one.excluded is not None)
        rest = tuple(one for one in self.conditions if one.excluded is None)
        return SqlConditions(conditions=rest, retained=self.retained), few


def clause(where: Filter, access: Access, *, then: Sequence[int] = ()) -> SqlConditions:
    """The SQL of a filter within an access. With `known_at`, `then` are the keys of memories that were
    revised since and passed in their state at that time; the others are filtered by their present row.
    `history.clause_at` finds them."""
    asked = (*_placed(where), *_labelled(where), *_timed(where))
    if where.known_at is not None:
        asked = tuple(_known(where.known_at, asked, then))
    conditions = (*_accessible(access), *asked, *_visible(where))
    return SqlConditions(conditions=conditions, retained=_retained(where))


def within(column: str, scopes: Sequence[str]) -> Condition:
    """A condition that a scope column is one of `scopes` or below one. Scopes compare as byte strings and `0`
    is the character after `/`, so this is one range of the index, without siblings such as /a-b beside /a."""
    if ROOT_SCOPE in scopes:
        return Condition.of("TRUE")
    one = f"({column} >= ? AND {column} < ? AND ({column} = ? OR {column} >= ?))"
    params = tuple(param for scope in scopes for param in (scope, f"{scope}0", scope, f"{scope}/"))
    return Condition.of(" OR ".join([one] * len(scopes)) or "FALSE", *params)


def shares_domain(domains: Sequence[str]) -> Condition:
    return Condition.of(SHARES_DOMAIN, listed(domains))


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
    """A condition that a scope is `scope`, or (unless `only`) below it, or (with `inherited`) above it."""
    own = Condition.of(f"{column} = ?", scope) if only else within(column, (scope,))
    if not inherited:
        return own
    above, shared = enclosing(scope), within(column, (SHARED_SCOPE,))
    marks = ", ".join("?" * len(above))
    return Condition.of(
        f"({own.sql} OR {shared.sql} OR {column} IN ({marks}))", *own.params, *shared.params, *above
    )


def _labelled(where: Filter) -> Iterator[Condition]:
    if where.node_types:
        yield Condition.of("m.node_type IN (SELECT value FROM json_each(?))", listed(where.node_types))
    if where.exclude_types:
        yield Condition.of("m.node_type NOT IN (SELECT value FROM json_each(?))", listed(where.exclude_types))
    for label in LABELS:
        value: Param | None = getattr(where, label)
        if value is not None:
            yield Condition.of(f"m.{label} = ?", value)
    if where.pinned is not None:
        yield Condition.of("m.pinned = ?", int(where.pinned))


def _timed(where: Filter) -> Iterator[Condition]:
    if where.created_from is not None:
        yield Condition(
            sql="m.created_at >= ?",
            params=(moment_text(where.created_from),),
            bound="created_from",
            fleeting=True,
        )
    if where.created_to is not None:
        yield Condition(
            sql="m.created_at < ?", params=(moment_text(where.created_to),), bound="created_to", fleeting=True
        )
    if where.valid_at is not None:
        then = (moment_text(where.valid_at),)
        yield Condition(
            sql="m.valid_from IS NULL OR m.valid_from <= ?",
            params=then,
            excluded="m.valid_from > ?",
            bound="valid_from",
        )
        yield Condition(
            sql="m.valid_until IS NULL OR m.valid_until > ?",
            params=then,
            excluded="m.valid_until <= ?",
            bound="valid_until",
        )


def _known(known_at: datetime, asked: Iterable[Condition], then: Sequence[int]) -> Iterator[Condition]:
    """Conditions that a memory existed at a moment and matched then."""
    moment = moment_text(known_at)
    yield Condition.of("m.created_at <= ?", moment, fleeting=True)
    present = SqlConditions(conditions=(Condition.of("m.updated_at <= ?", moment), *asked))
    yield Condition.of(
        f"({present.sql}) OR m.key IN (SELECT value FROM json_each(?))",
        *present.params,
        listed(then),
        fleeting=True,
    )


def _visible(where: Filter) -> Iterator[Condition]:
    """Conditions on suppression, archive, due time and recalls, for the present state whatever `known_at`."""
    if not where.include_suppressed:
        yield Condition(sql="m.suppression_count = 0", excluded="m.suppression_count > 0")
    if where.suppressed_by is not None:
        since = moment_text(where.suppressed_by)
        # Few are suppressed, and an index has them. By itself SQLite would look through those of a scope.
        suppressed = "SELECT key FROM memories WHERE suppression_count > 0 AND suppressed_at <= ?"
        yield Condition.of(f"m.key IN ({suppressed})", since, fleeting=True)
    if where.archived is not None:
        inside, outside = "m.archived_at IS NOT NULL", "m.archived_at IS NULL"
        yield Condition.of(inside) if where.archived else Condition(sql=outside, excluded=inside)
    if where.due_by is not None:
        yield Condition(
            sql="m.key IN (SELECT key FROM strengths WHERE due_at <= ?)",
            params=(moment_text(where.due_by),),
            bound="due_by",
            fleeting=True,
        )
    if where.recalled is not None:
        # Asked row by row, so that a page follows the order of creation only as far as it needs.
        counted = "SELECT times_retrieved + times_useful + reps FROM strengths WHERE key = m.key"
        yield Condition.of(f"({counted}) {'>' if where.recalled else '='} 0", fleeting=True)


def _retained(where: Filter) -> Retained | None:
    if where.min_retention is None and where.max_retention is None:
        return None
    low = float("-inf") if where.min_retention is None else where.min_retention
    high = float("inf") if where.max_retention is None else where.max_retention
    if where.now is None:
        raise InvalidInput("A filter or an order by retention needs `now`.")
    return Retained(now=where.now, low=low, high=high)
