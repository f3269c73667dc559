"""The tables of a code index, and the opening of its file.

A file of another format is built anew: it is derived. Words are in a table without contents, so each file
keeps its words compressed, which deleting from such a table needs.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vestige.core.errors import NotFound, StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreReadOnly

FORMAT = 1
BUSY_SECONDS = 10.0
_APPLICATION = 0x56536364

_PUNCTUATION = "".join(chr(code) for code in range(0x21, 0x7F) if not chr(code).isalnum())
_TOKENIZE = "ascii tokenchars " + "'{}'".format(_PUNCTUATION.replace("'", "''''").replace('"', '""'))

_TABLES = f"""
create table state(only integer primary key check(only = 1), value text not null);
create table file(
  id integer primary key, path text not null unique, size integer not null, mtime_ns integer not null,
  hash text not null, generation integer not null, skip text not null, redacted integer not null,
  summary text not null, terms blob not null);
create index file_hash on file(hash);
create table section(
  id integer primary key, file_id integer not null references file(id) on delete cascade,
  kind text not null, name text not null, symbol_path text not null, start_line integer not null,
  end_line integer not null, signature text not null, hash text not null, length integer not null);
create index section_file on section(file_id);
create table file_word(word text not null, file_id integer not null, primary key(word, file_id))
  without rowid;
create index file_word_file on file_word(file_id);
create table definition(
  lower text not null, name text not null, section_id integer not null, primary key(lower, section_id, name))
  without rowid;
create index definition_section on definition(section_id);
create table reference(name text not null, section_id integer not null, primary key(name, section_id))
  without rowid;
create index reference_section on reference(section_id);
create table shown(
  session text not null, key text not null, turn integer not null, primary key(session, key)) without rowid;
create virtual table words using fts5(terms, content='', tokenize="{_TOKENIZE}");
create virtual table vocabulary using fts5vocab(words, row);
"""


def open_to_read(file: Path) -> sqlite3.Connection:
    """A connection that cannot write. NotFound where there is no index."""
    if not is_safe(file):
        raise NotFound("This project has no code index.", hint="Make one with `vestige project init`.")
    with driver_errors(file):
        connection = _connect(f"{file.absolute().as_uri()}?mode=ro")
    try:
        with driver_errors(file):
            _check_format(connection, file)
    except BaseException:
        connection.close()
        raise
    return connection


def open_to_write(file: Path) -> sqlite3.Connection:
    """A connection to an index, which is made if it is not there. The caller holds the lock of writers."""
    if file.exists() and not is_safe(file):
        raise StoreError(f"{file} is not a plain file.", hint="Remove it; an index may not be a link.")
    with driver_errors(file):
        connection = _connect(f"{file.absolute().as_uri()}?mode=rwc")
    try:
        with driver_errors(file):
            if (
                _number(connection, "pragma application_id") == 0
                and not connection.execute("select 1 from sqlite_master limit 1").fetchone()
            ):
                connection.execute("pragma journal_mode = wal")
                connection.executescript(
                    f"begin immediate; {_TABLES} pragma application_id = {_APPLICATION};"
                    f"pragma user_version = {FORMAT}; commit;"
                )
            _check_format(connection, file)
            connection.execute("pragma synchronous = normal")
            connection.execute("pragma foreign_keys = on")
    except BaseException:
        connection.close()
        raise
    return connection


def erase(file: Path) -> None:
    """Delete an index. The caller holds the lock of writers. The log goes first: it must never be read with
    another file."""
    for ending in ("-wal", "-shm", "-journal", ""):
        with suppress(FileNotFoundError):
            Path(f"{file}{ending}").unlink()


def is_safe(file: Path) -> bool:
    """Whether an index is a file in a folder of the project, not a link to somewhere else."""
    return file.is_file() and not file.is_symlink() and not file.parent.is_symlink()


def damaged(file: Path, reason: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"The code index cannot be read: {reason}.",
        hint="Build it again with `vestige project rebuild`; it has no memories, so nothing is lost.",
        details={"file": file.name},
    )


@contextmanager
def driver_errors(file: Path) -> Iterator[None]:
    """Translate the errors of SQLite."""
    try:
        yield
    except sqlite3.Error as exc:
        name = getattr(exc, "sqlite_errorname", "")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise StoreBusy(
                "Another process is writing the code index.", hint="Try again in a moment."
            ) from exc
        if name.startswith("SQLITE_FULL"):
            raise StoreFull("There is no room left for the code index.") from exc
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            raise StoreReadOnly(f"The code index cannot be opened: {exc}.") from exc
        raise damaged(file, str(exc)) from exc


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _check_format(connection: sqlite3.Connection, file: Path) -> None:
    if _number(connection, "pragma application_id") != _APPLICATION:
        raise damaged(file, "it is another kind of file")
    found = _number(connection, "pragma user_version")
    if found != FORMAT:
        raise damaged(file, f"it has format {found}, and this Vestige has format {FORMAT}")


def _number(connection: sqlite3.Connection, question: str) -> int:
    return int(connection.execute(question).fetchone()[0])
