"""Restores a backup in place of the store. Until the last step the store does not change.

inspect ─► copy into a folder beside the store ─► (the caller opens the copy) ─► inspect it
        ─► take exclusive use of the store ─► keep it in backups/ ─► replace the file
        ─► verify that it opens, or put the old one back
"""

import errno
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from vestige.cognition.text.analyser import digest
from vestige.core.errors import InvalidInput, StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from vestige.core.lazy_dataclass import dataclass
from vestige.store import migrations
from vestige.store.contract.processes import Who
from vestige.store.contract.trouble import MOST_IDS
from vestige.store.sqlite.backup.backup import check_room, size_of, sync
from vestige.store.sqlite.backup.replace_file import beside, busy, replace
from vestige.store.sqlite.connection import HINTS, connect, translated
from vestige.store.sqlite.file import identity
from vestige.store.sqlite.file.foreign import is_database
from vestige.store.sqlite.opening import applied, schema
from vestige.store.sqlite.processes import locks, presence

STAGING = ".restoring-"
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupContents:
    schema: int
    memories: int
    events: int
    newest: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredStore:
    """The restored contents, and the path of the replaced store (None when there was none)."""

    contents: BackupContents
    kept: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteRestorer:
    """Replaces stores for a process."""

    who: Who

    def recognises(self, backup: Path) -> bool:
        with _file_errors(backup):
            return is_database(backup)

    def inspect(self, backup: Path) -> BackupContents:
        return inspect(backup)

    @contextmanager
    def staging(self, database: Path) -> Iterator[Path]:
        """Take the right to replace a store, and a folder beside it to prepare the new one in. StoreBusy,
        with their names, while other processes use the store. The folder is removed at the end, and so are
        those of killed restores."""
        with _file_errors(database):
            database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locks.alone(database, "restore", self.who):
                users = presence.present(database)
                if users:
                    raise busy(database, users)
                for left in database.parent.glob(f"{STAGING}*"):
                    shutil.rmtree(left, ignore_errors=True)
                folder = Path(tempfile.mkdtemp(prefix=STAGING, dir=database.parent))
                try:
                    yield folder
                finally:
                    shutil.rmtree(folder, ignore_errors=True)

    def stage(self, backup: Path, folder: Path, name: str) -> Path:
        """Inspect a backup, and copy it into the folder of `staging` as a database of this name."""
        staged = folder / name
        with _file_errors(backup):
            inspect(backup)
            with (
                translated(backup),
                closing(connect(backup, uri=_reading(backup))) as source,
                closing(connect(staged)) as target,
            ):
                check_room(folder, size_of(source))
                source.backup(target)
                target.execute("PRAGMA journal_mode = DELETE").fetchall()
        return staged

    def swap(self, staged: Path, database: Path, *, prove: Callable[[], None]) -> RestoredStore:
        """Put the database that was staged in the place of the store."""
        with _file_errors(database):
            with translated(database), closing(connect(staged)) as db:
                db.execute("PRAGMA journal_mode = DELETE").fetchall()
                # Its log belongs to another installation, or to a time before the restore.
                identity.unsettle(db)
                contents = _contents(db, staged)
            sync(staged)
            kept = replace(staged, database, prove=prove)
            identity.forget_lost(database)
            return RestoredStore(contents=contents, kept=kept)


def restore(backup: Path, database: Path, *, who: Who, prove: Callable[[], None]) -> RestoredStore:
    """Replace the store at `database` by a backup. `prove` opens it in its place and raises if it cannot.
    Whatever fails, the store is unchanged."""
    restorer = SqliteRestorer(who=who)
    with restorer.staging(database) as folder:
        return restorer.swap(restorer.stage(backup, folder, database.name), database, prove=prove)


def inspect(backup: Path) -> BackupContents:
    """Read a backup through; its contents, or an error that says why it cannot be restored."""
    with _file_errors(backup):
        if not is_database(backup):
            raise InvalidInput(
                f"{backup} is not a backup: it is not an SQLite database.",
                hint="Give a file made by `vestige backup` or `vestige export`, or a copy of vestige.db.",
                details={"path": str(backup)},
            )
        try:
            with translated(backup), closing(connect(backup, uri=_reading(backup))) as db:
                return _contents(db, backup)
        except StoreCorrupt as exc:
            if "memories" in exc.details:
                raise
            raise _damaged(backup, exc.details.get("check", [exc.message])) from exc


