import sqlite3
import subprocess
import sys
import threading
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from testbed.project import PROJECT
from tests.store.support import sqlite_files
from tests.store.support.generators import (
    DAY,
    OTHER_SIGNATURE,
    SIGNATURE,
    T0,
    a_memory,
    add,
    add_with,
    axis,
    between,
    change_model,
    embedded,
    forget,
    held,
    link,
    revise,
)
from tests.store.support.sqlite_files import FakeClock, every_text, open_at, query
from vestige.core.clock import tick
from vestige.core.errors import IdempotencyConflict, InvalidInput, StoreBusy, StoreError, StoreFull
from vestige.core.models import ANYTHING, EVERYTHING, Filter, Memory
from vestige.store.contract.changes import Add, Change, Claim, Forget
from vestige.store.sql.search import index_rows
from vestige.store.sqlite.connection import IDLE_READERS, RETRY_SECONDS, WRITE_DEADLINE_SECONDS
from vestige.store.sqlite.search.words import SqliteSurfaces
from vestige.store.sqlite.store import SqliteStore

path, store = sqlite_files.path, sqlite_files.store
SIBLING = """
import sys
from pathlib import Path
from tests.store.support.sqlite_files import open_at
from tests.store.support.generators import a_memory, add_with, axis, forget
store = open_at(Path(sys.argv[1]))
add_with(store, a_memory("theirs"), axis(1))
forget(store, "ours")
store.close()
"""


def near(store: SqliteStore, number: int, where: Filter = ANYTHING, limit: int = 5) -> list[str]:
    queries = axis(number)[np.newaxis]
    (row,) = store.nearest(queries, SIGNATURE, where, access=EVERYTHING, limit=limit)
    return [one.memory_id for one in row]


def test_a_writer_waits_for_another_until_the_deadline_and_says_why(path: Path) -> None:
    clock = FakeClock()
    store = open_at(path, clock=clock)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="stayed busy for"):
            add(store, a_memory("m1"))
        assert clock.seconds >= WRITE_DEADLINE_SECONDS
        assert all(RETRY_SECONDS[0] <= nap <= RETRY_SECONDS[1] for nap in clock.naps)
        assert len(set(clock.naps)) > 1, "the waits are jittered"
        other.execute("ROLLBACK")
    add(store, a_memory("m1"))
    store.close()


def test_a_writer_succeeds_as_soon_as_the_other_is_done(path: Path) -> None:
    clock = FakeClock()
    store = open_at(path, clock=clock)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        real_sleep = clock.sleep

        def release(seconds: float) -> None:
            real_sleep(seconds)
            if len(clock.naps) == 2:
                other.execute("ROLLBACK")

        clock.sleep = release  # type: ignore[method-assign]  # the other writer ends while we nap
        store.close()
        store = open_at(path, clock=clock)
        add(store, a_memory("m1"))
    assert len(clock.naps) == 2
    store.close()


def test_readers_do_not_wait_for_a_writer(store: SqliteStore, path: Path) -> None:
    add(store, a_memory("m1"))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("DELETE FROM strengths")
        assert held(store, "m1").memory.id == "m1"


def test_a_full_disk_is_reported_and_nothing_is_half_written(store: SqliteStore, path: Path) -> None:
    add(store, a_memory("m1"))
    before = list(every_text(path))
    with store._connections.writing() as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages + 2}")
    big = [Add(memory=a_memory(f"big{number}", "granite " * 4000)) for number in range(20)]
    with pytest.raises(StoreFull) as caught:
        store.commit(big, access=EVERYTHING)
    assert "disk space" in (caught.value.hint or "")
    assert list(every_text(path)) == before
    with store._connections.writing() as db:
        db.execute("PRAGMA max_page_count = 1000000")
    store.commit(big, access=EVERYTHING)
    assert store.count(ANYTHING, access=EVERYTHING) == 21


@pytest.mark.parametrize("table", ["memories", "strengths", "vectors", "fingerprints", "events"])
def test_a_commit_that_fails_half_way_leaves_no_trace(store: SqliteStore, path: Path, table: str) -> None:
    add_with(store, a_memory("m1"), axis(0))
    before = list(every_text(path))
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"CREATE TRIGGER boom BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'boom'); END")
    memory = a_memory("m2", "an unlucky basalt")
    changes: list[Change] = [
        Add(memory=memory, embedded=embedded(memory, axis(1))),
        Forget(memory_id="m1", at=T0, reason="x"),
    ]
    claim = Claim(key="k", digest="d", answer="{}", at=T0)
    with pytest.raises(StoreError, match="boom"):
        store.commit(changes, access=EVERYTHING, claim=claim)
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TRIGGER boom")
    assert list(every_text(path)) == before
    assert near(store, 1) == ["m1"]
    assert store.claimed("k") is None
    store.commit(changes, access=EVERYTHING, claim=claim)
    assert near(store, 1) == ["m2"]


