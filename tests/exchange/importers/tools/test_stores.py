"""Stores of other memory systems: what each record becomes, and why some are left."""

import json
import shutil
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from testbed.world import HandClock, World, open_world
from tests.exchange.importers.imports import DATA, IN_MEMORY, LATER, imported, nodes, reasons
from vestige.core.models import EVERYTHING


@pytest.fixture
def later(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path / "store", clock=HandClock(LATER), **IN_MEMORY) as world:
        yield world


def links(world: World) -> set[tuple[str, str, str]]:
    """Every link as texts and a kind."""
    found = {node["id"]: text for text, node in nodes(world).items()}
    edges = world.app.engine.store.edges(list(found), access=EVERYTHING)
    return {(found[edge.source_id], found[edge.target_id], edge.kind) for edge in edges}


def database(path: Path, script: str) -> Path:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(script)
    return path


# -- mcp-memory-service

NINJA, MAKE = "The build uses ninja on Linux.", "Use make on macOS instead of ninja."
LEA = "Lea owns the release checklist."


def test_mcp_memory_service_brings_types_tags_times_metadata_and_links(later: World) -> None:
    done = imported(later, DATA / "sqlite_vec.db")

    found = nodes(later)
    assert (found[NINJA]["nodeType"], found[NINJA]["tags"]) == ("note", ["build", "linux"])
    assert found[NINJA]["metadata"] == {"project": "orchard"}
    assert found[MAKE]["createdAt"].startswith("2026-01-05T09:00:00")
    assert links(later) == {(NINJA, MAKE, "contradicts"), (LEA, NINJA, "complementary")}
    assert reasons(done) == {
        ("memory", "it was deleted there"): 1,
        ("connection", "the same link in the other direction"): 1,
    }
    assert imported(later, DATA / "mcp-memory-service.json")["present"] == 3


def test_mcp_memory_service_brings_versions_and_beliefs(later: World, tmp_path: Path) -> None:
    path = Path(shutil.copy(DATA / "sqlite_vec.db", tmp_path / "a.db"))
    with closing(sqlite3.connect(path)) as db:
        (old,), (new,) = db.execute("SELECT content_hash FROM memories WHERE id < 3").fetchall()
        db.execute("UPDATE memories SET superseded_by = ? WHERE content_hash = ?", (new, old))
        belief = "INSERT INTO beliefs (belief_hash, content, created_at, updated_at, derived_from) VALUES"
        db.execute(f"{belief} ('b', 'Builds differ.', '2026-01-06', '2026-01-06', ?)", (json.dumps([new]),))
        db.execute(f"{belief} ('c', 'From nothing.', '2026-01-06', '2026-01-06', '[]')")
        db.commit()

    done = imported(later, path)

    ninja = next(one for one in nodes_with_past(later) if one["content"] == NINJA)
    assert (ninja["supersededBy"], ninja["validUntil"][:10]) == (nodes(later)[MAKE]["id"], "2026-01-05")
    assert [one["insight"] for one in later.call("insights", action="list")["insights"]] == ["Builds differ."]
    assert reasons(done)["insight", "it does not say what it is derived from"] == 1


def nodes_with_past(world: World) -> list[dict[str, Any]]:
    store = world.app.engine.store
    events = store.log(access=EVERYTHING, limit=1_000)
    return [world.get(one) for one in {str(event.memory_id) for event in events if event.memory_id}]


# -- claude-mem


def test_claude_mem_brings_observations_summaries_and_prompts_of_a_session(later: World) -> None:
    imported(later, DATA / "claude-mem.db")

    found = nodes(later)
    first = next(node for text, node in found.items() if text.startswith("The parser reads each line twice"))
    assert first["content"] == (
        "The parser reads each line twice\nFound with a profile\n\n- Reading twice costs 40 % of the time\n"
        "- The second pass only counts lines\n\n"
        "The profile showed that the line counter opens the file again."
    )
    assert (first["nodeType"], first["tags"]) == ("discovery", ["performance", "how-it-works", "orchard"])
    assert (first["sessionId"], first["thread"]) == ("memory-1", "claude-mem:memory-1")
    assert first["createdAt"].startswith("2026-02-03T10:00:00")
    assert first["metadata"]["imported"]["files_read"] == ["src/parser.py"]
    decision = next(node for node in found.values() if node["nodeType"] == "decision")
    assert (decision["agentId"], decision["position"] > first["position"]) == ("agent-3", True)
    summary = next(node for node in found.values() if node["nodeType"] == "summary")
    assert "Learned: The file was opened twice\nCompleted: One pass" in summary["content"]
    prompt = found["And add a benchmark"]
    assert (prompt["author"], prompt["sessionId"]) == ("user", "memory-1")
    assert prompt["metadata"]["imported"]["session_title"] == "Parser work"


