"""The advisory lock beside a database: what only one process may do at a time, and who is doing it.

The kernel holds the lock on an open file and frees it when the process ends, however it ends. What is written
in the file only names the holder. The file stays: another process may be about to lock it.
"""

import errno
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from vestige.store.contract.processes import BRIEF, Holder, Who, kept

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

logger = logging.getLogger(__name__)

Again = Callable[[Holder | None], bool]
"""Asked while another has the lock: whether to try once more. It takes its time to say yes."""

_FAR = 1 << 30
"""Windows locks bytes and keeps others from reading them: one that is never written."""

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
_MOST_BYTES = 4096


def lock(handle: int, *, shared: bool = False) -> bool | None:
    """Lock an open file against all who open it otherwise, without waiting. False: another has it locked.
    None: there are no locks on this file system."""
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


def unlock(handle: int) -> None:
    """Free and close an open file."""
    if sys.platform == "win32":  # closing frees it there too, but at some later time
        os.lseek(handle, _FAR, os.SEEK_SET)
        with suppress(OSError):  # it was not ours
            msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
    os.close(handle)


def write(handle: int, value: Mapping[str, object]) -> None:
    """Make a JSON object all that is in an open file."""
    os.ftruncate(handle, 0)
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, json.dumps(value).encode())


def read(handle: int) -> Any:
    """The JSON in an open file; ValueError while it is being written."""
    os.lseek(handle, 0, os.SEEK_SET)
    return json.loads(os.read(handle, _MOST_BYTES))


def lock_file(database: Path, purpose: str = "") -> Path:
    """Where the lock of a database is. What is over in a moment has one of its own: nobody should have to
    wait with deleting something until a backup is done."""
    return Path(f"{database}.{'brief.lock' if purpose in BRIEF else 'lock'}")


def _never(holder: Holder | None) -> bool:
    return False


@contextmanager
def alone(database: Path, purpose: str, who: Who, *, again: Again = _never) -> Iterator[None]:
    """Have a store alone; StoreBusy, naming who has it, unless `again` says to try once more."""
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
    """The end of `alone`."""
    with suppress(OSError):
        os.ftruncate(handle, 0)
    unlock(handle)


def holder(database: Path) -> Holder | None:
    """Who has a store alone; None when nobody has, or it cannot be told."""
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
        logger.warning("%s: this file system has no locks; nobody else may use the store now", database)


def _holder(handle: int) -> Holder | None:
    try:
        told = read(handle)
        who = Who(pid=told["pid"], command=told["command"], since=datetime.fromisoformat(told["since"]))
        return Holder(who=who, purpose=told["purpose"])
    except (ValueError, KeyError, TypeError):  # just being written, or not ours
        return None
