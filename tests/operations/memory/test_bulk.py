"""`memory bulk`: a dry run, one change of many memories, what is refused, and the way back."""

from typing import Any

import pytest

from testbed.world import World, open_world
from vestige.core.caller import Caller, Invocation
from vestige.core.errors import Forbidden, NotFound
from vestige.core.events import MemoriesArchived, MemorySuppressed, MemoryUpdated
from vestige.core.models import Access
from vestige.engine.memory import bulk as engine_bulk
from vestige.operations.registry.groups import registry

CHANGES = ("pin", "unpin", "tag", "move", "suppress", "archive")


def bulk(world: World, change: str, **arguments: Any) -> dict[str, Any]:
    return world.call("memory", action="bulk", change=change, **arguments)


def run(world: World, change: str, **arguments: Any) -> dict[str, Any]:
    matched = bulk(world, change, **arguments)["matched"]
    return bulk(world, change, dry_run=False, expected=matched, **arguments)


def undo(world: World, run_id: str) -> dict[str, Any]:
    return world.call("memory", action="bulk_undo", id=run_id)


def listed(world: World, **arguments: Any) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = world.call("memory", action="list", limit=200, **arguments)["results"]
    return nodes


FIELDS = ("pinned", "scope", "suppressionCount", "suppressedAt", "content", "validUntil", "stability")


def state(world: World, ids: list[str]) -> dict[str, list[Any]]:
    """What a bulk change could change of these memories; tags without their order."""
    nodes = {one: world.get(one) for one in ids}
    return {one: [sorted(node["tags"]), *map(node.get, FIELDS)] for one, node in nodes.items()}


@pytest.fixture
def herd(world: World) -> list[str]:
    """Six memories with the tag sheep, the first of them pinned, and two others."""
    ids = [world.remember(f"Sheep number {number} is white.", tags=["sheep"], force_create=True) for number in
           range(6)]  # fmt: skip
    world.call("memory", action="pin", id=ids[0])
    for number in range(2):
        world.remember(f"Goat number {number} is brown.", tags=["goat"], force_create=True)
    return ids


@pytest.mark.parametrize("change", ["pin", "suppress", "archive", "delete"])
def test_a_dry_run_counts_and_changes_nothing(world: World, herd: list[str], change: str) -> None:
    before = listed(world)
    answer = bulk(world, change, tags=["sheep"])
    assert (answer["dryRun"], answer["matched"], answer["changed"]) == (True, 6, 5)
    assert answer["refused"] == ({} if change == "pin" else {"pinned": 1})
    assert answer["unchanged"] == (1 if change == "pin" else 0)
    assert answer["textBytes"] == 5 * len("Sheep number 0 is white.")
    assert {one["id"] for one in answer["sample"]} == set(herd[1:])
    assert listed(world) == before
    assert world.call("memory", action="bulk_runs")["runs"] == []


def test_a_dry_run_counts_what_the_list_counts_for_the_same_filter(world: World, herd: list[str]) -> None:
    world.call("suppress", id=herd[3])
    for filters in (
        {}, {"tags": ["sheep"]}, {"pinned": True}, {"include_suppressed": True}, {"max_retention": 0.1},
        {"recalled": False}, {"recalled": True}, {"include_types": ["fact"]},
        {"created_from": "2020-01-01"}, {"scope": "/nowhere"},
    ):  # fmt: skip
        total = world.call("memory", action="list", limit=1, **filters)["total"]
        assert bulk(world, "pin", **filters)["matched"] == total, filters


