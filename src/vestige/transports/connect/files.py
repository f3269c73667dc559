"""Settings files of clients: read whole, written atomically, with a copy of the previous one."""

import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from vestige.core.errors import Conflict, InvalidInput

PRIVATE, SHARED = 0o600, 0o666
OTHERS = 0o077
_STAMP = "%Y%m%dT%H%M%S"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """A file as it was read. `target` is the real file if `path` is a link; `text` is null if it does not
    exist."""

    path: Path
    target: Path
    text: str | None
    mode: int | None = None

    @property
    def open_to_others(self) -> bool:
        return os.name == "posix" and self.mode is not None and bool(self.mode & OTHERS)


def read(path: Path) -> ConfigFile:
    """Read a file, which may not exist; InvalidInput if it is not readable as text."""
    try:
        target = path.resolve()
        mode = stat.S_IMODE(target.stat().st_mode)
        # As bytes, because text mode would change line ends.
        text = target.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ConfigFile(path=path, target=target, text=None)
    except UnicodeDecodeError as exc:
        raise unusable(path, "is not UTF-8 text") from exc
    except (OSError, RuntimeError) as exc:  # a cycle of links is a RuntimeError before Python 3.13
        raise unusable(path, f"cannot be read: {_reason(exc)}") from exc
    return ConfigFile(path=path, target=target, text=text, mode=mode)


def write(file: ConfigFile, text: str, *, now: datetime, private: bool) -> Path | None:
    """Replace the file by a new text; returns the copy of the old one, if there was one. Raises Conflict if
    another program changed it in the meantime; then nothing is written."""
    _check_unchanged(file)
    backup = None
    try:
        file.target.parent.mkdir(parents=True, exist_ok=True)
        if file.text is not None:
            backup = _backup_name(file.target, now)
            _write(backup, file.text, PRIVATE, like=file.target)
        _replace(file.target, text, PRIVATE if private else SHARED)
    except OSError as exc:
        if backup is not None:  # the file is unchanged, so its copy is useless
            backup.unlink(missing_ok=True)
        raise unusable(file.path, f"cannot be written: {_reason(exc)}") from exc
    return backup


def restore(file: ConfigFile, text: str | None, spent: tuple[Path, ...]) -> None:
    """Restore the previous text, or remove the file; removes the copies it came from."""
    _check_unchanged(file)
    try:
        if text is None:
            file.target.unlink(missing_ok=True)
        else:
            _replace(file.target, text, PRIVATE)
        for backup in spent:
            backup.unlink(missing_ok=True)
    except OSError as exc:
        raise unusable(file.path, f"cannot be written: {_reason(exc)}") from exc


def prune(folder: Path, roots: tuple[Path, ...]) -> None:
    """Remove a folder and its parents, if they are empty and below one of the roots."""
    kept = {root.resolve() for root in roots}
    with suppress(OSError):  # stops at the first that is not empty
        while folder not in kept and kept & set(folder.parents):
            folder.rmdir()
            folder = folder.parent


def backups(file: ConfigFile) -> list[tuple[Path, str]]:
    """The copies beside a file with their texts, oldest first."""
    pattern = re.compile(re.escape(file.target.name) + r"\.vestige-(\d{8}T\d{6})(?:-(\d+))?\.bak")
    found = []
    with suppress(OSError):
        for one in file.target.parent.iterdir():
            if match := pattern.fullmatch(one.name):
                with suppress(UnicodeDecodeError):
                    found.append((match[1], int(match[2] or 0), one, one.read_bytes().decode("utf-8")))
    return [(path, text) for _, _, path, text in sorted(found)]


def unusable(path: Path, why: str) -> InvalidInput:
    """The error for a file that cannot be used and was not changed."""
    return InvalidInput(
        f"{path} {why}. Nothing was changed.",
        hint="Fix the file, or use `--print` and add the entry by hand.",
        details={"path": str(path)},
    )


def _check_unchanged(file: ConfigFile) -> None:
    if read(file.path).text != file.text:
        raise Conflict(
            f"{file.path} was changed by another program in the meantime. Nothing was changed.",
            hint="Run the command again.",
            details={"path": str(file.path)},
        )


def _backup_name(target: Path, now: datetime) -> Path:
    stem, number = f"{target.name}.vestige-{now:{_STAMP}}", 0
    while True:
        path = target.with_name(f"{stem}{f'-{number}' if number else ''}.bak")
        if not path.exists():
            return path
        number += 1


def _replace(target: Path, text: str, mode: int) -> None:
    staged = target.with_name(f".{target.name}.vestige-{os.getpid()}.tmp")
    staged.unlink(missing_ok=True)  # left by a process with the same id that crashed
    try:
        _write(staged, text, mode, like=target)
        staged.replace(target)
    except OSError:
        staged.unlink(missing_ok=True)
        raise


def _write(path: Path, text: str, mode: int, *, like: Path) -> None:
    """Write a new file with the permissions and owner of an existing one, or else with a mode."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as out:
        out.write(text.encode("utf-8"))
        out.flush()
        os.fsync(out.fileno())
    with suppress(FileNotFoundError):
        old = like.stat()
        if hasattr(os, "chown") and (old.st_uid, old.st_gid) != (path.stat().st_uid, path.stat().st_gid):
            with suppress(PermissionError):  # only the administrator can; others keep their own
                os.chown(path, old.st_uid, old.st_gid)
        path.chmod(stat.S_IMODE(old.st_mode))


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
