"""A home directory with transcripts in the shapes that clients write, and what the readers make of it."""

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from vestige.core.transcripts import Entry, Step
from vestige.exchange.transcripts.files import batches
from vestige.exchange.transcripts.folders import ClientFolders
from vestige.exchange.transcripts.shape import TranscriptSession, conversations
from vestige.exchange.transcripts.sources import Source, sources

Record = dict[str, object]


def folders(home: Path) -> ClientFolders:
    return ClientFolders(
        home=home,
        claude=home / ".claude",
        codex=home / ".codex",
        share=home / ".local" / "share",
        configuration=home / ".config",
    )


def write_lines(path: Path, records: Iterable[Record | str], mode: str = "w") -> Path:
    """A JSONL file; a text is a line as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open(mode, encoding="utf-8") as file:
        for record in records:
            file.write((record if isinstance(record, str) else json.dumps(record)) + "\n")
    return path


def write_database(path: Path, tables: dict[str, tuple[str, list[tuple[object, ...]]]]) -> Path:
    """An SQLite file with these tables: columns and rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as db, db:
        for name, (columns, rows) in tables.items():
            db.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
            marks = ", ".join("?" * len(columns.split(",")))
            db.executemany(f"INSERT OR REPLACE INTO {name} VALUES ({marks})", rows)
    return path


def found(home: Path, client: str) -> list[Source]:
    return list(sources(folders(home), (client,)))


def steps_of(home: Path, client: str) -> list[Step]:
    return [step for source in found(home, client) for batch in batches(source, None) for step in batch.steps]


def read(home: Path, client: str) -> dict[str, TranscriptSession]:
    return conversations(steps_of(home, client))


def talk(one: TranscriptSession) -> list[tuple[str, str]]:
    """Role and text of the entries of the last branch that have text."""
    return [(entry.role, entry.text) for entry in one.turns() if entry.text]


def entry_with(one: TranscriptSession, text: str) -> Entry:
    return next(entry for entry in one.entries.values() if text in entry.text)