def test_claude_mem_of_an_old_version_is_read_and_what_waits_is_counted(later: World, tmp_path: Path) -> None:
    path = database(
        tmp_path / "old.db",
        "CREATE TABLE sdk_sessions (id INTEGER, claude_session_id TEXT, sdk_session_id TEXT, project TEXT);"
        "CREATE TABLE observations (id INTEGER, sdk_session_id TEXT, project TEXT, text TEXT, type TEXT,"
        " created_at TEXT, created_at_epoch INTEGER);"
        "CREATE TABLE pending_messages (id INTEGER);"
        "INSERT INTO sdk_sessions VALUES (1, 'c', 's', 'barn');"
        "INSERT INTO observations VALUES (1, 's', 'barn', 'Doors open inwards.', 'fact', NULL, 17e11);"
        "INSERT INTO observations VALUES (2, 's', 'barn', '', 'fact', NULL, 17e11);"
        "INSERT INTO pending_messages VALUES (1);",
    )

    done = imported(later, path)

    assert (nodes(later)["Doors open inwards."]["sessionId"], done["format"]) == ("s", "claude-mem")
    assert reasons(done) == {
        ("memory", "no content"): 1,
        ("pending_messages", "tool calls that were waiting to be summarised there"): 1,
    }


# -- MemPalace


def test_mempalace_brings_drawers_with_their_room_and_facts_with_their_validity(later: World) -> None:
    imported(later, DATA / "mempalace")

    roses = nodes(later)["Cut the roses back in March."]
    assert (roses["tags"], roses["source"]) == (["garden", "roses"], "notes/garden.txt")
    assert (roses["author"], roses["thread"]) == ("lea", "mempalace:notes/garden.txt")
    facts = {one["content"]: one for one in nodes_with_past(later)}
    lyon = facts["Lea lives in Lyon"]
    assert (lyon["validFrom"][:10], lyon["validUntil"][:10]) == ("2020-05-01", "2024-11-30")
    assert lyon["metadata"]["imported"]["confidence"] == 0.9
    assert "validUntil" not in facts["Lea works on Orchard"]
    assert facts["Lea (person): team: release"]["tags"] == ["Lea", "person"]


def test_mempalace_with_its_plain_sqlite_store_is_read_and_closets_are_left(
    later: World, tmp_path: Path
) -> None:
    database(
        tmp_path / "sqlite_exact.sqlite3",
        "CREATE TABLE collections (id INTEGER, name TEXT);"
        "CREATE TABLE documents (collection_id INTEGER, id TEXT, document TEXT, metadata_json TEXT,"
        " embedding BLOB);"
        "INSERT INTO collections VALUES (1, 'mempalace_drawers'), (2, 'mempalace_closets');"
        "INSERT INTO documents VALUES (1, 'd1', 'Figs ripen late.',"
        """ '{"wing": "garden", "filed_at": "2026-02-01", "content_date": "2025-09-30"}', x'00');"""
        "INSERT INTO documents VALUES (2, 'c1', 'figs', '{}', x'00');",
    )

    done = imported(later, tmp_path)

    figs = nodes(later)["Figs ripen late."]
    assert (figs["occurredAt"][:10], figs["createdAt"][:10]) == ("2025-09-30", "2026-02-01")
    assert reasons(done) == {("closet", "an index of the drawers, which are imported themselves"): 1}


