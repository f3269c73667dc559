"""A store is carried to a store of another kind, whole, and the source stays as it is.

What does not depend on the kind of store is tried from file to file, which is quicker.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.postgres_server import Server
from tests.store.sqlite.test_migrations import old_store
from tests.store.support.canonical import assert_whole
from tests.store.support.generators import DAY, a_memory, add, axis, embedded, forget
from tests.store.support.sqlite_files import open_at, query
from tests.store.support.transfer_ends import (
    NOW,
    AnyEnd,
    a_life,
    export_of,
    in_file,
    on_server,
    opened,
    quietly,
    stop_after,
    write_one_more,
)
from vestige.core.documents import Document
from vestige.core.errors import InvalidInput, StoreBusy, StoreError
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.embed.protocol import Signature
from vestige.store.contract.changes import Add, Put, Tune
from vestige.store.contract.store import MemoryStore
from vestige.store.sql.filters import moment_text
from vestige.store.transfer.compare import compare
from vestige.store.transfer.ends import End
from vestige.store.transfer.move import move, plan, verify
from vestige.store.transfer.tables import COMPARED

LEFT_BEHIND = {
    # derived with each memory
    *("memory_tags", "fingerprints", "words", "postings", "terms", "analysed"),
    *("neighbours", "neighbours_version"),
    # of the installation, its processes and its caches
    *("installation", "notices", "present", "segments", "dead_vectors", "changed_keys", "schema_migrations"),
    *("snapshots", "embedded_up_to"),
    # ahead of all that is carried
    "clock",
}
SMALL = 7
"""Rows in a batch, so that a small store has many of them."""


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a store with something in every table."""
    return a_life(tmp_path_factory.mktemp("lived")).read_bytes()


@pytest.fixture
def source(lived: bytes, tmp_path: Path) -> Path:
    """That file, for a test to do with as it likes."""
    path = tmp_path / "source" / "vestige.db"
    path.parent.mkdir()
    path.write_bytes(lived)
    open_at(path).close()  # a copy gets a node of its own
    return path


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.slow)])
def goal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyEnd]:
    """An empty place for a store, of each kind in turn."""
    if request.param == "file":
        yield in_file(tmp_path / "goal" / "vestige.db")
        return
    server: Server = request.getfixturevalue("postgres_server")
    url = server.new_database()
    yield on_server(url)
    server.drop(url)


def damage(path: Path, *statements: str) -> None:
    """Do what no store would."""
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            assert db.execute(statement).rowcount, statement
        db.commit()


# -- whole ------------------------------------------------------------------------------------------------


def test_everything_is_carried_and_found_to_be_the_same(source: Path, goal: End) -> None:
    before = source.read_bytes()
    moved = move(in_file(source), goal, quietly, batch=SMALL)
    assert (moved.refused, moved.comparison.differences, moved.overtaken) == ((), (), False)
    assert moved.is_whole
    assert moved.untouched
    assert source.read_bytes() == before
    assert {name for name, rows in moved.comparison.rows.items() if not rows} <= {"document_cites"}
    assert moved.comparison.rows["events"] == query(source, "SELECT count(*) FROM events")[0][0]
    assert moved.comparison.questions > 5
    assert export_of(goal) == export_of(in_file(source))
    with goal.source() as side, in_file(source).source() as before_it:
        assert side.store.examine(NOW.replace(year=2030)) == []
        assert side.store.list_keys() == before_it.store.list_keys()
        assert side.store.login_ended("ended")


def test_carried_there_and_back_it_is_the_same_byte_for_byte(source: Path, goal: End, tmp_path: Path) -> None:
    back = in_file(tmp_path / "back" / "vestige.db")
    assert move(in_file(source), goal, quietly).is_whole
    assert move(goal, back, quietly).is_whole
    assert export_of(back) == export_of(in_file(source))
    assert verify(in_file(source), back, quietly).is_whole
    with closing(open_at(back.path)) as store:
        assert store.examine(NOW.replace(year=2030), deep=True) == []
    assert_whole(back.path)


