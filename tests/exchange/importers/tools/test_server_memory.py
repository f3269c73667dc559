"""The file of the official memory server becomes memories that say whom they are about."""

import json
from pathlib import Path
from typing import Any

from testbed.world import World, open_world
from vestige.core.models import EVERYTHING
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

IMPORT = registry.operations["import"]
LINES: list[dict[str, Any]] = [
    {"type": "relation", "from": "John_Smith", "to": "Acme", "relationType": "works_at"},
    {"type": "entity", "name": "John_Smith", "entityType": "person",
     "observations": ["Speaks fluent Spanish", "Drinks tea"]},
    {"type": "entity", "name": "Acme", "entityType": "organization", "observations": []},
    {"type": "relation", "from": "John_Smith", "to": "Nobody", "relationType": "knows"},
]  # fmt: skip


def imported(world: World, folder: Path, lines: list[dict[str, Any]]) -> dict[str, Any]:
    path = folder / "memory.json"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return IMPORT.call(Call(engine=world.app.engine, local=True), {"path": str(path)})


def test_observations_and_relations_are_found_by_who_they_are_about(tmp_path: Path) -> None:
    with open_world(tmp_path / "data", provider="off") as world:
        done = imported(world, tmp_path, LINES)

        assert (done["format"], done["memoriesImported"], done["left"]) == ("server-memory", 5, 0)
        spanish = "John_Smith (person): Speaks fluent Spanish"
        assert world.find("Which language does John Smith speak?")[0] == spanish
        assert world.find("Where does John Smith work?")[0] == "John_Smith works at Acme"
        assert world.find("Whom does John_Smith know?")[0] == "John_Smith knows Nobody"
        found = world.call("search", query="tea", limit=1, detail_level="full")["results"][0]
    assert found["tags"] == ["John_Smith", "person"]
    assert (found["thread"], found["position"]) == ("server-memory:John_Smith", 2)


def test_a_relation_is_linked_to_both_ends_wherever_it_stands(world: World, tmp_path: Path) -> None:
    imported(world, tmp_path, LINES)

    (sentence,) = [
        node["id"]
        for node in world.call("memory", action="list")["results"]
        if node["content"] == "John_Smith works at Acme"
    ]
    edges = world.app.engine.store.edges([sentence], access=EVERYTHING)
    ends = {world.get(edge.target_id)["content"] for edge in edges}
    assert ends == {"John_Smith (person): Speaks fluent Spanish", "Acme is of the type organization."}


def test_a_file_that_has_grown_brings_only_what_is_new(world: World, tmp_path: Path) -> None:
    imported(world, tmp_path, LINES)
    grown = [*LINES, {"type": "entity", "name": "Acme", "observations": ["Makes anvils"]}]
    grown[1] = {**grown[1], "observations": ["Is tall", "Speaks fluent Spanish", "Drinks tea"]}

    done = imported(world, tmp_path, grown)

    assert (done["memoriesImported"], done["byKind"]["memory"]["present"]) == (2, 5)


def test_lines_that_are_neither_are_left(world: World, tmp_path: Path) -> None:
    odd: list[dict[str, Any]] = [
        {"type": "entity", "name": 5, "observations": []},
        {"type": "relation", "from": "A", "to": "B"},
        {"type": "other"},
        {"type": "entity", "name": "A", "observations": ["", 3, "Good"]},
        {"type": "entity", "name": "B", "observations": "text"},
    ]

    done = imported(world, tmp_path, [*LINES[1:2], *odd])

    assert (done["imported"], done["left"]) == (2 + 1 + 1, 5)
