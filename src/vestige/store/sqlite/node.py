"""The node id in a file: it belongs to an installation, so a copy needs another one."""

import sqlite3
from collections.abc import Callable
from datetime import datetime
from hashlib import blake2b
from pathlib import Path

from vestige.store.sql.columns import moment_text


def installed_at(path: Path, machine: str) -> str:
    """A fingerprint of this file on this machine: a copy has another one."""
    stat = path.stat()
    return blake2b(f"{machine}\0{stat.st_dev}\0{stat.st_ino}".encode(), digest_size=16).hexdigest()


def told(db: sqlite3.Connection) -> tuple[str, str] | None:
    """The node id with the fingerprint it belongs to."""
    row = db.execute("SELECT node, fingerprint FROM installation").fetchone()
    return None if row is None else (row[0], row[1])


def settle(db: sqlite3.Connection, fingerprint: str, new_id: Callable[[], str], now: datetime) -> str:
    """The node id of this installation; a new one when the file was copied here."""
    known = told(db)
    if known is not None and known[1] == fingerprint:
        return known[0]
    fresh = new_id()
    db.execute(
        "INSERT OR REPLACE INTO installation (one, node, fingerprint, since) VALUES (1, ?, ?, ?)",
        (fresh, fingerprint, moment_text(now)),
    )
    return fresh


def unsettle(db: sqlite3.Connection) -> None:
    """Make sure that whoever opens this copy gets a node of its own, wherever it is put."""
    db.execute("UPDATE installation SET fingerprint = ''")