def _reading(backup: Path) -> str:
    """The URI to open a backup without creating files beside it."""
    # A copy with a journal beside it is complete only with it; any other does not change.
    live = any(journal.exists() and journal.stat().st_size for journal in beside(backup))
    return f"{backup.absolute().as_uri()}?{'mode=ro' if live else 'mode=ro&immutable=1'}"


def _contents(db: sqlite3.Connection, backup: Path) -> BackupContents:
    tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"schema_migrations", "memories", "events", "installation"} <= tables:
        raise InvalidInput(
            f"{backup} is a database of another program.",
            hint="Give a file made by `vestige backup`, or a copy of vestige.db.",
            details={"path": str(backup)},
        )
    done = applied(db)
    migrations.pending(schema(), done)  # refuses a schema from the future
    verdict = [row[0] for row in db.execute("PRAGMA integrity_check(5)")]
    wrong = [line for line in verdict if line != "ok"] or list(_inconsistent(db))
    if wrong:
        raise _damaged(backup, wrong)
    altered = list(_altered(db))
    if altered:
        raise _with_altered_texts(backup, altered)
    memories, newest = db.execute("SELECT count(*), max(updated_at) FROM memories").fetchone()
    events = db.execute("SELECT count(*) FROM events").fetchone()[0]
    return BackupContents(schema=done[-1].version, memories=memories, events=events, newest=newest)


def _inconsistent(db: sqlite3.Connection) -> Iterator[str]:
    """Inconsistencies of a file whose single pages are sound: it was copied while it was written."""
    dangling = db.execute("PRAGMA foreign_key_check").fetchone()
    if dangling is not None:
        yield f"a row of {dangling[0]} refers to a missing row of {dangling[2]}"
    missing = db.execute(
        "SELECT coalesce(max(seq), 0) - count(*) FROM events WHERE node = (SELECT node FROM installation)"
    ).fetchone()[0]
    if missing:
        yield f"{missing} events are missing from the log"


def _altered(db: sqlite3.Connection) -> Iterator[str]:
    """The memories whose text is not the one that was hashed. Nothing else in the file shows a flipped bit in
    a text. An empty hash says that another program changed the text on purpose."""
    for memory_id, content, phrasings, known in db.execute(
        "SELECT id, content, phrasings, text_hash FROM memories WHERE text_hash <> '' ORDER BY key"
    ):
        try:
            found = digest("\n".join((content, *json.loads(phrasings))))
        except (TypeError, ValueError):
            found = None
        if found != known:
            yield str(memory_id)


def _with_altered_texts(backup: Path, ids: Sequence[str]) -> StoreCorrupt:
    named = ", ".join(ids[:MOST_IDS]) + (f" and {len(ids) - MOST_IDS} more" if len(ids) > MOST_IDS else "")
    return StoreCorrupt(
        f"{backup} is damaged: the texts of these memories do not match their hashes: {named}.",
        hint="Use an earlier backup. Without one, copy the file into an empty data directory as "
        "vestige.db to see what it holds.",
        details={"path": str(backup), "memories": ids[:MOST_IDS], "count": len(ids)},
    )


def _damaged(backup: Path, check: list[str]) -> StoreCorrupt:
    return StoreCorrupt(
        f"{backup} is damaged, or was copied while something wrote to it.",
        hint="Use an earlier backup. `vestige backup` makes complete ones at any time.",
        details={"path": str(backup), "check": check},
    )


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as exc:
        raise InvalidInput(f"There is no file {exc.filename or path}.", details={"path": str(path)}) from exc
    except PermissionError as exc:
        raise StoreReadOnly(
            f"{exc.filename or path} cannot be used: permission denied.",
            hint=HINTS[StoreReadOnly],
            details={"path": str(path)},
        ) from exc
    except OSError as exc:
        kind = StoreFull if exc.errno in _FULL else StoreError
        raise kind(
            f"{exc.filename or path} cannot be used: {exc.strerror or exc}.", details={"path": str(path)}
        ) from exc
