"""Compares the schema of a store with that of an empty database which has just been migrated (ADR 0025)."""

from collections.abc import Iterable, Iterator, Mapping

from vestige.core.lazy_dataclass import dataclass
from vestige.store.contract.trouble import Trouble

DERIVED = ("index", "view", "trigger")
"""Kinds of objects that hold no rows, so that they can be created again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaObject:
    """A table, or an object that belongs to one. `definition` is compared; it is empty where only the name is
    known or matters. `statement` creates an object of a derived kind. `table` is the table without which it
    cannot exist."""

    kind: str
    name: str
    table: str | None = None
    definition: str = ""
    statement: str = ""

    def __str__(self) -> str:
        return f"the {self.kind} {self.name}"


SchemaObjects = Mapping[tuple[str, str], SchemaObject]
"""The objects of a schema by kind and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDifference:
    """An object that the migrations create and that is missing, or has another definition."""

    expected: SchemaObject
    missing: bool

    @property
    def derived(self) -> bool:
        return self.expected.kind in DERIVED

    def repair(self) -> Iterator[str]:
        """The statements that create a derived object as the migrations do."""
        if self.derived:
            if not self.missing:
                yield f"DROP {self.expected.kind} {self.expected.name}"
            yield self.expected.statement

    def trouble(self) -> Trouble:
        """The difference as `MemoryStore.examine` reports it."""
        says = "It lacks" if self.missing else "It has another definition than the migrations of"
        message = f"{says} {self.expected}."
        if self.derived:
            return Trouble(check="schema", message=message, severity="warning", repair="schema")
        return Trouble(check="schema", message=message)


def by_name(objects: Iterable[SchemaObject]) -> SchemaObjects:
    return {(one.kind, one.name): one for one in objects}


def differences(expected: SchemaObjects, present: SchemaObjects) -> list[SchemaDifference]:
    """What the migrations create and the store does not have so. Further objects of a store are not looked
    at: indexes of vectors and receipts of transfers come and go, and people add views. Of a missing table
    only the table is named."""
    found = []
    for key, wanted in expected.items():
        held = present.get(key)
        if held is None:
            if wanted.table is None or ("table", wanted.table) in present:
                found.append(SchemaDifference(expected=wanted, missing=True))
        elif wanted.definition and held.definition != wanted.definition:
            found.append(SchemaDifference(expected=wanted, missing=False))
    return found
