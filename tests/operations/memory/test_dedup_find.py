"""`find_duplicates` on every store: what says the same is found, and nothing is changed."""

import threading
from pathlib import Path
from typing import Any

import pytest

from testbed.world import World, open_world
from vestige.core.caller import Invocation
from vestige.core.errors import Cancelled
from vestige.engine.memory import duplicates
from vestige.operations.memory.dedup import Duplicates, render_duplicates

TEA = "Ada drinks green tea with honey every single morning."
TEA_TOO = "Ada drinks green tea with honey every single morning at home."
FILLING = (
    "The cafeteria serves soup on rainy days.",
    "Bo keeps a canoe behind the boathouse.",
    "Release notes are written by the product team.",
)


def keep(world: World, content: str, **facts: Any) -> str:
    return world.remember(content, force_create=True, **facts)


def members(answer: dict[str, Any]) -> list[set[str]]:
    return [{member["id"] for member in cluster["members"]} for cluster in answer["clusters"]]


def test_memories_that_say_the_same_are_one_cluster(world: World) -> None:
    for text in FILLING:
        keep(world, text)
    short = keep(world, TEA, tags=["tea"], source="wiki")
    world.clock.advance(days=1)
    long = keep(world, TEA_TOO, tags=["tea"])

    answer = world.call("find_duplicates")

    [cluster] = answer["clusters"]
    assert [member["id"] for member in cluster["members"]] == [long, short]
    assert (cluster["size"], cluster["suggestedAction"]) == (2, "merge")
    anchor, other = cluster["members"]
    assert anchor["similarityToAnchor"] == 1.0
    assert 0.8 <= other["similarityToAnchor"] < 1.0
    assert (other["contentPreview"], other["tags"], other["source"]) == (TEA, ["tea"], "wiki")
    assert 0.8 <= cluster["mergeScore"] <= 1.0
    assert (answer["totalClusters"], answer["memoriesAnalyzed"], answer["scope"]) == (1, 5, "/")
    assert answer["pairsChecked"] >= 1


def test_pages_of_clusters_follow_each_other_and_name_the_total(world: World) -> None:
    for text in (TEA, *FILLING):
        keep(world, text)
        keep(world, text.upper())
    whole = world.call("find_duplicates")

    parts = [world.call("find_duplicates", limit=3, offset=offset) for offset in (0, 3, 6)]

    assert [len(part["clusters"]) for part in parts] == [3, 1, 0]
    assert [(part["offset"], part["totalClusters"]) for part in parts] == [(0, 4), (3, 4), (6, 4)]
    assert [one for part in parts for one in part["clusters"]] == whole["clusters"]


def test_a_scan_is_the_same_question(world: World) -> None:
    keep(world, TEA)
    keep(world, TEA_TOO)

    assert world.call("dedup", action="scan", limit=3) == world.call("find_duplicates", limit=3)


def test_only_identical_texts_are_certain_to_be_the_same(world: World) -> None:
    keep(world, "Ada pairs with Bo on Monday.")
    keep(world, "On Monday Ada pairs with Bo.")

    [cluster] = world.call("find_duplicates", similarity_threshold=0.9)["clusters"]

    assert [member["similarityToAnchor"] for member in cluster["members"]] == [1.0, 0.99]
    assert cluster["mergeScore"] == 0.99


def test_nothing_is_changed_by_looking(world: World) -> None:
    one = keep(world, TEA)
    keep(world, TEA_TOO)
    before = world.get(one)

    world.call("find_duplicates")

    assert world.get(one) == before


def test_what_contradicts_is_never_suggested_for_merging(world: World) -> None:
    keep(world, "The retry limit of the uploader in production is 5.")
    keep(world, "The retry limit of the uploader in production is 8.")

    [cluster] = world.call("find_duplicates", similarity_threshold=0.6)["clusters"]

    assert cluster["suggestedAction"] == "review"
    assert "contradicts" in cluster["reasons"][0]


def test_a_large_cluster_is_to_be_reviewed(world: World) -> None:
    for number in range(4):
        keep(world, TEA, source=f"note {number}")

    [cluster] = world.call("find_duplicates")["clusters"]

    assert (cluster["size"], cluster["suggestedAction"]) == (4, "review")
    assert "look at each" in cluster["reasons"][0]


