"""Diagnoses a store that cannot be opened. The file is only read."""

import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from vestige.core.errors import VestigeError
from vestige.store.contract.trouble import Trouble
from vestige.store.sqlite.backup.restore import inspect
from vestige.store.sqlite.check.checks import checks, found
from vestige.store.sqlite.connection import connect, primary_code
from vestige.store.sqlite.file.foreign import is_database
from vestige.store.sqlite.opening import BACKUPS

BEFORE_ANYTHING_ELSE = ("pages", "schema", "permissions", "leftovers", "disk")
"""The checks that need no schema of this version."""


def examine_file(path: Path, now: datetime) -> list[Trouble]:
    """The problems of a file, and the newest backup in its folder that can be restored."""
    return [*_of_file(path, now), _way_back(path)]


def _of_file(path: Path, now: datetime) -> list[Trouble]:
    try:
        if not path.exists():
            return [_broken(f"There is no file {path}.")]
        if not path.stat().st_size:
            return [_broken(f"{path} is empty.")]
        if not is_database(path):
            return [_broken(f"{path} is not a database: it was overwritten, or is another file.")]
        return _of_pages(path, now)
    except OSError as exc:
        return [_broken(f"{path} cannot be read: {exc.strerror or exc}.")]
    except sqlite3.Error as exc:
        why = "another process has it locked" if primary_code(exc) == sqlite3.SQLITE_BUSY else str(exc)
        return [_broken(f"{path} cannot be opened: {why}.")]


def _of_pages(path: Path, now: datetime) -> list[Trouble]:
    wanted = {
        name: look for name, look in checks(path, now, deep=True).items() if name in BEFORE_ANYTHING_ELSE
    }
    # Not immutable while there is a log beside it: the file is complete only with it.
    live = Path(f"{path}-wal").exists()
    uri = f"{path.absolute().as_uri()}?{'mode=ro' if live else 'mode=ro&immutable=1'}"
    with closing(connect(path, uri=uri)) as db:
        troubles = [trouble for name, look in wanted.items() for trouble in found(db, name, look)]
    return [replace(one, repair=None) for one in troubles]  # that takes an open store


def _way_back(path: Path) -> Trouble:
    """The newest backup that is intact; they are read through, the newest first."""
    folder = path.parent / BACKUPS
    files = sorted(folder.glob("*.db"), key=lambda one: one.stat().st_mtime, reverse=True)
    for file in files:
        with suppress(VestigeError):  # damaged too, or of another program
            held = inspect(file)
            since = f", changed last at {held.newest}" if held.newest else ""
            whole = f"{file} is intact and holds {held.memories:,} memories{since}"
            return Trouble(
                check="backups",
                message=f"{whole}: `vestige restore {file}` restores it and keeps the present file.",
                severity="warning",
            )
    return Trouble(
        check="backups",
        message=f"No backup in {folder} can be restored. Look for one elsewhere, or for an export; `sqlite3 "
        f"{path} .recover` may save some rows.",
        severity="warning",
    )


def _broken(message: str) -> Trouble:
    return Trouble(check="file", message=message)
