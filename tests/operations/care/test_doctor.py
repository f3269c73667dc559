"""`doctor` on whole stores: what is well has no findings, what is derived is mended, the rest is told."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from testbed.postgres_server import Server
from testbed.world import World, on_postgres, open_world
from tests.store.support.postgres_stores import query
from vestige.core.errors import Forbidden, StoreCorrupt
from vestige.core.models import EVERYTHING, Strength
from vestige.engine.care.doctor import CHECKS, doctor
from vestige.engine.context import Call
from vestige.operations.care.doctor import render_doctor, view
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import unmarked
from vestige.store.contract.store import MemoryStore

NAMES = [check.name for check in CHECKS]


def live(world: World) -> None:
    """Use everything that leaves something behind."""
    decided = world.remember("We deploy with Ansible.", tags=["ops", "deploy"], source="wiki")
    world.remember("The staging database is PostgreSQL 16.", node_type="fact")
    world.remember("Actually, the staging database is PostgreSQL 17.")
    odd = world.remember("The office plant is called Fern.")
    gone = world.remember("A line that will be purged.")
    for number in range(6):
        world.remember(f"Deploy number {number} went to region eu-{number}.", tags=["deploy"])
    world.clock.advance(days=1)
    world.find("how do we deploy")
    world.call("memory", action="promote", id=decided)
    world.call("memory", action="demote", id=odd)
    world.call("memory", action="edit", id=decided, content="We deploy with Ansible and Terraform.")
    world.call("memory", action="tag", id=decided, add=["terraform"])
    world.call("memory", action="link", id=decided, target=odd)
    world.call("memory", action="pin", id=decided)
    world.call("suppress", id=odd)
    world.call(
        "intention", action="set", description="Rotate the keys", trigger={"type": "time", "in_minutes": 5}
    )
    world.call("memory", action="purge", id=gone, confirm=True)
    world.clock.advance(days=9)
    world.call("dream")
    world.call("consolidate")
    world.app.settle()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def lived(folder: Path) -> Iterator[World]:
    """A store on disk in which a lot has happened."""
    with open_world(folder) as opened:
        live(opened)
        yield opened


def looked(world: World, **arguments: Any) -> dict[str, Any]:
    return world.call("doctor", **arguments)


def named(answer: dict[str, Any]) -> list[tuple[str, str, str | None, bool]]:
    return [(one["check"], one["severity"], one.get("repair"), one["repaired"]) for one in answer["findings"]]


def broken(folder: Path, sql: str) -> None:
    with closing(sqlite3.connect(folder / "vestige.db")) as db:
        db.executescript(sql)


def canonical(store: MemoryStore) -> list[Any]:
    return [life for lives in store.histories(access=EVERYTHING) for life in lives]


def strengths(store: MemoryStore) -> list[Strength]:
    return [record.strength for records in store.stream(access=EVERYTHING) for record in records]


def test_a_store_that_was_used_in_every_way_is_well(world: World) -> None:
    live(world)
    answer = looked(world, deep=True)
    assert answer["findings"] == []
    assert answer["status"] == "ok"
    assert answer["message"] == "No problems left."
    assert answer["checked"] == NAMES
    assert {"python", "vestige"} <= answer["versions"].keys()


def test_of_a_file_the_version_of_sqlite_is_told(folder: Path) -> None:
    with open_world(folder) as world:
        assert sorted(looked(world)["versions"]) == ["python", "sqlite", "vestige"]


@pytest.mark.slow
def test_on_a_server_its_version_and_that_of_its_vectors_are_told(
    postgres_server: Server, tmp_path: Path
) -> None:
    url = postgres_server.new_database()
    with open_world(tmp_path, **on_postgres(url)) as world:
        versions = looked(world)["versions"]
    postgres_server.drop(url)
    assert sorted(versions) == ["pgvector", "postgresql", "python", "vestige"]
    assert all(version[0].isdigit() for version in versions.values())


def test_a_file_of_settings_with_a_password_that_others_may_read_is_a_warning(folder: Path) -> None:
    folder.mkdir()
    file = folder / "vestige.toml"
    file.write_text('[storage.postgres]\nurl = "postgresql://ada:hunter2@db/x"\n', encoding="utf-8")
    file.chmod(0o644)
    with open_world(folder) as world:
        found = [one for one in looked(world)["findings"] if one["check"] == "settings"]
    assert [one["severity"] for one in found] == ["warning"]
    assert f"chmod 600 {file}" in found[0]["message"]
    assert "hunter2" not in str(found)


def test_a_new_store_is_well(world: World) -> None:
    assert looked(world)["status"] == "ok"


def test_a_store_is_well_after_a_restart_and_after_an_import(
    lived: World, folder: Path, tmp_path: Path
) -> None:
    exported = lived.call("export", format="portable")["path"]
    clock = lived.clock  # ids go on: two installations never share one
    with open_world(tmp_path / "other", clock=clock) as other:
        other.remember("Something that was here before.")
        (tmp_path / "other" / "exports").mkdir(exist_ok=True)
        target = tmp_path / "other" / "exports" / "brought.jsonl"
        target.write_bytes(Path(exported).read_bytes())
        other.call("import", path="brought.jsonl")
        assert looked(other)["findings"] == []
    with open_world(tmp_path / "other", clock=clock) as again:
        assert looked(again, deep=True)["findings"] == []


def test_looking_changes_nothing(lived: World) -> None:
    before = canonical(lived.app.engine.store)
    looked(lived, deep=True)
    assert canonical(lived.app.engine.store) == before


DERIVED = {
    "strengths": (
        "UPDATE strengths SET stability = stability + 7 WHERE key = (SELECT min(key) FROM strengths)",
        ("strengths", "broken", "strengths"),
    ),
    "a strength that is gone": (
        "DELETE FROM strengths WHERE key = (SELECT min(key) FROM strengths)",
        ("missing rows", "broken", "strengths"),
    ),
    "an edge that is gone": (
        "DELETE FROM edges WHERE source = (SELECT min(source) FROM edges)",
        ("edges", "broken", "edges"),
    ),
    "an edge that is heavier": ("UPDATE edges SET weight = 0.123", ("edges", "broken", "edges")),
    "the curve": ("UPDATE curve SET w20 = 0.3", ("curve", "broken", "curve")),
    "words": (
        "UPDATE words SET terms = 'x' WHERE rowid = (SELECT min(key) FROM memories)",
        ("texts", "broken", "words"),
    ),
    "the index of words": ("DELETE FROM words_data WHERE id > 10", ("word index", "broken", "words")),
    "vectors that are gone": (
        "DELETE FROM token_bits; DELETE FROM vectors",
        ("coverage", "warning", "embedding"),
    ),
    "token bits that are gone": (
        "DELETE FROM token_bits WHERE key = (SELECT min(key) FROM token_bits)",
        ("coverage", "warning", "embedding"),
    ),
    "all token bits": ("DELETE FROM token_bits", ("coverage", "warning", "embedding")),
}


@pytest.mark.parametrize("name", DERIVED)
def test_what_is_derived_is_seen_mended_and_then_well(lived: World, folder: Path, name: str) -> None:
    sql, expected = DERIVED[name]
    told = canonical(lived.app.engine.store)
    broken(folder, sql)
    assert named(looked(lived)) == [(*expected, False)]
    mended = looked(lived, repair=True)
    assert named(mended) == [(*expected, True)]
    assert mended["status"] == "ok"
    assert looked(lived)["findings"] == []
    assert canonical(lived.app.engine.store) == told


def test_vectors_of_another_text_are_seen_as_such_and_as_missing_and_made_again(
    lived: World, folder: Path
) -> None:
    told = canonical(lived.app.engine.store)
    broken(folder, "UPDATE vectors SET text_hash = 'x' WHERE key = (SELECT min(key) FROM vectors)")
    expected = [("vectors", "broken", "vectors"), ("coverage", "warning", "embedding")]
    assert named(looked(lived)) == [(*one, False) for one in expected]
    mended = looked(lived, repair=True)
    assert named(mended) == [(*one, True) for one in expected]
    assert mended["status"] == "ok"
    assert looked(lived)["findings"] == []
    assert canonical(lived.app.engine.store) == told


DAMAGED = "UPDATE memories SET {} WHERE key = (SELECT min(key) FROM memories)"


@pytest.mark.parametrize(
    ("column", "value"), [("metadata", "{broken"), ("tags", "x"), ("valid_until", "soon"), ("created_at", "")]
)
def test_a_value_that_cannot_be_read_is_told_with_its_memory_and_its_column(
    folder: Path, column: str, value: str
) -> None:
    with open_world(folder) as world:
        memory_id = world.remember("The office plant is called Fern.")
        world.remember("We deploy with Ansible.")
        broken(folder, DAMAGED.format(f"{column} = '{value}'"))
        answer = looked(world)
    (found,) = [one for one in answer["findings"] if one["check"] == "values"]
    assert found["ids"] == [memory_id]
    assert column in found["message"]
    assert "vestige restore FILE" in answer["message"]
    assert "vestige migrate --from sqlite" in answer["message"]


@pytest.mark.slow
def test_on_a_server_no_way_is_told_that_only_files_have(postgres_server: Server, tmp_path: Path) -> None:
    url = postgres_server.new_database()
    with open_world(tmp_path, **on_postgres(url)) as world:
        memory_id = world.remember("The office plant is called Fern.")
        query(url, DAMAGED.format("metadata = '{broken'"))
        answer = looked(world)
    postgres_server.drop(url)
    assert [one["ids"] for one in answer["findings"] if one["check"] == "values"] == [[memory_id]]
    assert "vestige restore" not in answer["message"]
    assert "vestige migrate --from postgres --to PATH" in answer["message"]


LOSE_EVIDENCE = (
    "DELETE FROM events WHERE position = (SELECT min(position) FROM events WHERE kind = 'memory.remarked')"
)
CANONICAL = {
    "a version without its event": (
        "UPDATE events SET kind = 'memory.state', payload = json_object('from', 'active', 'to', 'dormant',"
        " 'reason', 'x') WHERE position = (SELECT min(position) FROM events WHERE kind = 'memory.revised')",
        "history",
    ),
    "an event that is gone": (LOSE_EVIDENCE, "log"),
    "revisions that are gone": ("DELETE FROM revisions", "history"),
}


@pytest.mark.parametrize("name", CANONICAL)
def test_what_is_canonical_is_told_with_what_to_do_and_never_changed(
    lived: World, folder: Path, name: str
) -> None:
    sql, check = CANONICAL[name]
    broken(folder, sql)
    told, kept = canonical(lived.app.engine.store), strengths(lived.app.engine.store)
    answer = looked(lived, repair=True)
    assert check in [one["check"] for one in answer["findings"]]
    assert [one["check"] for one in answer["findings"] if one["repaired"]] == []
    assert answer["status"] == "broken"
    assert strengths(lived.app.engine.store) == kept
    assert "vestige restore FILE" in answer["message"]
    assert canonical(lived.app.engine.store) == told


@pytest.mark.parametrize("deep", [False, True])
def test_a_memory_that_is_lost_stays_told_when_what_it_left_is_cleared_up(
    lived: World, folder: Path, deep: bool
) -> None:
    lost = lived.remember("A line that another program will lose.")
    broken(folder, f"DELETE FROM memories WHERE id = '{lost}'")
    answer = looked(lived, repair=True, deep=deep)
    assert {one["check"] for one in answer["findings"] if one["repaired"]} == {"references", "strays"}
    (left,) = [one for one in answer["findings"] if not one["repaired"]]
    assert (left["check"], left["severity"], left["ids"]) == ("memories", "broken", [lost])
    assert answer["status"] == "broken"
    assert "Restore a backup" in left["message"]
    assert named(looked(lived, repair=True, deep=deep)) == [("memories", "broken", None, False)]


def test_rebuilding_the_words_mends_an_index_that_no_search_can_read(lived: World, folder: Path) -> None:
    before = lived.find("Ansible")
    broken(folder, "DELETE FROM words_data WHERE id > 10")
    with pytest.raises(StoreCorrupt):
        lived.find("playbooks")
    lived.app.run(registry.operations["rebuild"], {"words": True}, lambda *_: None)
    assert lived.find("Ansible") == before
    assert looked(lived)["findings"] == []


def test_nothing_is_derived_from_a_log_that_is_not_whole(lived: World, folder: Path) -> None:
    broken(folder, LOSE_EVIDENCE)
    answer = looked(lived, repair=True)
    assert named(answer) == [("log", "broken", None, False), ("strengths", "broken", "strengths", False)]
    assert "Data derived from broken records was left unchanged." in answer["message"]


def test_a_document_that_cites_what_is_not_there_is_told(lived: World, folder: Path) -> None:
    broken(
        folder,
        "INSERT INTO documents (kind, id, scope, version, created_at, updated_at, cites, body, clock, node)"
        " SELECT 'note', 'x', '/', 1, created_at, updated_at, '[\"nobody\"]', '{}', clock, node"
        " FROM documents LIMIT 1",
    )
    (found,) = looked(lived)["findings"]
    assert (found["check"], found["severity"], found["ids"]) == ("documents", "warning", ["nobody"])


def test_vectors_of_another_model_are_told(lived: World, folder: Path) -> None:
    broken(folder, "UPDATE profiles SET signature = json_set(signature, '$.revision', 'other')")
    (found,) = looked(lived)["findings"]
    assert (found["check"], found["severity"]) == ("model", "warning")
    assert "--reembed" in found["message"]


def test_much_to_lose_and_no_backup_is_told(lived: World) -> None:
    for number in range(100):
        lived.remember(f"Line {number} of a long list, about item {number * 37}.")
    (found,) = looked(lived)["findings"]
    assert found["check"] == "backup"
    assert "vestige backup" in found["message"]
    lived.call("backup")
    assert looked(lived)["findings"] == []


def test_stored_values_that_cannot_be_read_are_findings_not_errors(lived: World, folder: Path) -> None:
    broken(folder, "UPDATE memories SET created_at = 'never' WHERE key = (SELECT min(key) FROM memories)")
    answer = looked(lived)
    assert answer["status"] == "broken"
    assert {"history", "texts"} <= {one["check"] for one in answer["findings"]}


def test_the_exit_code_and_the_words_follow_from_what_is_left(lived: World, folder: Path) -> None:
    call = Call(engine=lived.app.engine)
    well = view(doctor(call))
    assert (well.exit_code, unmarked(render_doctor(well)).splitlines()[-1]) == (0, "No problems left.")
    broken(folder, "UPDATE curve SET w20 = 0.3")
    ill = view(doctor(call))
    assert ill.exit_code == 1
    assert "broken: curve: The forgetting curve in use is 0.3" in unmarked(render_doctor(ill))
    mended = view(doctor(call, repair=True))
    assert mended.exit_code == 0
    assert "repaired: curve: " in unmarked(render_doctor(mended))


def test_every_check_tells_how_far_it_is(lived: World) -> None:
    heard: list[str | None] = []
    doctor(Call(engine=lived.app.engine, progress=lambda done, total, what: heard.append(what)))
    assert [name for name in NAMES if f"Checking the {name}" in heard] == NAMES


def test_it_is_for_administrators(lived: World) -> None:
    call = Call(engine=lived.app.engine, permissions=frozenset({"read", "write"}))
    with pytest.raises(Forbidden):
        registry.operations["doctor"].call(call, {})
