"""A statement that is composed of parts, each of which returns rows of its own kind."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from vestige.cognition.ranking.bm25 import Integers
from vestige.core.lazy_dataclass import dataclass
from vestige.store.postgres.server.values import SentKeys, sent_keys
from vestige.store.sql import filters
from vestige.store.sql.database import Database
from vestige.store.sql.filters import VectorBytes
from vestige.store.sql.search.pool import Mask

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """The memories that pass a filter: these keys (None: all), without those that are left out."""

    keys: Integers | None
    left_out: Integers

    def mask(self, size: int) -> Mask | None:
        """A mask by key of those that pass, below `size`; None when all do. A key beyond has lost its row of
        `places`, which is for the doctor to repair."""
        if self.keys is None and not len(self.left_out):
            return None
        mask = np.full(size, self.keys is None, dtype=np.bool_)
        if self.keys is not None:
            mask[self.keys[self.keys < size]] = True
        mask[self.left_out[self.left_out < size]] = False
        return mask

    def condition(self, column: str) -> SqlPart:
        """The condition that a column is a key which passes."""
        if self.keys is not None:
            kept = np.setdiff1d(self.keys, self.left_out) if len(self.left_out) else self.keys
            return SqlPart(sql=f"{column} = ANY(?::bigint[])", params=(sent_keys(kept),))
        if len(self.left_out):
            return SqlPart(sql=f"{column} <> ALL(?::bigint[])", params=(sent_keys(self.left_out),))
        return SqlPart(sql="TRUE")
