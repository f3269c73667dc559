"""The two sides of a transfer: what a backend offers so that its rows can be read or written."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from datetime import datetime
from typing import Protocol

from vestige.core.lazy_dataclass import dataclass
from vestige.store.contract.store import MemoryStore
from vestige.store.sql.database import Database, Surfaces

Progress = Callable[[float, float | None, str | None], None]
"""Receives the amount done, the total, and what is being done."""


class UnfitRow(Exception):
    """The database refuses a row; the message is its reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRefusal:
    """A row that was not copied, and the reason. `key` are the values of its key, as JSON."""

    table: str
    key: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationState:
    """The state of a destination. `is_store` says whether there is a store of the present schema already;
    `facts` are for people."""

    is_store: bool
    facts: Mapping[str, str | int | bool | None] = field(default_factory=dict)


class Side(Protocol):
    """An open store with access to its tables."""

    @property
    def store(self) -> MemoryStore:
        """The store as its other users have it."""

    @property
    def surfaces(self) -> Surfaces:
        """The parts that each database does its own way."""

    def reading(self) -> AbstractContextManager[Database]:
        """A connection that sees one moment. Text that is not UTF-8 is read with surrogates."""

    def writing(self) -> AbstractContextManager[Database]:
        """A connection inside the one write transaction: committed at the end, undone on any error."""

    def attempt(self, db: Database) -> AbstractContextManager[None]:
        """Write some rows, or none: UnfitRow when the database refuses one of them."""

    def has_receipt(self, db: Database) -> bool:
        """Whether the table for receipts exists."""

    def number_on(self, db: Database) -> None:
        """Set the counters of the store to continue after the numbers of the rows that were written."""


class End(Protocol):
    """The source or destination of a transfer."""

    @property
    def name(self) -> str:
        """The name of the store, without any password."""

    @property
    def settings(self) -> Sequence[str]:
        """The settings for using this store, for people."""

    def now(self) -> datetime:
        """The time."""

    def seal(self) -> str | None:
        """A hash of the store's bytes, while it is not open here; None where they cannot be seen."""

    def source(self) -> AbstractContextManager[Side]:
        """The store, opened so that nothing in it can be changed."""

    def destination(self) -> AbstractContextManager[Side]:
        """A store to write to, created if it does not exist."""

    def look(self) -> DestinationState:
        """The state of this place as a destination; StoreError if no store can be written here. Nothing is
        changed."""
