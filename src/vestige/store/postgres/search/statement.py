"""A statement that is composed of parts, each of which returns rows of its own kind."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from vestige.store.postgres.server.values import SentKeys
from vestige.store.sql import filters
from vestige.store.sql.database import Database
from vestige.store.sql.filters import VectorBytes

Param = filters.Param | VectorBytes | SentKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlPart:
    """A select and its values. As a part of `together` it selects the columns of an `Answer`."""

    sql: str
    params: tuple[Param, ...] = ()


class Answer(NamedTuple):
    """A row: its kind, and the columns of that kind."""

    kind: str
    number: int
    keys: bytes | None
    numbers: bytes | None
    text: str | None
    terms: str | None


def together(db: Database, parts: Iterable[SqlPart]) -> Iterator[Answer]:
    """The answers of all parts, from one statement; none without parts."""
    several = list(parts)
    if several:
        sql = " UNION ALL ".join(f"({one.sql})" for one in several)
        yield from map(Answer._make, db.execute(sql, [param for one in several for param in one.params]))
