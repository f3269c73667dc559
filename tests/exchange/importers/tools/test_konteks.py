"""Konteks: its database and its export bring what is alive there, with tags, kinds and times."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from testbed.world import HandClock, World, open_world
from tests.exchange.importers.imports import IN_MEMORY, LATER, imported, nodes, reasons

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


def test_a_malformed_export_brings_nothing(later: World, tmp_path: Path) -> None:
    value = {"format": "konteks.durable-memory.v1", "memories": [3, {"id": "a"}], "diaries": None}
    (tmp_path / "durable.json").write_text(json.dumps(value), encoding="utf-8")
    assert imported(later, tmp_path / "durable.json")["imported"] == 0
