"""A database of the reference system comes over with all that has a place here, and says what has not."""

import hashlib
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from testbed.world import HandClock, World, open_world
from tests.exchange.importers.tools.reference_database import (
    AWKWARD,
    EDGES,
    HUGE,
    INTENTIONS,
    LEFT,
    NODES,
    NOW,
    OLD,
    PORT,
    ROWS,
    TEA,
    build,
    days_ago,
    node,
)
from vestige.core.errors import VestigeError
from vestige.core.models import EVERYTHING, Filter
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

IMPORT = registry.operations["import"]


def imported(world: World, path: Path, **arguments: Any) -> dict[str, Any]:
    """Import as the user at the command line does."""
    return IMPORT.call(Call(engine=world.app.engine, local=True), {"path": str(path), **arguments})


def moment(text: object) -> datetime:
    return datetime.fromisoformat(str(text))


def same(told: object, shown: Any, name: str) -> bool:
    """Whether a column and the field shown for it say the same."""
    if isinstance(told, float):
        return bool(shown == pytest.approx(told, abs=1e-4))
    if isinstance(told, str) and name not in ("content", "source", "node_type", "learning_state"):
        return moment(shown) == moment(told)
    return bool(shown == told)


SHOWN = {
    "content": "content", "node_type": "nodeType", "created_at": "createdAt", "updated_at": "updatedAt",
    "last_accessed": "lastAccessed", "stability": "stability", "difficulty": "difficulty", "reps": "reps",
    "lapses": "lapses", "learning_state": "learningState", "storage_strength": "storageStrength",
    "retrieval_strength": "retrievalStrength", "next_review": "nextReview", "source": "source",
    "valid_from": "validFrom", "valid_until": "validUntil", "times_retrieved": "timesRetrieved",
    "times_useful": "timesUseful", "suppression_count": "suppressionCount", "suppressed_at": "suppressedAt",
}  # fmt: skip
KEPT = (
    "sentiment_score", "sentiment_magnitude", "scheduled_days", "activation", "waking_tag", "waking_tag_at",
    "utility_score", "emotional_valence", "flashbulb", "temporal_level", "summary_parent_id", "scope",
    "memory_system",
)  # fmt: skip
"""Columns without a field of ours: they are kept in the metadata."""


def check_fields(world: World, row: Mapping[str, object]) -> None:
    """Every column of a row is in the memory, in a field or in its metadata."""
    shown = world.get(str(row["id"]))
    kept = shown["metadata"].get("imported", {})
    for name, value in row.items():
        if name in SHOWN and not (name == "learning_state" and value == "learning"):
            assert same(value, shown[SHOWN[name]], name), name
        elif name == "tags":
            assert shown["tags"] == ["drink", "ada"]
        elif name == "retention_strength":
            assert kept.get(name, shown["retentionStrength"]) == pytest.approx(value, abs=5e-3)
        elif name != "id":
            assert kept[name] == value, name
    assert set(row) <= {*SHOWN, *KEPT, "id", "tags", "retention_strength"}


@pytest.mark.parametrize("backend", ["sqlite", "memory"])
def test_every_field_of_a_v11_database_is_accounted_for(tmp_path: Path, backend: str) -> None:
    source = tmp_path / "vestige.db"
    build(source, 11, ROWS)
    before = hashlib.sha256(source.read_bytes()).digest()

    settings: dict[str, Any] = {"storage.backend": backend}
    with open_world(tmp_path / "data", **settings) as world:
        done = imported(world, source)

        for row in NODES:
            check_fields(world, row)
        check_links(world)
        check_intentions(world)
    assert hashlib.sha256(source.read_bytes()).digest() == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("vestige")] == ["vestige.db"]
    for kind, table in (("memory", "knowledge_nodes"), ("connection", "memory_connections"),
                        ("intention", "intentions"), ("insight", "insights")):  # fmt: skip
        tally = done["byKind"][kind]
        assert tally["read"] == len(ROWS[table]) == tally["imported"] + tally["present"] + tally["left"]
    assert done["byKind"]["memory"]["left"] == len(LEFT)
    assert done["memoriesImported"] == len(NODES) + len(AWKWARD) - len(LEFT)
    assert done["byKind"]["memory_access_log"]["left"] == 5
    assert sum(one["count"] for one in done["reasons"]) == done["left"]


def check_links(world: World) -> None:
    edges = world.app.engine.store.edges([TEA, PORT, OLD, HUGE], access=EVERYTHING)
    assert {(edge.source_id, edge.target_id, edge.kind, edge.weight, edge.created_at) for edge in edges} == {
        (TEA, PORT, "semantic", 0.8, moment(EDGES[0]["created_at"])),
        (PORT, OLD, "causal", 0.5, moment(EDGES[1]["created_at"])),
        (OLD, TEA, "shared_concepts", 0.4, moment(EDGES[2]["created_at"])),
        (HUGE, TEA, "semantic", 0.3, moment(EDGES[3]["created_at"])),
    }


