"""The graph around a memory, on every store: who is in it, where each is drawn, and the pictures of it."""

import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from testbed.world import World
from vestige.core.models import Access
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

SVG = "{http://www.w3.org/2000/svg}"
NASTY = "</text><script>alert(1)</script> \"] --> x[`a`] & <b onload='x'> \u202eevil; %%{init}%% end"


def graph(world: World, **given: Any) -> dict[str, Any]:
    return world.call("memory_graph", **given)


def link(world: World, one: str, other: str, **given: Any) -> None:
    world.call("memory", action="link", id=one, target=other, **given)


def labels(answer: dict[str, Any]) -> list[str]:
    return [node["label"] for node in answer["nodes"]]


@pytest.fixture
def row(world: World) -> list[str]:
    """Five memories in a row, each linked to the next."""
    made = [world.remember(f"stop {number}", force_create=True) for number in range(5)]
    for one, other in pairwise(made):
        link(world, one, other, weight=0.5)
    return made


def test_a_graph_goes_as_far_from_its_centre_as_was_asked(world: World, row: list[str]) -> None:
    answer = graph(world, center_id=row[0])

    assert labels(answer) == ["stop 0", "stop 1", "stop 2"]
    assert (answer["center_id"], answer["depth"], answer["nodeCount"], answer["edgeCount"]) == (
        row[0],
        2,
        3,
        2,
    )
    assert [node["isCenter"] for node in answer["nodes"]] == [True, False, False]
    assert answer["edges"][0] == {"source": row[0], "target": row[1], "type": "user_defined", "weight": 0.5}
    assert len(graph(world, center_id=row[0], depth=3)["nodes"]) == 4


def test_a_node_says_what_clients_draw(world: World) -> None:
    memory_id = world.remember("word " * 40, tags=["long"], source="book.txt", author="Ada")

    [node] = graph(world, center_id=memory_id)["nodes"]

    assert (node["x"], node["y"]) == (400.0, 300.0)
    assert len(node["label"]) == 60
    assert (node["type"], node["tags"], node["source"], node["author"]) == (
        "fact",
        ["long"],
        "book.txt",
        "Ada",
    )
    assert node["suppression_count"] == 0
    assert 0.7 < node["retention"] < 0.8


def test_the_strongest_links_are_drawn_when_there_is_not_room_for_all(world: World) -> None:
    centre = world.remember("hub", force_create=True)
    for number in range(6):
        link(world, centre, world.remember(f"leaf {number}", force_create=True), weight=(number + 1) / 10)

    answer = graph(world, center_id=centre, max_nodes=3)

    assert labels(answer) == ["hub", "leaf 5", "leaf 4"]
    assert answer["edgeCount"] == 2


def test_a_graph_of_a_query_begins_with_what_it_finds(world: World, row: list[str]) -> None:
    assert graph(world, query="stop 3")["center_id"] == row[3]
    # Looking at a graph is no use of a memory.
    assert world.get(row[3])["timesRetrieved"] == 0


def test_a_graph_without_arguments_shows_every_connected_part_and_not_the_newest_dot(
    world: World, row: list[str]
) -> None:
    pair = [world.remember(text, force_create=True) for text in ("tea", "coffee")]
    link(world, *pair)
    world.clock.advance(days=1)
    world.remember("The oven is broken.")

    answer = graph(world)
    assert sorted(labels(answer)) == ["coffee", *(f"stop {number}" for number in range(5)), "tea"]
    assert (answer["center_id"], answer["edgeCount"]) == (row[1], 5)
    assert len({(node["x"], node["y"]) for node in answer["nodes"]}) == 7
    small = graph(world, max_nodes=3)
    assert (small["nodeCount"], small["edgeCount"]) == (3, 2)
    assert len(labels(graph(world, max_nodes=6))) == 5  # half of an island of two would be a dot


def test_a_graph_without_links_shows_the_newest_memories(world: World) -> None:
    for text in ("tea", "coffee", "milk"):
        world.remember(text, force_create=True)
        world.clock.advance(days=1)

    assert labels(graph(world, max_nodes=2)) == ["milk", "coffee"]
    operation = registry.operations["memory_graph"]
    shown = operation.render(operation.answer(Call(engine=world.app.engine), {}))
    assert "No memory is linked to another yet" in shown


