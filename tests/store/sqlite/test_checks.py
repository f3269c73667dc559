"""Each check of a SQLite store sees the damage it is there for, and no other; what is derived is mended."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.store.contract.care.test_examine import use
from tests.store.sqlite.test_migrations import OLD, old_store
from tests.store.support import index_files, sqlite_files
from tests.store.support.generators import (
    DAY,
    SIGNATURE,
    T0,
    a_memory,
    change_model,
    embedded,
    held,
    some_tokens,
)
from tests.store.support.sqlite_files import open_at
from vestige.core.models import EVERYTHING
from vestige.store.contract.changes import Add
from vestige.store.contract.trouble import Trouble
from vestige.store.sqlite.store import SqliteStore

path = sqlite_files.path
LATER = T0 + 30 * DAY


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    """A store in which everything has happened, token bits included."""
    opened = open_at(path)
    use(opened)
    told = a_memory("t", "quartz")
    made = embedded(told, index_files.units(3, 1)[0], tokens=[some_tokens(7, 9)])
    opened.commit([Add(memory=told, embedded=made)], access=EVERYTHING)
    yield opened
    opened.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """What another program did to the file, and what must be said of it."""

    sql: str
    check: str
    says: str
    repair: str | None = None
    ids: tuple[str, ...] = ()
    severity: str = "broken"


KEY = "(SELECT key FROM memories WHERE id = '{}')"
A, B = KEY.format("a"), KEY.format("b")
DAMAGES = {
    "an index that is gone": Damage(
        sql="DROP INDEX edges_by_target",
        check="schema",
        says="the index edges_by_target",
        repair="schema",
        severity="warning",
    ),
    "a view that is gone": Damage(
        sql="DROP VIEW knowledge_nodes",
        check="schema",
        says="the view knowledge_nodes",
        repair="schema",
        severity="warning",
    ),
    "a trigger that is gone": Damage(
        sql="DROP TRIGGER places_born",
        check="schema",
        says="the trigger places_born",
        repair="schema",
        severity="warning",
    ),
    "an index with another definition": Damage(
        sql="DROP INDEX edges_by_target; CREATE INDEX edges_by_target ON edges (kind)",
        check="schema",
        says="another definition than the migrations of the index edges_by_target",
        repair="schema",
        severity="warning",
    ),
    "a view with another definition": Damage(
        sql="DROP VIEW knowledge_nodes; CREATE VIEW knowledge_nodes AS SELECT id FROM memories",
        check="schema",
        says="another definition than the migrations of the view knowledge_nodes",
        repair="schema",
        severity="warning",
    ),
    "a table with another definition": Damage(
        sql="ALTER TABLE tombstones ADD COLUMN reason TEXT",
        check="schema",
        says="another definition than the migrations of the table tombstones",
    ),
    "a table that is gone": Damage(
        sql="DROP TABLE ended_logins",
        check="schema",
        says="It lacks the table ended_logins",
    ),
    "an edge of nothing": Damage(
        sql="INSERT INTO edges VALUES (998, 999, 'related', 1.0, '2026')",
        check="references",
        says="Rows of edges refer to missing rows of memories",
        repair="references",
    ),
    "vectors of nothing": Damage(
        sql="INSERT INTO vectors (profile, key, start, \"end\", text_hash, vector)"
        " SELECT profile, 999, start, \"end\", text_hash, vector FROM vectors LIMIT 1",
        check="references",
        says="Rows of vectors",
        repair="references",
    ),
    "token bits of nothing": Damage(
        sql="INSERT INTO token_bits SELECT 999, profile, bits, asked FROM token_bits LIMIT 1",
        check="references",
        says="Rows of token_bits",
        repair="references",
    ),
    "a tag of nothing": Damage(
        sql="INSERT INTO memory_tags VALUES (999, 'x')",
        check="references",
        says="Rows of memory_tags",
        repair="references",
    ),
    "a fingerprint of nothing": Damage(
        sql="INSERT INTO fingerprints VALUES (999, 'x')",
        check="references",
        says="Rows of fingerprints",
        repair="references",
    ),
    "a strength of nothing": Damage(
        sql="CREATE TEMP TABLE one AS SELECT * FROM strengths LIMIT 1;"
        " UPDATE one SET key = 999; INSERT INTO strengths SELECT * FROM one",
        check="references",
        says="Rows of strengths",
        repair="references",
    ),
    "a revision of nothing": Damage(
        sql="INSERT INTO revisions SELECT 999, 1, recorded_at, ended_at, reason, memory FROM revisions",
        check="references",
        says="Rows of revisions",
    ),
    "words of nothing": Damage(
        sql="INSERT INTO words (rowid, terms) VALUES (999, 'zinc')",
        check="strays",
        says="Rows of words belong to no memory",
        repair="words",
    ),
    "a place of nothing": Damage(
        sql="INSERT INTO places (key, length, form, flags, speaker) VALUES (999, 3, 0, 0, 0)",
        check="strays",
        says="Rows of places belong to no memory",
        repair="words",
    ),
    "no strength": Damage(
        sql=f"DELETE FROM strengths WHERE key = {A}",
        check="missing rows",
        says="no row in strengths",
        repair="strengths",
        ids=("a",),
    ),
    "no words": Damage(
        sql=f"DELETE FROM words WHERE rowid = {A}",
        check="missing rows",
        says="no row in words",
        repair="words",
        ids=("a",),
    ),
    "no place": Damage(
        sql=f"DELETE FROM places WHERE key = {A}",
        check="missing rows",
        says="no row in places",
        repair="words",
        ids=("a",),
    ),
    "no fingerprint": Damage(
        sql=f"DELETE FROM fingerprints WHERE key = {A}",
        check="missing rows",
        says="no row in fingerprints",
        repair="words",
        ids=("a",),
    ),
    "a tag too few": Damage(
        sql="DELETE FROM memory_tags WHERE tag = 'blue'",
        check="tags",
        says="The index of tags differs",
        repair="tags",
        ids=("a",),
    ),
    "a tag too many": Damage(
        sql=f"INSERT INTO memory_tags VALUES ({B}, 'green')",
        check="tags",
        says="The index of tags differs",
        repair="tags",
        ids=("b",),
    ),
    "a citation too few": Damage(
        sql=f"DELETE FROM document_cites WHERE memory = {A}",
        check="citations",
        says="The index of citations differs",
        repair="citations",
    ),
    "other words": Damage(
        sql=f"UPDATE words SET terms = 'granit' WHERE rowid = {A}",
        check="texts",
        says="The words in the index",
        repair="words",
        ids=("a",),
    ),
    "another place": Damage(
        sql=f"UPDATE places SET position = 12 WHERE key = {A}",
        check="texts",
        says="The rows of the table places",
        repair="words",
        ids=("a",),
    ),
    "another fingerprint": Damage(
        sql=f"UPDATE fingerprints SET fingerprint = 'x' WHERE key = {A}",
        check="texts",
        says="The fingerprints",
        repair="words",
        ids=("a",),
    ),
    "another hash": Damage(
        sql=f"UPDATE memories SET text_hash = 'x' WHERE key = {KEY.format('c')}",
        check="texts",
        says="does not match its hash",
        ids=("c",),
    ),
    "stale vectors": Damage(
        sql=f"UPDATE vectors SET text_hash = 'x' WHERE key = {A}",
        check="vectors",
        says="from another text",
        repair="vectors",
        ids=("a",),
    ),
    "a short vector": Damage(
        sql=f"UPDATE vectors SET vector = substr(vector, 1, 8) WHERE key = {A}",
        check="vectors",
        says="wrong dimension or length",
        repair="vectors",
        ids=("a",),
    ),
    "a vector that is too long": Damage(
        sql=f"UPDATE vectors SET vector = x'{'00' * 28}00000040' WHERE key = {A}",
        check="vectors",
        says="wrong dimension or length",
        repair="vectors",
        ids=("a",),
    ),
    "a vector that is no number": Damage(
        sql=f"UPDATE vectors SET vector = x'{'00' * 28}0000c07f' WHERE key = {A}",
        check="vectors",
        says="wrong dimension or length",
        repair="vectors",
        ids=("a",),
    ),
    "token bits cut short": Damage(
        sql="UPDATE token_bits SET bits = substr(bits, 1, 1)",
        check="tokens",
        says="the wrong size for the model",
        repair="vectors",
        ids=("t",),
    ),
    "token bits alone": Damage(
        sql=f"DELETE FROM vectors WHERE key = {KEY.format('t')}",
        check="tokens",
        says="without their vectors",
        repair="vectors",
        ids=("t",),
    ),
    "an event gone": Damage(
        sql="DELETE FROM events WHERE kind = 'curve.tuned'",
        check="log",
        says="Events of this installation are missing",
    ),
    "a memory from nowhere": Damage(
        sql="UPDATE events SET kind = 'memory.revised', payload = '{\"fields\": [], \"reason\": \"x\"}'"
        " WHERE memory_id = 'd' AND kind = 'memory.created'",
        check="log",
        says="no creation event",
        ids=("d",),
    ),
    "a clock set back": Damage(
        sql="UPDATE clock SET reading = 1",
        check="clock",
        says="behind the events",
        repair="clock",
    ),
    "no clock": Damage(
        sql="DELETE FROM clock", check="clock", says="behind the events", repair="clock"
    ),
    "no tombstone": Damage(
        sql="DELETE FROM tombstones",
        check="deletions",
        says="no tombstone",
        repair="tombstones",
        ids=("gone",),
    ),
    "a tombstone of nothing": Damage(
        sql="INSERT INTO tombstones VALUES ('x', '/', '2026-01-01T00:00:00.000000+00:00')",
        check="deletions",
        says="without a deletion event",
        ids=("x",),
    ),
    "a memory that came back": Damage(
        sql="UPDATE events SET memory_id = 'd' WHERE memory_id = 'gone'; DELETE FROM tombstones",
        check="deletions",
        says="the log says were deleted",
        ids=("d",),
    ),
    "a memory gone": Damage(
        sql="PRAGMA foreign_keys = ON; DELETE FROM memories WHERE id = 'd';"
        " DELETE FROM words WHERE rowid NOT IN (SELECT key FROM memories);"
        " DELETE FROM places WHERE key NOT IN (SELECT key FROM memories)",
        check="memories",
        says="neither here nor deleted",
        ids=("d",),
    ),
    "word index gone": Damage(
        sql="DELETE FROM words_data WHERE id > 10",
        check="word index",
        says="The index of words is damaged",
        repair="words",
    ),
    "word index of zeros": Damage(
        sql="UPDATE words_data SET block = zeroblob(length(block)) WHERE id > 10",
        check="word index",
        says="The index of words is damaged",
        repair="words",
    ),
    "lengths of texts gone": Damage(
        sql="DELETE FROM words_docsize WHERE id = (SELECT min(id) FROM words_docsize)",
        check="word index",
        says="The index of words is damaged",
        repair="words",
    ),
    "totals of the word index gone": Damage(
        sql="DELETE FROM words_data WHERE id = 1",
        check="word index",
        says="The index of words is damaged",
        repair="words",
    ),
    "another schema": Damage(
        sql="UPDATE schema_migrations SET checksum = 'x' WHERE version = 2",
        check="schema",
        says="not the one this Vestige has",
    ),
}  # fmt: skip


def break_it(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(sql)


def tear(path: Path, table: str) -> None:
    """Overwrite the first page of a table."""
    with closing(sqlite3.connect(path)) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    content = bytearray(path.read_bytes())
    content[(root - 1) * size : root * size] = b"\xff" * size
    path.write_bytes(content)


@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_is_seen_alone_and_mended_where_it_is_derived(
    store: SqliteStore, path: Path, name: str
) -> None:
    damage = DAMAGES[name]
    break_it(path, damage.sql)
    (found,) = store.examine(LATER)
    assert damage.says in found.message
    told = (found.check, found.repair, found.ids, found.severity)
    assert told == (damage.check, damage.repair, damage.ids, damage.severity)
    if damage.repair is not None:
        store.repair(damage.repair, LATER)
        assert store.examine(LATER) == []


def test_a_strength_that_was_lost_is_folded_from_the_log(store: SqliteStore, path: Path) -> None:
    before = held(store, "a").strength
    break_it(path, "DELETE FROM strengths")
    store.repair("strengths", LATER)
    assert held(store, "a").strength == before


def test_edges_are_made_again_from_the_log(store: SqliteStore, path: Path) -> None:
    before = store.edges(["a", "b", "c"], access=EVERYTHING)
    break_it(path, "DELETE FROM edges WHERE weight = 1.0; UPDATE edges SET weight = 0.1")
    store.repair("edges", LATER)
    assert store.edges(["a", "b", "c"], access=EVERYTHING) == before


def test_a_curve_that_was_changed_is_taken_from_the_log(store: SqliteStore, path: Path) -> None:
    break_it(path, "DELETE FROM curve")
    store.repair("curve", LATER)
    assert held(store, "a").strength.curve == 0.2


def test_vectors_of_a_model_that_was_left_are_seen_and_removed_but_those_of_a_coming_one_stay(
    path: Path,
) -> None:
    store = open_at(path)
    memory = a_memory("m", "zinc")
    store.commit(
        [Add(memory=memory, embedded=embedded(memory, index_files.units(1, 1)[0]))], access=EVERYTHING
    )
    coming = replace(SIGNATURE, revision="coming")
    store.put_vectors({"m": embedded(memory, index_files.units(2, 1)[0], signature=coming)}, coming=coming)
    assert store.examine(LATER) == []
    change_model(store, replace(SIGNATURE, revision="later"), memory)
    assert store.examine(LATER) == [], "the former ones are kept"
    break_it(
        path,
        'INSERT INTO vectors (profile, key, start, "end", text_hash, vector)'
        ' SELECT 2, key, start, "end", text_hash, vector FROM vectors WHERE profile = 1',
    )
    (found,) = store.examine(LATER)
    assert (found.check, found.severity, found.count) == ("vectors", "warning", 1)
    store.repair("vectors", LATER)
    assert store.examine(LATER) == []
    assert [one.memories for one in store.profiles()] == [1, 1]
    store.close()


def test_an_index_file_that_is_gone_is_seen_and_written_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_files.publish_early(monkeypatch)
    store = open_at(path)
    index_files.fill(store, 5, 40)
    store.rebuild_index()
    index_files.files_of(path)[0].unlink()
    (found,) = store.examine(LATER)
    assert (found.check, found.repair, found.severity) == ("index files", "index", "warning")
    store.repair("index", LATER)
    assert store.examine(LATER) == []
    store.close()


def test_only_a_deep_look_sees_an_index_that_lacks_a_row(store: SqliteStore, path: Path) -> None:
    define = (
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = '{}' WHERE name = 'memories_by_scope'"
    )
    with closing(sqlite3.connect(path)) as db:
        (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = 'memories_by_scope'").fetchone()
    store.close()
    break_it(path, define.format(f"{sql} WHERE id <> ''a''"))
    break_it(path, "REINDEX memories_by_scope")
    break_it(path, define.format(sql))
    again = open_at(path)
    assert again.examine(LATER) == []
    (found,) = again.examine(LATER, deep=True)
    again.close()
    assert found.check == "pages"
    assert found.repair is None
    assert "memories_by_scope" in found.message


def test_pages_that_were_overwritten_are_told_and_the_other_checks_go_on(
    store: SqliteStore, path: Path
) -> None:
    store.close()
    tear(path, "edges")
    break_it(path, "DELETE FROM clock")
    again = open_at(path)
    found = again.examine(LATER)
    again.close()
    assert found[0].check == "pages"
    assert {"references", "clock"} <= {one.check for one in found}


@pytest.mark.skipif(os.name == "nt", reason="there are no such permissions")
def test_files_that_others_may_read_are_seen_and_closed_to_them(store: SqliteStore, path: Path) -> None:
    copies = path.parent / "backups"
    copies.mkdir(mode=0o700)
    store.backup(copies / "one.db")
    (copies / "one.db").chmod(0o644)
    path.chmod(0o640)
    (found,) = store.examine(LATER)
    assert (found.check, found.count, found.severity) == ("permissions", 2, "warning")
    assert "vestige.db" in found.message
    store.repair("permissions", LATER)
    assert store.examine(LATER) == []
    assert [one.stat().st_mode & 0o777 for one in (path, copies / "one.db", copies)] == [0o600, 0o600, 0o700]


@pytest.mark.skipif(os.name == "nt", reason="there are no such permissions")
def test_a_directory_that_others_may_write_to_is_told_and_left_as_it_is(
    store: SqliteStore, path: Path
) -> None:
    path.parent.chmod(0o777)
    (found,) = store.examine(LATER)
    assert (found.check, found.repair, found.severity) == ("permissions", None, "warning")
    path.parent.chmod(0o700)
    assert store.examine(LATER) == []


def test_what_killed_processes_left_is_removed_after_a_day_and_not_before(
    store: SqliteStore, path: Path
) -> None:
    (path.parent / ".restoring-x").mkdir()
    (path.parent / ".restoring-x" / "vestige.db").write_bytes(b"x")
    (path.parent / "backups").mkdir(mode=0o700)
    (path.parent / "backups" / ".one.db.abc.partial").write_bytes(b"x")
    left = [path.parent / ".restoring-x", path.parent / "backups" / ".one.db.abc.partial"]
    for one in left:
        one.chmod(0o700)
        os.utime(one, (LATER.timestamp(), LATER.timestamp()))
    assert store.examine(LATER + timedelta(hours=23)) == []
    (found,) = store.examine(LATER + timedelta(hours=25))
    assert (found.check, found.count, found.severity) == ("leftovers", 2, "warning")
    store.repair("leftovers", LATER + timedelta(hours=25))
    assert [one.exists() for one in left] == [False, False]


def test_a_long_journal_and_a_full_disk_are_told(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vestige.store.sqlite.check.files.LONG_JOURNAL", 10)
    monkeypatch.setattr("shutil.disk_usage", lambda place: (100, 99, 1))
    told = [(one.check, one.severity, one.repair) for one in store.examine(LATER)]
    assert told == [("journal", "warning", None), ("disk", "warning", None)]


@pytest.mark.parametrize("name", sorted(file.name.removesuffix(".db.gz") for file in OLD.glob("*.db.gz")))
def test_a_store_of_an_earlier_version_is_well_once_it_is_upgraded(tmp_path: Path, name: str) -> None:
    with closing(open_at(old_store(tmp_path, name))) as store:
        assert store.examine(datetime(2030, 1, 3, tzinfo=UTC), deep=True) == []


def test_a_trouble_names_a_few_memories_and_counts_all(path: Path) -> None:
    with closing(open_at(path)) as store:
        index_files.fill(store, 1, 30)
        break_it(path, "DELETE FROM strengths")
        (found,) = store.examine(LATER)
    assert isinstance(found, Trouble)
    assert (found.count, len(found.ids)) == (30, 20)
