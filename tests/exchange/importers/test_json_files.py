"""JSON in its many wrappings, and JSON lines: what is a record is taken, what is broken costs only itself."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from testbed.world import World, open_world
from vestige.core.errors import InvalidInput
from vestige.core.models import EVERYTHING
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

IMPORT = registry.operations["import"]
IN_MEMORY: dict[str, Any] = {"storage.backend": "memory"}
RECORDS = [
    {"content": "Ada drinks tea.", "nodeType": "preference", "tags": ["drink"], "source": "chat"},
    {"content": "The parser is in Rust.", "tags": "code, parser"},
]


def imported(world: World, path: Path, **arguments: Any) -> dict[str, Any]:
    return IMPORT.call(Call(engine=world.app.engine, local=True), {"path": str(path), **arguments})


def contents(world: World) -> set[str]:
    return {node["content"] for node in world.call("memory", action="list", limit=100)["results"]}


@pytest.mark.parametrize(
    ("written", "form"),
    [
        (json.dumps(RECORDS), "json"),
        (json.dumps(RECORDS, indent=2), "json"),
        ("[\n" + ",\n".join(map(json.dumps, RECORDS)) + "\n]\n", "json"),
        (json.dumps({"results": RECORDS}), "json"),
        (json.dumps({"results": RECORDS}, indent=1), "json"),
        (json.dumps({"memories": RECORDS}), "json"),
        (json.dumps([{"type": "text", "text": json.dumps({"results": RECORDS})}]), "json"),
        (json.dumps({"content": [{"type": "text", "text": json.dumps(RECORDS)}]}), "json"),
        ("\ufeff" + "\n".join(map(json.dumps, RECORDS)), "jsonl"),
        ("\n\n" + "\r\n".join(map(json.dumps, RECORDS)) + "\n", "jsonl"),
        ("{broken\n" + "\n".join(map(json.dumps, RECORDS)), "jsonl"),
    ],
)
def test_every_wrapping_is_recognised_by_what_is_in_it(tmp_path: Path, written: str, form: str) -> None:
    path = tmp_path / "file.dat"
    path.write_text(written, encoding="utf-8")

    with open_world(tmp_path / "data", **IN_MEMORY) as world:
        done = imported(world, path)

        assert (done["format"], done["memoriesImported"]) == (form, 2)
        assert contents(world) == {"Ada drinks tea.", "The parser is in Rust."}
        (tea,) = world.call("search", query="tea", limit=1, detail_level="full")["results"]
        assert (tea["nodeType"], tea["tags"], tea["source"]) == ("preference", ["drink"], "chat")


def test_our_own_export_comes_back_with_ids_times_and_strength(tmp_path: Path) -> None:
    with open_world(tmp_path / "one") as world:
        tea = world.remember("Ada drinks tea.", tags=["drink"], source="chat")
        world.call("memory", action="promote", id=tea)
        world.clock.advance(days=9)
        for form in ("json", "jsonl"):
            world.call("export", format=form, path=f"all.{form}")
        before = world.get(tea)

        for form in ("json", "jsonl"):
            with open_world(tmp_path / form, clock=world.clock) as other:
                done = imported(other, tmp_path / "one" / "exports" / f"all.{form}")

                assert (done["memoriesImported"], done["notes"]) == (1, [])
                assert other.get(tea) == {**before, "origin": "import"}  # a file can claim any origin


def test_an_export_of_the_reference_system_brings_its_strength(world: World, tmp_path: Path) -> None:
    row = {
        "id": "n-1", "content": "Ada drinks tea.", "nodeType": "fact", "stability": 12.5, "difficulty": 4.25,
        "reps": 3, "lapses": 1, "learningState": "review", "storageStrength": 2.5, "retrievalStrength": 0.61,
        "retentionStrength": 0.502, "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-02T00:00:00Z",
        "lastAccessed": "2026-02-20T00:00:00Z", "nextReview": "2026-03-05T00:00:00Z", "scope": "user",
        "sentimentMagnitude": 0.5, "hasEmbedding": True, "embeddingModel": "nomic",
    }  # fmt: skip
    (tmp_path / "export.json").write_text(json.dumps([row]), encoding="utf-8")

    imported(world, tmp_path / "export.json")

    shown = world.get("n-1")
    carried = ("stability", "difficulty", "reps", "lapses", "learningState", "storageStrength",
               "retrievalStrength", "createdAt", "updatedAt", "lastAccessed", "nextReview")  # fmt: skip
    assert {name: shown[name] for name in carried} == {name: row[name] for name in carried}
    assert shown["retentionStrength"] == pytest.approx(0.502, abs=1e-3)
    assert shown["metadata"] == {"imported": {"sentiment_magnitude": 0.5}}


def test_an_id_that_could_not_be_named_is_replaced_and_kept(world: World, tmp_path: Path) -> None:
    long = "x" * 65
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": long, "content": "Ada."}), encoding="utf-8")

    done = imported(world, tmp_path / "a.jsonl")

    (node,) = world.call("memory", action="list")["results"]
    assert len(node["id"]) == 36
    assert world.get(node["id"])["metadata"]["imported"] == {"id": long}
    assert done["notes"][0]["what"] == "an id of more than 64 characters was replaced"


def test_a_broken_line_costs_only_itself(world: World, tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    lines = [
        b'{"content": "Good."}', b"{", b"[]", b"3", b'{"text": 5}', b'{"content": "\xff"}', b"{}",
        b'{"content": NaN}', b'{"content": "x\\u0000y"}', b'{"text": "Also good."}',
        b'{"content": "\\ud800"}',
    ]  # fmt: skip
    path.write_bytes(b"\n".join(lines))

    done = imported(world, path)

    assert (done["read"], done["imported"], done["left"]) == (len(lines), 2, len(lines) - 2)
    assert contents(world) == {"Good.", "Also good."}
    places = {one["place"]: one["what"] for one in done["examples"]}
    assert places["line 6"] == "the line is not UTF-8"
    assert places["line 5"] == "its content is not text"


def test_a_line_that_is_too_long_costs_only_itself(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vestige.exchange.importers.json_files.MAX_LINE_BYTES", 100)
    path = tmp_path / "lines.jsonl"
    long = json.dumps({"content": "x" * 250})
    path.write_text("\n".join(['{"content": "First."}', long, '{"content": "Last."}']), encoding="utf-8")

    done = imported(world, path)

    assert contents(world) == {"First.", "Last."}
    assert [one["place"] for one in done["examples"]] == ["line 2"]


def test_records_without_ids_are_imported_once(world: World, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"content": "One."}\n{"content": "Two."}\n{"content": "One."}\n', encoding="utf-8")
    first = imported(world, path)
    path.rename(tmp_path / "b.jsonl")
    (one,) = [
        node["id"] for node in world.call("memory", action="list")["results"] if node["content"] == "One."
    ]
    world.call("memory", action="edit", id=one, content="One, reworded.")

    again = imported(world, tmp_path / "b.jsonl")

    assert (first["imported"], first["present"]) == (2, 1)
    assert (again["imported"], again["present"]) == (0, 3)
    assert contents(world) == {"One, reworded.", "Two."}


def test_what_has_no_field_is_kept_in_the_metadata(world: World, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record = {"content": "Hello.", "mood": "calm", "metadata": {"own": 1}, "scope": "/elsewhere",
              "created_at": 1_700_000_000, "tags": ["ok", "", "x" * 2000, 7]}  # fmt: skip
    path.write_text(json.dumps(record), encoding="utf-8")

    done = imported(world, path, scope="/project/a")

    (record_,) = world.app.engine.store.get_many(
        [node["id"] for node in world.call("memory", action="list", scope="/")["results"]], access=EVERYTHING
    )
    memory = record_.memory
    assert memory.scope == "/project/a"
    assert memory.metadata["own"] == 1
    assert memory.metadata["imported"]["mood"] == "calm"
    assert memory.metadata["imported"]["scope"] == "/elsewhere"
    assert memory.created_at.year == 2023
    assert memory.tags == ("ok", "7")
    assert [one["what"] for one in done["notes"]] == [
        "some of `tags` are blank, too long, too many or not text"
    ]


def test_long_texts_are_taken_whole_and_too_long_ones_left(world: World, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        "\n".join(json.dumps({"content": "word " * times}) for times in (20_000, 250_000)), encoding="utf-8"
    )

    done = imported(world, path)

    assert (done["imported"], done["left"]) == (1, 1)
    assert "bytes" in done["examples"][0]["what"]


@pytest.mark.parametrize("written", ["", "   \n", "hello", "{", "[1, 2", "3", '{\n"a": 1}'])
def test_what_is_no_list_of_records_is_refused(world: World, tmp_path: Path, written: str) -> None:
    path = tmp_path / "a.dat"
    path.write_text(written, encoding="utf-8")

    with pytest.raises(InvalidInput, match=re.escape(str(path))):
        imported(world, path)
    assert contents(world) == set()
