"""Opening a store: its file and permissions, its schema, its node."""

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path

from vestige import __version__
from vestige.errors import StoreError, StoreReadOnly
from vestige.store import migrate
from vestige.store.migrate import Applied, Migration
from vestige.store.sqlite import backup, registry
from vestige.store.sqlite.columns import moment_text
from vestige.store.sqlite.connection import (
    Connections,
    Waiting,
    connect,
    patiently,
    primary_code,
    roll_back,
    translated,
)

logger = logging.getLogger(__name__)

OLDEST_SQLITE = (3, 35, 0)
RECORDS = (
    "CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " applied_at TEXT NOT NULL, checksum TEXT NOT NULL, written_by TEXT NOT NULL)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a store needs from outside itself: time, ids, patience, and the machine's name."""

    waiting: Waiting
    new_id: Callable[[], str]
    now: Callable[[], datetime]
    machine: str


def open_file(
    path: Path,
    around: Surroundings,
    *,
    read_only: bool = False,
    migrations: Sequence[Migration] | None = None,
) -> tuple[Connections, str]:
    """The connections to a store, brought to the present schema, and its node id."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StoreError(
            f"This Python has SQLite {sqlite3.sqlite_version}; 3.35 or later is needed.",
            hint="Use a newer Python: SQLite comes with it.",
        )
    steps = schema() if migrations is None else migrations
    with translated(path):
        if read_only or not _writable(path):
            return _open_for_reading(path, around, steps)
        _make_private(path)
        with closing(connect(path)) as db:
            _refuse_strangers(db, path)
            patiently(lambda: db.execute("PRAGMA journal_mode = WAL").fetchall(), around.waiting, path)
            upgrade(db, path, steps, around)
            node = _settle(db, path, around)
    return Connections(path=path, waiting=around.waiting), node


@cache
def schema() -> tuple[Migration, ...]:
    """The migrations that belong to this version."""
    return tuple(migrate.load(files(__package__) / "migrations"))


def upgrade(db: sqlite3.Connection, path: Path, steps: Sequence[Migration], around: Surroundings) -> None:
    """Apply what is missing, each step in one transaction with its record; a backup comes first."""
    done = applied(db)
    todo = migrate.pending(steps, done)
    if todo and done:
        _back_up(db, path, done[-1].version, around)
    for step in todo:
        with _immediately(db, path, around.waiting):
            if step.version in {row.version for row in applied(db)}:
                continue  # another process was faster
            db.execute(RECORDS)
            for statement in step.statements():
                db.execute(statement)
            db.execute(
                "INSERT INTO schema_migrations (version, name, applied_at, checksum, written_by)"
                " VALUES (?, ?, ?, ?, ?)",
                (step.version, step.name, moment_text(around.now()), step.checksum, __version__),
            )


def _open_for_reading(
    path: Path, around: Surroundings, steps: Sequence[Migration]
) -> tuple[Connections, str]:
    uri = _readable_uri(path)
    with closing(connect(path, uri=uri)) as db:
        _refuse_strangers(db, path)
        if migrate.pending(steps, applied(db)):
            raise StoreReadOnly(
                "The database has an older schema and cannot be brought up to date here.",
                hint="Open it once where it can be written, or copy it to a writable place.",
                details={"path": str(path)},
            )
        known = registry.node(db)
    return Connections(path=path, waiting=around.waiting, uri=uri), known[0] if known else ""


def _readable_uri(path: Path) -> str:
    """How to open a file that cannot be written. Where SQLite cannot make the shared memory a write-ahead
    log needs, the file is taken as one that nobody changes."""
    path.stat()  # a missing file is a clearer error than what SQLite would say
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(connect(path, uri=uri)) as db:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as exc:
        if primary_code(exc) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        journal = Path(f"{path}-wal")
        if journal.exists() and journal.stat().st_size:
            logger.warning("%s cannot be read here: the latest changes to the store are not seen", journal)
        return f"{uri}&immutable=1"
    return uri


def _writable(path: Path) -> bool:
    """Whether the file, and the journals beside it, can be written. What does not exist yet can be made."""
    if path.exists():
        return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    return True


def _make_private(path: Path) -> None:
    """Make directory and file for their owner only, whatever the umask; SQLite gives the journals the
    file's permissions."""
    if not path.parent.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o700)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.close(handle)
    if path.stat().st_mode & 0o777 != 0o600:
        with suppress(PermissionError):  # somebody else's file, shared on purpose
            path.chmod(0o600)


def _refuse_strangers(db: sqlite3.Connection, path: Path) -> None:
    tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
    if tables and "schema_migrations" not in tables:
        raise StoreError(
            f"{path.name} is a database of another program; it was left as it is.",
            hint="Use another --data-dir.",
            details={"path": str(path)},
        )


def applied(db: sqlite3.Connection) -> list[Applied]:
    """The migrations this database has seen; none for an empty one."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'").fetchone():
        return []
    rows = db.execute("SELECT version, name, checksum, written_by FROM schema_migrations ORDER BY version")
    return [Applied(version=row[0], name=row[1], checksum=row[2], written_by=row[3]) for row in rows]


def _back_up(db: sqlite3.Connection, path: Path, version: int, around: Surroundings) -> None:
    folder = path.parent / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    stamp = around.now().strftime("%Y%m%dT%H%M%SZ")
    db.execute("BEGIN")
    try:
        backup.copy(db, folder / f"{path.stem}-schema{version}-{stamp}-{around.new_id()}.db")
    finally:
        roll_back(db)


def _settle(db: sqlite3.Connection, path: Path, around: Surroundings) -> str:
    fingerprint = registry.installed_at(path, around.machine)
    known = registry.node(db)
    if known is not None and known[1] == fingerprint:
        return known[0]
    with _immediately(db, path, around.waiting):
        return registry.settle(db, fingerprint, around.new_id, around.now())


@contextmanager
def _immediately(db: sqlite3.Connection, path: Path, waiting: Waiting) -> Iterator[None]:
    patiently(lambda: db.execute("BEGIN IMMEDIATE"), waiting, path)
    try:
        yield
        db.execute("COMMIT")
    finally:
        roll_back(db)