def test_deleted_text_is_in_no_table_and_not_in_the_files(store: SqliteStore, path: Path) -> None:
    secret = Memory(
        id="m1",
        content="the xylophone password",
        created_at=T0,
        updated_at=T0,
        tags=("quincunx",),
        phrasings=("a zephyr wording",),
        metadata={"note": "vexillology"},
    )
    add_with(store, secret, axis(0))
    add(store, a_memory("m2"))
    link(store, "m1", "m2")
    changed = {"updated_at": T0 + DAY, "created_at": T0, "revision": 2}
    revise(store, Memory(id="m1", content="the obsidian password", **changed))  # type: ignore[arg-type]  # a dict of mixed types
    forget(store, "m1")
    words = ("xylophone", "xylophon", "zephyr", "quincunx", "vexillolog", "obsidian", "password")
    left = "\n".join(every_text(path))
    assert [word for word in words if word in left] == []
    raw = b"".join(file.read_bytes() for file in path.parent.rglob("*") if file.is_file())
    assert [word for word in words if word.encode() in raw] == []
    assert "cobalt" in left, "the other memory is still there"


def test_a_claimed_answer_goes_with_the_text_it_quotes_and_stays_otherwise(store: SqliteStore) -> None:
    quoting = Claim(key="quotes", digest="d", answer='{"stored": "tea \\"é\\""}', at=T0)
    silent = Claim(key="silent", digest="d", answer='{"id": "m2"}', at=T0)
    store.commit([Add(memory=a_memory("m1", 'tea "é"'))], access=EVERYTHING, claim=quoting)
    store.commit([Add(memory=a_memory("m2", "tin"))], access=EVERYTHING, claim=silent)
    forget(store, "m1")
    forget(store, "m2")
    assert store.claimed("quotes") is None
    assert store.claimed("silent") == silent
    with pytest.raises(IdempotencyConflict):
        store.commit([], access=EVERYTHING, claim=silent)


@pytest.mark.slow
def test_a_sibling_process_is_seen_by_the_dense_arm_at_once(store: SqliteStore, path: Path) -> None:
    add_with(store, a_memory("ours"), axis(0))
    assert near(store, 0) == ["ours"]
    here = PROJECT
    subprocess.run(
        [sys.executable, "-c", SIBLING, str(path)],
        check=True,
        cwd=here,
        env={"PYTHONPATH": f"{here / 'src'}:{here}"},
    )
    assert near(store, 0) == ["theirs"]


def test_a_cache_survives_a_change_of_model_and_back(path: Path, store: SqliteStore) -> None:
    sibling = open_at(path)
    memory = a_memory("m1")
    add_with(store, memory, axis(0))
    assert near(sibling, 0) == ["m1"]
    change_model(store, OTHER_SIGNATURE, memory)
    change_model(store, SIGNATURE, memory)
    assert near(sibling, 7) == ["m1"], "these are other vectors, though the signature is the same again"
    store.put_vectors({"m1": embedded(memory, axis(0))})
    assert near(sibling, 0) == ["m1"]
    sibling.close()


def test_many_deaths_are_compacted_and_the_rest_stays_findable(path: Path, store: SqliteStore) -> None:
    sibling = open_at(path)
    for number in range(40):
        add_with(store, a_memory(f"m{number:02}"), axis(number % 8), axis((number + 1) % 8))
    assert near(sibling, 0, limit=50) == near(store, 0, limit=50)
    forget(store, "m00")
    assert "m00" not in near(sibling, 0, limit=50)
    assert len(near(sibling, 0, limit=50)) == 39
    assert sibling._kept.matrix._rows.unfiled == 80, "a few dead rows are only left out"
    for number in range(2, 40, 2):
        forget(store, f"m{number:02}")
    odd = {f"m{number:02}" for number in range(1, 40, 2)}
    assert set(near(sibling, 0, limit=50)) == odd
    assert sibling._kept.matrix._rows.unfiled == 40
    fresh = open_at(path)
    assert near(fresh, 3, limit=50) == near(sibling, 3, limit=50)
    fresh.close()
    sibling.close()


def test_one_query_and_many_give_the_same_scores_and_order(store: SqliteStore) -> None:
    rng = np.random.default_rng(5)
    unit = rng.standard_normal((300, 8)).astype(np.float32)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    changes = []
    for number, vector in enumerate(unit):
        memory = a_memory(f"m{number:03}")
        changes.append(Add(memory=memory, embedded=embedded(memory, vector, vector, between(0, 1, 0.5))))
    store.commit(changes, access=EVERYTHING)
    queries = unit[:50]
    together = store.nearest(queries, SIGNATURE, ANYTHING, access=EVERYTHING, limit=20)
    alone = [
        store.nearest(query[np.newaxis], SIGNATURE, ANYTHING, access=EVERYTHING, limit=20)[0]
        for query in queries
    ]
    assert together == alone


