"""Konteks: its database and its export bring what is alive there, with tags, kinds and times."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from testbed.world import HandClock, World, open_world
from tests.exchange.importers.imports import IN_MEMORY, LATER, imported, nodes, reasons
from vestige.core.errors import VestigeError

SCHEMA = """
create table schema_migrations(id text primary key, applied_at text);
create table observations(id text primary key, kind text, text_inline text, content_hash text, confidence real
  default 1, created_at text, deleted_at text, suppressed_at text, forget_reason text);
create table diary_entries(id text primary key, subject text, summary text not null, tags_json text,
  content_hash text, deleted_at text, suppressed_at text, forget_reason text, created_at text);
create table sections(id text primary key, content_inline text);
insert into observations values
  ('obs_1', 'decision', 'Prices are kept in cents.', 'wrong', 0.8, '2026-01-05T09:00:00Z', null, null, null),
  ('obs_2', 'fact', 'This one was deleted.', 'x', 1, '2026-01-05', '2026-01-06', null, null),
  ('obs_3', 'note', 'This one was suppressed.', 'y', 1, '2026-01-05', null, '2026-01-06', null);
insert into diary_entries values
  ('diary_1', 'invoices', 'Wrote the invoice, then the tax.', '["billing"]', 'z', null, null, null,
   '2026-01-07T09:00:00Z');
insert into sections values ('section_1', 'def extracted(): pass');
"""


@pytest.fixture
def later(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path / "store", clock=HandClock(LATER), **IN_MEMORY) as world:
        yield world


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / ".konteks"
    made.mkdir()
    with closing(sqlite3.connect(made / "memory.sqlite")) as db:
        db.executescript(SCHEMA)
    return made


def test_a_database_brings_observations_and_diary(later: World, folder: Path) -> None:
    done = imported(later, folder)
    assert (done["format"], done["imported"]) == ("konteks", 2)
    found = nodes(later)
    decision, diary = found["Prices are kept in cents."], found["Wrote the invoice, then the tax."]
    assert decision["nodeType"] == "decision"
    assert decision["createdAt"].startswith("2026-01-05T09:00:00")
    assert (diary["nodeType"], diary["tags"], diary["source"]) == ("diary", ["billing", "diary"], "invoices")
    assert reasons(done) == {("memory", "it was deleted there"): 1, ("memory", "it was suppressed there"): 1}
    assert imported(later, folder)["present"] == 2


def test_an_export_brings_the_same(later: World, tmp_path: Path) -> None:
    memory = {
        "id": "obs_1",
        "kind": "decision",
        "content": "Prices are kept in cents.",
        "contentHash": "wrong",
        "createdAt": "2026-01-05",
    }
    diary = {
        "id": "diary_1",
        "summary": "Wrote the invoice.",
        "tags": ["billing"],
        "createdAt": "2026-01-07T09:00:00Z",
    }
    value = {"format": "konteks.durable-memory.v1", "memories": [memory], "diaries": [diary]}
    (tmp_path / "durable.json").write_text(json.dumps(value), encoding="utf-8")
    done = imported(later, tmp_path / "durable.json")
    assert (done["format"], done["imported"]) == ("konteks", 2)
    assert nodes(later)["Wrote the invoice."]["tags"] == ["billing", "diary"]


def test_what_is_no_record_of_an_export_is_reported(later: World, tmp_path: Path) -> None:
    value = {"format": "konteks.durable-memory.v1", "memories": [3, {"id": "a"}], "diaries": []}
    (tmp_path / "durable.json").write_text(json.dumps(value), encoding="utf-8")
    done = imported(later, tmp_path / "durable.json")
    assert done["imported"] == 0
    assert reasons(done) == {("memory", "it is not a JSON object"): 1, ("memory", "no content"): 1}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"format": "konteks.durable-memory.v1", "memories": 3, "diaries": []}, "memories must be a list"),
        ({"format": "konteks.durable-memory.v1", "memories": []}, "diaries must be a list"),
        ({"format": "konteks.durable-memory.v2", "memories": [], "diaries": []}, "another version"),
    ],
)
def test_a_malformed_export_is_refused(
    later: World, tmp_path: Path, value: dict[str, object], words: str
) -> None:
    (tmp_path / "durable.json").write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(VestigeError, match=words):
        imported(later, tmp_path / "durable.json")


GRAPH = """
create table entities(id text primary key, type text, name text);
create table entity_aliases(id text primary key, entity_id text, value text, normalized_value text);
create table relations(id text primary key, subject_id text, predicate text, object_id text, status text,
  valid_to text, created_at text);
create table retrieval_documents(target_id text, target_type text, path text, anchor text, fts_text text,
  primary key(target_id, target_type));
insert into observations values
  ('obs_4', 'decision', 'Prices have four digits.', 'v', 1, '2026-01-08T09:00:00Z', null, null, null);
insert into retrieval_documents values ('obs_1', 'memory', 'src/money.py', 'src/money.py', 'x'),
  ('obs_4', 'memory', 'memory', 'obs_4', 'x');
insert into entities values ('ent_1', 'memory', 'obs_1'), ('ent_4', 'memory', 'obs_4');
insert into entity_aliases values ('a1', 'ent_1', 'obs_1', 'obs 1'), ('a2', 'ent_1', 'memory#obs_1', 'obs 1'),
  ('a3', 'ent_1', 'decision', 'decision'), ('a4', 'ent_1', 'src/money.py', 'src money py'),
  ('a5', 'ent_1', 'money', 'money'), ('a6', 'ent_1', 'billing', 'billing'), ('a7', 'ent_4', 'obs_4', 'obs 4');
insert into relations values
  ('rel_1', 'ent_4', 'supersedes', 'ent_1', 'active', null, '2026-01-08T09:00:00Z');
"""


def test_source_tags_and_the_end_of_a_decision_come_from_other_tables(later: World, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "memory.sqlite")) as db:
        db.executescript(GRAPH)
    assert imported(later, folder)["imported"] == 3
    found = nodes(later)
    old, new = found["Prices are kept in cents."], found["Prices have four digits."]
    assert (old["source"], old["tags"]) == ("src/money.py", ["billing"])
    assert old["validUntil"].startswith("2026-01-08T09:00:00")
    assert (new["source"], new.get("tags", []), new.get("validUntil")) == ("konteks", [], None)


def test_values_that_are_no_text_name_nothing(later: World, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "memory.sqlite")) as db:
        db.executescript(GRAPH)
        db.executescript("""
            insert into entity_aliases values ('a8', 'ent_1', null, ''), ('a9', 'ent_1', x'ff00', '');
            update retrieval_documents set path = x'ff00' where target_id = 'obs_1';
        """)
    assert imported(later, folder)["imported"] == 3
    old = nodes(later)["Prices are kept in cents."]
    assert (old["source"], old["tags"]) == ("konteks", ["src/money.py", "money", "billing"])


def test_search_documents_of_another_version_bring_no_source(later: World, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "memory.sqlite")) as db:
        db.executescript("""
            create table retrieval_documents(id text, target_type text, path text);
            insert into retrieval_documents values ('obs_1', 'memory', 'src/money.py');
        """)
    assert imported(later, folder)["imported"] == 2
    assert nodes(later)["Prices are kept in cents."]["source"] == "konteks"