def test_what_was_suppressed_is_drawn_only_as_the_centre(world: World, row: list[str]) -> None:
    world.call("suppress", id=row[1])

    assert labels(graph(world, center_id=row[0])) == ["stop 0"]
    answer = graph(world, center_id=row[1], depth=1)
    assert labels(answer) == ["stop 1", "stop 0", "stop 2"]
    assert answer["nodes"][0]["suppression_count"] == 1
    assert answer["nodes"][0]["suppressed_at"]


def test_a_scope_keeps_others_out(world: World) -> None:
    here = world.remember("Ada", scope="/project/here")
    there = world.remember("Bo", scope="/project/there")
    link(world, here, there)

    assert labels(graph(world, center_id=here)) == ["Ada", "Bo"]
    assert labels(graph(world, center_id=here, scope="/project/here")) == ["Ada"]
    assert labels(graph(world, scope="/project/there")) == ["Bo"]
    call = Call(engine=world.app.engine, scope="/project/here")
    assert sorted(labels(registry.operations["memory_graph"].call(call, {}))) == ["Ada", "Bo"]
    call = Call(engine=world.app.engine, access=Access(scopes=("/project/here",)))
    assert labels(registry.operations["memory_graph"].call(call, {"center_id": here})) == ["Ada"]
    assert labels(registry.operations["memory_graph"].call(call, {})) == ["Ada"]


def test_an_empty_memory_has_an_empty_graph(world: World) -> None:
    answer = graph(world, format="svg")

    assert (answer["nodes"], answer["edges"], answer["nodeCount"]) == ([], [], 0)
    assert "center_id" not in answer
    operation = registry.operations["memory_graph"]
    shown = operation.render(operation.answer(Call(engine=world.app.engine), {}))
    assert shown == "No memories here yet."


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"center_id": "nobody"}, "not_found"),
        ({"query": "zebra crossing quagga"}, "not_found"),
        ({"query": "   "}, "invalid_input"),
        ({"query": "stop", "center_id": "stop"}, "invalid_input"),
        ({"depth": 0}, "invalid_input"),
        ({"depth": 4}, "invalid_input"),
        ({"max_nodes": 201}, "invalid_input"),
        ({"format": "png"}, "invalid_input"),
        ({"scope": "/nowhere"}, "not_found"),
    ],
)
def test_a_graph_that_cannot_be_drawn_is_refused(world: World, given: dict[str, Any], code: str) -> None:
    assert world.refused("memory_graph", **given)["code"] == code


# -- pictures ----------------------------------------------------------------------------------------


@pytest.fixture
def nasty(world: World) -> World:
    """Two linked memories whose texts would like to be obeyed."""
    link(world, world.user_remembers(NASTY, force_create=True), world.remember("plain", force_create=True))
    return world


def test_a_picture_shows_every_memory_and_link_and_obeys_no_text(nasty: World) -> None:
    answer = graph(nasty, format="svg", query="plain")

    root = ET.fromstring(answer["drawing"])
    assert {element.tag.removeprefix(SVG) for element in root.iter()} == {
        "svg", "title", "line", "g", "circle", "text",
    }  # fmt: skip
    assert len(root.findall(f"{SVG}line")) == 1
    assert [text.text for text in root.iter(f"{SVG}text")] == ["plain", "</text><script>alert(1)…"]
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not {name for name in attributes if name.startswith("on") or "href" in name}


def test_a_control_character_does_not_break_a_picture(world: World) -> None:
    centre = world.remember("bell \x07 and escape \x1b[31m", force_create=True)

    drawn = graph(world, center_id=centre, format="svg")["drawing"]

    assert "bell" in str(ET.fromstring(drawn).find(f".//{SVG}text").text)  # type: ignore[union-attr]  # asserts it is there


def test_mermaid_gets_plain_words_and_number_codes_only(nasty: World) -> None:
    drawn = graph(nasty, format="mermaid", query="plain")["drawing"]

    lines = drawn.splitlines()
    assert lines[:2] == ["graph LR", '  n0(("plain"))']
    assert re.fullmatch(r'  n1\["[\w ,#;]+"\]', lines[2])
    assert lines[3:] == ['  n1 -->|"user#95;defined"| n0']


def test_people_see_the_picture_they_asked_for_or_a_table(world: World, row: list[str]) -> None:
    operation = registry.operations["memory_graph"]
    call = Call(engine=world.app.engine)

    def shown(**given: Any) -> str:
        return operation.render(operation.answer(call, {"center_id": row[2], "depth": 1, **given}))

    assert shown(format="svg").startswith("<svg")
    assert shown(format="mermaid").startswith("graph LR")
    assert "stop 2" in shown().splitlines()[2]
    assert shown().endswith("3 memories, 2 links.")
