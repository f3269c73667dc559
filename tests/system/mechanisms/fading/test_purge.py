"""Purging: after it no file and no table of the store holds the words, whatever surface they had reached."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.world import World
from tests.store.support.index_files import publish_early
from tests.system.mechanisms.conftest import ON_A_FILE, Living
from vestige.core.models import EVERYTHING
from vestige.engine.reactions.searches import EVENTS

WORDS = ("qvantixol", "wrembluk", "zhorpid", "yxlapton", "kwertzim", "vlqobus")
"""Invented, so that nothing else in a file can look like them, and different from their first letters on: an
index that leaves out what a term shares with the one before it still holds them whole."""
FIRST = "Our Qvantixol supplier in Lisbon is Wrembluk, says the contract."
OTHERWISE = "Our Qvantixol supplier in Lisbon is Wrembluk, says the contract of Zhorpid."
EDITED = "Our Qvantixol supplier is Yxlapton from Porto now."


def holding(living: Living, needles: dict[str, bytes]) -> dict[str, set[str]]:
    """Which of these each file or table holds; those that hold none are left out."""
    found = {
        name: {label for label, needle in needles.items() if needle in content}
        for name, content in living.held().items()
    }
    return {name: labels for name, labels in found.items() if labels}


def spread(world: World) -> str:
    """A memory with rare words on every surface that a memory's text can reach."""
    for number in range(6):
        world.remember(f"Lisbon note {number}: the tram stops at platform {number}.", tags=["lisbon"])
    memory_id = world.remember(FIRST, tags=["kwertzim"], source="vlqobus.md", idempotency_key="told once")
    world.call("smart_ingest", content=OTHERWISE)
    world.remember("The Qvantixol supplier Wrembluk delivers on Fridays.", force_create=True)
    world.find("who is our Qvantixol supplier Wrembluk", retrieval_mode="exhaustive")
    world.call("predict", context={"current_topics": ["Qvantixol"]})
    world.call("memory", action="promote", id=memory_id)
    world.app.settle()
    world.call("dream")
    world.call("memory", action="edit", id=memory_id, content=EDITED)
    world.find("Yxlapton Qvantixol")
    world.app.engine.store.rebuild_index()
    return memory_id


def ids_about(world: World, word: str) -> list[str]:
    found = world.call("search", query=word, limit=50, include_expired=True, record=False)["results"]
    return [hit["id"] for hit in found if word.lower() in str(hit).lower()]


def purge(world: World, memory_id: str, **arguments: Any) -> dict[str, Any]:
    return world.call("purge", id=memory_id, confirm=True, **arguments)


def test_after_a_purge_no_file_of_the_store_holds_a_word_or_a_vector_of_it(
    living: Living, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_early(monkeypatch)
    memory_id = spread(living.world)
    store = living.world.app.engine.store
    signature = store.signature()
    assert signature is not None
    (vectors,) = store.vectors([memory_id], signature, access=EVERYTHING).values()
    needles = {word: word.encode() for word in WORDS}
    needles["vector"] = np.ascontiguousarray(vectors[0], dtype="<f4").tobytes().lower()
    reached = holding(living, needles)
    assert set().union(*reached.values()) == set(needles), "the search in the files sees what is there"
    assert {"vestige.db.index", "vectors"} & {
        name.split("/")[0] for name, labels in reached.items() if "vector" in labels
    }

    for one in dict.fromkeys([memory_id, *ids_about(living.world, "Qvantixol")]):
        purge(living.world, one)

    assert holding(living, needles) == {}
    living.restart()
    assert holding(living, needles) == {}
    found = str(living.world.find("Qvantixol Wrembluk Yxlapton", include_expired=True)).lower()
    assert not [word for word in WORDS if word in found]
    assert "was deleted on" in living.world.refused("memory", action="get", id=memory_id)["message"]


@pytest.mark.parametrize("more", [0, EVENTS + 1])
def test_a_search_that_is_learned_from_after_a_purge_brings_no_word_back(living: Living, more: int) -> None:
    world = living.world
    gone = world.remember("The Qvantixol contract is kept in the shed.")
    world.remember("The lawn mower is kept in the shed behind the house.")
    assert world.find("shed lawn mower house Qvantixol", limit=1)[0].startswith("The lawn mower")

    purge(world, gone)
    for number in range(more):
        world.remember(f"Locker {number} is empty.", force_create=True)
    world.app.settle()

    needles = {"qvantixol": b"qvantixol"}
    assert holding(living, needles) == {}
    assert "qvantixol" not in str(living.restart().call("predict")).lower()
    assert holding(living, needles) == {}


def test_a_search_during_a_purge_brings_no_word_back(living: Living) -> None:
    world = living.world
    gone = world.remember("The Qvantixol contract is kept in the shed.")
    world.remember("The lawn mower is kept in the shed behind the house.")
    purge(world, gone)
    living.clock.advance(hours=1 / 3600)  # a purge has the time of its beginning, and takes a while
    world.find("shed lawn mower house Qvantixol", limit=1)
    world.app.settle()

    assert holding(living, {"qvantixol": b"qvantixol"}) == {}


def test_searches_are_learned_from_again_after_a_purge(living: Living) -> None:
    world = living.world
    gone = world.remember("The Qvantixol contract is kept in the shed.")
    world.remember("The lawn mower is kept in the shed behind the house.")
    purge(world, gone)
    living.clock.advance(hours=1)
    world.find("lawn mower", limit=1)

    assert "lawn" in str(living.restart().call("predict")["topInterests"])


def test_a_word_of_a_purged_memory_that_another_one_has_stays_learned(living: Living) -> None:
    world = living.world
    gone = world.remember("The Qvantixol contract ends in May.")
    world.remember("The Wrembluk contract ends in June.")
    world.find("Wrembluk contract")
    world.find("Qvantixol contract")
    world.app.settle()

    purge(world, gone)

    interests = str(living.restart().call("predict")).lower()
    assert "contract" in interests
    assert "wrembluk" in interests
    assert "qvantixol" not in interests


def test_purging_needs_to_be_confirmed_and_names_the_copies_it_does_not_touch(living: Living) -> None:
    world = living.world
    memory_id = world.remember(FIRST)
    refused = world.refused("memory", action="purge", id=memory_id)
    assert (refused["code"], refused["details"]) == ("invalid_input", {"argument": "confirm"})
    assert world.get(memory_id)["content"] == FIRST
    world.call("backup")
    world.call("export", path="mine.json")

    answer = world.call("memory", action="purge", id=memory_id, confirm=True)

    assert [name.split("/")[0] for name in answer["copies"]] == ["backups", "exports"]
    assert "Not touched: 2" in answer["message"]
    assert living.restart().find("Qvantixol") == []


@ON_A_FILE
def test_the_answer_says_when_somebody_who_reads_keeps_the_words_in_the_log(
    living: Living, tmp_path: Path
) -> None:
    world, folder = living.world, tmp_path / "data"
    memory_id, other = world.remember("Wrembluk sells tea."), world.remember("The tram stops at four.")
    with closing(sqlite3.connect(folder / "vestige.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memories").fetchone()
        done = purge(world, memory_id)
        deleted = world.call("memory", action="delete", id=other)
    assert done["lingersIn"] == "vestige.db-wal"
    for message in (done["message"], deleted["message"]):
        assert "still in the file vestige.db-wal" in message
        assert "system_status" in message

    third = world.remember("Coffee is served at three.")
    assert holding(living, {"word": b"wrembluk"}) == {}
    assert "lingersIn" not in purge(world, third)
