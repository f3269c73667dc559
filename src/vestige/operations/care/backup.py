"""Copies of the store: `backup`."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field

from vestige.engine.care.backup import BackupRequest, backup
from vestige.engine.context import Call
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import count


class BackedUp(Wire):
    """Where the copy is, which older ones went for it, and what of the data directory is not in it."""

    path: str
    size_bytes: int
    timestamp: datetime
    removed: list[str] = []
    left_out: list[str] = []


def render_backup(made: BackedUp) -> str:
    """The backup for a person."""
    lines = [f"{made.path} ({made.size_bytes:,} bytes), checked by opening it."]
    if made.removed:
        lines.append(f"{count(len(made.removed), 'older backup')} removed.")
    lines += [f"! Not in it: {name}" for name in made.left_out]
    return "\n".join(lines)


@registry.operation(
    "backup",
    permission="admin",
    effect="write",
    example={},
    positional=("path",),
    lane="long",
    render=render_backup,
)
def backup_store(
    call: Call,
    path: Annotated[
        str | None,
        Field(description="A file name in backups/ (any path on the command line); default: a dated one."),
    ] = None,
    rotate: Annotated[
        bool,
        Field(
            description="Make one of those that take turns in backups/: of them the last `backup.keep` stay."
        ),
    ] = False,
    snapshot: Annotated[
        bool,
        Field(
            description="Pack the whole data directory, settings and exports included, into one .tar.gz. "
            "A path that ends so does the same."
        ),
    ] = False,
) -> BackedUp:
    """Copy the whole store to a file while it is in use, and check the copy by opening it.

    Nothing is overwritten. Only `rotate` removes older backups, and only when the new one was checked.
    """
    made = backup(call, BackupRequest(path=Path(path) if path else None, rotate=rotate, snapshot=snapshot))
    return BackedUp(
        path=str(made.path),
        size_bytes=made.size,
        timestamp=call.engine.now(),
        removed=[str(one) for one in made.removed],
        left_out=list(made.left),
    )
