"""What the modules here need of a database and of the store that keeps it.

Their SQL is SQLite's, in the part that PostgreSQL has too or that `postgres.dialect` can spell its way
(ADR 0019): `?` for values, `x IN (SELECT value FROM json_each(?))` for a `Listed`, `json_extract` for a
field of a JSON text.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from vestige.store.sql.search.word_rows import Analysis

Row = tuple[Any, ...]  # what a driver gives
Params = Sequence[Any]  # what it takes
T = TypeVar("T")


class Rows(Protocol):
    """The answer of a statement."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed; only where statements are waited for, which `written` does not do."""

    def __iter__(self) -> Iterator[Any]:
        """Its rows."""

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """All rows that are left."""


class Database(Protocol):
    """A connection inside a transaction. A statement that fails may tell so only when its rows are read, when
    a later one is run, or when the transaction ends."""

    def execute(self, sql: str, parameters: Params = (), /) -> Rows:
        """Run one statement."""

    def executemany(self, sql: str, parameters: Iterable[Params], /) -> object:
        """Run one statement for each of these."""


class Transactions(Protocol):
    """Where connections come from."""

    def reading(self, *, snapshot: bool = True) -> AbstractContextManager[Database]:
        """A connection for reading; with `snapshot` all statements see the same moment."""

    def read(self, work: Callable[[Database], T], *, snapshot: bool = True) -> T:
        """What `work` answers, read by such a connection; read again where the database ended that."""

    def writing(self, patience_seconds: float | None = None) -> AbstractContextManager[Database]:
        """A connection inside the one write transaction: committed at the end, undone on any error."""

    def written(self, work: Callable[[Database], T], patience_seconds: float | None = None) -> T:
        """What `work` answers, done in such a transaction; done again where the database undid it for no
        fault of ours."""


class Surfaces(Protocol):
    """What a store keeps in its own way: the keys of memories, the index of their words, and whatever else
    holds their text."""

    def next_key(self, db: Database) -> int:
        """The key a new memory gets; keys are never used again."""

    def put_words(self, db: Database, analysed: "Mapping[int, Analysis]") -> None:
        """Write the terms of memories, replacing what is there."""

    def delete_words(self, db: Database, keys: Sequence[int]) -> None:
        """Remove the terms of memories, wherever they are."""

    def empty_words(self, db: Database) -> None:
        """Make the index of words anew and empty, whatever state it is in. What comes next in the transaction
        fills it again, however long that takes."""

    def erase(self, db: Database, keys: Sequence[int] = ()) -> None:
        """Before text is deleted: see to it that it leaves the files too, and with these memories' vectors
        what was made of them."""