def test_what_is_written_afterwards_follows_what_was_carried(source: Path, goal: End) -> None:
    """Keys, positions and numbers of rows are not given twice, and the node is another one."""
    with closing(open_at(source)) as store:
        last = add(store, a_memory("doomed", "The last one is deleted."))[-1]
        forget(store, "doomed")
        origin_node = store.node
    move(in_file(source), goal, quietly)
    with goal.destination() as side:
        assert side.store.node != origin_node
        memory = a_memory("next", "The next one comes after.")
        signature = side.store.signature()
        assert signature is not None
        vector = axis(0, signature.dimension)
        told = embedded(memory, vector, signature=signature)
        events = side.store.commit([Add(memory=memory, embedded=told)], access=EVERYTHING)
        assert [event.seq for event in events] == [1]
        assert events[0].position > last.position
        with side.reading() as db:
            (key,) = db.execute("SELECT key FROM memories WHERE id = 'next'").fetchone()
            (used,) = db.execute("SELECT max(key) FROM places WHERE key <> ?", (key,)).fetchone()
        assert key > used
        note = Document(kind="note", id="next", body={}, created_at=NOW, updated_at=NOW)
        side.store.commit([Put(document=note)], access=EVERYTHING)
        prepare_another_model(side.store)
        assert side.store.adopt(ANOTHER)
        assert side.store.examine(NOW.replace(year=2030)) == []


def test_the_curve_of_forgetting_is_carried(source: Path, goal: End) -> None:
    with closing(open_at(source)) as store:
        store.commit([Tune(w20=0.3, at=NOW)], access=EVERYTHING)
    assert move(in_file(source), goal, quietly).is_whole
    assert export_of(goal) == export_of(in_file(source))


@pytest.mark.slow
def test_on_a_server_every_column_is_carried_or_left_behind_on_purpose(postgres_server: Server) -> None:
    url = postgres_server.new_database()
    with on_server(url).destination() as side, side.reading() as db:
        found = db.execute(
            "SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
            " WHERE c.relnamespace = 'vestige'::regnamespace AND c.relkind = 'r' AND a.attnum > 0"
        ).fetchall()
    _assert_accounted_for(found)


def test_in_a_file_every_column_is_carried_or_left_behind_on_purpose(source: Path) -> None:
    named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    tables = [str(row[0]) for row in query(source, named)]
    found = [(table, str(row[1])) for table in tables for row in query(source, f"PRAGMA table_info({table})")]
    _assert_accounted_for([pair for pair in found if not pair[0].startswith("words_")])


def _assert_accounted_for(found: Iterable[tuple[str, str]]) -> None:
    columns: dict[str, set[str]] = {}
    for table, column in found:
        columns.setdefault(table, set()).add(column)
    carried = {part.table: {column.name for column in part.columns} for part in COMPARED}
    assert columns.keys() - carried.keys() == LEFT_BEHIND & columns.keys()
    assert {name: columns[name] for name in carried} == carried | {"places": columns["places"]}


# -- again, and after a stop ------------------------------------------------------------------------------


def test_a_second_run_adds_nothing(source: Path, goal: End) -> None:
    first = move(in_file(source), goal, quietly, batch=SMALL)
    again = move(in_file(source), goal, quietly, batch=SMALL)
    assert first.added > 0
    assert (again.added, again.resumed, again.is_whole) == (0, True, True)


def test_a_run_that_was_stopped_is_finished_by_the_next_one(source: Path, goal: End) -> None:
    _stopped_and_finished(in_file(source), goal, 4)


@pytest.mark.parametrize("batches", [1, 2, 6, 9, 14])
def test_it_does_not_matter_where_it_was_stopped(source: Path, tmp_path: Path, batches: int) -> None:
    _stopped_and_finished(in_file(source), in_file(tmp_path / "goal.db"), batches)


