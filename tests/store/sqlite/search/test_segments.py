"""Vectors in files: what is searched is exactly what is stored, whoever wrote it and wherever it lies."""

import logging
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.store.support import sqlite_files
from tests.store.support.generators import (
    OTHER_SIGNATURE,
    SIGNATURE,
    T0,
    a_memory,
    add_with,
    axis,
    change_model,
    embedded,
    forget,
    held,
)
from tests.store.support.index_files import (
    answers_rightly,
    asked,
    expected,
    files_of,
    fill,
    folder_of,
    leave_to_worker,
    listed,
    publish_early,
    told,
    units,
)
from tests.store.support.sqlite_files import open_at, query
from vestige.core.models import EVERYTHING, Filter
from vestige.store.contract.changes import Revise
from vestige.store.sqlite.search import segments
from vestige.store.sqlite.search.vector_cache import Matrix
from vestige.store.sqlite.store import SqliteStore

path, store = sqlite_files.path, sqlite_files.store


@pytest.fixture(autouse=True)
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    publish_early(monkeypatch)


def reopened(path: Path, *, coded: bool | None = None, read_only: bool = False) -> SqliteStore:
    """Another process, as far as the caches are concerned."""
    other = open_at(path, read_only=read_only)
    other._kept.matrix = Matrix(coded=coded)
    return other


# -- exactness -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("coded", [False, True], ids=["products", "codes"])
def test_files_tail_deaths_and_pieces_together_give_the_exact_answer(
    path: Path, store: SqliteStore, coded: bool
) -> None:
    if coded:
        pytest.importorskip("simsimd")
    vectors = fill(store, 1, 60)
    asked(store, units(0, 1))
    assert len(listed(path)) > 2
    for number in range(0, 60, 7):
        name = f"m{number:05}"
        again = units(500 + number, 2)
        memory = replace(held(store, name).memory, content=f"other {number}", revision=2)
        store.commit(
            [Revise(memory=memory, reason="edited", embedded=embedded(memory, *again))], access=EVERYTHING
        )
        vectors[name] = again
    vectors |= fill(store, 2, 5, first=60)
    for reader in (store, reopened(path, coded=coded)):
        assert answers_rightly(reader, vectors)
        reader.close()


def test_a_filter_is_applied_before_the_limit_in_files_too(path: Path, store: SqliteStore) -> None:
    vectors = fill(store, 3, 50)
    tagged = {name: rows for name, rows in vectors.items() if name.endswith(("3", "8"))}
    for name in tagged:
        memory = replace(held(store, name).memory, tags=("kept",), revision=2)
        store.commit([Revise(memory=memory, reason="tagged")], access=EVERYTHING)
    queries = units(4, 3)
    found = asked(store, queries, limit=4, where=Filter(tags_any=("kept",)))
    assert listed(path)
    assert told(found) == expected(tagged, queries, limit=4)


@pytest.mark.parametrize("coded", [False, True], ids=["products", "codes"])
def test_scores_that_differ_by_less_than_any_code_are_still_in_order(path: Path, coded: bool) -> None:
    if coded:
        pytest.importorskip("simsimd")
    store = reopened(path, coded=coded)
    near = np.repeat(units(5, 1), 200, axis=0).astype(np.float64)
    near[:, 0] += np.random.default_rng(6).permutation(200) * 1e-6
    vectors = {f"m{number:05}": row[np.newaxis].astype(np.float32) for number, row in enumerate(near)}
    for name, rows in vectors.items():
        add_with(store, a_memory(name), *rows)
    assert answers_rightly(store, vectors)
    store.close()


def test_equal_scores_at_the_last_place_go_by_id(path: Path, store: SqliteStore) -> None:
    for number in reversed(range(40)):
        add_with(store, a_memory(f"m{number:02}"), axis(0))
    (found,) = asked(store, axis(0)[np.newaxis], limit=3)
    assert [one.memory_id for one in found] == ["m00", "m01", "m02"]
    assert listed(path)


def test_one_memory_of_very_many_pieces_is_in_one_file(path: Path, store: SqliteStore) -> None:
    fill(store, 7, 10)
    add_with(store, a_memory("long"), *units(8, 50))
    asked(store, units(0, 1))
    assert len(listed(path)) >= 2, "a memory is never cut in two by the end of a file"
    assert [one.memory_id for one in asked(reopened(path), units(8, 50)[40:41], limit=1)[0]] == ["long"]
    split = (
        "SELECT key FROM vectors v JOIN segments s ON v.id BETWEEN s.first_id AND s.last_id"
        " GROUP BY key HAVING count(DISTINCT s.id) > 1"
    )
    assert query(path, split) == []


