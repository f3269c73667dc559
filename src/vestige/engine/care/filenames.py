"""Files in a managed folder: plain names that a caller may give, our own dated names, and private files."""

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from vestige.core.errors import InvalidInput

MAX_NAME_BYTES = 200
_FORBIDDEN = frozenset('/\\:*?"<>|')
Made = TypeVar("Made")


def under_free_name(
    folder: Path, stem: str, suffix: str, *, now: datetime, make: Callable[[Path], Made]
) -> Made:
    """Make a file with a dated name; a number is added if another process has taken that name."""
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


def publish(partial: Path, path: Path) -> None:
    """Give a finished file its name, without overwriting another file."""
    try:
        os.link(partial, path)
    except FileExistsError as exc:
        raise name_taken(path) from exc
    except OSError:  # a file system without hard links
        if path.exists():
            raise name_taken(path) from None
        partial.rename(path)


def name_taken(path: Path) -> InvalidInput:
    """The error for a name that exists already. It leaves the folder out, which not every caller may see."""
    return InvalidInput(
        f"{path.name} exists already.",
        hint="Give another name; nothing is overwritten.",
        details={"argument": "path"},
    )


def absolute(path: Path) -> Path:
    """The absolute path, with the user's home in place of a tilde."""
    try:
        return path.expanduser().absolute()
    except RuntimeError as exc:
        raise InvalidInput(f"The home directory in {path} cannot be found.") from exc


def ensure_folder(folder: Path, *, own: Path) -> None:
    """Make sure that a file can be written to a folder. Only `own`, in the data directory, is created: any
    other missing folder was mistyped, or its disk is not mounted and would later hide the file."""
    if folder == own:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    elif not folder.is_dir():
        there = "is not a folder" if folder.exists() else "does not exist"
        raise InvalidInput(
            f"The folder {folder} {there}.",
            hint="Check the path and that its disk is mounted, or create the folder first.",
            details={"argument": "path"},
        )


def private(path: str, flags: int) -> int:
    """Open a file for `open`; a new one is for its owner only."""
    return os.open(path, flags, 0o600)


def check_file_name(name: str, *, place: str, example: str) -> None:
    """Raise InvalidInput unless this is a plain file name; `place` says where the file is or will be."""
    plain = name.isprintable() and not set(name) & _FORBIDDEN and not name.startswith((".", "~"))
    if not plain or not name.strip() or len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        raise InvalidInput(
            f"{name!r} is not a plain file name.",
            hint=f"Give a name without folders, such as {example}; {place}.",
            details={"argument": "path"},
        )