def check_intentions(world: World) -> None:
    listed = world.call("intention", action="list", filter_status="all", limit=100)["intentions"]
    found = {one["id"]: one for one in listed}
    assert set(found) == {str(row["id"]) for row in INTENTIONS} - {"i-old", "i-broken"}
    assert found["i-time"]["trigger"]["at"].startswith("2026-03-05T10:00:00")
    assert found["i-time"]["priority"] == 3
    assert found["i-time"]["deadline"].startswith("2026-03-06T10:00:00")
    for words in ("Water the plants", "The fern first", "home", TEA):
        assert words in found["i-time"]["description"]
    assert found["i-minutes"]["nextAt"].startswith("2026-03-01T10:30:00")
    context = {"type": "context", "codebase": "vestige", "filePattern": "*parser*"}
    assert found["i-context"]["trigger"] == context
    assert (found["i-triggered"]["reminders"], found["i-triggered"]["dueAt"][:10]) == (2, "2026-02-27")
    assert found["i-event"]["trigger"] == {"type": "event", "condition": "release published"}
    assert "weekly" in found["i-recurring"]["description"]
    assert {name: one["status"] for name, one in found.items()} == {
        "i-time": "active", "i-minutes": "active", "i-context": "active", "i-event": "active",
        "i-recurring": "active", "i-snoozed": "snoozed", "i-done": "fulfilled", "i-triggered": "triggered",
        "i-expired": "cancelled",
    }  # fmt: skip


def test_what_was_imported_is_there_after_a_restart(tmp_path: Path) -> None:
    build(tmp_path / "old.db", 11, ROWS)
    with open_world(tmp_path / "data") as world:
        imported(world, tmp_path / "old.db")

    with open_world(tmp_path / "data") as world:
        for row in NODES:
            check_fields(world, row)
        check_links(world)
        check_intentions(world)
        registry.operations["rebuild"].call(Call(engine=world.app.engine), {"strengths": True})
        check_fields(world, NODES[0])


def test_an_insight_comes_with_its_sources_and_goes_with_them(world: World, tmp_path: Path) -> None:
    build(tmp_path / "old.db", 11, ROWS)
    imported(world, tmp_path / "old.db")

    (found,) = world.call("insights", action="list")["insights"]

    assert (found["insight"], found["source_memories"]) == ("Tea goes with all of it.", [TEA, HUGE])
    world.call("memory", action="purge", id=TEA, confirm=True)
    assert world.call("insights", action="list")["insights"] == []


@pytest.mark.parametrize("version", [1, 3, 5, 8, 11])
def test_every_schema_is_read_and_what_it_lacks_is_just_absent(tmp_path: Path, version: int) -> None:
    build(tmp_path / "old.db", version, ROWS)

    with open_world(tmp_path / "data") as world:
        done = imported(world, tmp_path / "old.db")

        assert done["format"] == "reference"
        assert done["memoriesImported"] == len(NODES) + len(AWKWARD) - len(LEFT)
        assert ("connection" in done["byKind"]) == (version >= 3)
        shown = world.get(TEA)
        assert (shown["stability"], shown["reps"], shown["retrievalStrength"]) == (12.5, 3, 0.61)
        assert shown["timesUseful"] == (4 if version >= 8 else 0)
        assert ("validFrom" in shown) == (version >= 2)
        assert world.get(PORT)["suppressionCount"] == (2 if version >= 10 else 0)


def test_importing_again_adds_nothing(world: World, tmp_path: Path) -> None:
    build(tmp_path / "old.db", 11, ROWS)
    first = imported(world, tmp_path / "old.db")
    position = world.app.engine.store.log(access=EVERYTHING, limit=10_000)[-1].position
    world.clock.advance(days=1)

    again = imported(world, tmp_path / "old.db")

    assert (again["imported"], again["present"], again["left"]) == (0, first["imported"], first["left"])
    assert world.app.engine.store.log(access=EVERYTHING, after=position) == []


def test_what_was_deleted_cut_or_dropped_here_does_not_come_back(world: World, tmp_path: Path) -> None:
    build(tmp_path / "old.db", 11, ROWS)
    imported(world, tmp_path / "old.db")
    world.call("memory", action="purge", id=HUGE, confirm=True)
    world.call("memory", action="unlink", id=PORT, target=OLD)
    world.call("intention", action="delete", id="i-event")

    again = imported(world, tmp_path / "old.db")

    assert again["imported"] == 0
    reasons = {one["what"] for one in again["reasons"]}
    assert {"it was deleted here", "it was cut here", "it was dropped here"} <= reasons


def test_a_dry_run_says_the_same_and_writes_nothing(world: World, tmp_path: Path) -> None:
    build(tmp_path / "old.db", 11, ROWS)

    told = imported(world, tmp_path / "old.db", dry_run=True)

    assert world.app.engine.store.count(Filter(archived=None), access=EVERYTHING) == 0
    assert world.app.engine.store.log(access=EVERYTHING) == []
    done = imported(world, tmp_path / "old.db")
    assert {**told, "dryRun": False, "embedded": done["embedded"]} == done


