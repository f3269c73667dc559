"""The two sides of a transfer: what a backend offers so that its rows can be carried away or taken in."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from vestige.store.contract.store import MemoryStore
from vestige.store.sql.database import Database, Surfaces

Progress = Callable[[float, float | None, str | None], None]
"""Told how much is done, of how much, and what is being done."""


class UnfitRow(Exception):
    """A database does not take a row; the message is its reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRefusal:
    """A row that was not carried, and why. `key` are the values it is found by, as JSON."""

    table: str
    key: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationState:
    """What is found where a store could be put. `is_store` says whether there is one already, of the present
    schema; `facts` are for people."""

    is_store: bool
    facts: Mapping[str, str | int | bool | None] = field(default_factory=dict)


class Side(Protocol):
    """An open store whose tables can be reached."""

    @property
    def store(self) -> MemoryStore:
        """The store, as everybody else has it."""

    @property
    def surfaces(self) -> Surfaces:
        """What it keeps in its own way."""

    def reading(self) -> AbstractContextManager[Database]:
        """A connection that sees one moment. Text that is no UTF-8 comes with surrogates in it."""

    def writing(self) -> AbstractContextManager[Database]:
        """A connection inside the one write transaction: committed at the end, undone on any error."""

    def attempt(self, db: Database) -> AbstractContextManager[None]:
        """Write some rows, or none: Unfit when the database does not take one of them."""

    def has_receipt(self, db: Database) -> bool:
        """Whether there is room for the receipt of a transfer."""

    def number_on(self, db: Database) -> None:
        """Have the store give numbers that follow those of the rows that were put in with theirs."""


class End(Protocol):
    """Where a transfer comes from or goes to."""

    @property
    def name(self) -> str:
        """What it is called, without any password."""

    @property
    def settings(self) -> Sequence[str]:
        """What is to be set so that Vestige works with this store, for people."""

    def now(self) -> datetime:
        """The time."""

    def seal(self) -> str | None:
        """A hash of the store's bytes, while it is not open here; None where they cannot be seen."""

    def source(self) -> AbstractContextManager[Side]:
        """The store that is there, opened so that nothing in it can be changed."""

    def destination(self) -> AbstractContextManager[Side]:
        """A store to write to, which is made where there is none."""

    def look(self) -> DestinationState:
        """Whether a store could be written here; StoreError if not. Nothing is changed."""
