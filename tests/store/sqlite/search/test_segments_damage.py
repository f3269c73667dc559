"""Vectors whose files are cut while in use, and readings that break off: the next answer is right."""

import logging
import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.store.support import sqlite_files
from tests.store.support.generators import held
from tests.store.support.index_files import (
    answers_rightly,
    asked,
    fill,
    folder_of,
    listed,
    publish_early,
    units,
)
from tests.store.support.sqlite_files import open_at
from vestige.core.errors import StoreError
from vestige.core.models import EVERYTHING
from vestige.store.contract.changes import Revise
from vestige.store.sql.rows import store_facts
from vestige.store.sqlite.search.vector_cache import Matrix
from vestige.store.sqlite.store import SqliteStore

path, store = sqlite_files.path, sqlite_files.store


@pytest.fixture(autouse=True)
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    publish_early(monkeypatch)


def test_files_cut_while_they_are_mapped_are_left_aside(
    path: Path, store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    vectors = fill(store, 1, 60)
    asked(store, units(0, 1))
    reader = open_at(path, read_only=True)
    assert answers_rightly(reader, vectors)
    before, (victim, *whole) = reader._kept.matrix._rows.filed, listed(path)
    os.truncate(folder_of(path) / victim, 100)
    with caplog.at_level(logging.WARNING):
        assert answers_rightly(reader, vectors)
    assert [record.args and victim in str(record.args) for record in caplog.records] == [True], "said once"
    assert whole
    assert 0 < reader._kept.matrix._rows.filed < before, "the others are still used"
    reader.close()


def test_a_copy_that_came_without_its_files_is_no_cause_for_a_warning(
    path: Path, store: SqliteStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    vectors = fill(store, 1, 60)
    asked(store, units(0, 1))
    assert listed(path)
    copy = tmp_path / "elsewhere.db"
    store.backup(copy)
    with caplog.at_level(logging.WARNING), closing(open_at(copy, read_only=True)) as reader:
        assert answers_rightly(reader, vectors)
    assert caplog.text == ""


def test_the_next_publication_mends_what_was_cut(path: Path, store: SqliteStore) -> None:
    vectors = fill(store, 2, 60)
    assert answers_rightly(store, vectors)
    files = listed(path)
    for name in files:
        os.truncate(folder_of(path) / name, 100)
    assert answers_rightly(store, vectors)
    with closing(open_at(path)) as later:
        later.settle()
    assert answers_rightly(store, vectors)
    status = store.index_status()
    assert (status.problems, status.indexed) == ({}, status.vectors)
    assert store._kept.matrix._rows.unfiled == 0


def living(store: SqliteStore, matrix: Matrix, *, break_after: int = 0) -> list[tuple[int, bytes]]:
    """Every vector that a search would see, with its key; so many steps of SQLite and it breaks off."""
    with store._connections.reading() as db:
        profile = store_facts.profile(db)
        assert profile is not None
        db.set_progress_handler(lambda: 1, break_after)
        try:
            view = matrix.catch_up(db, profile)
        finally:
            db.set_progress_handler(None, 0)
    rows = np.flatnonzero(view.alive)
    return sorted(zip(view.keys[rows].tolist(), map(bytes, view.take(rows)), strict=True))


def test_a_reading_that_breaks_off_anywhere_leaves_nothing_half_read(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many vectors outside the files die that those are read again, and that is interrupted."""
    monkeypatch.setattr("vestige.store.sqlite.search.vector_cache.COMPACT_WITH_FILES", 2)
    monkeypatch.setattr("vestige.store.sqlite.search.vector_cache.LOAD_BATCH", 4)
    fill(store, 3, 40)
    asked(store, units(0, 1))
    fill(store, 4, 6, first=100)
    matrices = [Matrix() for _ in range(60)]
    before = [living(store, matrix) for matrix in matrices]
    for name in ("m00101", "m00102", "m00103"):
        changed = replace(held(store, name).memory, content="another text", revision=2)
        store.commit([Revise(memory=changed, reason="edited")], access=EVERYTHING)
    right, broken = living(store, Matrix()), 0
    assert len(right) < len(before[0])
    for number, matrix in enumerate(matrices, start=1):
        try:
            living(store, matrix, break_after=20 * number)
        except StoreError:
            broken += 1
        assert living(store, matrix) == right, number
    assert 10 < broken < len(matrices), "some broke off, some went through"