# -- files that cannot be used -------------------------------------------------------------------------


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def with_another_header(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[:8] = b"whatever"
    file.write_bytes(content)


def with_other_keys(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[300] ^= 1
    file.write_bytes(content)


def missing(file: Path) -> None:
    file.unlink()


def a_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


BROKEN = [truncated, empty, with_another_header, with_other_keys, missing, a_directory]


@pytest.mark.parametrize("spoil", BROKEN)
def test_a_file_that_cannot_be_used_costs_time_but_no_answer(
    path: Path, store: SqliteStore, caplog: pytest.LogCaptureFixture, spoil: object
) -> None:
    assert callable(spoil)
    vectors = fill(store, 11, 40)
    asked(store, units(0, 1))
    victim = folder_of(path) / listed(path)[0]
    store.close()
    spoil(victim)
    with caplog.at_level(logging.WARNING):
        other = reopened(path, read_only=True)
        assert answers_rightly(other, vectors)
        status = other.index_status()
    assert victim.name in caplog.text
    assert list(status.problems) == [victim.name]
    assert status.indexed < status.vectors
    other.close()


def test_damage_inside_the_vectors_is_found_by_the_status_and_mended_by_a_rebuild(
    path: Path, store: SqliteStore
) -> None:
    vectors = fill(store, 12, 40)
    asked(store, units(0, 1))
    victim = folder_of(path) / listed(path)[0]
    content = bytearray(victim.read_bytes())
    content[-5] ^= 0x40
    victim.write_bytes(content)
    assert store.index_status().problems == {victim.name: "its content is damaged"}
    mended = store.rebuild_index()
    assert not mended.problems
    assert mended.indexed == mended.vectors
    assert answers_rightly(store, vectors)


def test_a_copy_of_the_database_alone_works_and_writes_its_own_files(path: Path, store: SqliteStore) -> None:
    vectors = fill(store, 13, 50)
    asked(store, units(0, 1))
    copy = path.with_name("copy.db")
    store.backup(copy)
    other = open_at(copy)
    other.settle()
    assert answers_rightly(other, vectors)
    assert [file.name for file in files_of(copy)] == listed(copy)
    assert not other.index_status().problems
    other.close()


def test_a_reader_on_read_only_media_uses_files_and_writes_none(path: Path, store: SqliteStore) -> None:
    leave_to_worker(store)
    vectors = fill(store, 14, 50)
    reader = reopened(path, read_only=True)
    assert answers_rightly(reader, vectors)
    assert not folder_of(path).exists()
    store.settle()
    assert answers_rightly(reader, vectors)
    assert reader._kept.matrix._rows.filed
    reader.close()


def test_a_folder_that_cannot_be_written_breaks_no_search(
    path: Path, store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    folder_of(path).write_text("in the way", encoding="utf-8")
    vectors = fill(store, 15, 50)
    with caplog.at_level(logging.WARNING):
        assert answers_rightly(store, vectors)
    assert "were not written" in caplog.text


# -- publishing ----------------------------------------------------------------------------------------


def test_a_search_never_publishes(path: Path, store: SqliteStore) -> None:
    leave_to_worker(store)
    vectors = fill(store, 19, 60)
    assert answers_rightly(store, vectors)
    assert not folder_of(path).exists()
    store.settle()
    assert listed(path)
    assert answers_rightly(store, vectors)


def test_without_a_worker_the_writes_publish_in_pieces(path: Path, store: SqliteStore) -> None:
    counts = []
    for step in range(4):
        fill(store, 60 + step, 20, first=100 * step)
        counts.append(len(listed(path)))
    assert counts[0] > 0
    assert counts == sorted(set(counts)), "each write published what it wrote"


def test_few_vectors_are_not_published(path: Path, store: SqliteStore) -> None:
    vectors = fill(store, 20, 5)
    assert answers_rightly(store, vectors)
    assert not folder_of(path).exists()


def test_files_are_private_and_their_names_say_their_content(path: Path, store: SqliteStore) -> None:
    fill(store, 21, 40)
    asked(store, units(0, 1))
    assert folder_of(path).stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in files_of(path)} == {0o600}
    before = listed(path)
    shutil.rmtree(folder_of(path))
    store.rebuild_index()
    assert listed(path) == before, "the same vectors make the same files"


def test_published_vectors_leave_the_memory_of_the_process(path: Path, store: SqliteStore) -> None:
    fill(store, 22, 60)
    asked(store, units(0, 1))
    rows = store._kept.matrix._rows
    assert rows.filed > 60
    assert rows.unfiled == 0


def test_a_store_that_grows_publishes_again_and_keeps_the_earlier_files(
    path: Path, store: SqliteStore
) -> None:
    vectors = fill(store, 23, 30)
    asked(store, units(0, 1))
    first = set(listed(path))
    for step in range(6):
        vectors |= fill(store, 24 + step, 10, first=100 * (step + 1))
        assert answers_rightly(store, vectors)
    assert first < set(listed(path))
    assert store._kept.matrix._rows.unfiled < 60


def test_of_two_that_publish_at_once_one_wins_and_both_answer(path: Path, store: SqliteStore) -> None:
    leave_to_worker(store)
    vectors = fill(store, 30, 40)
    other = open_at(path)
    with store._connections.reading() as db:
        (plan,) = segments._plans(db, everything=True)
        content = segments._collect(db, plan, plan.range[0])
    assert content is not None
    segments.publish(other._connections, everything=True)
    files = listed(path)
    assert not segments._publish(store._connections, folder_of(path), content, plan.lost)
    assert listed(path) == files == [file.name for file in files_of(path)]
    assert answers_rightly(store, vectors)
    assert answers_rightly(other, vectors)
    other.close()


def test_a_file_written_while_one_of_its_memories_is_purged_is_never_listed(
    path: Path, store: SqliteStore
) -> None:
    leave_to_worker(store)
    fill(store, 31, 40)
    with store._connections.reading() as db:
        (plan,) = segments._plans(db, everything=True)
        content = segments._collect(db, plan, plan.range[0])
    assert content is not None
    folder_of(path).mkdir()
    forget(store, "m00003")
    assert not segments._publish(store._connections, folder_of(path), content, plan.lost)
    assert not listed(path)
    assert not files_of(path)


def test_what_a_crash_between_file_and_row_leaves_behind_is_swept(path: Path, store: SqliteStore) -> None:
    leave_to_worker(store)
    vectors = fill(store, 32, 40)
    folder_of(path).mkdir()
    orphan = folder_of(path) / f"1-1-9-{'0' * 32}.vectors"
    orphan.write_bytes(b"written, but never listed")
    half = folder_of(path) / "half.partial"
    half.write_bytes(b"half written")
    stranger = folder_of(path) / "notes.txt"
    stranger.write_bytes(b"not ours")
    store.settle()
    assert answers_rightly(store, vectors)
    assert not orphan.exists()
    assert half.exists(), "another process may be writing it"
    forget(store, "m00001")
    assert not half.exists(), "it may hold what was purged"
    assert stranger.exists()


# -- removing ------------------------------------------------------------------------------------------


def bytes_on_disk(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in [path, *path.parent.glob("vestige.db-*"), *files_of(path)])


def test_purging_a_memory_removes_its_vectors_of_every_revision_from_the_files(
    path: Path, store: SqliteStore
) -> None:
    vectors = fill(store, 40, 40)
    asked(store, units(0, 1))
    early = vectors["m00005"].tobytes()
    memory = replace(held(store, "m00005").memory, content="another text", revision=2, updated_at=T0)
    late = units(41, 2)
    store.commit(
        [Revise(memory=memory, reason="edited", embedded=embedded(memory, *late))], access=EVERYTHING
    )
    store.rebuild_index()
    assert early in bytes_on_disk(path), "a revision only marks its old vectors as dead"
    kept = len(listed(path))
    forget(store, "m00005")
    on_disk = bytes_on_disk(path)
    for rows in (vectors["m00005"], late):
        assert all(row.tobytes() not in on_disk for row in rows)
    assert 0 < len(listed(path)) < kept, "only the files that held it go"
    del vectors["m00005"]
    assert answers_rightly(store, vectors)
    store.rebuild_index()
    assert answers_rightly(store, vectors)


def test_another_process_lets_go_of_a_purged_memory_and_of_its_file(path: Path, store: SqliteStore) -> None:
    vectors = fill(store, 42, 40)
    other = open_at(path)
    assert answers_rightly(other, vectors)
    before = other._kept.matrix._rows.filed
    forget(store, "m00000")
    del vectors["m00000"]
    assert answers_rightly(other, vectors)
    assert other._kept.matrix._rows.filed < before
    other.close()


def test_adopting_another_model_removes_the_files_of_the_old_one(path: Path, store: SqliteStore) -> None:
    fill(store, 43, 40)
    leave_to_worker(store)
    assert files_of(path)
    every = [record.memory for batch in store.stream(access=EVERYTHING) for record in batch]
    change_model(store, OTHER_SIGNATURE, *every)
    assert not files_of(path)
    assert store.index_status() == replace(store.index_status(), segments=0, indexed=0, vectors=len(every))
    in_use = "profile IN (SELECT id FROM profiles WHERE active = 1)"
    assert query(path, f"SELECT count(*) FROM vectors WHERE {in_use}") == [(len(every),)]
    store.drop_vectors(SIGNATURE)
    assert query(path, "SELECT count(*), count(DISTINCT profile) FROM vectors") == [(len(every), 1)]


def test_a_rebuild_rewrites_what_is_mostly_dead(path: Path, store: SqliteStore) -> None:
    vectors = fill(store, 44, 60)
    asked(store, units(0, 1))
    before = listed(path)
    for number in range(8):
        memory = replace(held(store, f"m{number:05}").memory, content=f"new {number}", revision=2)
        store.commit([Revise(memory=memory, reason="edited")], access=EVERYTHING)
        del vectors[f"m{number:05}"]
    worn = store.index_status()
    assert worn.dead > 0
    rebuilt = store.rebuild_index()
    assert rebuilt.dead < worn.dead
    assert set(before) & set(listed(path)), "files that are mostly alive stay as they are"
    assert answers_rightly(store, vectors)


def test_a_store_without_vectors_has_nothing_to_rebuild(store: SqliteStore) -> None:
    status = store.rebuild_index()
    assert (status.vectors, status.segments, status.problems) == (0, 0, {})
