"""The two ends of a transfer: parses the store names. app.py passes clock, randomness and process."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from vestige.app.databases import postgres_store, postgres_url, prepare_directory
from vestige.core.errors import InvalidInput
from vestige.core.nearest import nearest_name
from vestige.settings.settings import DATABASE_NAME, Settings
from vestige.store.contract.processes import Who
from vestige.store.transfer.ends import End

if TYPE_CHECKING:
    from vestige.store.sqlite.connection import Randomness

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

    rng: "Randomness"
    sleep: Callable[[float], None]
    monotonic: Callable[[], float]
    new_id: Callable[[], str]
    now: Callable[[], datetime]
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
            rng=self.rng,
            sleep=self.sleep,
            monotonic=self.monotonic,
            deadline_seconds=settings.storage.busy_seconds,
        )
        around = SqliteDependencies(
            waiting=waiting,
            new_id=self.new_id,
            now=self.now,
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
            sleep=self.sleep,
            monotonic=self.monotonic,
            new_id=self.new_id,
            now=self.now,
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
