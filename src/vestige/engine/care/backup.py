"""Backups of a store in use: their files, rotation, schedule, and the record of the last one."""

import errno
import logging
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from stat import S_ISREG

from vestige.core.errors import InvalidInput, StoreBusy, StoreError, StoreFull, VestigeError
from vestige.core.events import BackupCompleted
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.core.patterns import lazy_pattern
from vestige.engine.care import snapshot
from vestige.engine.care.filenames import (
    absolute,
    check_file_name,
    ensure_folder,
    name_taken,
    publish,
    under_free_name,
)
from vestige.engine.context import Call
from vestige.engine.revise import find_document, put_document, retry_on_conflict
from vestige.settings.settings import DATABASE_NAME

logger = logging.getLogger(__name__)

BACKUPS = "backups"
KIND = "backup"
"""The kind of document that records when a backup was last made, and when one last failed."""
LAST, FAILED = "last", "failed"
NOTE_SECONDS = 0.5
"""How long recording a backup waits for other writers: the copy is good without the record."""
RETRY = timedelta(hours=1)
"""How long after a failure the next scheduled backup waits."""
WORTH_A_BACKUP, NEGLECTED = 10, timedelta(days=7)
"""A store with this number of memories and no backup for this long causes a warning."""

_ROTATED = lazy_pattern(r"vestige-auto-(?P<number>\d{6,12})-(?P<at>\d{8}-\d{6})\.db", re.ASCII)
_DATED = lazy_pattern(r"vestige-(?:auto-\d{6,12}-)?(?P<at>\d{8}-\d{6})[-.]", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupRequest:
    """Which backup: into a named file, a rotated one, or a snapshot of the whole data directory."""

    path: Path | None = None
    rotate: bool = False
    snapshot: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeBackup:
    """A backup that was checked; `removed` are older rotated ones, `left` the files that a snapshot lacks."""

    path: Path
    size: int
    removed: tuple[Path, ...] = ()
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LastBackup:
    path: Path
    size: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupFile:
    """A file in backups/. The time is the one in its name, else that of the file; `last` marks the backup
    that this installation made last."""

    path: Path
    size: int
    at: datetime
    snapshot: bool
    rotated: bool
    last: bool


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class RotatedBackup:
    """A rotated backup. Its number gives the order, whatever the clock said."""

    number: int
    at: datetime
    path: Path


def backup(call: Call, wanted: BackupRequest) -> MadeBackup:
    """Copy the store to the named file or a dated one in backups/, and check the copy. Only a local user may
    name a path; other callers name a file in that folder."""
    path, packed = wanted.path, wanted.snapshot
    if wanted.rotate and (path is not None or packed):
        raise InvalidInput(
            "`rotate` cannot be combined with `path` or `snapshot`.",
            hint="Leave out `path` and `snapshot`, or leave out `rotate`.",
            details={"argument": "rotate"},
        )
    if wanted.rotate:
        return _rotate(call)
    folder = backup_folder(call)
    if path is not None and not call.local:
        check_file_name(str(path), place=f"it goes into {BACKUPS}/", example="before.db")
        path = folder / path
    packed = packed or (path is not None and path.name.endswith(snapshot.ENDINGS))
    make = _pack if packed else _copy
    if path is not None:
        return make(call, absolute(path))
    suffix = snapshot.ENDINGS[0] if packed else ".db"
    return under_free_name(
        folder, "vestige", suffix, now=call.engine.now(), make=lambda free: make(call, free)
    )


def backup_folder(call: Call) -> Path:
    return absolute(call.engine.settings.data_dir / BACKUPS)


def _copy(call: Call, path: Path) -> MadeBackup:
    _ensure_folder(call, path)
    call.engine.store.backup(path)
    return _record_backup(call, MadeBackup(path=path, size=path.stat().st_size))


def _pack(call: Call, path: Path) -> MadeBackup:
    """Pack the data directory with a copy of the database; the other files never change once written."""
    if path.exists():
        raise name_taken(path)
    _ensure_folder(call, path)
    with (
        _file_errors(path),
        tempfile.TemporaryDirectory(prefix=f".{path.name}.", suffix=".partial", dir=path.parent) as folder,
    ):
        database, partial = Path(folder) / DATABASE_NAME, Path(folder) / path.name
        call.engine.store.backup(database)
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            packed = snapshot.pack(call.engine.settings.data_dir, database, file)
            file.flush()
            os.fsync(file.fileno())
        snapshot.check(partial)
        publish(partial, path)
    return _record_backup(call, MadeBackup(path=path, size=path.stat().st_size, left=packed.left))


def backup_files(call: Call) -> list[BackupFile]:
    """The backups in backups/, newest first. A file appears there only after it was checked."""
    folder, last = backup_folder(call), last_backup(call)
    found = []
    for path in folder.iterdir() if folder.is_dir() else ():
        packed = path.name.endswith(snapshot.ENDINGS)
        if path.name.startswith(".") or not (packed or path.suffix == ".db"):
            continue
        with suppress(FileNotFoundError):  # rotated away meanwhile
            about = path.lstat()
            if not S_ISREG(about.st_mode):
                continue
            named = _DATED.match(path.name)
            found.append(
                BackupFile(
                    path=path,
                    size=about.st_size,
                    at=(_time(named["at"]) if named else None) or datetime.fromtimestamp(about.st_mtime, UTC),
                    snapshot=packed,
                    rotated=_ROTATED.fullmatch(path.name) is not None,
                    last=last is not None and last.path == path,
                )
            )
    return sorted(found, key=lambda one: (one.at, one.path), reverse=True)


# -- Rotation


def rotated_backups(folder: Path) -> list[RotatedBackup]:
    """The rotated backups in a folder, oldest first."""
    found = (
        (match, path)
        for path in (folder.iterdir() if folder.is_dir() else ())
        if (match := _ROTATED.fullmatch(path.name)) and path.is_file() and not path.is_symlink()
    )
    dated = ((int(match["number"]), _time(match["at"]), path) for match, path in found)
    return sorted(
        RotatedBackup(number=number, at=at, path=path) for number, at, path in dated if at is not None
    )


def _time(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def _rotate(call: Call) -> MadeBackup:
    """Make the next backup, then remove those beyond the number to keep."""
    folder = backup_folder(call)
    made = _next(call, folder)
    spare = rotated_backups(folder)[: -call.engine.settings.backup.keep]
    removed = [one.path for one in spare if one.path != made.path and _remove(one.path)]
    return MadeBackup(path=made.path, size=made.size, removed=tuple(removed))


def _next(call: Call, folder: Path) -> MadeBackup:
    present = rotated_backups(folder)
    for number in count(present[-1].number + 1 if present else 1):
        path = folder / f"vestige-auto-{number:06d}-{call.engine.now():%Y%m%d-%H%M%S}.db"
        try:
            return _copy(call, path)
        except InvalidInput:  # another process was faster
            if not path.exists():
                raise
    raise AssertionError("unreachable: a free number is always found")


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError as exc:
        logger.warning("The backup %s could not be removed: %s", path, exc.strerror)
        return False
    return True


def back_up_if_due(call: Call) -> None:
    """Make a scheduled backup if one is due; one process does it for all."""
    if not due(call):
        return
    try:
        with call.engine.store.alone("backup"):
            if due(call):  # no other process was faster
                _rotate(call)
    except StoreBusy:
        logger.info("The store is busy; the backup is made later")
    except VestigeError as exc:
        logger.warning("The backup was not made: %s", exc.message)
        with suppress(StoreError):
            _note(call, FAILED, {"why": exc.message, "at": call.engine.now().isoformat()})


def due(call: Call) -> bool:
    """Whether the last rotated backup is older than the settings allow.

    A backup from the future means that the clock was set back. A store without memories is not copied: it may
    have lost them, and rotation would then remove the backups that hold them.
    """
    engine = call.engine
    hours, now = engine.settings.backup.every_hours, engine.now()
    if not hours or engine.store.read_only:
        return False
    last = next(reversed(rotated_backups(backup_folder(call))), None)
    if last is not None and timedelta(0) <= now - last.at < timedelta(hours=hours):
        return False
    failed = find_document(call, KIND, FAILED, access=EVERYTHING)
    if failed and timedelta(0) <= now - failed.updated_at < RETRY:
        return False
    return engine.store.count(ANYTHING, access=EVERYTHING) > 0


# -- The record of backups


def last_backup(call: Call) -> LastBackup | None:
    """The last backup made by this installation, in any folder."""
    noted = find_document(call, KIND, LAST, access=EVERYTHING)
    if noted is None or not noted.body.keys() >= {"path", "bytes", "at"}:
        return None
    body = noted.body
    return LastBackup(path=Path(body["path"]), size=body["bytes"], at=datetime.fromisoformat(body["at"]))


def backup_warning(call: Call, memories: int) -> str | None:
    """What a caller who may back up a store with some memories and no recent backup should do; else None. A
    store in memory has nothing to copy."""
    if call.access != EVERYTHING or call.engine.settings.place is None:
        return None
    last = last_backup(call)
    age = call.engine.now() - last.at if last else None
    if memories < WORTH_A_BACKUP or (age is not None and age <= NEGLECTED):
        return None
    since = f"The last backup is {age.days} days old" if age is not None else "There is no backup"
    return f"{since}: run `vestige backup`, or schedule backups with the setting backup.every_hours."


def _record_backup(call: Call, made: MadeBackup) -> MadeBackup:
    if not call.engine.store.read_only:
        at = call.engine.now().isoformat()
        try:
            _note(call, LAST, {"path": str(made.path), "bytes": made.size, "at": at})
        except StoreError as exc:  # the copy is good all the same
            logger.warning("The time of the backup could not be recorded: %s", exc.message)
    call.engine.events.emit(
        BackupCompleted(
            timestamp=call.engine.now(),
            scopes=None,
            file=made.path.name,
            size_bytes=made.size,
            rotated=_ROTATED.fullmatch(made.path.name) is not None,
        )
    )
    return made


def _note(call: Call, name: str, body: dict[str, str | int]) -> None:
    """Record what became of a backup, for all processes. It is not part of the memory: nothing is logged."""

    def attempt() -> None:
        held = find_document(call, KIND, name, access=EVERYTHING)
        put = put_document(KIND, name, held, call.engine.now(), body=body)
        call.engine.store.commit([put], access=EVERYTHING, patience_seconds=NOTE_SECONDS)

    retry_on_conflict(call, attempt)


# -- Backup files


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    """Report errors with the path of the requested backup, not of the temporary file."""
    try:
        yield
    except StoreFull as exc:
        raise StoreFull(
            f"The backup {path} cannot be written: the disk is full.",
            hint=exc.hint,
            details={**exc.details, "path": str(path)},
        ) from exc
    except OSError as exc:
        kind = StoreFull if exc.errno in (errno.ENOSPC, errno.EDQUOT) else StoreError
        raise kind(
            f"The backup {path} cannot be written: {exc.strerror or exc}.",
            hint="Check that the folder is writable and the disk has space.",
        ) from exc


def _ensure_folder(call: Call, path: Path) -> None:
    with _file_errors(path):
        ensure_folder(path.parent, own=backup_folder(call))
