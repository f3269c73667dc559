"""The advisory lock beside a database: exclusive work, and the process that does it.

The kernel holds the lock on an open file and frees it when the process ends, however it ends. The content of
the file only names the holder. The file stays: another process may be about to lock it.
"""

import errno
import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from vestige.core.errors import StoreError
from vestige.store.contract.processes import BRIEF, Holder, Who, kept

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

logger = logging.getLogger(__name__)

Again = Callable[[Holder | None], bool]
"""Called while another process has the lock: whether to try once more. It sleeps before it returns True."""

_FAR = 1 << 30
"""A byte that is never written: Windows locks bytes and keeps others from reading them."""

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
_MOST_BYTES = 4096


def lock(handle: int, *, shared: bool = False) -> bool | None:
    """Lock an open file against all other handles, without waiting. False: another process has it locked.
    None: this file system has no locks."""
    try:
        if sys.platform == "win32":
            os.lseek(handle, _FAR, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as exc:
        if exc.errno not in _NO_LOCKS:
            raise
        return None
    return True


def lacks_locks(folder: Path) -> bool:
    """Whether the file system of a folder refuses the locks that SQLite takes, which SQLite calls busy."""
    if sys.platform == "win32":
        return False
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        return exc.errno in _NO_LOCKS
    return False


def without_locks(database: Path) -> StoreError:
    return StoreError(
        f"The file system of {database.parent} has no locks (ENOLCK), which a store needs.",
        hint="Move the data directory to a local disk. On NFS, the lock service (rpc.statd) must run on both "
        "sides, and the mount must not have `nolock`.",
        details={"path": str(database)},
    )


def unlock(handle: int) -> None:
    if sys.platform == "win32":  # closing frees it there too, but at some later time
        os.lseek(handle, _FAR, os.SEEK_SET)
        with suppress(OSError):  # it was not ours
            msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
    os.close(handle)


def write(handle: int, value: Mapping[str, object]) -> None:
    """Replace the content of an open file by a JSON object."""
    os.ftruncate(handle, 0)
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, json.dumps(value).encode())


def read(handle: int) -> Any:
    """The JSON in an open file; ValueError while it is being written."""
    os.lseek(handle, 0, os.SEEK_SET)
    return json.loads(os.read(handle, _MOST_BYTES))


def lock_file(database: Path, purpose: str = "") -> Path:
    """The path of a database's lock. Work that takes only a moment has one of its own, so that a deletion
    need not wait for a backup."""
    return Path(f"{database}.{'brief.lock' if purpose in BRIEF else 'lock'}")


def _never(holder: Holder | None) -> bool:
    return False


@contextmanager
def alone(database: Path, purpose: str, who: Who, *, again: Again = _never) -> Iterator[None]:
    """Get exclusive use of a store; StoreBusy, naming its holder, unless `again` says to try once more."""
    handle = take(database, purpose, who, again=again)
    try:
        yield
    finally:
        release(handle)


def take(database: Path, purpose: str, who: Who, *, again: Again = _never) -> int:
    """The beginning of `alone`: the open file that `release` wants back."""
    handle = os.open(lock_file(database, purpose), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _wait(handle, database, again)
    except BaseException:
        os.close(handle)
        raise
    with suppress(OSError):  # a full disk: others cannot read who it is, but the lock holds
        write(handle, Holder(who=who, purpose=purpose).details())
    return handle


def release(handle: int) -> None:
    with suppress(OSError):
        os.ftruncate(handle, 0)
    unlock(handle)


def holder(database: Path) -> Holder | None:
    """The holder of the exclusive use; None without one, or where it is unknown."""
    try:
        handle = os.open(lock_file(database), os.O_RDONLY)
    except OSError:
        return None
    try:
        return _holder(handle) if lock(handle, shared=True) is False else None
    finally:
        os.close(handle)


def _wait(handle: int, database: Path, again: Again) -> None:
    while (got := lock(handle)) is False:
        found = _holder(handle)
        if not again(found):
            raise kept(found, details={"path": str(database)})
    if got is None:
        logger.warning("%s: this file system has no locks; do not use the store from elsewhere now", database)


def _holder(handle: int) -> Holder | None:
    try:
        fields = read(handle)
        who = Who(pid=fields["pid"], command=fields["command"], since=datetime.fromisoformat(fields["since"]))
        return Holder(who=who, purpose=fields["purpose"])
    except (ValueError, KeyError, TypeError):  # just being written, or not ours
        return None
