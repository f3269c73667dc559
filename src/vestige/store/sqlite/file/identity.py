"""The identity of a file: the installation it belongs to, and whether it is in the state that installation
left it in.

A node numbers its events once, so a file that was set back to an earlier state must not continue under the
same node: other events would get numbers that are taken. A file that was moved or copied has another inode.
One that was copied over the store in place (`cp old.db vestige.db`) has the right inode and the right node
id; only its log ends too early. So the last number of each node is also kept beside the file, in a mark. It
is written after the commit and read before the log: it may be behind the log, and is ahead only of a log that
has lost events.

The mark has a record for each node that this file ever had, which is overwritten in place by one call. So an
interrupted write leaves the old record or the new one, and records do not affect each other.
"""

import json
import logging
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

from vestige.core.errors import StoreError
from vestige.core.lazy_dataclass import dataclass
from vestige.store.sql.filters import moment_text

logger = logging.getLogger(__name__)


# -- The node id in a file: it belongs to an installation, so a copy needs another one


def installed_at(path: Path, machine: str) -> str:
    """A fingerprint of this file on this machine; a copy has another one."""
    stat = path.stat()
    return blake2b(f"{machine}\0{stat.st_dev}\0{stat.st_ino}".encode(), digest_size=16).hexdigest()


def known_node(db: sqlite3.Connection) -> tuple[str, str] | None:
    row = db.execute("SELECT node, fingerprint FROM installation").fetchone()
    return None if row is None else (row[0], row[1])


def settle_node(db: sqlite3.Connection, fingerprint: str, new_id: Callable[[], str], now: datetime) -> str:
    """The node id of this installation; a new one when the file was copied here."""
    known = known_node(db)
    if known is not None and known[1] == fingerprint:
        return known[0]
    fresh = new_id()
    db.execute(
        "INSERT OR REPLACE INTO installation (one, node, fingerprint, since) VALUES (1, ?, ?, ?)",
        (fresh, fingerprint, moment_text(now)),
    )
    return fresh


def unsettle(db: sqlite3.Connection) -> None:
    """Remove the node id, so that this copy gets a new one when it is opened."""
    db.execute("UPDATE installation SET fingerprint = ''")


# -- The file in place, and the node that it belongs to

SUFFIX = ".mark"
NAME, SEQ, CHECK = 32, 20, 16
RECORD = NAME + SEQ + CHECK + 3
"""Bytes of a record: the node's name, its last number and a checksum, with what separates them."""
MOST_BYTES = 4096 * RECORD

FileId = tuple[int, int]
"""Device and inode."""


def file_at(path: Path) -> FileId:
    stat = os.stat(path)  # noqa: PTH116 - asked with every write, and a Path would cost more than the call
    return stat.st_dev, stat.st_ino


def require_in_place(path: Path, opened: FileId) -> None:
    """StoreError when the opened file is no longer at its path: writes to it would be lost. SQLite itself
    checks that only while there is no write-ahead log."""
    try:
        in_place = file_at(path) == opened
    except FileNotFoundError:
        in_place = False
    if not in_place:
        raise StoreError(
            f"{path.name} was removed or replaced while this process had it open. Nothing was written.",
            hint="Start this process again, so that it opens the file that is there now.",
            details={"path": str(path)},
        )


def settled(db: sqlite3.Connection, path: Path, fingerprint: str) -> str | None:
    """The node id of this installation; None if the file belongs to another one, or is an earlier state."""
    marks = _read(path)  # before the log, which grows meanwhile
    known = known_node(db)
    if known is None or known[1] != fingerprint:
        return None
    return known[0] if _last(db, known[0]) >= _seq(marks, known[0]) else None


def settle(
    db: sqlite3.Connection, path: Path, fingerprint: str, new_id: Callable[[], str], now: datetime
) -> str:
    """The node id of this installation, a new one if need be; inside a write transaction."""
    known = settled(db, path, fingerprint)
    if known is not None:
        return known
    _warn_of_lost_events(db, path, fingerprint)
    unsettle(db)
    fresh = settle_node(db, fingerprint, new_id, now)
    keep_mark(path, fresh, 0)
    return fresh


