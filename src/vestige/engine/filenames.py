"""Names of files in a folder that we choose: plain ones that a caller may give, dated ones of our own."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from vestige.errors import InvalidInput

MAX_NAME_BYTES = 200
_FORBIDDEN = frozenset('/\\:*?"<>|')
Made = TypeVar("Made")


def under_free_name(
    folder: Path, stem: str, suffix: str, *, now: datetime, make: Callable[[Path], Made]
) -> Made:
    """Make a file under a dated name; one that is taken, also meanwhile by somebody else, gets a number."""
    number = 1
    while True:
        counter = f"-{number}" if number > 1 else ""
        path = folder / f"{stem}-{now:%Y%m%d-%H%M%S}{counter}{suffix}"
        try:
            return make(path)
        except InvalidInput:
            if not path.exists():
                raise
        number += 1


def check_file_name(name: str, *, folder: str, example: str) -> None:
    """Refuse what is more than the plain name of a file."""
    plain = name.isprintable() and not set(name) & _FORBIDDEN and not name.startswith((".", "~"))
    if not plain or not name.strip() or len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        raise InvalidInput(
            f"{name!r} is not the plain name of a file.",
            hint=f"Give a name without folders, such as {example}; it goes into {folder}/.",
            details={"argument": "path"},
        )
