"""What opening a store would do to its schema, said without doing it."""

from contextlib import closing
from pathlib import Path

from vestige.store import migrate
from vestige.store.sqlite.connection import connect, translated
from vestige.store.sqlite.opening import BACKUPS, applied, readable_uri, refuse_strangers, schema
from vestige.store.status import Upgrade


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