def _stopped_and_finished(origin: End, goal: End, batches: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        move(origin, goal, stop_after(batches), batch=SMALL)
    assert plan(origin, goal, quietly).resumed
    rest = move(origin, goal, quietly, batch=SMALL)
    assert rest.resumed
    assert rest.is_whole
    assert 0 < rest.added < sum(plan(origin, goal, quietly).rows.values())
    assert export_of(goal) == export_of(origin)


def test_a_store_that_is_there_in_part_is_opened_by_nobody_but_transfers(source: Path, goal: AnyEnd) -> None:
    with pytest.raises(KeyboardInterrupt):
        move(in_file(source), goal, stop_after(3), batch=SMALL)
    with pytest.raises(StoreError, match="not complete") as refused:
        opened(goal)
    assert "vestige migrate --from" in str(refused.value.hint)
    assert move(in_file(source), goal, quietly, batch=SMALL).is_whole
    with closing(opened(goal)) as store:
        add(store, a_memory("next", "Now this is a store."))


def test_a_store_that_is_there_in_part_is_carried_nowhere(source: Path, goal: End, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        move(in_file(source), goal, stop_after(3), batch=SMALL)
    elsewhere = in_file(tmp_path / "elsewhere.db")
    for act in (move, plan):
        with pytest.raises(StoreError, match="not complete"):
            act(goal, elsewhere, quietly)
    assert not elsewhere.path.exists()
    with pytest.raises(StoreError, match="not complete"):
        verify(goal, in_file(source), quietly)
    missing = verify(in_file(source), goal, quietly)
    assert {one.what for one in missing.comparison.differences} == {"is missing"}


def test_after_a_stop_the_source_must_be_as_it_was(source: Path, goal: End) -> None:
    with pytest.raises(KeyboardInterrupt):
        move(in_file(source), goal, stop_after(3), batch=SMALL)
    write_one_more(source)
    with pytest.raises(StoreError, match="was changed since its transfer"):
        move(in_file(source), goal, quietly, batch=SMALL)


def test_after_a_stop_no_key_may_have_been_revoked(source: Path, goal: End) -> None:
    with pytest.raises(KeyboardInterrupt):
        move(in_file(source), goal, stop_after(3), batch=SMALL)
    with closing(open_at(source)) as store:
        (key,) = (key for key in store.list_keys() if key.revoked_at is None)
        store.revoke_key(key.id, NOW)
    with pytest.raises(StoreError, match="was changed since its transfer"):
        move(in_file(source), goal, quietly, batch=SMALL)


def test_after_a_stop_no_login_may_have_been_ended_in_the_place_of_another(source: Path, goal: End) -> None:
    with pytest.raises(KeyboardInterrupt):
        move(in_file(source), goal, stop_after(3), batch=SMALL)
    with closing(open_at(source)) as store:
        store.end_login("another", NOW + DAY, forgetting=NOW + DAY)
        assert not store.login_ended("ended")
    with pytest.raises(StoreError, match="was changed since its transfer"):
        move(in_file(source), goal, quietly, batch=SMALL)


def test_what_came_after_a_finished_transfer_is_not_added_by_another_one(source: Path, goal: End) -> None:
    move(in_file(source), goal, quietly)
    write_one_more(source)
    with pytest.raises(StoreError, match=r"was already copied to") as refused:
        move(in_file(source), goal, quietly)
    assert "vestige sync" in str(refused.value.hint)


def test_a_destination_that_was_used_since_is_told_to_be_a_store_of_its_own(
    source: Path, goal: AnyEnd
) -> None:
    assert move(in_file(source), goal, quietly, batch=SMALL).is_whole
    with closing(opened(goal)) as store:
        add(store, a_memory("next", "This is written there."))
    for act in (move, plan):
        with pytest.raises(StoreError, match="was changed since") as caught:
            act(in_file(source), goal, quietly)
        assert "vestige sync" in (caught.value.hint or "")


def test_what_others_write_to_the_source_meanwhile_is_told_to_be_missing(source: Path, goal: End) -> None:
    once = iter([True])

    def progress(done: float, total: float | None, what: str | None) -> None:
        if next(once, False):
            write_one_more(source)

    moved = move(in_file(source), goal, progress, batch=SMALL)
    assert moved.overtaken
    assert not moved.untouched
    assert not moved.is_whole
    assert moved.comparison.differences == ()
    with goal.source() as side:
        assert side.store.get_many(["later"], access=EVERYTHING) == []


ANOTHER = Signature(name="another", revision="1", dimension=8)


def prepare_another_model(store: MemoryStore) -> None:
    found = store.find(ANYTHING, access=EVERYTHING, limit=1_000)
    vectors = {one.memory.id: embedded(one.memory, axis(0), signature=ANOTHER) for one in found}
    assert store.put_vectors(vectors, coming=ANOTHER) == len(found)


def change_a_strength(store: MemoryStore) -> None:
    (one,) = store.find(ANYTHING, access=EVERYTHING, limit=1)
    changed = replace(one.strength, stability=one.strength.stability * 2)
    assert store.put_strengths({one.memory.id: changed}, after=10**9) == 1


def switch_the_model(store: MemoryStore) -> None:
    assert store.adopt(ANOTHER)


@pytest.mark.parametrize("act", [change_a_strength, switch_the_model])
def test_what_is_written_without_an_event_overtakes_too(
    source: Path, tmp_path: Path, act: Callable[[MemoryStore], None]
) -> None:
    with closing(open_at(source)) as store:
        prepare_another_model(store)
    once = iter([True])

    def progress(done: float, total: float | None, what: str | None) -> None:
        if next(once, False):
            with closing(open_at(source)) as store:
                act(store)

    assert move(in_file(source), in_file(tmp_path / "goal.db"), progress, batch=SMALL).overtaken


# -- rows that cannot be carried --------------------------------------------------------------------------

REMARK = "(SELECT min(seq) FROM events WHERE kind = 'memory.remarked')"
OF_TEA = "(SELECT key FROM memories WHERE content LIKE 'Tea is%')"
BAD: dict[str, tuple[str, str, str]] = {
    "tags not JSON": ("UPDATE memories SET tags = '[\"a' WHERE {tea}", "memories", "tags is not JSON"),
    "a NUL character in JSON": (
        "UPDATE memories SET metadata = '{{\"a\":\"\\u0000\"}}' WHERE {tea}",
        "memories",
        "metadata contains a NUL",
    ),
    "a key that is none": (
        "UPDATE revisions SET revision = 'first' WHERE rowid = 1", "revisions", "revision is no",
    ),
    "metadata of another shape": ("UPDATE memories SET metadata = '[1]' WHERE {tea}", "memories", ""),
    "a date there never was": (
        "UPDATE memories SET created_at = '2026-02-30T00:00:00.000000+00:00' WHERE {tea}",
        "memories",
        "created_at is not a time",
    ),
    "a NUL character": (
        "UPDATE memories SET content = 'a' || char(0) || 'b' WHERE {tea}", "memories",
        "content contains a NUL character",
    ),
    "bytes that are no text": (
        "UPDATE memories SET content = CAST(x'ff41' AS TEXT) WHERE {tea}", "memories", "content is not UTF-8",
    ),
    "a text for a number": ("UPDATE memories SET revision = 'one' WHERE {tea}", "memories", "revision is no"),
    "no strength": ("DELETE FROM strengths WHERE {tea}", "memories", "it has no strength"),
    "endless stability": (
        "UPDATE strengths SET stability = 9e999 WHERE {tea}", "memories", "stability is no",
    ),
    "an unknown state": ("UPDATE strengths SET learning_state = 'asleep' WHERE {tea}", "memories", "asleep"),
    "an event without sense": (
        "UPDATE events SET payload = '{{' WHERE kind = 'memory.remarked' AND seq = {remark}",
        "events",
        "payload is not JSON",
    ),
    "an earlier state without sense": (
        "UPDATE revisions SET memory = '{{}}' WHERE rowid = 1", "revisions", "",
    ),
    "a vector with a hole": (
        "UPDATE vectors SET vector = zeroblob(7) WHERE {tea}", "vectors", "vector is not a vector",
    ),
    "a vector that is not a number": (
        "UPDATE vectors SET vector = x'0000c07f' || substr(vector, 5) WHERE {tea}", "vectors", "",
    ),
    "a document without sense": (
        "UPDATE documents SET body = 'x' WHERE key = (SELECT min(key) FROM documents"
        " WHERE kind NOT IN ('running', 'peer', 'backup'))",
        "documents",
        "body is not JSON",
    ),
    "a vector of no profile": (
        "UPDATE vectors SET profile = 99 WHERE {tea}", "vectors", "",
    ),
    "a deleted id that is not a text": (
        "UPDATE tombstones SET id = CAST(x'ff41' AS TEXT) || id", "tombstones", "id is not UTF-8",
    ),
    "a deleted id of bytes": ("UPDATE tombstones SET id = x'ff4100'", "tombstones", "id is not a text"),
    "a name of an edge that is not a text": (
        "UPDATE edges SET kind = CAST(x'ff41' AS TEXT) WHERE (source, target, kind) ="
        " (SELECT source, target, kind FROM edges LIMIT 1)",
        "edges",
        "kind is not UTF-8",
    ),
    "an event of bytes": (
        "UPDATE events SET node = x'ff' WHERE position = (SELECT max(position) FROM events)",
        "events",
        "node is not a text",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_row_is_told_and_the_others_are_carried(source: Path, tmp_path: Path, name: str) -> None:
    goal = in_file(tmp_path / "goal.db")
    statement, table, reason = BAD[name]
    rows = plan(in_file(source), goal, quietly).rows
    damage(source, statement.format(tea=f"key = {OF_TEA}", remark=REMARK))
    before = source.read_bytes()
    moved = move(in_file(source), goal, quietly, batch=SMALL)
    (told,) = [one for one in moved.refused if one.table == table]
    assert reason in told.reason
    assert told.reason
    assert not moved.is_whole
    assert moved.comparison.differences == ()
    assert moved.added == sum(rows.values()) - len(moved.refused)
    again = move(in_file(source), goal, quietly, batch=SMALL)
    assert (again.added, again.refused) == (0, moved.refused)
    assert source.read_bytes() == before


def test_keys_that_are_none_are_told_one_by_one_wherever_a_batch_ends(source: Path, tmp_path: Path) -> None:
    """They are in the middle of their table, and each of them is the last of a batch once."""
    with closing(sqlite3.connect(source)) as db:
        for number, key in enumerate(("CAST(x'ff' AS TEXT)", "CAST(x'41ff42' AS TEXT)", "x'00ff'", "x''")):
            db.execute(f"INSERT INTO claims VALUES ({key}, 'd', 'a{number}', '{moment_text(NOW)}')")
            db.execute(f"INSERT INTO tombstones VALUES ({key}, '/', '{moment_text(NOW)}')")
        for name in ("A", "Z", "é", "\U0001f980"):
            db.execute("INSERT INTO claims VALUES (?, 'd', 'a', ?)", (name, moment_text(NOW)))
        db.commit()
    before = source.read_bytes()
    for batch in (1, 2, 3, 1_000):
        goal = in_file(tmp_path / f"goal{batch}.db")
        seen = plan(in_file(source), goal, quietly)
        moved = move(in_file(source), goal, quietly, batch=batch)
        assert sorted(one.table for one in moved.refused) == 4 * ["claims"] + 4 * ["tombstones"]
        assert sorted(seen.refused, key=str) == sorted(moved.refused, key=str)
        assert moved.added == sum(seen.rows.values()) - 8
        assert moved.comparison.differences == ()
        assert move(in_file(source), goal, quietly).added == 0
    assert source.read_bytes() == before


def test_a_stop_at_a_key_that_is_none_is_gone_on_from(source: Path, tmp_path: Path) -> None:
    ids = [str(row[0]) for row in query(source, "SELECT id FROM tombstones")]
    damage(
        source, *(f"UPDATE tombstones SET id = x'ff{n:02x}' WHERE id = '{one}'" for n, one in enumerate(ids))
    )
    goal, stopped = in_file(tmp_path / "goal.db"), False

    def progress(done: float, total: float | None, what: str | None) -> None:
        nonlocal stopped
        if what == "Carrying tombstones" and not stopped:
            stopped = True
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(in_file(source), goal, progress, batch=1)
    rest = move(in_file(source), goal, quietly, batch=1)
    assert rest.resumed
    assert {one.table for one in rest.refused} == {"tombstones"}
    assert rest.comparison.differences == ()


def test_stores_with_keys_that_are_none_are_compared_all_the_same(source: Path, tmp_path: Path) -> None:
    """Without a receipt nobody knows that they could not be carried."""
    goal = in_file(tmp_path / "goal.db")
    move(in_file(source), goal, quietly)
    damage(goal.path, "DROP TABLE transfer", "DROP TABLE transfer_refusals")
    damage(source, "UPDATE tombstones SET id = x'ff'")
    told = verify(in_file(source), goal, quietly).comparison.differences
    assert sorted(one.what for one in told) == ["is missing", "was not there before"]


@pytest.mark.slow
def test_a_server_refuses_bad_rows_one_by_one(source: Path, postgres_server: Server) -> None:
    goal = on_server(postgres_server.new_database())
    rows = sum(plan(in_file(source), goal, quietly).rows.values())
    one = "(SELECT min(key) FROM vectors)"
    damage(
        source,
        "UPDATE vectors SET profile = 99 WHERE id % 3 = 0",
        f"UPDATE vectors SET vector = zeroblob(4 * 20000) WHERE key = {one}",  # more than pgvector takes
        "UPDATE tombstones SET scope = 'a' || char(0)",
        "UPDATE claim_memories SET claim = 'none'",
    )
    moved = move(in_file(source), goal, quietly)
    told = {(refusal.table, refusal.reason) for refusal in moved.refused}
    assert {table for table, _ in told} == {"vectors", "tombstones", "claim_memories"}
    assert any("foreign key" in reason for table, reason in told if table == "claim_memories")
    assert any("16000 dimensions" in reason for _, reason in told)
    assert moved.added == rows - len(moved.refused)
    assert moved.comparison.differences == ()
    assert move(in_file(source), goal, quietly).added == 0


def test_what_hangs_on_a_memory_that_is_not_carried_is_told_too(source: Path, goal: End) -> None:
    damage(source, f"UPDATE memories SET tags = 'x' WHERE key = {OF_TEA}")
    moved = move(in_file(source), goal, quietly, batch=SMALL)
    tea = str(query(source, "SELECT id FROM memories WHERE content LIKE 'Tea is%'")[0][0])
    told = {(one.table, one.reason) for one in moved.refused}
    assert {table for table, _ in told} == {"memories", "revisions", "edges", "vectors", "token_bits"}
    assert {reason for table, reason in told if table != "memories"} == {"its memory does not exist"}
    assert [one.name for one in moved.refused if one.table == "memories"] == [tea]
    assert all(tea in one.name for one in moved.refused if one.table == "edges")
    assert moved.comparison.differences == ()


def test_a_look_ahead_tells_the_same_and_changes_nothing(source: Path, goal: End) -> None:
    damage(source, f"UPDATE memories SET tags = 'x' WHERE key = {OF_TEA}")
    before = source.read_bytes()
    seen = plan(in_file(source), goal, quietly)
    assert (seen.outlook.is_store, seen.resumed, seen.done) == (False, False, False)
    assert not plan(in_file(source), goal, quietly).outlook.is_store
    assert source.read_bytes() == before
    moved = move(in_file(source), goal, quietly)
    assert sorted(seen.refused, key=str) == sorted(moved.refused, key=str)
    assert plan(in_file(source), goal, quietly).done


# -- destinations that are not taken ----------------------------------------------------------------------


def test_a_destination_with_memories_of_its_own_is_refused(source: Path, goal: End) -> None:
    with goal.destination() as side:
        add(side.store, a_memory("mine", "This was here first."))
    held = export_of(goal)
    before = source.read_bytes()
    for act in (move, plan):
        with pytest.raises(StoreError, match=r"is not empty: it holds 1 memories"):
            act(in_file(source), goal, quietly)
    assert export_of(goal) == held
    assert source.read_bytes() == before


def test_a_destination_that_holds_another_store_is_refused(source: Path, goal: End, tmp_path: Path) -> None:
    with closing(open_at(tmp_path / "other.db", prefix="other")) as store:
        add(store, a_memory("mine", "This is another store."))
    move(in_file(tmp_path / "other.db"), goal, quietly)
    with pytest.raises(StoreError, match="from another store"):
        move(in_file(source), goal, quietly)


def test_nobody_else_may_write_to_a_destination_that_is_not_complete(source: Path, goal: End) -> None:
    with pytest.raises(KeyboardInterrupt):
        move(in_file(source), goal, stop_after(3), batch=SMALL)
    with goal.destination() as side:
        add(side.store, a_memory("mine", "Who told you that this is a store?"))
    with pytest.raises(StoreBusy, match="Something else writes to"):
        move(in_file(source), goal, quietly, batch=SMALL)


def test_two_transfers_at_once_do_not_mix(source: Path, goal: End) -> None:
    once = iter([True])

    def meanwhile(done: float, total: float | None, what: str | None) -> None:
        if next(once, False):
            move(in_file(source), goal, quietly, batch=SMALL)

    with pytest.raises(StoreBusy, match="Another process is copying"):
        move(in_file(source), goal, meanwhile, batch=SMALL)
    assert verify(in_file(source), goal, quietly).is_whole


def test_a_difference_is_found_and_named(source: Path, tmp_path: Path) -> None:
    goal = in_file(tmp_path / "goal.db")
    move(in_file(source), goal, quietly)
    damage(
        goal.path,
        "UPDATE strengths SET stability = stability + 1e-9 WHERE key = 2",
        "DELETE FROM events WHERE position = 4",
        "UPDATE vectors SET vector = zeroblob(length(vector)) WHERE id = 3",
    )
    comparison = verify(in_file(source), goal, quietly).comparison
    assert {(one.table, one.name, one.what) for one in comparison.differences} == {
        ("strengths", "2", "differs in stability"),
        ("events", "4", "is missing"),
        ("vectors", "3", "differs in vector"),
    }


def test_answers_that_differ_are_told_by_the_arm_that_gives_them(source: Path, tmp_path: Path) -> None:
    with closing(open_at(tmp_path / "other.db")) as other, in_file(source).source() as side:
        found = side.store.find(ANYTHING, access=EVERYTHING, limit=1_000)
        signature = side.store.signature()
        assert signature is not None
        for at, one in enumerate(found):  # the same texts, and vectors by which others are near
            told = embedded(one.memory, axis(at % 2, signature.dimension), signature=signature)
            other.commit([Add(memory=one.memory, embedded=told)], access=EVERYTHING)
        with side.reading() as db:
            comparison = compare(db, db, (side.store, other), [], quietly)
    assert comparison.questions > 5
    assert {one.table for one in comparison.differences} == {"search"}
    assert any("by vectors" in one.what for one in comparison.differences)


# -- sources that cannot be read --------------------------------------------------------------------------


def test_a_source_of_an_older_schema_is_left_as_it_is(tmp_path: Path) -> None:
    path = old_store(tmp_path, "schema2")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="older schema") as refused:
        move(in_file(path), in_file(tmp_path / "goal.db"), quietly)
    assert "vestige migrate" in str(refused.value.hint)
    assert path.read_bytes() == before
    assert not (tmp_path / "goal.db").exists()


def test_a_locked_source_is_told_to_be_busy(source: Path, tmp_path: Path) -> None:
    before = source.read_bytes()
    with closing(sqlite3.connect(source)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreBusy), in_file(source).source():
            pass
    assert source.read_bytes() == before
    assert not (tmp_path / "goal.db").exists()


def test_a_source_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="There is no store at"):
        move(in_file(tmp_path / "none.db"), in_file(tmp_path / "goal.db"), quietly)
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_another_program_is_no_source(tmp_path: Path) -> None:
    path = tmp_path / "photos.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE photos (id INTEGER)")
    with pytest.raises(StoreError, match="another program"):
        move(in_file(path), in_file(tmp_path / "goal.db"), quietly)


def test_what_waits_in_the_write_ahead_log_is_carried_and_stays_there(source: Path, tmp_path: Path) -> None:
    with closing(open_at(source, prefix="open")) as store:
        add(store, a_memory("fresh", "This is in the log only."))
        log = Path(f"{source}-wal")
        assert log.stat().st_size
        before = (source.read_bytes(), log.read_bytes())
        goal = in_file(tmp_path / "goal.db")
        with in_file(source).source() as side:
            assert side.store.get_many(["fresh"], access=EVERYTHING)
        assert (source.read_bytes(), log.read_bytes()) == before
    assert move(in_file(source), goal, quietly).is_whole
