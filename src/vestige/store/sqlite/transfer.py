"""A SQLite file as one end of a transfer."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from functools import partial
from hashlib import blake2b, file_digest
from pathlib import Path

from vestige.core.errors import InvalidInput, StoreError
from vestige.core.lazy_dataclass import dataclass
from vestige.store import migrations
from vestige.store.contract.processes import Who
from vestige.store.sql.database import Database
from vestige.store.sqlite import opening
from vestige.store.sqlite.connection import SqliteConnections, connect, translated
from vestige.store.sqlite.file.foreign import HEADER
from vestige.store.sqlite.file.identity import known_node
from vestige.store.sqlite.search.words import SqliteSurfaces
from vestige.store.sqlite.store import SqliteStore
from vestige.store.transfer.ends import DestinationState, UnfitRow

ROWS = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError, sqlite3.ProgrammingError)
"""The driver's errors for a row that does not fit, whatever the state of the database."""
LENIENT_TEXT = partial(str, encoding="utf-8", errors="surrogateescape")
LAST_KEY = "SELECT coalesce(max(key), 0) FROM places"


class SqliteSide:
    def __init__(self, connections: SqliteConnections, *, node: str, who: Who | None) -> None:
        self._connections = connections
        self.store = SqliteStore(connections, node=node, who=who)
        self.surfaces = SqliteSurfaces()

    @contextmanager
    def reading(self) -> Iterator[Database]:
        with self._connections.reading() as db:
            db.text_factory = LENIENT_TEXT
            yield db

    @contextmanager
    def writing(self) -> Iterator[Database]:
        with self._connections.writing() as db:
            yield db

    @contextmanager
    def attempt(self, db: Database) -> Iterator[None]:
        db.execute("SAVEPOINT a_batch")
        try:
            yield
        except (*ROWS, OverflowError, UnicodeEncodeError) as exc:
            db.execute("ROLLBACK TO a_batch")
            db.execute("RELEASE a_batch")
            raise UnfitRow(str(exc)) from exc
        db.execute("RELEASE a_batch")

    def has_receipt(self, db: Database) -> bool:
        return opening.has_receipt(db)

    def number_on(self, db: Database) -> None:
        """SQLite does so by itself, except for the keys of deleted memories."""
        (last,) = db.execute(LAST_KEY).fetchone()
        changed = db.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'memories'", (last,))
        if not changed.rowcount:
            db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('memories', ?)", (last,))


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteEnd:
    path: Path
    around: opening.SqliteDependencies
    prepare: Callable[[Path], None]
    settings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return str(self.path)

    def now(self) -> datetime:
        return self.around.now()

    def seal(self) -> str | None:
        """The hash of the file and of its write-ahead log. Closing a file gives up the locks that this
        process has on it, so it must not be open here."""
        digest = blake2b(digest_size=32)
        with translated(self.path):
            for path in (self.path, Path(f"{self.path}-wal")):
                if path.exists():
                    with path.open("rb") as file:
                        file_digest(file, lambda: digest)
        return digest.hexdigest()

    @contextmanager
    def source(self) -> Iterator[SqliteSide]:
        if not self.path.exists():
            raise InvalidInput(
                f"There is no store at {self.path}.",
                hint="Give the path of a vestige.db, or --data-dir with its directory.",
                details={"path": str(self.path)},
            )
        with translated(self.path):
            self._require_database()
            uri = opening.readable_uri(self.path)
            with closing(connect(self.path, uri=uri, timeout=self.around.waiting.deadline_seconds)) as db:
                self._require_present_schema(db)
                known = known_node(db)
        connections = SqliteConnections(path=self.path, waiting=self.around.waiting, uri=uri)
        with closing(connections):
            yield SqliteSide(connections, node=known[0] if known else "", who=None)

    @contextmanager
    def destination(self) -> Iterator[SqliteSide]:
        self.prepare(self.path.parent)
        connections, node = opening.open_file(self.path, self.around)
        side = SqliteSide(connections, node=node, who=self.around.who)
        with closing(side.store):
            yield side

    def look(self) -> DestinationState:
        if not self.path.exists():
            folder = next(one for one in self.path.parents if one.exists())
            self._require_writable(folder)
            return DestinationState(
                is_store=False, facts={"file": "would be made", "schema": len(opening.schema())}
            )
        self._require_writable(self.path)
        with translated(self.path), closing(connect(self.path, uri=opening.readable_uri(self.path))) as db:
            opening.refuse_strangers(db, self.path)
            done = opening.applied(db)
            missing = migrations.pending(opening.schema(), done)
        return DestinationState(
            is_store=not missing, facts={"file": "exists", "schema": done[-1].version if done else 0}
        )

    def _require_writable(self, path: Path) -> None:
        if not os.access(path, os.W_OK):
            raise StoreError(
                f"{path} cannot be written.",
                hint="Give another path with --to PATH.",
                details={"path": str(path)},
            )

    def _require_database(self) -> None:
        """Check the first bytes: SQLite would call any other file a damaged database."""
        with self.path.open("rb") as file:
            begun = file.read(len(HEADER))
        if begun and begun != HEADER:
            raise InvalidInput(
                f"{self.path} is not a store of Vestige.",
                hint="`vestige import` takes exports and files of other programs. If it was a store, "
                "`vestige doctor` says more.",
                details={"path": str(self.path)},
            )

    def _require_present_schema(self, db: sqlite3.Connection) -> None:
        opening.refuse_strangers(db, self.path)
        if migrations.pending(opening.schema(), opening.applied(db)):
            raise StoreError(
                f"{self.path.name} has an older schema, and a transfer does not change its source.",
                hint="Run `vestige migrate` on it first: it upgrades the store, after a backup.",
                details={"path": str(self.path)},
            )
