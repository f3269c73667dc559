"""Databases: opening the store, maintenance, and the two ends of a transfer. app.py selects one."""

import platform
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from vestige.core.clock import Clock
from vestige.core.errors import ConfigError, InvalidInput, MissingExtra, StoreError, nearest_name
from vestige.core.lazy_dataclass import dataclass
from vestige.settings.settings import (
    DATABASE_NAME,
    PROJECT_DIRECTORY,
    Settings,
    is_project_directory,
    is_repository,
)
from vestige.store.contract.code_index import CodeIndexes
from vestige.store.contract.processes import Who
from vestige.store.contract.store import MemoryStore
from vestige.store.contract.trouble import DatabaseStatus, Trouble, Upgrade
from vestige.store.transfer.ends import End

if TYPE_CHECKING:
    from vestige.store.code_index.index import SqliteCodeIndexes
    from vestige.store.code_index.names import IndexNames
    from vestige.store.contract.sessions import SessionIndex
    from vestige.store.postgres.server.address import ServerAddress
    from vestige.store.postgres.store import PostgresStore
    from vestige.store.sqlite.backup.restore import SqliteRestorer


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteDatabase:
    """The SQLite file in the data directory."""

    settings: Settings
    who: Who
    now: Callable[[], datetime]

    def status(self) -> DatabaseStatus:
        from vestige.store.sqlite.status import status

        return status(self.settings.database)

    def upgrade(self) -> Upgrade:
        from vestige.store.sqlite.opening import plan

        return plan(self.settings.database)

    def remains(self) -> list[Trouble]:
        from vestige.store.sqlite.file.damage import examine_file

        return examine_file(self.settings.database, self.now())

    def restorer(self) -> "SqliteRestorer":
        from vestige.store.sqlite.backup.restore import SqliteRestorer

        return SqliteRestorer(who=self.who)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresDatabase:
    """A schema in a PostgreSQL database."""

    settings: Settings

    def status(self) -> DatabaseStatus:
        address = self._address()
        from vestige.store.postgres.status import status

        return status(address)

    def upgrade(self) -> Upgrade:
        address = self._address()
        from vestige.store.postgres.status import plan

        return plan(address)

    def remains(self) -> list[Trouble]:
        """Always empty: without the server nothing can be examined."""
        return []

    def restorer(self) -> "SqliteRestorer":
        """Always an error: a backup file cannot replace a database."""
        raise InvalidInput(
            f"The store is in PostgreSQL ({self.settings.place}), which a file cannot replace.",
            hint="Copy a backup into an empty database or schema with `vestige migrate --from FILE --to "
            "postgres`, or restore the server's own backup (pg_restore). `vestige import FILE` merges "
            "an export into this store.",
            details={"store": self.settings.place},
        )

    def _address(self) -> "ServerAddress":
        postgres_store()  # raises MissingExtra if the driver is not installed
        from vestige.store.postgres.server.address import ServerAddress

        chosen = self.settings.storage.postgres
        return ServerAddress(url=postgres_url(self.settings), schema=chosen.schema_name)


SESSIONS_NAME = "sessions.db"


class SessionsFile:
    """The index of sessions, opened when first asked for: a file in the data directory, or in memory."""

    def __init__(self, folder: Path | None) -> None:
        self._path = folder / SESSIONS_NAME if folder is not None else None
        self._lock = threading.Lock()
        self._opened: SessionIndex | None = None

    def __call__(self) -> "SessionIndex":
        with self._lock:
            if self._opened is None:
                from vestige.store.sqlite.sessions.index import SqliteSessionIndex

                self._opened = SqliteSessionIndex(self._path)
            return self._opened

    def close(self) -> None:
        with self._lock:
            if self._opened is not None:
                self._opened.close()


def open_sqlite(settings: Settings, clock: Clock, *, who: Who, machine: str) -> MemoryStore:
    from vestige.store.sqlite.store import SqliteStore

    prepare_directory(settings.data_dir)
    return SqliteStore.open(
        settings.database,
        rng=clock.rng,
        sleep=clock.sleep,
        monotonic=clock.monotonic,
        new_id=clock.new_id,
        now=clock.now,
        machine=machine,
        who=who,
        synchronous=settings.storage.synchronous,
        busy_seconds=settings.storage.busy_seconds,
    )


