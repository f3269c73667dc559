"""`memory trace`: every record that holds a phrase, letter by letter."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.world import World, open_world
from vestige.core.errors import Forbidden
from vestige.core.models import Access
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry


def found(world: World, phrase: str) -> dict[str, dict[str, object]]:
    answer = world.call("memory", action="trace", phrase=phrase)
    return {one["id"]: one for one in answer["found"]}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path / "data") as opened:
        yield opened


def test_a_phrase_is_found_in_texts_revisions_tags_and_origin(world: World) -> None:
    now = world.remember("The door code is heliotrope.", force_create=True)
    before = world.remember("The gate code is Heliotrope.", force_create=True)
    world.call("memory", action="edit", id=before, content="The gate code is in the safe.")
    tagged = world.remember("A flower of the garden.", tags=["heliotrope"], source="heliotrope.md")
    world.remember("A text about the heliograph.", force_create=True)
    holding = found(world, "heliotrope")
    assert holding.keys() == {now, before, tagged}
    assert (holding[now]["fields"], holding[now]["revisions"]) == (["content"], [])
    assert (holding[before]["fields"], holding[before]["revisions"]) == ([], [1])
    assert holding[before]["preview"] == "The gate code is in the safe."
    assert holding[tagged]["fields"] == ["tags", "source"]


def test_what_no_search_shows_is_read_as_well(world: World) -> None:
    hidden = world.remember("The heron watches the pond.", force_create=True)
    away = world.remember("The heron sleeps on one leg.", force_create=True)
    world.call("suppress", id=hidden)
    world.call("memory", action="bulk", change="archive", ids=[away], dry_run=False, expected=1)
    holding = found(world, "the HERON")
    assert (holding[hidden]["suppressed"], holding[away]["archived"]) == (True, True)


def test_other_records_are_named_by_their_kind(world: World) -> None:
    world.call("intention", action="set", description="Ask the ferryman about Tuesday")
    (one,) = world.call("memory", action="trace", phrase="ferryman")["found"]
    assert (one["document"], one["fields"]) == ("intention", [])


def test_after_a_purge_nothing_holds_it(world: World) -> None:
    leaked = world.remember("The code is heliotrope.", force_create=True)
    world.call("memory", action="edit", id=leaked, content="The code is in the safe.")
    world.call("purge", id=leaked, confirm=True)
    answer = world.call("memory", action="trace", phrase="heliotrope")
    assert (answer["total"], answer["found"]) == (0, [])


def test_a_limited_caller_is_refused_because_it_would_miss_copies(world: World) -> None:
    call = Call(engine=world.app.engine, access=Access(scopes=("/project/a",)))
    with pytest.raises(Forbidden):
        registry.operations["memory.trace"].call(call, {"phrase": "heliotrope"})


def test_the_limit_bounds_what_is_shown_and_not_what_is_counted(world: World) -> None:
    for number in range(4):
        world.remember(f"Heliotrope number {number} grows here.", force_create=True)
    answer = world.call("memory", action="trace", phrase="heliotrope", limit=2)
    assert (answer["total"], answer["shown"], len(answer["found"])) == (4, 2, 2)
