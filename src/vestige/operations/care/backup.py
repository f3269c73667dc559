"""Backups of the store: `backup`."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field

from vestige.engine.care.backup import BackupRequest, backup
from vestige.engine.context import Call
from vestige.operations.registry.arguments import FilePath, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import count, size, styled, warning


class BackedUp(Wire):
    """The path of the backup, the older ones removed, and what it does not contain."""

    path: str
    size_bytes: int
    timestamp: datetime
    removed: list[str] = []
    left_out: list[str] = []


def render_backup(made: BackedUp) -> str:
    lines = [f"{styled('link', made.path)} ({size(made.size_bytes)}), checked by opening it."]
    if made.removed:
        lines.append(f"{count(len(made.removed), 'older backup')} removed.")
    lines += [warning(f"Not in the backup: {name}") for name in made.left_out]
    return "\n".join(lines)


@registry.operation(
    "backup", permission="admin", example={}, positional=("path",), long=True, render=render_backup
)
def backup_store(
    call: Call,
    path: Annotated[
        FilePath | None,
        Field(description="File name in backups/ (any path on the command line). Default: a dated name."),
    ] = None,
    rotate: Annotated[
        bool,
        Field(
            description="Make a rotating backup in backups/; only the last `backup.keep` of them are kept."
        ),
    ] = False,
    snapshot: Annotated[
        bool,
        Field(
            description="Pack the whole data directory, with settings and exports, into one .tar.gz. A "
            "path with that ending does the same."
        ),
    ] = False,
) -> BackedUp:
    """Copy the whole store to a file while it is in use, and verify the copy by opening it.

    Nothing is overwritten. Only `rotate` removes older backups, and only after the new one was verified.
    """
    made = backup(call, BackupRequest(path=Path(path) if path else None, rotate=rotate, snapshot=snapshot))
    return BackedUp(
        path=str(made.path),
        size_bytes=made.size,
        timestamp=call.engine.now(),
        removed=[str(one) for one in made.removed],
        left_out=list(made.left),
    )
