"""The peer registry: each process that has a store open keeps a small locked file in `processes/`.

An unlocked file belongs to a killed process; the next process that finds it removes it.
"""

import errno
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from vestige.core.errors import StoreBusy, StoreError
from vestige.core.lazy_dataclass import dataclass
from vestige.store.contract.processes import Who, refuse_beside
from vestige.store.sqlite.processes.locks import holder, lacks_locks, lock, read, unlock, without_locks, write

logger = logging.getLogger(__name__)

FOLDER = "processes"
_ENDING = ".json"
_TURN = "starting.lock"
_LEAD = "leading.lock"
_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlitePresence:
    """The registration of a process, until it is closed or the process ends."""

    path: Path
    handle: int

    def close(self) -> None:
        with suppress(OSError):
            self.path.unlink()
        unlock(self.handle)
        with suppress(OSError):  # Windows removes no open file
            self.path.unlink(missing_ok=True)


def join(database: Path, who: Who, again: Callable[[], bool]) -> SqlitePresence | None:
    """Register this process; None, with a warning, where no file can be created or locked. StoreBusy for a
    server beside an exclusive one, and for an exclusive server beside any other; StoreError for an exclusive
    one that others would not see. Servers start one after another: `again` sleeps, and says whether to wait
    longer for one that is starting."""
    folder = database.parent / FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if not who.server:
            return _register(folder, who)
        with _turn(folder, again):
            refuse_beside(who, present(database), elsewhere="another --data-dir")
            return _register(folder, who)
    except OSError as exc:
        if who.exclusive:
            raise not_exclusive(database, str(exc)) from exc
        logger.warning("Other processes cannot see this one at work on %s: %s", database, exc)
        return None


def not_exclusive(database: Path, why: str) -> StoreError:
    """The error for a server that could not keep others away."""
    return StoreError(
        f"The store cannot be opened exclusively: other processes would not see this server ({why}).",
        hint="Use a data directory that can be written, on a disk with file locks (a local one has them); "
        "or start without --exclusive (storage.exclusive) and make sure yourself that no other server runs.",
        details={"path": str(database), "cause": why},
    )


def present(database: Path) -> list[Who]:
    """The processes that have this store open, the first one first."""
    try:
        files = sorted((database.parent / FOLDER).glob(f"*{_ENDING}"))
    except OSError:
        return []
    found = (_seen(file) for file in files)
    return sorted((who for who in found if who is not None), key=lambda who: (who.since, who.pid))


def lead(database: Path) -> int | None:
    """Become the leader of the processes that use this store: the open file to `unlock` at the end; None
    while another process leads. Without file locks every process leads; OSError where no file can be
    created."""
    folder = database.parent / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    handle = os.open(folder / _LEAD, os.O_RDWR | os.O_CREAT, 0o600)
    if lock(handle) is False:
        os.close(handle)
        return None
    return handle


def _register(folder: Path, who: Who) -> SqlitePresence:
    fields = {
        "pid": who.pid,
        "command": who.command,
        "since": who.since.isoformat(),
        "server": who.server,
        "exclusive": who.exclusive,
        "parent": who.parent,
    }
    for _ in range(_TRIES):
        handle, name = tempfile.mkstemp(prefix=f"{who.pid}-", suffix=_ENDING, dir=folder)
        here = SqlitePresence(path=Path(name), handle=handle)
        write(handle, fields)
        got = lock(handle)
        # Before it was locked, another process took it for an abandoned one.
        if got and os.fstat(handle).st_nlink:
            return here
        here.close()
        if got is None:
            raise OSError(errno.ENOLCK, "this file system has no locks")
    raise OSError(errno.EAGAIN, "other processes kept removing its file")


def _seen(file: Path) -> Who | None:
    try:
        handle = os.open(file, os.O_RDONLY)
    except OSError:  # gone in the meantime, or another user's
        return None
    try:
        locked = lock(handle, shared=True)
        if locked:
            with suppress(OSError):
                file.unlink()
        return _read(handle) if locked is False else None
    finally:
        os.close(handle)


def _read(handle: int) -> Who | None:
    try:
        fields = read(handle)
        return Who(
            pid=fields["pid"],
            command=fields["command"],
            since=datetime.fromisoformat(fields["since"]),
            server=fields["server"],
            exclusive=fields["exclusive"],
            parent=fields.get("parent", 0),  # older versions have none
        )
    except (ValueError, KeyError, TypeError):  # not ours
        return None


@contextmanager
def _turn(folder: Path, again: Callable[[], bool]) -> Iterator[None]:
    handle = os.open(folder / _TURN, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while lock(handle) is False:
            if not again():
                raise StoreBusy("Another server is starting and does not finish.", hint="Try again.")
        yield
    finally:
        unlock(handle)


# -- The error for a busy database, with the process that keeps it busy

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


def kept_busy(database: Path, cause: str, waited_seconds: float | None = None) -> StoreError:
    """The error after waiting in vain: how long, which process, and the remedy."""
    if lacks_locks(database.parent):
        return without_locks(database)
    stayed = "is busy" if waited_seconds is None else f"stayed busy for {waited_seconds:.1f} s"
    details: dict[str, Any] = {"path": str(database), "cause": cause}
    if waited_seconds is not None:
        details["waited_seconds"] = round(waited_seconds, 3)
    alone = holder(database)
    if alone is not None:
        return StoreBusy(
            f"The store {stayed}: {alone.who} has exclusive use of it ({alone.purpose}).",
            hint=f"Wait until it is done and try again, or stop process {alone.who.pid}.",
            details={**details, **alone.details()},
        )
    ours = {who.pid: who for who in present(database)}
    writers = [_program(pid) for pid in sorted({one.pid for one in _locks(database) if one.writes})]
    known = [ours[one.pid] for one in writers if one.pid in ours]
    if known:
        return StoreBusy(
            f"The store {stayed}: {known[0]} is writing and does not finish.",
            hint=f"Try again. If it lasts, stop process {known[0].pid}.",
            details={**details, "programs": [{"pid": one.pid, "command": one.command} for one in known]},
        )
    named = ", ".join(map(str, writers))
    return StoreBusy(
        f"The store {stayed}: no Vestige process has exclusive use of it, but "
        f"{named or 'another program'} keeps a transaction open that locks others out.",
        hint="End that transaction or close that program, such as a database browser, then try again.",
        details={**details, "programs": [{"pid": one.pid, "command": one.command} for one in writers]},
    )


def users(database: Path) -> list[Program]:
    """Other programs that have the database open. Only Linux says so; empty elsewhere."""
    return [_program(pid) for pid in sorted({one.pid for one in _locks(database)} - {os.getpid()})]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lock:
    """A lock of another process or of this one on the file, or on a byte of the -shm file beside it."""

    pid: int
    exclusive: bool
    byte: str | None

    @property
    def writes(self) -> bool:
        """Whether it is the write lock of the file or of its log."""
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
    name = ""
    with suppress(OSError):
        first = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0", 1)[0].decode(errors="replace")
        name = os.path.basename(first)  # noqa: PTH119 - the name of any program, not a path
    return Program(pid=pid, command=name or "another program")