def test_awkward_rows_are_brought_within_bounds_and_noted(world: World, tmp_path: Path) -> None:
    build(tmp_path / "old.db", 11, ROWS)

    done = imported(world, tmp_path / "old.db")

    assert moment(world.get("future")["createdAt"]) == NOW
    assert 0 < world.get("negative")["stability"] < 0.01
    assert world.get("negative")["metadata"]["imported"]["stability"] == -5.0
    assert world.get("infinite")["retrievalStrength"] == 1.0
    assert moment(world.get("no time")["createdAt"]) == moment(days_ago(30))
    for broken, told in (("tags", "[not json"), ("tagged object", "{not json, either")):
        assert world.get(broken)["tags"] == []
        assert world.get(broken)["metadata"]["imported"]["tags"] == told
    assert "validUntil" not in world.get("backwards")
    noted = {one["what"]: one["count"] for one in done["notes"]}
    assert noted["`created_at` is in the future and was set to now"] == 1
    assert noted["`tags` is not a list of texts"] == 2


def test_strength_fades_on_from_where_it_was(tmp_path: Path) -> None:
    clock = HandClock()
    build(tmp_path / "old.db", 11, {"knowledge_nodes": NODES[:1]})
    with open_world(tmp_path / "data", clock=clock) as world:
        imported(world, tmp_path / "old.db")
        at_first = world.get(TEA)["retrievalStrength"]
        clock.advance(days=30)
        later = world.get(TEA)["retrievalStrength"]

    assert at_first == 0.61
    assert 0.3 < later < 0.61


def test_old_links_do_not_fade_for_the_time_before_they_came(tmp_path: Path) -> None:
    build(tmp_path / "old.db", 11, {"knowledge_nodes": NODES[:2], "memory_connections": EDGES[:1]})
    with open_world(tmp_path / "data") as world:
        imported(world, tmp_path / "old.db")
        world.call("consolidate")
        (edge,) = world.app.engine.store.edges([TEA], access=EVERYTHING)

    assert edge.weight == 0.8


def test_what_is_only_in_the_write_ahead_log_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    build(path, 11, {"knowledge_nodes": NODES[:1]})
    with closing(sqlite3.connect(path)) as running:
        running.execute("PRAGMA journal_mode = WAL")
        running.execute("INSERT INTO knowledge_nodes (id, content) VALUES ('late', 'Written a moment ago.')")
        running.commit()
        files = {name: name.read_bytes() for name in tmp_path.iterdir()}
        with open_world(tmp_path / "data") as world:
            done = imported(world, path)

            assert world.get("late")["content"] == "Written a moment ago."
        assert {name: name.read_bytes() for name in files} == files
    assert done["memoriesImported"] == 2


def test_text_that_is_no_utf8_costs_one_record(world: World, tmp_path: Path) -> None:
    build(tmp_path / "old.db", 11, {"knowledge_nodes": NODES[:1]})
    with closing(sqlite3.connect(tmp_path / "old.db")) as db:
        db.execute("INSERT INTO knowledge_nodes (id, content) VALUES ('bad', CAST(x'ff41' AS TEXT))")
        db.commit()

    done = imported(world, tmp_path / "old.db")

    assert (done["memoriesImported"], done["byKind"]["memory"]["left"]) == (1, 1)
    assert "Unicode" in done["examples"][0]["what"]


def test_a_newer_schema_is_read_as_far_as_it_is_known(world: World, tmp_path: Path) -> None:
    build(tmp_path / "old.db", 11, {"knowledge_nodes": NODES[:1]})
    with closing(sqlite3.connect(tmp_path / "old.db")) as db:
        db.execute("INSERT INTO schema_version VALUES (16, '2026-06-01')")
        db.execute("CREATE TABLE domains (id TEXT)")
        db.execute("INSERT INTO domains VALUES ('d')")
        db.commit()

    done = imported(world, tmp_path / "old.db")

    assert done["memoriesImported"] == 1
    assert any(one["kind"] == "domains" and "came after" in one["what"] for one in done["reasons"])


def test_databases_of_another_kind_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    with open_world(tmp_path / "data") as world:
        world.remember("Ada drinks tea.")
        ours = imported_error(world, tmp_path / "data" / "vestige.db")
        with closing(sqlite3.connect(tmp_path / "other.db")) as db:
            db.execute("CREATE TABLE t (x)")
        other = imported_error(world, tmp_path / "other.db")
        build(tmp_path / "old.db", 11, {"knowledge_nodes": [node(str(n), "x" * 3000) for n in range(50)]})
        whole = (tmp_path / "old.db").read_bytes()
        (tmp_path / "cut.db").write_bytes(whole[: len(whole) // 2])
        cut = imported_error(world, tmp_path / "cut.db")

        assert world.call("system_status")["totalMemories"] == 1
    assert (ours["code"], "restore" in ours["hint"]) == ("invalid_input", True)
    assert other["code"] == "invalid_input"
    assert (cut["code"], "recover" in cut["hint"]) == ("invalid_input", True)


def imported_error(world: World, path: Path) -> dict[str, Any]:
    try:
        done = imported(world, path)
    except VestigeError as error:
        return error.value()
    raise AssertionError(f"{path} was imported: {done}")