def code_indexes(clock: Clock, who: Who, own: Path) -> CodeIndexes:
    """Opens the code indexes of projects; the driver is imported when one is. `own` is the user's folder."""

    def names() -> "IndexNames":
        from vestige.store.code_index.names import IndexNames

        return IndexNames(own, clock.rng.randbytes)

    def opener() -> "SqliteCodeIndexes":
        from vestige.store.code_index.index import SqliteCodeIndexes

        return SqliteCodeIndexes(who=who, sleep=clock.sleep, monotonic=clock.monotonic)

    return CodeIndexes(
        known=lambda directory: names().known(directory),
        place=lambda directory: names().place(directory),
        others=lambda directory: names().others(directory),
        erase_others=lambda directory: names().erase_others(directory),
        reading=lambda file: opener().reading(file),
        writing=lambda file, purpose: opener().writing(file, purpose),
        erase=lambda file: opener().erase(file),
        watching=lambda file: opener().watching(file),
    )


def open_postgres(
    settings: Settings, clock: Clock, *, who: Who, backup: Callable[[Path], tuple[End, End]]
) -> MemoryStore:
    """Open the store on the server. `backup` returns the ends of a transfer from there to a file."""
    from vestige.store.transfer.move import copy_into_file

    chosen = settings.storage.postgres
    # For backups and exports. A machine that cannot have them can do everything else.
    with suppress(StoreError):
        prepare_directory(settings.data_dir)
    return postgres_store().open(
        postgres_url(settings),
        schema=chosen.schema_name,
        sleep=clock.sleep,
        monotonic=clock.monotonic,
        new_id=clock.new_id,
        now=clock.now,
        who=replace(who, host=platform.node()),  # others may be on other machines
        copy=lambda _, destination: copy_into_file(backup, destination),
        busy_seconds=settings.storage.busy_seconds,
        statement_seconds=chosen.statement_seconds,
        max_connections=chosen.max_connections,
    )


def no_database() -> InvalidInput:
    """The error for maintenance of the backend `memory`."""
    return InvalidInput(
        "There is no database: the backend `memory` is lost when the process ends.",
        hint="Set storage.backend to sqlite or postgres.",
    )


def postgres_store() -> "type[PostgresStore]":
    """The class of stores on PostgreSQL, or MissingExtra."""
    try:
        from vestige.store.postgres.store import PostgresStore
    except ImportError as exc:
        if (exc.name or "").startswith("vestige"):  # a bug of ours
            raise
        raise MissingExtra.named("postgres", "The storage backend `postgres`") from exc
    return PostgresStore


def postgres_url(settings: Settings) -> str:
    """The URL of the server, or ConfigError."""
    url = settings.storage.postgres.url.get_secret_value()
    if not url:
        raise ConfigError(
            "The storage backend is `postgres`, but `storage.postgres.url` is not set.",
            hint="Set it in vestige.toml or in VESTIGE_DATABASE_URL: postgresql://user@host:5432/database.",
            details={"setting": "storage.postgres.url"},
        )
    return url


def prepare_directory(data_dir: Path) -> None:
    """Create the data directory, private to the user; inside a project also ignored by git."""
    if is_repository(data_dir):
        raise ConfigError(
            f"{data_dir} is the root of a repository, which cannot be a data directory.",
            hint="Give a directory inside it, such as --data-dir ./.vestige.",
        )
    if is_project_directory(data_dir) and (data_dir / DATABASE_NAME).is_symlink():
        raise ConfigError(
            f"{data_dir / DATABASE_NAME} is a symbolic link, which a project may not have.",
            hint="A project must not redirect your memories. Remove the link, or use another --data-dir.",
        )
    fresh = not data_dir.exists()
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        ignore = data_dir / ".gitignore"
        ours = fresh or data_dir.name == PROJECT_DIRECTORY
        if ours and is_project_directory(data_dir) and not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as exc:
        if data_dir.is_dir():
            return  # read-only media: the store handles it
        raise StoreError(
            f"The data directory {data_dir} cannot be created: {exc.strerror}.",
            hint="Give another one with --data-dir or VESTIGE_DATA_DIR.",
        ) from exc


# -- The two ends of a transfer

