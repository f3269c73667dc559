"""Backups of the store: `backup`."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field

from vestige.engine.care.backup import BackupRequest, backup, backup_files, backup_folder
from vestige.engine.context import Call
from vestige.operations.registry.arguments import FilePath, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import count, day, size, styled, table, warning


class BackedUp(Wire):
    """The path of the backup, the older ones removed, and what it does not contain."""

    path: str
    size_bytes: int
    timestamp: datetime
    removed: list[str] = []
    left_out: list[str] = []


class BackupFileView(Wire):
    """A backup: `kind` is database or snapshot (of the whole data directory). `rotated` ones make room for
    later ones; `last` is the one that was made last."""

    file: str
    size_bytes: int
    at: datetime
    kind: str
    rotated: bool
    last: bool


class BackupFiles(Wire):
    """The backups in the folder beside the store, newest first."""

    action: str = "backups"
    folder: str
    total: int
    size_bytes: int
    backups: list[BackupFileView]


def render_backups(found: BackupFiles) -> str:
    if not found.backups:
        return f"There is no backup in {found.folder}. Make one: `vestige backup`"
    rows = ((one.file, size(one.size_bytes), day(one.at), one.kind) for one in found.backups)
    listed = table(("file", "size", "made", "kind"), rows)
    return f"{listed}\n\n{count(found.total, 'backup')}, {size(found.size_bytes)}, in {found.folder}."


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


@registry.operation(
    "installation.backups",
    permission="admin",
    effect="none",
    example={},
    command="backups",
    title="List backups",
    render=render_backups,
)
def list_backups(
    call: Call,
    limit: Annotated[int, Field(ge=1, le=1000, description="Maximum number of backups.")] = 50,
    offset: Annotated[int, Field(ge=0, le=1_000_000, description="Backups to skip.")] = 0,
) -> BackupFiles:
    """List the backups in backups/, newest first: file, size and time.

    A backup appears there only after it was checked by opening it. Those made elsewhere are not listed.
    """
    found = backup_files(call)
    return BackupFiles(
        folder=str(backup_folder(call)),
        total=len(found),
        size_bytes=sum(one.size for one in found),
        backups=[
            BackupFileView(
                file=one.path.name,
                size_bytes=one.size,
                at=one.at,
                kind="snapshot" if one.snapshot else "database",
                rotated=one.rotated,
                last=one.last,
            )
            for one in found[offset : offset + limit]
        ],
    )