def test_a_dry_run_counts_each_link_once(world: World, herd: list[str]) -> None:
    before = bulk(world, "delete", ids=herd[1:3])["links"]
    world.call("memory", action="link", id=herd[1], target=herd[2])
    assert bulk(world, "delete", ids=herd[1:3])["links"] == before + 1


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_made_and_taken_back_exactly(world: World, herd: list[str], change: str) -> None:
    asked: dict[str, dict[str, Any]] = {
        "tag": {"add": ["flock", "sheep"], "remove": ["ram"]},
        "move": {"to": "/project/farm"},
    }
    more = asked.get(change, {})
    if change == "unpin":
        for one in herd[1:3]:
            world.call("memory", action="pin", id=one)
    world.call("memory", action="tag", id=herd[2], add=["flock", "ram"])
    before = state(world, herd)
    done = run(world, change, tags=["sheep"], **more)
    after = state(world, herd)
    assert done["changed"] == {"pin": 5, "unpin": 3, "tag": 6, "move": 6, "suppress": 5, "archive": 5}[change]
    if change == "archive":
        assert {one["id"] for one in listed(world)} & set(herd) == {herd[0]}
    else:
        assert sum(before[one] != after[one] for one in herd) == done["changed"]
    back = undo(world, done["undoId"])
    assert (len(back["restored"]), back["skipped"]) == (done["changed"], 0)
    assert state(world, herd) == before
    assert len(listed(world, tags=["sheep"])) == 6


def test_a_change_that_was_undone_is_not_undone_twice(world: World, herd: list[str]) -> None:
    done = run(world, "pin", ids=herd)
    undo(world, done["undoId"])
    assert world.refused("memory", action="bulk_undo", id=done["undoId"])["code"] == "conflict"
    assert world.refused("memory", action="bulk_undo", id="nothing")["code"] == "not_found"


def test_undo_leaves_alone_what_was_changed_since(world: World, herd: list[str]) -> None:
    tagged = run(world, "tag", ids=herd, add=["flock"])
    world.call("memory", action="tag", id=herd[1], add=["later"])
    world.call("memory", action="delete", id=herd[2])
    hidden = run(world, "suppress", ids=[herd[3], herd[4]])
    world.call("memory", action="promote", id=herd[3])
    back = undo(world, hidden["undoId"])
    assert (back["restored"], back["skipped"]) == ([herd[4]], 1)
    back = undo(world, tagged["undoId"])
    assert (len(back["restored"]), back["skipped"]) == (5, 1)
    assert world.get(herd[1])["tags"] == ["sheep", "later"]


def test_a_suppression_that_is_final_stays(world: World, herd: list[str]) -> None:
    done = run(world, "suppress", ids=herd[1:3])
    world.clock.advance(hours=25)
    assert undo(world, done["undoId"])["skipped"] == 2
    assert world.get(herd[1])["suppressionCount"] == 1


def test_deleting_is_for_good_and_spares_the_pinned(world: World, herd: list[str]) -> None:
    done = run(world, "delete", tags=["sheep"])
    assert (done["changed"], done["refused"], "undoId" in done) == (5, {"pinned": 1}, False)
    assert [one["id"] for one in listed(world, tags=["sheep"])] == [herd[0]]
    assert world.call("memory", action="get_batch", ids=herd[1:])["missing"] == herd[1:]