def test_a_fact_is_linked_to_the_drawer_that_it_comes_from(later: World, tmp_path: Path) -> None:
    palace = tmp_path / "palace"
    shutil.copytree(DATA / "mempalace" / "palace", palace)
    with closing(sqlite3.connect(palace / "chroma.sqlite3")) as db:
        (drawer,) = db.execute("SELECT embedding_id FROM embeddings WHERE id = 3").fetchone()
    with closing(sqlite3.connect(palace / "knowledge_graph.sqlite3")) as db:
        db.execute("UPDATE triples SET source_drawer_id = ? WHERE predicate = 'works_on'", (drawer,))
        db.commit()

    imported(later, palace)

    parser = "The parser keeps a line count beside the tree."
    assert links(later) == {("Lea works on Orchard", parser, "semantic")}


# -- Hindsight


def test_hindsight_brings_facts_causes_observations_and_models(later: World) -> None:
    done = imported(later, DATA / "hindsight.zip")

    found = nodes(later)
    login, build = (
        "Noor fixed the flaky login test.",
        "The build is green again because the login test is stable.",
    )
    assert found[login]["tags"] == ["tests", "standup", "Noor", "login test"]
    assert (found[login]["nodeType"], found[login]["occurredAt"][:13]) == ("world", "2026-01-11T16")
    assert (found[build]["thread"], found[build]["position"]) == ("hindsight:standup-2026-01-12", 1)
    assert found[login]["metadata"]["room"] == "blue"
    assert found[login]["metadata"]["imported"]["context"] == "standup"
    assert (build, login, "causal") in links(later)
    assert found["Start the server with make run."]["nodeType"] == "document"
    assert found["People\n\nNoor works on tests."]["nodeType"] == "mental_model"
    (insight,) = later.call("insights", action="list")["insights"]
    assert insight["insight"] == "Noor keeps the tests stable."
    assert insight["source_memories"] == [found[login]["id"], found[build]["id"]]
    assert reasons(done)["invalidated_memory_units", "facts that were invalidated there"] == 1


def test_hindsight_that_was_unpacked_is_the_same(later: World, tmp_path: Path) -> None:
    with zipfile.ZipFile(DATA / "hindsight.zip") as archive:
        archive.extractall(tmp_path / "bank")
    first = imported(later, DATA / "hindsight.zip")

    done = imported(later, tmp_path / "bank")

    assert (done["format"], done["imported"], done["present"]) == ("hindsight", 0, first["imported"])


# -- OpenMemory

OPENMEMORY = """
CREATE TABLE users (id CHAR(32), user_id TEXT, name TEXT);
CREATE TABLE apps (id CHAR(32), owner_id CHAR(32), name TEXT);
CREATE TABLE memories (id CHAR(32), user_id CHAR(32), app_id CHAR(32), content TEXT, vector TEXT,
  metadata JSON, state TEXT, created_at DATETIME, updated_at DATETIME, archived_at DATETIME,
  deleted_at DATETIME);
CREATE TABLE categories (id CHAR(32), name TEXT);
CREATE TABLE memory_categories (memory_id CHAR(32), category_id CHAR(32));
CREATE TABLE memory_status_history (id CHAR(32));
INSERT INTO users VALUES ('u', 'lea', 'Lea');
INSERT INTO apps VALUES ('a', 'u', 'cursor');
INSERT INTO categories VALUES ('c', 'music');
INSERT INTO memory_categories VALUES ('5f0c3a527d1e4b539f430f7a5f2c8a01', 'c');
INSERT INTO memories VALUES
  ('5f0c3a527d1e4b539f430f7a5f2c8a01', 'u', 'a', 'Lea plays the cello.', NULL, '{"mood": "calm"}', 'active',
   '2026-01-02 10:00:00.000000', '2026-01-03 10:00:00.000000', NULL, NULL),
  ('5f0c3a527d1e4b539f430f7a5f2c8a02', 'u', 'a', 'Lea once played the flute.', NULL, '{}', 'archived',
   '2026-01-02 10:00:00.000000', '2026-01-03 10:00:00.000000', '2026-01-04 10:00:00.000000', NULL),
  ('5f0c3a527d1e4b539f430f7a5f2c8a03', 'u', 'a', 'Lea plays the tuba.', NULL, '{}', 'deleted',
   '2026-01-02 10:00:00.000000', '2026-01-03 10:00:00.000000', NULL, '2026-01-04 10:00:00.000000');
INSERT INTO memory_status_history VALUES ('h');
"""
CELLO = "5f0c3a52-7d1e-4b53-9f43-0f7a5f2c8a01"


