"""Checks of the files around a SQLite store: permissions, leftovers, disk space."""

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from vestige.store.contract.trouble import Trouble
from vestige.store.merge.forks import AFTER_MARK, MARK
from vestige.store.sqlite.backup.replace_file import beside
from vestige.store.sqlite.backup.restore import STAGING
from vestige.store.sqlite.file import identity
from vestige.store.sqlite.opening import BACKUPS
from vestige.store.sqlite.processes.presence import FOLDER

OTHERS = 0o077
OTHERS_WRITE = 0o022
LONG_JOURNAL = 128 << 20
ABANDONED = timedelta(days=1)
"""The age at which an unfinished file counts as abandoned."""
PARTIAL = ".partial"


def permissions(path: Path) -> Iterator[Trouble]:
    """Files that others than their owner may read or write."""
    if os.name == "nt":  # there are no such permissions
        return
    yield from _of_files("permissions", "Other users of this machine may open", exposed(path))
    folder = path.parent.stat().st_mode
    if folder & OTHERS_WRITE and not folder & stat.S_ISVTX:
        yield Trouble(
            check="permissions",
            # Not ours to change: it may be a directory that is shared on purpose.
            message=f"Other users of this machine may put files into {path.parent}.",
            severity="warning",
        )


def exposed(path: Path) -> Iterator[Path]:
    """Files of the store that are open to others than its owner."""
    files = [path, *beside(path), *path.parent.glob(f"{path.name}.*")]
    folders = [path.parent / name for name in (BACKUPS, FOLDER, f"{path.name}.index")]
    copies = (path.parent / BACKUPS).glob("*")
    for one in dict.fromkeys([*files, *folders, *copies]):
        with suppress(FileNotFoundError):  # SQLite removes its journals when the last connection closes
            if not one.is_symlink() and one.stat().st_mode & OTHERS:
                yield one


def leftovers(path: Path, now: datetime) -> Iterator[Trouble]:
    """Unfinished files of processes that ended in the middle."""
    yield from _of_files("leftovers", "Unfinished files were left behind:", abandoned(path, now))


def _of_files(check: str, message: str, files: Iterable[Path]) -> Iterator[Trouble]:
    """A warning that names some of these files; none without any."""
    if named := [one.name for one in files]:
        message = f"{message} {', '.join(named[:5])}."
        yield Trouble(check=check, message=message, severity="warning", count=len(named), repair=check)


def abandoned(path: Path, now: datetime) -> Iterator[Path]:
    """Unfinished files and folders without a write for a day."""
    folder = path.parent
    for place in (folder, folder / BACKUPS, Path(f"{path}.index")):
        for one in sorted(place.iterdir()) if place.is_dir() else ():
            if one.name.endswith(PARTIAL) or one.name.startswith(STAGING):
                with suppress(FileNotFoundError):
                    changed = datetime.fromtimestamp(one.lstat().st_mtime, UTC)
                    if now - changed > ABANDONED:
                        yield one


def journal(path: Path) -> Iterator[Trouble]:
    """A write-ahead log that a reader keeps from being truncated."""
    with suppress(FileNotFoundError):
        size = Path(f"{path}-wal").stat().st_size
        if size > LONG_JOURNAL:
            yield Trouble(
                check="journal",
                message=f"The write-ahead log has {size >> 20} MB: a reader prevents it from being emptied. "
                "Stop that process.",
                severity="warning",
            )


PRESENT = (
    "SELECT count(DISTINCT seq), coalesce(max(seq), 0), max(at) FROM events"
    " WHERE (node = ? OR (node >= ? AND node < ?)) AND seq <= ?"
)
"""The events of a node up to a number, also those that got names of their own from a clone."""


def lost_writes(db: sqlite3.Connection, path: Path) -> Iterator[Trouble]:
    """Writes that were acknowledged and are not in the log of events."""
    for one in identity.lost_writes(path):
        names = (one.node, f"{one.node}{MARK}", f"{one.node}{AFTER_MARK}", one.last)
        present, last, at = db.execute(PRESENT, names).fetchone()
        if present < one.last:
            after = f" after {at}" if at else ""
            yield Trouble(
                check="lost writes",
                message=f"Events {last + 1} to {one.last} of this installation were acknowledged{after}, the "
                f"last at about {one.at}, and are gone: {one.why}. Restore a backup that has them, or sync "
                f"with a machine that does. If they are not needed, delete {path.name}{identity.LOST}.",
                count=one.last - present,
            )


def disk(path: Path) -> Iterator[Trouble]:
    """Disk space for a backup and some more."""
    size, (total, _, free) = path.stat().st_size, shutil.disk_usage(path.parent)
    if total and free < 2 * size:  # some file systems do not say
        yield Trouble(
            check="disk",
            message=f"{free >> 20} MB of disk are free, and the database has {size >> 20} MB. Free some.",
            severity="warning",
        )