def test_a_run_refuses_when_more_match_than_were_shown(world: World, herd: list[str]) -> None:
    world.remember("Sheep number 9 is black.", tags=["sheep"], force_create=True)
    error = world.refused("memory", action="bulk", change="delete", tags=["sheep"], dry_run=False, expected=6)
    assert (error["code"], error["details"]) == ("conflict", {"matched": 7, "expected": 6})
    assert len(listed(world, tags=["sheep"])) == 7


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"change": "pin", "dry_run": False}, "expected"),
        ({"change": "tag"}, "add"),
        ({"change": "pin", "add": ["x"]}, "add"),
        ({"change": "pin", "ids": ["a"], "tags": ["sheep"]}, "ids"),
        ({"change": "move"}, "to"),
        ({"change": "pin", "to": "/project/farm"}, "to"),
        ({"change": "melt"}, "change"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(
    world: World, herd: list[str], arguments: dict[str, Any], named: str
) -> None:
    error = world.refused("memory", action="bulk", **arguments)
    assert (error["code"], error["details"]["argument"]) == ("invalid_input", named)


def test_a_large_change_runs_in_portions_and_is_undone_as_one(
    world: World, herd: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_bulk, "PORTION", 2)
    done = run(world, "tag", tags=["sheep"], add=["flock"])
    [listed_run] = world.call("memory", action="bulk_runs")["runs"]
    assert (listed_run["id"], listed_run["memories"], listed_run["change"]) == (done["undoId"], 6, "tag")
    assert len(undo(world, done["undoId"])["restored"]) == 6
    assert "undoneAt" in world.call("memory", action="bulk_runs")["runs"][0]


def test_an_interrupted_run_is_completed_by_another_and_undone(
    world: World, herd: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_bulk, "PORTION", 2)
    portion, left = engine_bulk._change_portion, [True, False]

    def interrupted(*arguments: Any) -> list[str]:
        if not left.pop(0):
            raise KeyboardInterrupt
        return portion(*arguments)

    monkeypatch.setattr(engine_bulk, "_change_portion", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(world, "pin", tags=["sheep"])
    monkeypatch.setattr(engine_bulk, "_change_portion", portion)
    assert len(listed(world, pinned=True)) == 3
    assert run(world, "pin", tags=["sheep"])["changed"] == 3
    second, first = world.call("memory", action="bulk_runs")["runs"]
    for one in (first, second):
        undo(world, one["id"])
    assert [one["id"] for one in listed(world, pinned=True)] == [herd[0]]


def test_a_run_can_be_undone_after_a_restart(tmp_path: Any) -> None:
    with open_world(tmp_path) as world:
        ids = [world.remember(f"Fact {number}.", force_create=True) for number in range(3)]
        done = run(world, "pin", ids=ids)
        clock = world.clock.copy()
    with open_world(tmp_path, clock=clock) as world:
        assert sorted(undo(world, done["undoId"])["restored"]) == sorted(ids)


def test_events_say_what_changed(world: World, herd: list[str]) -> None:
    world.heard.clear()
    run(world, "tag", ids=herd[:2], add=["x"])
    run(world, "suppress", ids=herd[1:3])
    run(world, "archive", ids=herd[3:5])
    assert [
        (type(one), one.id) for one in world.heard if isinstance(one, MemoryUpdated | MemorySuppressed)
    ] == [*((MemoryUpdated, one) for one in herd[:2]), *((MemorySuppressed, one) for one in herd[1:3])]
    assert [set(one.ids) for one in world.heard if isinstance(one, MemoriesArchived)] == [set(herd[3:5])]


def as_caller(world: World, action: str, arguments: dict[str, Any], caller: Caller) -> dict[str, Any]:
    asked = Invocation(name=f"memory.{action}", arguments=arguments, caller=caller, request_id="test")
    return world.app.call_operation(asked)


def as_member(*scopes: str) -> Caller:
    """A caller with access to these scopes only."""
    return Caller(name="test", permissions=frozenset({"read", "write"}), access=Access(scopes=tuple(scopes)))


def test_a_caller_changes_only_what_it_has_access_to(world: World, herd: list[str]) -> None:
    mine = world.remember("The ledger is blue.", scope="/project/a", force_create=True)
    also = world.remember("The ledger is thick.", scope="/project/b/c", force_create=True)
    caller = Caller(
        name="test",
        permissions=frozenset({"read", "write"}),
        access=Access(scopes=("/project/a", "/project/b")),
    )
    arguments: dict[str, Any] = {"change": "pin", "dry_run": False, "expected": 2}
    done = as_caller(world, "bulk", arguments, caller)
    assert done["changed"] == 2
    assert {one["id"] for one in listed(world, pinned=True)} == {herd[0], mine, also}
    assert len(as_caller(world, "bulk_undo", {"id": done["undoId"]}, caller)["restored"]) == 2
    others = Caller(
        name="test", permissions=frozenset({"read", "write"}), access=Access(scopes=("/project/z",))
    )
    assert as_caller(world, "bulk_runs", {}, others)["runs"] == []


def test_a_move_needs_access_to_both_scopes(world: World) -> None:
    mine = world.remember("The ledger is blue.", scope="/project/a", force_create=True)
    also = world.remember("The ledger is thick.", scope="/project/a", force_create=True)
    other = world.remember("The ledger is lost.", scope="/project/c", force_create=True)
    both = as_member("/project/a", "/project/b")
    asked = {"change": "move", "to": "/project/b"}
    for caller in (as_member("/project/a"), as_member("/project/b")):
        outside = {
            **asked,
            "to": "/project/b" if "/project/a" in (caller.access.scopes or ()) else "/project/a",
        }
        with pytest.raises(Forbidden):
            as_caller(world, "bulk", outside, caller)
        with pytest.raises(Forbidden):
            as_caller(world, "bulk", {**outside, "dry_run": False, "expected": 0}, caller)
    assert as_caller(world, "bulk", {**asked, "ids": [other]}, both)["matched"] == 0
    done = as_caller(world, "bulk", {**asked, "dry_run": False, "expected": 2}, both)
    assert [world.get(one)["scope"] for one in (mine, also, other)] == [
        "/project/b", "/project/b", "/project/c",
    ]  # fmt: skip
    as_caller(world, "move", {"id": also, "to": "/project/b/far"}, both)
    back = as_caller(world, "bulk_undo", {"id": done["undoId"]}, both)
    assert (back["restored"], back["skipped"]) == ([mine], 1)
    assert [world.get(one)["scope"] for one in (mine, also)] == ["/project/a", "/project/b/far"]


def test_who_sees_the_new_scope_only_cannot_take_a_move_back(world: World) -> None:
    moved = world.remember("The ledger is blue.", scope="/project/a", force_create=True)
    done = run(world, "move", ids=[moved], to="/project/b")
    with pytest.raises(NotFound):
        as_caller(world, "bulk_undo", {"id": done["undoId"]}, as_member("/project/b"))
    assert world.get(moved)["scope"] == "/project/b"


def test_who_lost_sight_of_what_was_moved_does_not_end_its_undo(world: World) -> None:
    here, there = as_member("/project/a"), as_member("/project/b")
    both = as_member("/project/a", "/project/b")
    ids = [
        world.remember(text, scope="/project/a", force_create=True)
        for text in ("The ledger is blue.", "The ledger is thick.")
    ]
    asked = {"change": "move", "to": "/project/b", "ids": ids, "dry_run": False, "expected": 2}
    done = as_caller(world, "bulk", asked, both)["undoId"]
    as_caller(world, "move", {"id": ids[1], "to": "/project/a"}, both)
    revision = world.get(ids[1])["revision"]

    assert as_caller(world, "bulk_undo", {"id": done}, here)["restored"] == []
    with pytest.raises(NotFound):
        as_caller(world, "bulk_undo", {"id": done}, there)

    assert as_caller(world, "bulk_undo", {"id": done}, both)["restored"] == ids[:1]
    assert {world.get(one)["scope"] for one in ids} == {"/project/a"}
    assert world.get(ids[1])["revision"] == revision


def test_who_may_only_read_changes_nothing(world: World, herd: list[str]) -> None:
    reader = Caller(name="test", permissions=frozenset({"read"}))
    with pytest.raises(Forbidden):
        as_caller(world, "bulk", {"change": "pin"}, reader)


def test_no_change_of_one_memory_needs_a_higher_permission_than_that_of_many() -> None:
    needed = {"memory.pin", "memory.unpin", "memory.tag", "suppress", "gc", "memory.delete", "memory.bulk"}
    assert {registry.operations[one].permission for one in needed} == {"write"}
