"""How memories are connected, on every store: links made by hand, associations, chains and bridges."""

from itertools import pairwise
from typing import Any

import pytest

from testbed.world import World
from vestige.core.events import ConnectionDiscovered
from vestige.core.models import Access
from vestige.engine.context import Call
from vestige.operations.memory.connections import Chain, render_chain
from vestige.operations.registry.groups import registry

PEOPLE = ("Ada", "Bo", "Cleo", "Dan", "Eve")


@pytest.fixture
def people(world: World) -> dict[str, str]:
    """Five memories without any link, by their first letter."""
    return {name[0]: world.remember(name, force_create=True, source=f"{name}.txt") for name in PEOPLE}


def link(world: World, one: str, other: str, **given: Any) -> dict[str, Any]:
    return world.call("memory", action="link", id=one, target=other, **given)


def explore(world: World, action: str, start: str, **given: Any) -> dict[str, Any]:
    return world.call("explore_connections", action=action, **{"from": start}, **given)


def chain(world: World, one: str, other: str, **given: Any) -> list[str]:
    """The ways from one memory to another, by the first letters on them."""
    answer = explore(world, "chain", one, to=other, **given)
    letter = {memory["id"]: memory["preview"][0] for memory in answer["memories"]}
    return ["".join(letter[step] for step in path["path"]) for path in answer["paths"]]


# -- links by hand -----------------------------------------------------------------------------------


def test_a_link_made_by_hand_is_there_and_told_once(world: World, people: dict[str, str]) -> None:
    made = link(world, people["A"], people["B"], type="causal", weight=0.5)

    assert made["changed"]
    assert made["edge"] == {"source": people["A"], "target": people["B"], "type": "causal", "weight": 0.5}
    assert world.call("memory", action="get", id=people["B"])["edges"] == [made["edge"]]
    assert not link(world, people["A"], people["B"], type="causal", weight=0.5)["changed"]
    assert link(world, people["A"], people["B"], type="causal", weight=0.7)["edge"]["weight"] == 0.7
    assert len([one for one in world.heard if isinstance(one, ConnectionDiscovered)]) == 1


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"target": "nobody"}, "not_found"),
        ({"weight": 0}, "invalid_input"),
        ({"weight": 1.5}, "invalid_input"),
        ({"type": "supersedes"}, "invalid_input"),
        ({"type": "semantic"}, "invalid_input"),  # it would fade
    ],
)
def test_a_link_that_cannot_be_is_refused_and_nothing_changes(
    world: World, people: dict[str, str], given: dict[str, Any], code: str
) -> None:
    asked = {"id": people["A"], "target": people["B"], **given}

    assert world.refused("memory", action="link", **asked)["code"] == code
    assert explore(world, "associations", people["A"])["total"] == 0


def test_a_memory_is_not_linked_to_itself(world: World, people: dict[str, str]) -> None:
    error = world.refused("memory", action="link", id=people["A"], target=people["A"])

    assert error["code"] == "invalid_input"


def test_cutting_takes_the_links_of_both_directions_or_only_those_of_a_type(
    world: World, people: dict[str, str]
) -> None:
    ada, bo = people["A"], people["B"]
    link(world, ada, bo)
    link(world, bo, ada, type="causal")
    link(world, ada, bo, type="part_of")

    some = world.call("memory", action="unlink", id=bo, target=ada, type="part_of")
    rest = world.call("memory", action="unlink", id=bo, target=ada)
    none = world.call("memory", action="unlink", id=bo, target=ada)

    assert [edge["type"] for edge in some["edges"]] == ["part_of"]
    assert {edge["type"] for edge in rest["edges"]} == {"user_defined", "causal"}
    assert (none["changed"], none["edges"]) == (False, [])
    assert explore(world, "associations", ada)["total"] == 0


def test_what_tells_of_the_past_is_not_cut(world: World) -> None:
    old = world.remember("The harbour office is in Porto.")
    new = world.call("smart_ingest", content="The harbour office is in Lisbon, not in Porto any more.")
    assert new["decision"] == "supersede"

    error = world.refused("memory", action="unlink", id=old, target=new["nodeId"])

    assert (error["code"], error["details"]) == ("invalid_input", {"type": "supersedes"})
    assert world.call("memory", action="get", id=old)["edges"]


# -- associations ------------------------------------------------------------------------------------


def test_associations_are_the_links_of_a_memory_the_strongest_first(
    world: World, people: dict[str, str]
) -> None:
    link(world, people["A"], people["B"], weight=0.4)
    link(world, people["C"], people["A"], type="causal", weight=0.9)
    link(world, people["B"], people["C"])

    answer = explore(world, "associations", people["A"])

    found = [(one["memory"]["preview"], one["type"], one["direction"]) for one in answer["associations"]]
    assert found == [("Cleo", "causal", "incoming"), ("Bo", "user_defined", "outgoing")]
    assert answer["associations"][0]["memory"]["source"] == "Cleo.txt"
    shorter = explore(world, "associations", people["A"], limit=1)
    assert (shorter["total"], len(shorter["associations"])) == (2, 1)


def test_what_was_suppressed_is_no_association_and_no_way(world: World, people: dict[str, str]) -> None:
    link(world, people["A"], people["B"])
    link(world, people["B"], people["C"])
    world.call("suppress", id=people["B"])

    assert explore(world, "associations", people["A"])["total"] == 0
    assert chain(world, people["A"], people["C"]) == []
    # By its id it can still be asked about.
    assert explore(world, "associations", people["B"])["total"] == 2
    assert chain(world, people["A"], people["B"]) == ["AB"]


# -- chains and bridges ------------------------------------------------------------------------------


