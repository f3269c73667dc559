"""What opening a store would do to its schema, said without doing it."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from vestige.store import migrate
from vestige.store.sqlite.connection import connect, translated
from vestige.store.sqlite.opening import BACKUPS, applied, readable_uri, refuse_strangers, schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """The schema a database has (0: there is none yet), the one it would have, the steps between them, and
    where the backup is made that comes first (None: there is nothing to keep)."""

    schema: int
    known: int
    steps: tuple[str, ...]
    backups: Path | None


def plan(database: Path) -> Upgrade:
    """What a database still needs; StoreTooNew for one of a newer Vestige. Nothing is changed."""
    steps = schema()
    done: list[migrate.Applied] = []
    if database.exists():
        with translated(database), closing(connect(database, uri=readable_uri(database))) as db:
            refuse_strangers(db, database)
            done = applied(db)
    todo = migrate.pending(steps, done)
    return Upgrade(
        schema=done[-1].version if done else 0,
        known=len(steps),
        steps=tuple(step.label for step in todo),
        backups=database.parent / BACKUPS if done and todo else None,
    )