def test_queries_are_scored_in_portions_when_there_are_very_many(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        add_with(store, a_memory(f"m{number}"), axis(number))
    queries = np.stack([axis(number) for number in range(6)])
    whole = store.nearest(queries, SIGNATURE, ANYTHING, access=EVERYTHING, limit=3)
    monkeypatch.setattr("vestige.store.sqlite.search.vectors.MAX_SCORES", 12)
    assert store.nearest(queries, SIGNATURE, ANYTHING, access=EVERYTHING, limit=3) == whole


def test_threads_can_read_and_write_at_once(store: SqliteStore) -> None:
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for number in range(15):
                add_with(store, a_memory(f"{name}{number}"), axis(number % 8))
                assert held(store, f"{name}{number}").embedded
                assert near(store, number % 8, limit=100)
        except BaseException as exc:  # told to the main thread, which raises it
            failures.append(exc)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert store.count(ANYTHING, access=EVERYTHING) == 60
    assert [event.seq for event in store.log(access=EVERYTHING)] == list(range(1, 61))


def test_rebuilding_words_repairs_a_damaged_index(store: SqliteStore, path: Path) -> None:
    add(store, a_memory("m1", "zinc"), a_memory("m2", "cobalt"))
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE words SET terms = 'nothing'")
        db.execute("DELETE FROM fingerprints")
        db.commit()
    assert store.lexical(["zinc"], ANYTHING, access=EVERYTHING, limit=5) == []
    assert store.rebuild_words() == 2
    (found,) = store.lexical(["zinc"], ANYTHING, access=EVERYTHING, limit=5)
    assert found.memory_id == "m1"
    assert query(path, "SELECT count(*) FROM fingerprints") == [(2,)]


def test_values_that_sqlite_cannot_take_are_invalid_input(store: SqliteStore) -> None:
    add(store, a_memory("m1"))
    with pytest.raises(InvalidInput):
        store.find(Filter(position=2**70), access=EVERYTHING, limit=1)
    with pytest.raises(InvalidInput):
        add(store, a_memory("with\0nul"))
    with pytest.raises(InvalidInput):
        link(store, "m1", "m2", weight=float("nan"))


def test_a_rebuild_analyses_again_what_changed_in_the_meantime(store: SqliteStore) -> None:
    add(store, a_memory("m1", "zinc"), a_memory("m2", "cobalt"))
    outdated = replace(index_rows.analyse(a_memory("m1", "wrong")), revision=0)
    with store._connections.writing() as db:
        assert index_rows.rebuild(db, {1: outdated, 99: outdated}, SqliteSurfaces()) == 2
    for name, term in (("m1", "zinc"), ("m2", "cobalt")):
        (found,) = store.lexical([term], ANYTHING, access=EVERYTHING, limit=5)
        assert found.memory_id == name
    assert store.lexical(["wrong"], ANYTHING, access=EVERYTHING, limit=5) == []


def test_a_filter_that_nothing_passes_gives_no_neighbours(store: SqliteStore) -> None:
    add_with(store, a_memory("m1"), axis(0))
    assert near(store, 0, Filter(scope="/nowhere")) == []
    assert near(store, 0, Filter(min_retention=2.0, now=T0)) == []


def test_a_thread_that_waits_too_long_for_another_is_told(tmp_path: Path) -> None:
    with (
        closing(open_at(tmp_path / "vestige.db", busy_seconds=0.01)) as store,
        store._connections.writing(),
        pytest.raises(StoreBusy, match="Another thread"),
    ):
        add(store, a_memory("m1"))


def test_only_a_few_idle_readers_are_kept(store: SqliteStore) -> None:
    with ExitStack() as many:
        for _ in range(IDLE_READERS + 3):
            many.enter_context(store._connections.reading())
    assert len(store._connections._idle) == IDLE_READERS


def test_the_log_never_goes_back_and_never_leaves_64_bits() -> None:
    far = datetime.max.replace(tzinfo=UTC)
    first = tick(0, T0)
    assert first >> 16 == round(T0.timestamp() * 1000)
    assert tick(first, T0 - DAY) == first + 1
    assert tick(0, datetime.min.replace(tzinfo=UTC)) == 1
    assert first < tick(first, far) < 2**62


def test_a_revision_of_neither_text_nor_tags_leaves_the_word_index_alone(
    store: SqliteStore, path: Path
) -> None:
    memory = a_memory("m1", "zinc")
    add(store, memory)
    before = query(path, "SELECT id, block FROM words_data ORDER BY id")
    pinned = replace(memory, pinned=True, revision=2)
    revise(store, pinned)
    assert query(path, "SELECT id, block FROM words_data ORDER BY id") == before
    revise(store, replace(pinned, tags=("basalt",), revision=3))
    (found,) = store.lexical(["basalt"], ANYTHING, access=EVERYTHING, limit=5)
    assert found.memory_id == "m1"
