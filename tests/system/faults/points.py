"""The points at which a process can die and leave something behind, and dying at one of them.

Before and after each commit, checkpoint and change of journal of a database, and before and after each call
that gives a file its name, removes it or writes into one that is no database (a mark, a lock). Having the
disk hold a file changes nothing that a killed process leaves, so only the moment before it is one.
"""

import os
import signal
import sqlite3
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from vestige.store.sqlite.connection import CheckedConnection

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

FILE_CALLS = ("replace", "rename", "link", "unlink", "remove", "write")
WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "DROP", "ALTER", "VACUUM"})
PRAGMAS = ("wal_checkpoint", "journal_mode")

_left = -1


def die_at(number: int) -> None:
    """Have this process killed at its point of this number, counted from now on; a negative one is never
    reached."""
    global _left
    _left = number
    for name in FILE_CALLS:
        setattr(os, name, _between_points(getattr(os, name)))
    os.fsync = _after_point(os.fsync)
    sqlite3.connect = _connect  # type: ignore[assignment]  # the overloads of the original are not repeated


def _point() -> None:
    global _left
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    _left -= 1


def _after_point(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    @wraps(function)
    def watched(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        _point()
        return function(*args, **kwargs)

    return watched


def _between_points(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    watched = _after_point(function)

    @wraps(function)
    def between(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        result = watched(*args, **kwargs)
        _point()
        return result

    return between


class Watched(CheckedConnection):
    """A connection of a store whose commits are points."""

    _began = 0

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Run a statement, between two points if it makes something last."""
        if not self._makes_last(sql):
            return super().execute(sql, parameters)
        _point()
        cursor = super().execute(sql, parameters)
        _point()
        return cursor

    def backup(self, target: sqlite3.Connection, **options: Any) -> None:
        """Copy the database, between two points."""
        _point()
        super().backup(target, **options)
        _point()

    def _makes_last(self, sql: str) -> bool:
        word = sql.split(maxsplit=1)[0].upper()
        if word == "BEGIN":
            self._began = self.total_changes
        if word == "COMMIT":
            return self.total_changes > self._began
        if word == "PRAGMA":
            return any(name in sql for name in PRAGMAS)
        return word in WRITES and not self.in_transaction


_original = sqlite3.connect


def _connect(*args: Any, **options: Any) -> sqlite3.Connection:
    watched: Watched = _original(*args, **options | {"factory": Watched})
    return watched