STATEMENT_SECONDS = 3_600.0
"""Stores are copied in small statements, but counting rows may take long."""
CONNECTIONS = 4
SCHEMES = ("postgresql://", "postgres://")
ELSEWHERE = {
    "sqlite": "`vestige backup` copies a file, and `vestige restore` puts it in another place.",
    "postgres": "pg_dump and pg_restore copy a database.",
}
"""How to copy a store to another one of the same kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Creates the ends of a transfer, for every kind of store."""

    clock: Clock
    machine: str
    who: Who

    def between(self, settings: Settings, source: str, destination: str) -> tuple[End, End]:
        """Both ends of a transfer, each given by a kind of store, a path or a URL."""
        kinds = (_kind(source), _kind(destination))
        if kinds[0] == kinds[1]:
            raise InvalidInput(
                f"`vestige migrate` copies between different kinds of stores; both of these are {kinds[0]}.",
                hint=ELSEWHERE[kinds[0]],
            )
        made = {"sqlite": self._sqlite, "postgres": self._postgres}
        return made[kinds[0]](settings, source), made[kinds[1]](settings, destination)

    def _sqlite(self, settings: Settings, word: str) -> End:
        from vestige.store.sqlite.connection import WriterWait
        from vestige.store.sqlite.opening import SqliteDependencies
        from vestige.store.sqlite.transfer import SqliteEnd

        path = settings.database if word in KINDS else _file(word)
        waiting = WriterWait(
            rng=self.clock.rng,
            sleep=self.clock.sleep,
            monotonic=self.clock.monotonic,
            deadline_seconds=settings.storage.busy_seconds,
        )
        around = SqliteDependencies(
            waiting=waiting,
            new_id=self.clock.new_id,
            now=self.clock.now,
            machine=self.machine,
            who=self.who,
            synchronous=settings.storage.synchronous,
        )
        return SqliteEnd(
            path=path,
            around=around,
            prepare=prepare_directory,
            settings=('set [storage] backend = "sqlite"', *_steps_to_use(path, settings)),
        )

    def _postgres(self, settings: Settings, word: str) -> End:
        postgres_store()  # raises MissingExtra if the driver is not installed
        from vestige.store.postgres.opening import PostgresDependencies
        from vestige.store.postgres.server.address import ServerAddress
        from vestige.store.postgres.transfer import PostgresEnd

        chosen = settings.storage.postgres
        named = word in KINDS
        around = PostgresDependencies(
            sleep=self.clock.sleep,
            monotonic=self.clock.monotonic,
            new_id=self.clock.new_id,
            now=self.clock.now,
            wait_seconds=settings.storage.busy_seconds,
            statement_seconds=max(STATEMENT_SECONDS, chosen.statement_seconds),
            most_connections=CONNECTIONS,
        )
        elsewhere = () if named else ("set [storage.postgres] url to this address",)
        return PostgresEnd(
            place=ServerAddress(url=postgres_url(settings) if named else word, schema=chosen.schema_name),
            around=around,
            who=self.who,
            settings=('set [storage] backend = "postgres"', *elsewhere),
        )


KINDS = {"sqlite": "sqlite", "postgres": "postgres", "postgresql": "postgres"}


def _kind(word: str) -> str:
    """The kind of store that a word, a path or a URL means. An unknown word is not a file to be created."""
    if word in KINDS:
        return KINDS[word]
    if word.startswith(SCHEMES):
        return "postgres"
    if Path(word).expanduser().exists():
        return "sqlite"
    if "://" in word or not ("/" in word or "\\" in word or "." in word):
        close = nearest_name(word, KINDS)
        raise InvalidInput(
            f"{word.partition('://')[0]!r} is not a store.",
            hint=f"Did you mean `{close}`?"
            if close
            else "Give sqlite, postgres, a path or a postgresql:// URL.",
            details={"allowed": ["sqlite", "postgres", "PATH", "postgresql://…"]},
        )
    return "sqlite"


def _file(word: str) -> Path:
    path = Path(word).expanduser().absolute()
    is_folder = path.is_dir() or not (path.suffix or path.is_file())
    return path / DATABASE_NAME if is_folder else path


def _steps_to_use(path: Path, settings: Settings) -> tuple[str, ...]:
    """How to make Vestige use a file, besides the backend."""
    if path == settings.database:
        return ()
    if path.name == DATABASE_NAME:
        return (f'give --data-dir "{path.parent}"',)
    return (
        f'run `vestige restore "{path}"`, which copies it into the data directory: a database file is only '
        f"used under the name {DATABASE_NAME}",
    )