def test_openmemory_of_mem0_brings_apps_categories_and_states(later: World, tmp_path: Path) -> None:
    done = imported(later, database(tmp_path / "openmemory.db", OPENMEMORY))

    cello = later.get(CELLO)
    assert (cello["agentId"], cello["tags"], cello["content"]) == (
        "cursor",
        ["music"],
        "Lea plays the cello.",
    )
    assert cello["metadata"] == {"mood": "calm", "imported": {"user_id": "lea"}}
    assert later.get(CELLO[:-1] + "2")["archivedAt"].startswith("2026-01-04")
    assert reasons(done) == {
        ("memory", "it was deleted there"): 1,
        ("memory_status_history", "the history of states begins anew here"): 1,
    }


def test_the_archive_of_openmemory_of_mem0_is_read(later: World, tmp_path: Path) -> None:
    memory = {"id": CELLO, "content": "Lea plays the cello.", "metadata": {}, "app_id": "a",
              "state": "active", "created_at": "2026-01-02T10:00:00+00:00", "category_ids": ["c"],
              }  # fmt: skip
    exported = {
        "user": {"id": "u"}, "apps": [{"id": "a", "name": "cursor"}],
        "categories": [{"id": "c", "name": "music"}],
        "memories": [memory], "memory_categories": [{"memory_id": CELLO, "category_id": "c"}],
        "status_history": [], "access_controls": [{"id": "x"}], "export_meta": {"version": "1"},
    }  # fmt: skip
    with zipfile.ZipFile(tmp_path / "memories_export_lea.zip", "w") as archive:
        archive.writestr("memories.json", json.dumps(exported))
        archive.writestr("memories.jsonl.gz", b"")

    done = imported(later, tmp_path / "memories_export_lea.zip")

    assert (done["format"], later.get(CELLO)["tags"]) == ("openmemory", ["music"])
    assert reasons(done) == {("access_controls", "rights of that program"): 1}


def test_openmemory_of_cavira_brings_links_users_and_facts(later: World, tmp_path: Path) -> None:
    path = Path(shutil.copy(DATA / "openmemory.sqlite", tmp_path / "a.sqlite"))
    with closing(sqlite3.connect(path)) as db:
        fact = ("f", "Mara", "works_in", "Porto", 1_700_000_000_000, 1_710_000_000_000, 0.9, "{}")
        db.execute("INSERT INTO temporal_facts VALUES (?, ?, ?, ?, ?, ?, ?, ?)", fact)
        db.commit()

    imported(later, path)

    found = nodes(later)
    happy = found["Mara was happy with the new checklist."]
    assert (happy["tags"], happy["metadata"]["origin"]) == (["release", "mood"], "notes")
    assert happy["metadata"]["imported"]["primary_sector"] == "emotional"
    assert len(links(later)) == 2
    porto = next(one for one in nodes_with_past(later) if one["content"] == "Mara works in Porto")
    assert (porto["validFrom"][:10], porto["validUntil"][:10]) == ("2023-11-14", "2024-03-09")


# -- Chroma


def test_any_chroma_folder_is_read(later: World, tmp_path: Path) -> None:
    shutil.copy(DATA / "mempalace" / "palace" / "chroma.sqlite3", tmp_path / "chroma.sqlite3")
    with closing(sqlite3.connect(tmp_path / "chroma.sqlite3")) as db:
        db.execute("UPDATE collections SET name = 'notes'")
        db.execute("DELETE FROM embedding_metadata WHERE id = 2")
        db.commit()

    done = imported(later, tmp_path)

    parser = nodes(later)["The parser keeps a line count beside the tree."]
    assert (done["format"], parser["metadata"]["imported"]["collection"]) == ("chroma", "notes")
    assert parser["metadata"]["imported"]["room"] == "parser"
    assert reasons(done) == {("memory", "it has a vector, but no text"): 1}