def keep_mark(path: Path, node: str, seq: int) -> None:
    """Record the last number of a node's log. It never raises: the commit is done."""
    with suppress(OSError):
        handle = os.open(f"{path}{SUFFIX}", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            place = _place(os.read(handle, MOST_BYTES), node)
            os.lseek(handle, place, os.SEEK_SET)
            os.write(handle, _record(node, seq))
        finally:
            os.close(handle)


def is_marked(path: Path) -> bool:
    """Whether there was a store at this path."""
    return _mark(path).exists()


def _warn_of_lost_events(db: sqlite3.Connection, path: Path, fingerprint: str) -> None:
    """Warn that acknowledged writes were lost, where that is known."""
    known = known_node(db)
    if known is None or known[1] != fingerprint:
        return
    missing = _seq(_read(path), known[0]) - _last(db, known[0])
    if missing > 0:
        note_lost(db, path, "an earlier copy was put in its place, its log was lost, or the power failed")
        logger.warning(
            "%s lacks the last %d events that were written here: an earlier copy was put in its place, its"
            " log was lost or damaged, or the power failed. If that was not intended, restore a backup.",
            path,
            missing,
        )


# -- Acknowledged writes that are gone

LOST = ".lost"
MOST_LOSSES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LostWrites:
    """Events of a node that were acknowledged and may be gone: the last of their numbers, when it was
    acknowledged, and what happened."""

    node: str
    last: int
    at: str
    why: str


def note_lost(db: sqlite3.Connection, path: Path, why: str) -> bool:
    """Note beside the file how far the writes were acknowledged, for the doctor. False if it could not be
    written; it never raises."""
    with suppress(OSError, sqlite3.Error):
        known = known_node(db)
        marked = datetime.fromtimestamp(_mark(path).stat().st_mtime, UTC).isoformat(timespec="seconds")
        last = 0 if known is None else _seq(_read(path), known[0])
        notes = lost_writes(path)
        if known is None or any((one.node, one.last) == (known[0], last) for one in notes):
            return True
        if len(notes) >= MOST_LOSSES:
            return True
        line = json.dumps({"node": known[0], "last": last, "at": marked, "why": why})
        handle = os.open(f"{path}{LOST}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, f"{line}\n".encode())
        finally:
            os.close(handle)
        return True
    return False


def lost_writes(path: Path) -> list[LostWrites]:
    """The notes, oldest first; lines that cannot be read are left out."""
    found = []
    with suppress(OSError):
        for line in Path(f"{path}{LOST}").read_bytes().splitlines()[:MOST_LOSSES]:
            with suppress(ValueError, TypeError):
                found.append(LostWrites(**json.loads(line)))
    return found


def forget_lost(path: Path) -> None:
    """Remove the notes: another store is here now."""
    with suppress(OSError):
        Path(f"{path}{LOST}").unlink(missing_ok=True)


def _last(db: sqlite3.Connection, node: str) -> int:
    row = db.execute("SELECT coalesce(max(seq), 0) FROM events WHERE node = ?", (node,)).fetchone()
    return int(row[0])


def _mark(path: Path) -> Path:
    return Path(f"{path}{SUFFIX}")


def _read(path: Path) -> bytes:
    """The records; none if they cannot be read."""
    try:
        with _mark(path).open("rb") as file:
            return file.read(MOST_BYTES)
    except OSError:
        return b""


def _place(marks: bytes, node: str) -> int:
    """The offset of a node's record, present or future."""
    name = _name(node)
    whole = len(marks) - len(marks) % RECORD
    places = range(0, whole, RECORD)
    return next((place for place in places if marks.startswith(name, place)), whole)


def _seq(marks: bytes, node: str) -> int:
    """The last number of a node in the marks; 0 if it is unknown. A record with a wrong checksum is ignored:
    it was read while it was written, or is damaged."""
    place = _place(marks, node)
    found = marks[place : place + RECORD]
    digits = found[NAME + 1 : NAME + 1 + SEQ]
    return int(digits) if digits.isdigit() and found == _record(node, int(digits)) else 0


def _record(node: str, seq: int) -> bytes:
    digits = b"%s %0*d" % (_name(node), SEQ, seq)
    return b"%s %s " % (digits, _hash(digits, CHECK))  # no new line, which Windows would make two bytes


def _name(node: str) -> bytes:
    return _hash(node.encode(), NAME)


def _hash(data: bytes, length: int) -> bytes:
    return blake2b(data, digest_size=length // 2).hexdigest().encode()