def test_a_chain_names_every_memory_and_link_on_the_way(world: World, people: dict[str, str]) -> None:
    link(world, people["A"], people["B"], weight=0.9)
    link(world, people["C"], people["B"], type="causal", weight=0.4)

    answer = explore(world, "chain", people["A"], to=people["C"])

    assert (answer["pathsFound"], answer["totalHops"], answer["confidence"]) == (1, 2, 0.324)
    [path] = answer["paths"]
    assert path["path"] == [people["A"], people["B"], people["C"]]
    assert [(step["type"], step["weight"], step["direction"]) for step in path["steps"]] == [
        ("user_defined", 0.9, "outgoing"),
        ("causal", 0.4, "incoming"),
    ]
    assert {memory["source"] for memory in answer["memories"]} == {"Ada.txt", "Bo.txt", "Cleo.txt"}


def test_the_best_ways_come_first_and_a_limit_is_kept(world: World, people: dict[str, str]) -> None:
    link(world, people["A"], people["E"], weight=0.3)
    for between, weight in (("B", 0.9), ("C", 0.8), ("D", 0.7)):
        link(world, people["A"], people[between], weight=weight)
        link(world, people[between], people["E"], weight=weight)

    assert chain(world, people["A"], people["E"]) == ["ABE", "ACE", "ADE", "AE"]
    assert chain(world, people["A"], people["E"], limit=2) == ["ABE", "ACE"]


def test_chains_are_ordered_by_the_confidence_they_show(world: World, people: dict[str, str]) -> None:
    link(world, people["A"], people["E"], weight=0.5)
    for one, other in pairwise("ABCDE"):
        link(world, people[one], people[other], weight=0.85)

    answer = explore(world, "chain", people["A"], to=people["E"])

    shown = [path["confidence"] for path in answer["paths"]]
    assert len(shown) == 2
    assert shown == sorted(shown, reverse=True)
    assert answer["confidence"] == shown[0]


def test_a_link_of_full_weight_is_not_certain(world: World, people: dict[str, str]) -> None:
    link(world, people["A"], people["B"], weight=1.0)

    answer = explore(world, "chain", people["A"], to=people["B"])

    assert answer["confidence"] == answer["paths"][0]["confidence"] == 0.99
    assert "confidence 99 %" in render_chain(Chain.model_validate(answer))


def test_bridges_are_what_lies_between(world: World, people: dict[str, str]) -> None:
    link(world, people["A"], people["B"], weight=0.9)
    link(world, people["B"], people["C"], weight=0.8)
    link(world, people["B"], people["D"], weight=0.8)
    link(world, people["C"], people["E"], weight=0.8)
    link(world, people["D"], people["E"], weight=0.7)

    found = explore(world, "bridges", people["A"], to=people["E"])["bridges"]

    assert [(one["memory"]["preview"], one["paths"]) for one in found] == [("Bo", 2), ("Cleo", 1), ("Dan", 1)]
    assert found[0]["confidence"] == found[1]["confidence"] > found[2]["confidence"]


def test_no_way_is_an_answer_not_an_error(world: World, people: dict[str, str]) -> None:
    answer = explore(world, "chain", people["A"], to=people["B"])

    assert (answer["pathsFound"], answer["paths"]) == (0, [])
    assert "confidence" not in answer
    assert explore(world, "bridges", people["A"], to=people["B"])["bridges"] == []


def test_a_long_row_is_walked_from_both_ends(world: World) -> None:
    row = [world.remember(f"stop {number}", force_create=True) for number in range(8)]
    for one, other in pairwise(row):
        link(world, one, other)

    assert explore(world, "chain", row[0], to=row[6])["totalHops"] == 6
    assert explore(world, "chain", row[0], to=row[7])["totalHops"] == 7


@pytest.mark.parametrize("action", ["chain", "bridges"])
def test_what_cannot_be_connected_is_refused(world: World, people: dict[str, str], action: str) -> None:
    def refused(**given: Any) -> tuple[str, str]:
        error = world.refused("explore_connections", action=action, **given)
        return error["code"], error["message"]

    ada = people["A"]
    assert refused(**{"from": ada}) == ("invalid_input", f"`connections.{action}` needs the argument `to`.")
    assert refused(**{"from": ada, "to": ada})[0] == "invalid_input"
    assert refused(**{"from": ada, "to": "nobody"})[0] == "not_found"
    assert refused(**{"from": "nobody", "to": ada})[0] == "not_found"
    assert refused(**{"from": ada, "to": people["B"], "limit": 0})[0] == "invalid_input"


def test_nobody_is_led_out_of_their_access(world: World) -> None:
    mine = [world.remember(name, scope="/mine") for name in ("Ada", "Bo")]
    other = world.remember("Cleo", scope="/other")
    link(world, mine[0], other)
    link(world, other, mine[1])
    asked = {"from": mine[0], "to": mine[1]}

    def found(access: Access) -> int:
        call = Call(engine=world.app.engine, access=access)
        answer = registry.operations["connections.chain"].call(call, asked)
        return int(answer["pathsFound"])

    assert found(Access()) == 1
    assert found(Access(scopes=("/mine",))) == 0


def test_people_can_read_the_answers(world: World, people: dict[str, str]) -> None:
    link(world, people["A"], people["B"], weight=0.5)
    call = Call(engine=world.app.engine)

    def shown(action: str, **given: Any) -> str:
        operation = registry.operations[f"connections.{action}"]
        return operation.render(operation.answer(call, {"from": people["A"], **given}))

    assert "1 of 1 link" in shown("associations")
    assert "→ user_defined (0.50)" in shown("chain", to=people["B"])
    assert shown("bridges", to=people["B"]) == "No memory connects them."
    assert shown("chain", to=people["C"]) == "No path connects them."
