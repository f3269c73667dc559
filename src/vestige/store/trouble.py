"""What a store finds wrong in itself."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from vestige.errors import InvalidInput

Severity = Literal["warning", "broken"]

MOST_IDS = 20
"""How many memories a trouble names; `count` says how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One thing that is not as it should be.

    `broken` means that answers are wrong or something is lost. `ids` are memories it is about, some of
    `count`. `repair` is what `MemoryStore.mend` takes; None where nothing derived can put it right.
    """

    check: str
    message: str
    severity: Severity = "broken"
    count: int = 1
    ids: tuple[str, ...] = ()
    repair: str | None = None


def about(
    check: str,
    message: str,
    memory_ids: Sequence[str],
    *,
    repair: str | None = None,
    severity: Severity = "broken",
) -> list[Trouble]:
    """The trouble of these memories, told once for all of them; nothing when there are none."""
    if not memory_ids:
        return []
    first = tuple(sorted(memory_ids)[:MOST_IDS])
    return [
        Trouble(
            check=check, message=message, count=len(memory_ids), ids=first, repair=repair, severity=severity
        )
    ]


def no_repair(name: str) -> InvalidInput:
    """The refusal of a repair that a store does not have."""
    return InvalidInput(f"There is no repair called {name!r}.", details={"repair": name})


def file_software() -> dict[str, str]:
    """The SQLite in this Python: it decides which files can be read, and how well they are checked."""
    return {"sqlite": sqlite3.sqlite_version}
