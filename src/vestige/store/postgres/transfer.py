"""A store in PostgreSQL as one end of a transfer."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from datetime import datetime

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from vestige.core.errors import InvalidInput, StoreReadOnly
from vestige.core.lazy_dataclass import dataclass
from vestige.store import migrations
from vestige.store.contract.processes import Who
from vestige.store.postgres import opening
from vestige.store.postgres.connection import PostgresConnections, connect
from vestige.store.postgres.opening import PostgresDependencies, applied, open_connections, pending
from vestige.store.postgres.search.words import PostgresSurfaces
from vestige.store.postgres.server.address import ServerAddress
from vestige.store.postgres.server.errors import translated
from vestige.store.postgres.server.requirements import (
    check_server,
    extension_schema,
    no_schema_made,
    no_tables_made,
    strangers,
)
from vestige.store.postgres.store import PostgresStore
from vestige.store.sql.database import Database
from vestige.store.transfer.ends import DestinationState, UnfitRow

READ_ONLY = "-c default_transaction_read_only=on"
ROWS = (psycopg.DataError, psycopg.IntegrityError, errors.ProgramLimitExceeded, errors.DatatypeMismatch)
"""The errors of the server and the driver for a row that does not fit; a text too long for an index is
one."""

NUMBERED = {"documents": "key", "profiles": "id", "vectors": "id"}
"""The columns that the server numbers, in tables whose rows are copied with their numbers."""
NUMBER_ON = (
    "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), max({column})) FROM {table}"
    " HAVING count(*) > 0"
)
GROWN = (
    *("memories", "memory_tags", "fingerprints", "strengths", "revisions", "events", "edges", "documents"),
    *("vectors", "token_bits", "words", "postings", "terms", "places"),
)
SEEN = (
    "SELECT n.oid IS NOT NULL,"
    " CASE WHEN n.oid IS NULL THEN has_database_privilege(current_database(), 'CREATE')"
    " ELSE has_schema_privilege(n.oid, 'CREATE') END,"
    " (SELECT extversion FROM pg_extension WHERE extname = 'vector'),"
    " (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'),"
    " pg_is_in_recovery() OR current_setting('default_transaction_read_only')::bool,"
    " (SELECT min(c.relname) FROM pg_class c WHERE c.relnamespace = n.oid"
    " AND c.relkind IN ('r', 'p', 'v', 'm')"
    " AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e'))"
    " FROM (SELECT %s AS name) asked LEFT JOIN pg_namespace n ON n.nspname = asked.name"
)
"""Facts about the destination: the schema, the right to create tables in it, the extension in the database
and on the server, whether the server is read-only, and a table of the schema if it has any."""


class PostgresSide:
    """An open store."""

    def __init__(self, connections: PostgresConnections, *, who: Who) -> None:
        self._connections = connections
        self.store = PostgresStore(connections, who=who)
        self.surfaces = PostgresSurfaces()

    def reading(self) -> AbstractContextManager[Database]:
        return self._connections.reading()

    def writing(self) -> AbstractContextManager[Database]:
        return self._connections.writing()

    @contextmanager
    def attempt(self, db: Database) -> Iterator[None]:
        db.execute("SAVEPOINT a_batch")
        try:
            yield
        except (*ROWS, OverflowError, UnicodeEncodeError) as exc:
            db.execute("ROLLBACK TO a_batch")
            db.execute("RELEASE a_batch")
            said = exc.diag.message_primary if isinstance(exc, psycopg.Error) else None
            raise UnfitRow(said or str(exc)) from exc
        db.execute("RELEASE a_batch")

    def has_receipt(self, db: Database) -> bool:
        return opening.has_receipt(db)

    def number_on(self, db: Database) -> None:
        """Set the identity sequences, which do not count explicit numbers, and analyse the tables."""
        for table, column in NUMBERED.items():
            db.execute(NUMBER_ON.format(table=table, column=column))
        db.execute(f"ANALYZE {', '.join(GROWN)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresEnd:
    """A schema in a database as the source or the destination of a transfer."""

    place: ServerAddress
    around: PostgresDependencies
    who: Who
    settings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return str(self.place)

    def now(self) -> datetime:
        return self.around.now()

    def seal(self) -> str | None:
        """None: the files of a server are not visible, and the transactions on a source are read-only."""
        return None

    @contextmanager
    def source(self) -> Iterator[PostgresSide]:
        if not self._has_store():
            raise InvalidInput(
                f"There is no store of the present schema in {self.place}.",
                hint="Check the URL and storage.postgres.schema; `vestige db status` shows what is there.",
                details={"store": str(self.place)},
            )
        parts = conninfo_to_dict(self.place.url)
        options = f"{parts.get('options') or ''} {READ_ONLY}".strip()
        with self._opened(replace(self.place, url=make_conninfo(self.place.url, options=options))) as side:
            yield side

    def destination(self) -> AbstractContextManager[PostgresSide]:
        return self._opened(self.place)

    @contextmanager
    def _opened(self, place: ServerAddress) -> Iterator[PostgresSide]:
        connections = open_connections(place, self.around)
        with closing(connections):
            side = PostgresSide(connections, who=self.who)
            with closing(side.store):
                yield side

    def look(self) -> DestinationState:
        with translated(self.place), self._connected() as db:
            check_server(db, self.place)
            row = db.execute(SEEN, (self.place.schema,)).fetchone()
            exists, may, extension, installable, reads_only, table = row or (None,) * 6
            if extension or not installable:
                extension_schema(db, self.place, read_only=True)
            done = self._applied(db)
            missing = pending(done)
            version = str(db.info.parameter_status("server_version"))
        if reads_only:
            raise StoreReadOnly(
                f"The server is read-only. ({self.place})",
                hint="Connect to the primary server.",
                details={"store": str(self.place)},
            )
        if table and not done:
            raise strangers(self.place, str(table))
        if not extension:
            self._try_extension()
        if missing and not may:
            raise no_tables_made(self.place) if exists else no_schema_made(self.place)
        return DestinationState(
            is_store=not missing,
            facts={
                "server": version,
                "vector": str(extension) if extension else f"{installable}, not created yet",
                "schema": done[-1].version if done else "exists, empty" if exists else "would be made",
            },
        )

    def _try_extension(self) -> None:
        """StoreError where the extension cannot be created. Trying is the only way to know: some servers let
        others than superusers create it. It is rolled back at once."""
        waiting = self.around.wait_seconds
        with (
            translated(self.place),
            connect(self.place, program=self.around.program, wait_seconds=waiting) as db,
            db.transaction(force_rollback=True),
        ):
            extension_schema(db, self.place, read_only=False)

    def _has_store(self) -> bool:
        with translated(self.place), self._connected() as db:
            check_server(db, self.place)
            done = self._applied(db)
            return bool(done) and not pending(done)

    def _applied(self, db: psycopg.Connection[tuple[object, ...]]) -> list[migrations.AppliedMigration]:
        db.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(self.place.schema)))
        return applied(db)

    def _connected(self) -> psycopg.Connection[tuple[object, ...]]:
        """A session whose one transaction can only read."""
        db = connect(self.place, program=self.around.program, wait_seconds=self.around.wait_seconds)
        db.autocommit, db.read_only = False, True
        return db
