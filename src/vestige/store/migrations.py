"""Numbered SQL files and which of them a database still needs. Backends apply them.

A migration is a file `NNNN_name.sql`, never edited once released: its checksum is recorded with it.
Each is applied in one transaction together with its row in `schema_migrations`.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from vestige.core.errors import StoreError, StoreTooNew
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

FILE_NAME = lazy_pattern(r"(\d{4})_([a-z0-9_]+)\.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    version: int
    name: str
    sql: str

    @property
    def label(self) -> str:
        """The name of its file, without the ending."""
        return f"{self.version:04}_{self.name}"

    @property
    def checksum(self) -> str:
        """The hash of the SQL text, with line ends normalised."""
        text = self.sql.replace("\r\n", "\n")
        return blake2b(text.encode("utf-8"), digest_size=16).hexdigest()

    def statements(self) -> Iterator[str]:
        """The single statements, in order (`executescript` would commit before it starts)."""
        pending = ""
        for line in self.sql.splitlines(keepends=True):
            pending += line
            if sqlite3.complete_statement(pending):
                yield pending.strip()
                pending = ""
        if re.sub(r"--[^\n]*", "", pending).strip():
            raise StoreError(f"The migration {self.label} ends inside a statement.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedMigration:
    """A row of `schema_migrations`, with the version of Vestige that applied it."""

    version: int
    name: str
    checksum: str
    written_by: str


def load(folder: Path) -> list[Migration]:
    """The migrations in a package's folder, by version; a gap or a repeat is an error."""
    found = []
    for file in folder.iterdir():
        if match := FILE_NAME.fullmatch(file.name):
            sql = file.read_text(encoding="utf-8")
            found.append(Migration(version=int(match[1]), name=match[2], sql=sql))
    found.sort(key=lambda migration: migration.version)
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise StoreError("The migrations are not numbered 0001, 0002, … without gaps or repeats.")
    return found


def pending(
    migrations: Sequence[Migration], applied: Sequence[AppliedMigration], *, elsewhere: str = "data directory"
) -> list[Migration]:
    """The migrations that a database still needs. StoreTooNew for a database of a newer Vestige, StoreError
    for one with another checksum. `elsewhere` is what to change to use another store."""
    known = {migration.version: migration for migration in migrations}
    for row in applied:
        if row.version not in known:
            newest = max(applied, key=lambda one: one.version)
            raise StoreTooNew(
                f"This database has schema {newest.version}, written by Vestige {newest.written_by};"
                f" this Vestige knows schema {len(migrations)}.",
                hint=f"Upgrade Vestige (`git pull` in its checkout), or use another {elsewhere}.",
                details={"schema": newest.version, "known": len(migrations), "written_by": newest.written_by},
            )
        if row.checksum != known[row.version].checksum:
            raise StoreError(
                f"Step {row.version} ({row.name}) of this database's schema is not the one this Vestige has.",
                hint="The database was made by a modified Vestige; open it with that one and export it.",
                details={"schema": row.version, "written_by": row.written_by},
            )
    done = {row.version for row in applied}
    return [migration for migration in migrations if migration.version not in done]
