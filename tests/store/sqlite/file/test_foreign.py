"""A database that another program is writing is read whole, or refused."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from vestige.core.errors import InvalidInput
from vestige.store.sqlite.file.foreign import opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "other.db"


@pytest.fixture
def writer(path: Path) -> Iterator[sqlite3.Connection]:
    """The other program: its three rows are only in the log."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = wal")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("CREATE TABLE notes (text TEXT)")
        db.executemany("INSERT INTO notes VALUES (?)", [("a",), ("b",), ("c",)])
        yield db


def after_each_copy(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> None:
    """Let the other program act between the copies of two files; it is told how many were copied."""
    copied: list[str] = []
    copy_file = shutil.copyfile

    def copy_then_act(source: str, target: str) -> None:
        copy_file(source, target)
        copied.append(source)
        act(len(copied))

    monkeypatch.setattr(shutil, "copyfile", copy_then_act)


def texts(path: Path) -> list[object]:
    with opened(path) as file:
        return [row["text"] for row in file.rows("notes")]


def checkpoint(writer: sqlite3.Connection) -> None:
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.mark.parametrize("more", [(), ("d",)])
def test_a_checkpoint_between_the_copies_loses_no_row(
    path: Path, writer: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    def act(copied: int) -> None:
        if copied == 1:
            checkpoint(writer)
            writer.executemany("INSERT INTO notes VALUES (?)", [(text,) for text in more])

    after_each_copy(monkeypatch, act)

    assert texts(path) == ["a", "b", "c", *more]


def test_a_log_that_goes_away_between_the_copies_loses_no_row(
    path: Path, writer: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_each_copy(monkeypatch, lambda copied: writer.close() if copied == 1 else None)

    assert texts(path) == ["a", "b", "c"]


def test_a_database_that_never_rests_is_refused(
    path: Path, writer: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def act(copied: int) -> None:
        checkpoint(writer)
        writer.execute("INSERT INTO notes VALUES (?)", (str(copied),))

    after_each_copy(monkeypatch, act)

    with pytest.raises(InvalidInput, match="changed while") as refused:
        texts(path)
    assert "Close the program" in str(refused.value.hint)


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_database_that_is_written_while_it_is_read_in_place_is_refused(path: Path, mode: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA journal_mode = {mode}")
        db.execute("CREATE TABLE notes (text TEXT)")
        db.execute("INSERT INTO notes VALUES ('a')")

    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        with pytest.raises(InvalidInput, match="changed while"), opened(path):
            other.execute("INSERT INTO notes VALUES ('b')")
        assert texts(path) == ["a", "b"]


def test_a_database_at_rest_is_read_in_place(path: Path, writer: sqlite3.Connection) -> None:
    writer.close()

    assert texts(path) == ["a", "b", "c"]
    assert [file.name for file in path.parent.iterdir()] == [path.name]
