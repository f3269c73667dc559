"""Who keeps a database busy, in words for the one who waited in vain."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vestige.errors import StoreBusy
from vestige.store.sqlite.locks import holder
from vestige.store.sqlite.presence import present

_LOCKS = Path("/proc/locks")
_WRITE_BYTE = "120"
"""The byte of the -shm file that a writer in WAL mode has locked (WAL_WRITE_LOCK in SQLite's wal.c)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A process that has locked the database, or a part of it."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"{self.command} (pid {self.pid})"


def kept_busy(database: Path, cause: str, waited_seconds: float | None = None) -> StoreBusy:
    """The error for one who gave up waiting: how long that was, who is to blame, what to do."""
    stayed = "is busy" if waited_seconds is None else f"stayed busy for {waited_seconds:.1f} s"
    details: dict[str, Any] = {"path": str(database), "cause": cause}
    if waited_seconds is not None:
        details["waited_seconds"] = round(waited_seconds, 3)
    alone = holder(database)
    if alone is not None:
        return StoreBusy(
            f"The store {stayed}: {alone.who} has it alone ({alone.purpose}).",
            hint=f"Wait until it is done and try again, or stop process {alone.who.pid}.",
            details={**details, **alone.details()},
        )
    ours = {who.pid: who for who in present(database)}
    writers = list(_writers(database))
    known = [ours[one.pid] for one in writers if one.pid in ours]
    if known:
        return StoreBusy(
            f"The store {stayed}: {known[0]} is writing and does not finish.",
            hint=f"Try again. If it lasts, stop process {known[0].pid}.",
            details={**details, "programs": [{"pid": one.pid, "command": one.command} for one in known]},
        )
    named = ", ".join(map(str, writers))
    return StoreBusy(
        f"The store {stayed}: no Vestige process has it alone, but "
        f"{named or 'another program'} keeps a transaction open that locks others out.",
        hint="End that transaction or close that program, such as a database browser, then try again.",
        details={**details, "programs": [{"pid": one.pid, "command": one.command} for one in writers]},
    )


def users(database: Path) -> list[Program]:
    """Other processes that have the database open, whatever they do with it. Linux tells; else nobody."""
    return [_program(pid) for pid in sorted({one.pid for one in _locks(database)} - {os.getpid()})]


def _writers(database: Path) -> Iterator[Program]:
    """Who has locked the file itself for writing, or the right to write its log."""
    writing = {one.pid for one in _locks(database) if one.writes}
    yield from (_program(pid) for pid in sorted(writing))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lock:
    """A lock of another process or of this one on the file, or on a byte of the -shm file beside it."""

    pid: int
    exclusive: bool
    byte: str | None

    @property
    def writes(self) -> bool:
        return self.exclusive and self.byte in (None, _WRITE_BYTE)


def _locks(database: Path) -> Iterator[_Lock]:
    """From lines such as `1: POSIX ADVISORY WRITE 77 fe:00:3604504 120 120`."""
    try:
        lines = _LOCKS.read_text(encoding="utf-8").splitlines()
        inode = str(database.stat().st_ino)
        log = Path(f"{database}-shm")
        beside = str(log.stat().st_ino) if log.exists() else None
    except OSError:
        return
    for words in map(str.split, lines):
        locked = words[5].rpartition(":")[2] if len(words) == 8 else ""  # a line of nine is one that waits
        if locked in (inode, beside):
            byte = None if locked == inode else words[6]
            yield _Lock(pid=int(words[4]), exclusive=words[3] == "WRITE", byte=byte)


def _program(pid: int) -> Program:
    return Program(pid=pid, command=_command(pid))


def _command(pid: int) -> str:
    try:
        first = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0", 1)[0].decode(errors="replace")
    except OSError:
        return "another program"
    return os.path.basename(first) or "another program"  # noqa: PTH119 - the name of any program, not a path
