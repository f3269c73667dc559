"""Translates the driver's errors. No message holds a password."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from vestige.core.errors import (
    InvalidInput,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from vestige.store.postgres.server.address import ServerAddress
from vestige.store.postgres.server.pool import LoginRefused, Lost, ServerUnreachable

HINTS = {
    StoreError: "Look into the server's log. `vestige db status` shows what this store has and lacks.",
    StoreBusy: "Try again. Nothing was half-written.",
    StoreUnavailable: "Check that the server runs and try again. Nothing was half-written.",
    StoreFull: "Free some disk space on the server; nothing was half-written.",
    StoreReadOnly: "Reading works. To write, connect to the primary as a user with rights to the tables.",
    StoreCorrupt: "Look into the server's log, check its disk, and restore a backup.",
}
NO_CONNECTION = (
    "Check storage.postgres.url (VESTIGE_DATABASE_URL): the host and port, the database, the user and the "
    "password; and that the server runs and admits this machine (pg_hba.conf)."
)
UNTRUSTED = re.compile(r"certificate|SSL (error|was required)|does not support SSL")
NOT_TRUSTED = (
    "The connection is not as secure as sslmode demands. Check the host name in storage.postgres.url, and"
    " sslrootcert, the file of the authority that signed the server's certificate. Do not lower sslmode to"
    " get past this: another machine may be posing as the server."
)
NOT_LET_IN = (
    "Check the user and the password in storage.postgres.url (VESTIGE_DATABASE_URL), or in the password file"
    " (~/.pgpass), and that the server admits this user from here (pg_hba.conf)."
)
# A server without free connections writes its code (53300) to the log only; the driver gets these words.
TOO_MANY = ("too many connections", "too many clients", "connection slots are reserved")
FULL_HOUSE = (
    "The server has no room for one more. Lower storage.postgres.max_connections of each process, stop some "
    "of them, or let an administrator raise the limit of the role (ALTER ROLE … CONNECTION LIMIT), of the "
    "database, or of the server (max_connections)."
)
TOO_LONG = "Try again; raise storage.postgres.statement_seconds if it lasts. Nothing was half-written."
NO_ENTRY = (LoginRefused, errors.InvalidPassword, errors.InvalidAuthorizationSpecification)
KINDS: dict[type[psycopg.Error], type[StoreError]] = {
    Lost: StoreUnavailable,
    errors.LockNotAvailable: StoreBusy,
    errors.SerializationFailure: StoreBusy,
    errors.DeadlockDetected: StoreBusy,
    errors.DiskFull: StoreFull,
    errors.ReadOnlySqlTransaction: StoreReadOnly,
    errors.DataCorrupted: StoreCorrupt,
    errors.IndexCorrupted: StoreCorrupt,
}

ENDINGS = ("08", "57")
"""The prefixes of codes by which a server says that a connection failed, or was ended by an administrator, a
shutdown or a crash."""


LIMITS = (errors.OutOfMemory, errors.ConfigurationLimitExceeded)
LACKS = (
    "Try again; if it lasts, let an administrator raise the limit that the server names (memory, "
    "temp_file_limit). Nothing was half-written."
)
GONE = (errors.UndefinedTable, errors.InvalidSchemaName)
RIGHTS = (
    "Let the owner of the tables run: GRANT USAGE ON SCHEMA {schema} TO <user>; GRANT SELECT, INSERT, "
    "UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO <user>; GRANT USAGE ON ALL SEQUENCES IN SCHEMA "
    "{schema} TO <user>; to read, GRANT SELECT is enough."
)


@contextmanager
def translated(place: ServerAddress) -> Iterator[None]:
    """Translate the driver's errors into ours."""
    try:
        yield
    except psycopg.Error as exc:
        raise store_error(exc, place) from exc
    except (UnicodeEncodeError, OverflowError) as exc:
        raise InvalidInput(f"A value cannot be stored: {exc}.") from exc
    except ValueError as exc:  # a damaged date, number or JSON
        raise StoreCorrupt(
            f"A stored value cannot be read: it is damaged. ({place}: {type(exc).__name__})",
            hint=HINTS[StoreCorrupt],
            details={"store": str(place)},
        ) from exc


def other_schema(place: ServerAddress) -> StoreUnavailable:
    """The error for a store whose tables are gone, or are those of another one."""
    return StoreUnavailable(
        f"The schema {place.schema} is not the one that was opened: it was removed or recreated. ({place})",
        hint="Restart this process, so that it opens what is there now; `vestige db status` shows it."
        " A connection pooler must use session mode. Nothing was written.",
        details={"store": str(place)},
    )


def store_error(exc: psycopg.Error, place: ServerAddress) -> StoreError | InvalidInput:
    """Our error for an error of the driver, with its remedy."""
    said = place.without_secrets(next(iter(str(exc).strip().splitlines()), type(exc).__name__))
    if isinstance(exc, psycopg.DataError):
        return InvalidInput(f"A value cannot be stored: {said}.")
    details = {"store": str(place), "cause": said}
    if isinstance(exc, NO_ENTRY):
        return StoreUnavailable(
            f"The server refuses this user. ({place}: {said})", hint=NOT_LET_IN, details=details
        )
    if isinstance(exc, ServerUnreachable):
        hint = FULL_HOUSE if any(words in said for words in TOO_MANY) else NO_CONNECTION
        hint = NOT_TRUSTED if UNTRUSTED.search(said) else hint
        return StoreUnavailable(f"No connection to {place}: {said}", hint=hint, details=details)
    if isinstance(exc, errors.QueryCanceled):  # by the time limit, or by an administrator
        return StoreBusy(
            f"The server cancelled a statement. ({place}: {said})", hint=TOO_LONG, details=details
        )
    if isinstance(exc, errors.InsufficientPrivilege):
        return StoreError(
            f"This user may not do that in the database. ({place}: {said})",
            hint=RIGHTS.format(schema=place.schema),
            details=details,
        )
    if isinstance(exc, LIMITS):
        return StoreError(f"The server ran out of something. ({place}: {said})", hint=LACKS, details=details)
    if isinstance(exc, GONE):
        return other_schema(place)
    kind = next((ours for theirs, ours in KINDS.items() if isinstance(exc, theirs)), None)
    if kind is None:
        code = exc.sqlstate  # an error without a code comes from the driver
        lost = isinstance(exc, psycopg.OperationalError) if code is None else code[:2] in ENDINGS
        kind = StoreUnavailable if lost else StoreError
    first = (kind.__doc__ or "").strip() if kind is not StoreError else "The database failed."
    return kind(f"{first} ({place}: {said})", hint=HINTS[kind], details=details)
