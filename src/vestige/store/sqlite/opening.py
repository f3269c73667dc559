"""Opens a store: its file and permissions, its schema, its node."""

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from functools import cache
from pathlib import Path

from vestige import __version__
from vestige.core.errors import StoreBusy, StoreError, StoreReadOnly
from vestige.core.lazy_dataclass import dataclass
from vestige.store import migrations
from vestige.store.contract.processes import Who
from vestige.store.contract.trouble import Upgrade
from vestige.store.migrations import AppliedMigration, Migration
from vestige.store.sql.database import Database
from vestige.store.sql.filters import moment_text
from vestige.store.sql.merge import arrivals
from vestige.store.sqlite.backup import backup
from vestige.store.sqlite.connection import (
    SqliteConnections,
    Synchronous,
    WriterWait,
    connect,
    patiently,
    primary_code,
    roll_back,
    translated,
)
from vestige.store.sqlite.file import identity, lost_files
from vestige.store.sqlite.processes import locks, presence

logger = logging.getLogger(__name__)

OLDEST_SQLITE = (3, 35, 0)
BACKUPS = "backups"
"""The folder beside a store for its backups."""
MIGRATION_WAITS = 12
"""The factor of the patience for other processes before an upgrade, over that for a write."""
OPENINGS = 5
"""The attempts to open a file that is replaced each time."""
RECORDS = (
    "CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " applied_at TEXT NOT NULL, checksum TEXT NOT NULL, written_by TEXT NOT NULL)"
)
RECORD = (
    "INSERT INTO schema_migrations (version, name, applied_at, checksum, written_by) VALUES (?, ?, ?, ?, ?)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteDependencies:
    """The dependencies of a store: time, ids, patience, the machine's name, and the process."""

    waiting: WriterWait
    new_id: Callable[[], str]
    now: Callable[[], datetime]
    machine: str
    who: Who
    synchronous: Synchronous = "normal"


def open_file(
    path: Path,
    around: SqliteDependencies,
    *,
    read_only: bool = False,
    migrations: Sequence[Migration] | None = None,
) -> tuple[SqliteConnections, str]:
    """The connections to a store, upgraded to the present schema, and its node id."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StoreError(
            f"This Python has SQLite {sqlite3.sqlite_version}; 3.35 or later is needed.",
            hint="Use a newer Python: SQLite comes with it.",
        )
    steps = schema() if migrations is None else migrations
    with translated(path):
        if read_only or not _writable(path):
            return _open_for_reading(path, around, steps)
        for _ in range(OPENINGS):
            opened = _open_for_writing(path, around, steps)
            if opened is not None:
                return opened
    raise StoreBusy(f"{path.name} keeps being replaced.", hint="Try again.", details={"path": str(path)})


def _open_for_writing(
    path: Path, around: SqliteDependencies, steps: Sequence[Migration]
) -> tuple[SqliteConnections, str] | None:
    """Open a store; None if its file was replaced in the meantime, as a restore does."""
    lost_files.check(path, again=around.waiting.turns(lost_files.CREATION_SECONDS))
    _make_private(path)
    file = identity.file_at(path)
    connections = SqliteConnections(path=path, waiting=around.waiting, synchronous=around.synchronous)
    try:
        with closing(connect(path, patience=around.waiting.deadline_seconds)) as db:
            patiently(lambda: refuse_strangers(db, path), around.waiting, path)
            if not path.stat().st_size:
                # Before there is a log: then only a copy without its log has no table (`lost_files`).
                patiently(lambda: db.execute(RECORDS), around.waiting, path)
            patiently(lambda: db.execute("PRAGMA journal_mode = WAL").fetchall(), around.waiting, path)
            upgrade(db, path, steps, around)
            node = _settle(db, path, around)
            # From here on there is a reader, by which a restore sees that the file is in use.
            with connections.reading(snapshot=False) as reader:
                applied(reader)
                connections.journal.watch()
    except sqlite3.OperationalError as exc:
        # SQLite refuses to write to a file that is no longer at its path.
        if getattr(exc, "sqlite_errorcode", None) != sqlite3.SQLITE_READONLY_DBMOVED:
            raise
        return None
    if identity.file_at(path) != file:
        connections.close()
        return None
    return connections, node


@cache
def schema() -> tuple[Migration, ...]:
    """The migrations that belong to this version."""
    return tuple(migrations.load(Path(__file__).with_name("migrations")))


@contextmanager
def upgrading(path: Path, around: SqliteDependencies) -> Iterator[None]:
    """Get the exclusive right to upgrade a store; waits for another process, but not for ever."""
    again = around.waiting.turns(MIGRATION_WAITS * around.waiting.deadline_seconds)
    with locks.alone(path, "migration", around.who, again=lambda holder: again()):
        yield


def upgrade(
    db: sqlite3.Connection, path: Path, steps: Sequence[Migration], around: SqliteDependencies
) -> None:
    """Apply the pending migrations, each in one transaction with its record; a backup comes first."""
    if not migrations.pending(steps, applied(db)):
        return
    with upgrading(path, around):
        done = applied(db)
        todo = migrations.pending(steps, done)  # none, if another process was faster
        if todo and done:
            _require_no_peers(path, around)
            _back_up(db, path, done[-1].version, around)
        for step in todo:
            with _immediately(db, path, around.waiting):
                if step.version in {row.version for row in applied(db)}:
                    continue  # another process was faster, on a file system without locks
                for statement in (RECORDS, *step.statements()):
                    db.execute(statement)
                values = (step.version, step.name, moment_text(around.now()), step.checksum, __version__)
                db.execute(RECORD, values)
        with suppress(sqlite3.Error):  # so that a copy of the file alone has the tables
            db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _require_no_peers(path: Path, around: SqliteDependencies) -> None:
    """Wait until no other process has the store open, because they know only the old schema. StoreBusy, with
    their names, if they stay."""
    again = around.waiting.turns(MIGRATION_WAITS * around.waiting.deadline_seconds)
    while others := presence.present(path):
        if not again():
            raise StoreBusy(
                "The store must be upgraded, but other processes have it open:"
                f" {', '.join(str(who) for who in others)}.",
                hint="Stop these first, then try again. Nothing was changed.",
                details={"path": str(path), "pids": [who.pid for who in others]},
            )


def _open_for_reading(
    path: Path, around: SqliteDependencies, steps: Sequence[Migration]
) -> tuple[SqliteConnections, str]:
    lost_files.check(path, again=lambda: False)
    uri = readable_uri(path)
    with closing(connect(path, uri=uri, timeout=around.waiting.deadline_seconds)) as db:
        refuse_strangers(db, path)
        if migrations.pending(steps, applied(db)):
            raise StoreReadOnly(
                "The database has an older schema and cannot be upgraded here.",
                hint="Open it once where it can be written, or copy it to a writable place.",
                details={"path": str(path)},
            )
        known = identity.known_node(db)
    return SqliteConnections(path=path, waiting=around.waiting, uri=uri), known[0] if known else ""


def readable_uri(path: Path) -> str:
    """The URI of a file that cannot be written. Where SQLite cannot create the shared memory that a
    write-ahead log needs, the file is taken as immutable."""
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
    """Whether the file and the journals beside it can be written or created."""
    return not path.exists() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _make_private(path: Path) -> None:
    """Make directory and file private, whatever the umask; SQLite gives the journals the same permissions."""
    if not path.parent.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o700)
    # Only where there is none: closing a file gives up all locks that this process has on it, also those
    # that mark an open store as in use.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    if path.stat().st_mode & 0o777 != 0o600:
        with suppress(PermissionError):  # another user's file, shared on purpose
            path.chmod(0o600)


def refuse_strangers(db: sqlite3.Connection, path: Path) -> None:
    """StoreError for a database of another program."""
    tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
    if tables and "schema_migrations" not in tables:
        raise StoreError(
            f"{path.name} is a database of another program; it was left as it is.",
            hint="Use another --data-dir.",
            details={"path": str(path)},
        )


def applied(db: sqlite3.Connection) -> list[AppliedMigration]:
    """The applied migrations of a database; none for an empty one."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'").fetchone():
        return []
    rows = db.execute("SELECT version, name, checksum, written_by FROM schema_migrations ORDER BY version")
    return [AppliedMigration(version=row[0], name=row[1], checksum=row[2], written_by=row[3]) for row in rows]


