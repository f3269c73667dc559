"""What the migrations of a store make: what of it is missing can be named, and partly made again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vestige.store.contract.trouble import Trouble

DERIVED = ("index", "view", "trigger")
"""What holds nothing of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaObject:
    """What has a name of its own, and the statement that makes it."""

    kind: str
    name: str
    statement: str = ""

    def __str__(self) -> str:
        return f"the {self.kind} {self.name}"


def missing(plan: Mapping[str, SchemaObject], present: Iterable[str]) -> list[SchemaObject]:
    """What was planned under names that nothing has."""
    there = set(present)
    return [one for name, one in plan.items() if name not in there]


def to_make_again(lacking: Iterable[SchemaObject]) -> list[str]:
    """The statements that make again what holds nothing of its own."""
    return [one.statement for one in lacking if one.kind in DERIVED]


def troubles(lacking: Iterable[SchemaObject]) -> list[Trouble]:
    """What there is to say of it."""
    return [
        Trouble(check="schema", message=f"It lacks {one}.", severity="warning", repair="schema")
        if one.kind in DERIVED
        else Trouble(check="schema", message=f"It lacks {one}.")
        for one in lacking
    ]