def test_what_cannot_be_merged_is_not_proposed(world: World) -> None:
    keep(world, TEA)
    keep(world, TEA, pinned=True)
    keep(world, TEA, thread="talk", position=1)
    keep(world, TEA, valid_until="2026-01-01")
    keep(world, TEA, valid_from="2027-01-01")
    keep(world, TEA, scope="/project/harbour")

    answer = world.call("find_duplicates")

    assert answer["clusters"] == []
    assert answer["memoriesAnalyzed"] == 2


def test_scopes_and_tags_narrow_it_down(world: World) -> None:
    here = {keep(world, TEA, scope="/project/a"), keep(world, TEA_TOO, scope="/project/a")}
    there = {
        keep(world, TEA, scope="/project/b", tags=["x"]),
        keep(world, TEA_TOO, scope="/project/b", tags=["y"]),
    }

    answer = world.call("find_duplicates", scope="/project/a")
    assert (members(answer), answer["scope"]) == ([here], "/project/a")
    assert world.call("find_duplicates", scope="/project")["totalClusters"] == 2
    assert members(world.call("find_duplicates", tags=["x", "y"], scope="/project")) == [there]
    assert world.call("find_duplicates", tags=["x"], scope="/project")["totalClusters"] == 0


def test_the_limit_bounds_what_is_shown_and_not_what_is_counted(world: World) -> None:
    for text in FILLING:
        keep(world, text)
        keep(world, text, source="again")

    answer = world.call("find_duplicates", limit=2)

    assert (answer["totalClusters"], len(answer["clusters"])) == (3, 2)


def test_without_a_model_words_are_compared(tmp_path: Path) -> None:
    with open_world(tmp_path / "data", provider="off") as world:
        for text in FILLING:
            keep(world, text)
        same = {keep(world, TEA), keep(world, TEA.upper())}
        alike = {
            keep(world, "Bo rows past the pier at dawn."),
            keep(world, "Bo rows past the old pier at dawn."),
        }

        answer = world.call("find_duplicates", similarity_threshold=0.7)

    assert members(answer) == [same, alike]
    assert answer["comparedByWords"] == 7


def test_what_there_is_no_time_for_is_compared_by_words(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    alike = {keep(world, TEA), keep(world, TEA_TOO)}
    for text in FILLING:
        keep(world, text)
    monkeypatch.setattr(duplicates, "MOST_COSINES", 10)

    answer = world.call("find_duplicates")

    assert members(answer) == [alike]
    assert answer["comparedByWords"] == 3


def test_in_a_large_scope_the_latest_are_compared(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(world, TEA)
    latest = {keep(world, TEA_TOO), keep(world, TEA_TOO, source="again")}
    monkeypatch.setattr(duplicates, "MOST_MEMORIES", 2)

    answer = world.call("find_duplicates")

    assert members(answer) == [latest]
    assert (answer["memoriesAnalyzed"], answer["leftOut"]) == (2, 1)


def test_a_caller_who_has_gone_is_noticed(world: World) -> None:
    keep(world, TEA)
    told: list[str | None] = []
    gone = threading.Event()

    def leave(done: float, total: float | None, what: str | None) -> None:
        told.append(what)
        gone.set()

    keep(world, TEA, scope="/project/a")
    with pytest.raises(Cancelled):
        world.app.call_tool(
            Invocation(name="find_duplicates", arguments={"scope": "/"}, progress=leave, cancelled=gone)
        )
    assert told == ["comparing vectors"]


def test_it_finds_the_same_after_a_restart(tmp_path: Path) -> None:
    with open_world(tmp_path / "data") as world:
        keep(world, TEA)
        keep(world, TEA_TOO)
        before = world.call("find_duplicates")
    with open_world(tmp_path / "data") as world:
        assert world.call("find_duplicates") == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"similarity_threshold": 0.4}, "similarity_threshold"),
        ({"similarity_threshold": 1.1}, "similarity_threshold"),
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"scope": "/nowhere"}, "/nowhere"),
        ({"threshold": 0.8}, "threshold"),
    ],
)
def test_bad_input_is_refused_clearly(world: World, arguments: dict[str, Any], said: str) -> None:
    keep(world, TEA)

    assert said in world.refused("find_duplicates", **arguments)["message"]


def test_a_person_reads_the_clusters(world: World) -> None:
    keep(world, TEA, source="wiki")
    keep(world, TEA)

    text = render_duplicates(Duplicates.model_validate(world.call("find_duplicates")))

    assert f"“{TEA}”" in text
    assert "merge: 2 similar" in text
    assert "wiki" in text
    assert "1 of 1 cluster in /." in text