def _back_up(db: sqlite3.Connection, path: Path, version: int, around: SqliteDependencies) -> None:
    folder = path.parent / BACKUPS
    folder.mkdir(mode=0o700, exist_ok=True)
    stamp = around.now().strftime("%Y%m%dT%H%M%SZ")
    db.execute("BEGIN")
    try:
        backup.copy(db, folder / f"{path.stem}-schema{version}-{stamp}-{around.new_id()}.db")
    finally:
        roll_back(db)


def _settle(db: sqlite3.Connection, path: Path, around: SqliteDependencies) -> str:
    fingerprint = identity.installed_at(path, around.machine)
    known = identity.settled(db, path, fingerprint)
    if known is not None:
        return known
    with _immediately(db, path, around.waiting):
        return identity.settle(db, path, fingerprint, around.new_id, around.now())


@contextmanager
def _immediately(db: sqlite3.Connection, path: Path, waiting: WriterWait) -> Iterator[None]:
    patiently(lambda: db.execute("BEGIN IMMEDIATE"), waiting, path)
    try:
        yield
        db.execute("COMMIT")
    finally:
        roll_back(db)


# -- The plan of an upgrade


def plan(database: Path) -> Upgrade:
    """The pending upgrade of a database; StoreTooNew for one of a newer Vestige. Nothing is changed."""
    steps = schema()
    done: list[AppliedMigration] = []
    if database.exists():
        with translated(database), closing(connect(database, uri=readable_uri(database))) as db:
            refuse_strangers(db, database)
            done = applied(db)
    todo = migrations.pending(steps, done)
    return Upgrade(
        schema=done[-1].version if done else 0,
        known=len(steps),
        steps=tuple(step.label for step in todo),
        backups=database.parent / BACKUPS if done and todo else None,
    )


# -- Incomplete transfers into this file

HAS_RECEIPT = f"SELECT 1 FROM sqlite_master WHERE name = '{arrivals.TABLE}' AND type = 'table'"


def has_receipt(db: Database) -> bool:
    return db.execute(HAS_RECEIPT).fetchone() is not None


def require_complete(db: Database, path: Path) -> None:
    if has_receipt(db) and not arrivals.is_complete(db):
        raise arrivals.incomplete(str(path))
