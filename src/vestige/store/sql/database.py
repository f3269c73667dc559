"""What the modules here need of a database and of the store that keeps it.

Their SQL is SQLite's, in the part that PostgreSQL has too or that `postgres.dialect` can spell its way
(ADR 0019): `?` for values, `x IN (SELECT value FROM json_each(?))` for a `Listed`, `json_extract` for a
field of a JSON text.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from vestige.store.sql.search.index_rows import Analysis

Row = tuple[Any, ...]  # what a driver gives
Params = Sequence[Any]  # what it takes
T = TypeVar("T")


class Rows(Protocol):
    """The answer of a statement."""

    @property
    def rowcount(self) -> int:
        """The number of rows it changed; only where statements are awaited, which `written` does not do."""

    def __iter__(self) -> Iterator[Any]:
        """Its rows."""

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """All rows that are left."""


class Database(Protocol):
    """A connection inside a transaction. The error of a statement may be raised only when its rows are read,
    when a later one is run, or when the transaction ends."""

    def execute(self, sql: str, parameters: Params = (), /) -> Rows:
        """Run one statement."""

    def executemany(self, sql: str, parameters: Iterable[Params], /) -> object:
        """Run one statement for each of these."""


class Transactions(Protocol):
    """The source of connections."""

    def reading(self, *, snapshot: bool = True) -> AbstractContextManager[Database]:
        """A connection for reading; with `snapshot` all statements see the same moment."""

    def read(self, work: Callable[[Database], T], *, snapshot: bool = True) -> T:
        """The result of `work`, with such a connection; run again where the database ended the session."""

    def writing(self, patience_seconds: float | None = None) -> AbstractContextManager[Database]:
        """A connection inside the one write transaction: committed at the end, undone on any error."""

    def written(self, work: Callable[[Database], T], patience_seconds: float | None = None) -> T:
        """The result of `work` in such a transaction; run again where the database rolled it back."""


class Surfaces(Protocol):
    """What each database does its own way: the keys of memories, the index of their words, and anything else
    that holds their text."""

    def ask_last_key(self, db: Database) -> Rows:
        """A row with the last key of a memory, not read yet, or no row before the first; keys are never used
        again."""

    def put_words(self, db: Database, analysed: "Mapping[int, Analysis]", *, new: bool = False) -> None:
        """Write the terms of memories, replacing what is there; nothing is there of `new` ones."""

    def delete_words(self, db: Database, keys: Sequence[int]) -> None:
        """Remove the terms of memories from every place that holds them."""

    def empty_words(self, db: Database) -> None:
        """Create the index of words anew and empty, whatever its state. The same transaction then fills it,
        however long that takes."""

    def erase(self, db: Database, keys: Sequence[int] = ()) -> None:
        """Prepare a deletion of text: see that it leaves the files too, and with the vectors of these
        memories what was made of them."""
