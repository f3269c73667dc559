"""The requirements of a store on its server: version, encoding, and the extension `vector`."""

from typing import Any

from psycopg import Connection, errors

from vestige.core.errors import StoreError
from vestige.store.postgres.server.address import ServerAddress

OLDEST_SERVER = 140_000
OLDEST_EXTENSION = (0, 8)
"""The first version with `hnsw.iterative_scan`, which continues when a filter leaves too few of the
nearest."""

EXTENSION = (
    "SELECT e.extversion, n.nspname, has_schema_privilege(n.oid, 'USAGE')"
    " FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
)
SOFTWARE = (
    "SELECT 'postgresql', split_part(current_setting('server_version'), ' ', 1)"
    " UNION ALL SELECT 'pgvector', extversion FROM pg_extension WHERE extname = 'vector'"
)
INSTALLABLE = "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'"


def check_server(db: Connection[Any], place: ServerAddress) -> None:
    """StoreError for a server that is too old, or a database that cannot hold every text."""
    version, encoding = db.info.server_version, db.info.parameter_status("server_encoding")
    details = {"store": str(place), "version": version, "encoding": encoding}
    if version < OLDEST_SERVER:
        raise StoreError(
            f"PostgreSQL {version // 10_000} is too old:"
            f" {OLDEST_SERVER // 10_000} or later is needed. ({place})",
            hint="Upgrade the server, or use another one.",
            details=details,
        )
    if encoding != "UTF8":
        raise StoreError(
            f"The database has the encoding {encoding}: memories need UTF8. ({place})",
            hint="Make another one: CREATE DATABASE vestige ENCODING 'UTF8' TEMPLATE template0;",
            details=details,
        )


def extension_schema(db: Connection[Any], place: ServerAddress, *, read_only: bool) -> str:
    """The schema of the extension `vector`, which is created where that is allowed."""
    found = db.execute(EXTENSION).fetchone()
    if found is None and not read_only:
        _create_extension(db, place)
        found = db.execute(EXTENSION).fetchone()
    if found is None:
        raise no_extension(place)
    version = tuple(int(part) for part in found[0].split(".")[:2])
    if version < OLDEST_EXTENSION:
        raise StoreError(
            f"The extension `vector` is {found[0]} here;"
            f" {'.'.join(map(str, OLDEST_EXTENSION))} or later is needed. ({place})",
            hint="Install a newer pgvector, then: ALTER EXTENSION vector UPDATE;",
            details={"store": str(place), "version": found[0]},
        )
    if not found[2]:
        raise StoreError(
            f"This user may not use the schema {found[1]}, where the extension `vector` is. ({place})",
            hint=f"Let an administrator of the database run: GRANT USAGE ON SCHEMA {found[1]} TO <user>;",
            details={"store": str(place)},
        )
    return str(found[1])


def _create_extension(db: Connection[Any], place: ServerAddress) -> None:
    if db.execute(INSTALLABLE).fetchone() is None:
        raise no_extension(place)
    try:
        db.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except (errors.UniqueViolation, errors.DuplicateObject):
        return  # another process was faster, which IF NOT EXISTS does not see
    except errors.InsufficientPrivilege as exc:
        raise StoreError(
            f"This user may not create the extension `vector`. ({place})",
            hint="Let an administrator of the database run: CREATE EXTENSION vector;",
            details={"store": str(place)},
        ) from exc


def no_extension(place: ServerAddress) -> StoreError:
    return StoreError(
        f"The server has no extension `vector` (pgvector). ({place})",
        hint="Install pgvector on the server (a package such as postgresql-17-pgvector), then run "
        "`vestige db init` again.",
        details={"store": str(place)},
    )


def shared_sessions(place: ServerAddress) -> StoreError:
    return StoreError(
        f"A connection pooler shares sessions among clients here; Vestige needs its own. ({place})",
        hint="Connect to the server itself, or set pool_mode = session for this database in pgbouncer.ini."
        " Nothing was written.",
        details={"store": str(place)},
    )


def strangers(place: ServerAddress, table: str) -> StoreError:
    return StoreError(
        f"The schema {place.schema} holds tables of another program; it was left as it is. ({place})",
        hint="Set storage.postgres.schema to another name.",
        details={"store": str(place), "table": table},
    )


def no_schema_made(place: ServerAddress) -> StoreError:
    return StoreError(
        f"This user may not create the schema {place.schema}. ({place})",
        hint=f"Let the database's owner run: CREATE SCHEMA {place.schema} AUTHORIZATION <user>;",
        details={"store": str(place)},
    )


def no_tables_made(place: ServerAddress) -> StoreError:
    return StoreError(
        f"This user may not create or change tables in the schema {place.schema}. ({place})",
        hint=f"Let its owner run: GRANT CREATE, USAGE ON SCHEMA {place.schema} TO <user>; an"
        " existing store is upgraded by the user who created it.",
        details={"store": str(place)},
    )
