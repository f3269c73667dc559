"""mem0's memories come with their owner, session, times and earlier wordings, from any of its files."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from testbed.world import HandClock, World, open_world
from tests.exchange.importers.imports import DATA, IN_MEMORY, LATER, imported, nodes, reasons

HERON = "The staging server is called heron."
INVOICES = "Invoices are sent on the first Tuesday."


@pytest.fixture
def later(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path / "store", clock=HandClock(LATER), **IN_MEMORY) as world:
        yield world


@pytest.mark.parametrize("name", ["get_all.json", "qdrant"])
def test_a_memory_has_its_id_times_agent_session_and_metadata(later: World, name: str) -> None:
    imported(later, DATA / "mem0" / name)

    found = nodes(later)
    heron = found[HERON]
    assert heron["id"] == "1b341da0-597a-4510-8ab5-08822b826de6"
    assert (heron["agentId"], heron["sessionId"], heron["source"]) == ("deployer", "run-7", "mem0")
    assert heron["metadata"]["imported"] == {"user_id": "mara"}
    assert heron["createdAt"].startswith("2026-11-18T05:10:47.512377")
    assert found["Heron listens on port 8443."]["author"] == "assistant"
    assert found["Which port does heron use?"]["author"] == "Mara"
    tea = found["Mara prefers green tea over coffee."]["metadata"]
    assert "drinks" in (tea.get("topic"), tea["imported"].get("topic"))


def test_the_history_brings_the_last_wording_and_keeps_the_earlier_ones(later: World) -> None:
    done = imported(later, DATA / "mem0" / "history.db")

    found = nodes(later)
    assert reasons(done) == {("memory", "it was deleted there"): 1}
    assert "Invoices are sent on the first Monday." not in found
    (earlier,) = found[INVOICES]["metadata"]["imported"]["earlier"]
    assert earlier["memory"] == "Invoices are sent on the first Monday."


def test_messages_that_mem0_waits_with_are_turns(later: World, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "history.db")) as db:
        db.executescript(
            "CREATE TABLE history (id TEXT, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT);"
            "CREATE TABLE messages (id TEXT, session_scope TEXT, role TEXT, content TEXT, name TEXT,"
            " created_at TEXT);"
            "INSERT INTO messages VALUES ('a', 'user_id=lea', 'user', 'Is it raining?', NULL, '2026-01-02');"
            "INSERT INTO messages VALUES ('b', 'user_id=lea', 'assistant', 'Not now.', NULL, '2026-01-02');"
        )

    imported(later, tmp_path / "history.db")

    found = nodes(later)
    assert (found["Is it raining?"]["thread"], found["Is it raining?"]["position"]) == ("mem0:user_id=lea", 1)
    assert (found["Not now."]["author"], found["Not now."]["position"]) == ("assistant", 2)


def test_relations_categories_and_an_end_date_are_kept(later: World, tmp_path: Path) -> None:
    memory = {"id": "m-1", "memory": "Lea rents a bicycle.", "user_id": "lea", "categories": ["transport"],
              "expiration_date": "2026-12-31", "immutable": True}  # fmt: skip
    relation = {"source": "lea", "relationship": "rents_from", "target": "city_bikes"}
    answer = {"results": [memory, "broken"], "relations": [relation, {"source": "lea"}]}
    (tmp_path / "all.json").write_text(json.dumps(answer), encoding="utf-8")

    done = imported(later, tmp_path / "all.json")

    found = nodes(later)
    bicycle = found["Lea rents a bicycle."]
    assert (bicycle["tags"], bicycle["validUntil"][:10]) == (["transport"], "2026-12-31")
    assert bicycle["metadata"]["imported"]["immutable"] is True
    assert "lea rents from city bikes" in found
    assert reasons(done) == {
        ("memory", "it is not a JSON object"): 1,
        ("memory", "a relation without its ends"): 1,
    }
