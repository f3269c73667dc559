"""Deleting for good: no text stays behind unsaid, and what the deleted memory had ended lives again."""

from pathlib import Path
from typing import Any

import pytest

from testbed.world import HandClock, World, open_world
from vestige.core.events import MemoryDeleted

SHORT = "The harbour database is backed up every night."
LONG = "The harbour database is backed up every night. Backups are kept for a month."
OTHER = "Every night the harbour database is backed up."
QUERY = "harbour database backup"


def keep(world: World, content: str) -> str:
    return world.remember(content, force_create=True)


def merge(world: World, *ids: str) -> str:
    planned = world.call("dedup", action="plan", ids=list(ids))["planId"]
    return str(world.call("dedup", action="apply", ids=list(ids), plan_id=planned)["node"]["id"])


def delete(world: World, memory_id: str, **arguments: Any) -> dict[str, Any]:
    return world.call("memory", action="delete", id=memory_id, **arguments)


def known(world: World) -> set[str]:
    return {node["id"] for node in world.call("memory", action="list", limit=200)["results"]}


@pytest.fixture
def nested(world: World) -> dict[str, str]:
    """A merge of a merge: `outer` is made of `inner` (of `short` and `long`) and `other`."""
    ids = {"short": keep(world, SHORT), "long": keep(world, LONG), "other": keep(world, OTHER)}
    ids["inner"] = merge(world, ids["short"], ids["long"])
    ids["outer"] = merge(world, ids["inner"], ids["other"])
    return ids


def test_deleting_a_part_tells_which_merges_still_hold_its_words(
    world: World, nested: dict[str, str]
) -> None:
    answer = delete(world, nested["short"])

    assert answer["stillIn"] == [nested["inner"], nested["outer"]]
    assert f"still in {nested['inner']}, {nested['outer']}" in answer["message"]
    assert world.find(QUERY) == [LONG]


def test_a_part_is_deleted_with_its_merges_and_the_other_parts_live_again(
    world: World, nested: dict[str, str]
) -> None:
    world.heard.clear()

    answer = delete(world, nested["short"], with_merges=True)

    assert set(answer["alsoDeleted"]) == {nested["inner"], nested["outer"]}
    assert set(answer["revived"]) == {nested["long"], nested["other"]}
    assert answer["stillIn"] == []
    assert set(world.find(QUERY)) == {LONG, OTHER}
    assert known(world) == {nested["long"], nested["other"]}
    deleted = {one.id for one in world.heard if isinstance(one, MemoryDeleted)}
    assert deleted == {nested["short"], nested["inner"], nested["outer"]}


def test_deleting_every_memory_it_names_leaves_nothing(world: World) -> None:
    one, other = keep(world, SHORT), keep(world, LONG)
    merged = merge(world, one, other)

    assert delete(world, one)["stillIn"] == [merged]
    assert delete(world, other)["stillIn"] == [merged]
    assert delete(world, merged)["stillIn"] == []

    assert world.find(QUERY, include_expired=True) == []
    assert known(world) == set()


def test_an_undone_merge_still_holds_the_words_of_its_parts(world: World) -> None:
    one, other = keep(world, SHORT), keep(world, LONG)
    merged = merge(world, one, other)
    world.call("dedup", action="undo", id=merged)

    assert delete(world, one)["stillIn"] == [merged]
    assert delete(world, merged)["stillIn"] == [other]


def test_deleting_a_merge_tells_of_its_parts_and_deletes_them_on_ones_word(
    world: World, nested: dict[str, str]
) -> None:
    answer = delete(world, nested["outer"])
    assert set(answer["revived"]) == {nested["inner"], nested["other"]}
    assert set(answer["stillIn"]) == {nested[name] for name in ("inner", "other", "short", "long")}
    assert "True again" in answer["message"]

    answer = delete(world, nested["inner"], with_parts=True)

    assert set(answer["alsoDeleted"]) == {nested["short"], nested["long"]}
    assert (answer["revived"], answer["stillIn"]) == ([], [])
    assert world.find(QUERY) == [OTHER]


def test_the_parts_of_a_deleted_inner_merge_belong_to_the_outer_one(
    world: World, nested: dict[str, str]
) -> None:
    first = delete(world, nested["inner"])
    assert (first["revived"], nested["outer"] in first["stillIn"]) == ([], True)
    assert world.get(nested["short"])["supersededBy"] == nested["outer"]

    assert delete(world, nested["short"])["stillIn"] == [nested["outer"]]
    assert set(delete(world, nested["outer"])["revived"]) == {nested["long"], nested["other"]}
    assert set(world.find(QUERY)) == {LONG, OTHER}


def test_a_fact_that_was_handed_on_lives_again_when_the_last_correction_goes(world: World) -> None:
    ids = []
    for version in (14, 15, 16):
        ids.append(world.remember(f"The service runs on PostgreSQL {version}."))
        world.clock.advance(days=1)
    first, second, third = ids
    assert world.get(first)["supersededBy"] == second

    assert delete(world, second)["revived"] == []
    assert delete(world, third)["revived"] == [first]

    assert world.find("PostgreSQL") == ["The service runs on PostgreSQL 14."]


def test_a_pinned_memory_is_not_deleted_along(world: World) -> None:
    one, other = keep(world, SHORT), keep(world, LONG)
    merged = merge(world, one, other)
    world.call("memory", action="pin", id=merged)

    refused = world.refused("memory", action="delete", id=one, with_merges=True)

    assert (refused["code"], refused["details"]) == ("conflict", {"id": merged})
    assert known(world) == {one, other, merged}
    delete(world, one, with_merges=True, even_pinned=True)
    assert known(world) == {other}


def test_without_merges_nothing_else_is_named(world: World) -> None:
    one = keep(world, SHORT)
    keep(world, LONG)

    answer = delete(world, one, with_merges=True, with_parts=True)

    assert (answer["revived"], answer["stillIn"], "alsoDeleted" in answer) == ([], [], False)
    assert answer["message"] == f"Deleted {one}."


def test_what_was_deleted_along_stays_gone_after_a_restart(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path, clock=clock) as world:
        one, other = keep(world, SHORT), keep(world, LONG)
        merge(world, one, other)
        delete(world, one, with_merges=True)
    with open_world(tmp_path, clock=clock) as world:
        assert known(world) == {other}
        assert world.find(QUERY) == [LONG]
