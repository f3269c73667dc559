"""What keeps domains as they are: the same input, another model, another store, refusals."""

from pathlib import Path

import numpy as np

from testbed.world import World, open_world
from tests.engine.domains.corpus import (
    IN_MEMORY,
    TOPICS,
    discovered,
    membership,
    notes,
    store_all,
    three_topics,
)
from vestige.cognition.graph.domains.discovery import discover
from vestige.cognition.graph.domains.neighbours import nearest_neighbours
from vestige.cognition.graph.neighbour_lists import direction
from vestige.core.models import EVERYTHING
from vestige.embed.background import EmbedderSource
from vestige.embed.hashing import HashingEmbedder
from vestige.engine.care.rebuild import rebuild
from vestige.engine.context import Call
from vestige.engine.domains import discovery as finding
from vestige.operations.registry.registry import registry


def labels(world: World) -> dict[str, str]:
    return {one["id"]: one["label"] for one in world.call("domains", action="list")["domains"]}


def found_by_text(world: World) -> dict[str, tuple[object, ...]]:
    """The domains of every text with its scores, to the last digit."""
    stream = world.app.engine.store.stream(access=EVERYTHING)
    names = labels(world)
    return {
        one.memory.content: (
            tuple(names[name] for name in one.memory.domains),
            tuple(sorted((names[name], score) for name, score in one.memory.domain_scores.items())),
        )
        for batch in stream
        for one in batch
    }


def test_the_same_memories_give_the_same_domains_on_every_store(world: World, tmp_path: Path) -> None:
    discovered(world)
    with open_world(tmp_path / "other", **IN_MEMORY) as other:
        discovered(other)
        assert found_by_text(other) == found_by_text(world)


def test_the_stored_neighbours_are_those_of_comparing_everything(world: World) -> None:
    """Also after deletions, for threads, and for memories that take no part."""
    stored = three_topics(world)
    for at in range(4):
        world.call("smart_ingest", content=f"{TOPICS['dev']} talk{at}", thread="talk", position=at)
    call = Call(engine=world.app.engine, access=EVERYTHING)
    finding._neighbours(call, finding._corpus(call, 0))
    for name in stored["infra"][:5]:
        world.call("memory", action="delete", id=name)
    store_all(world, notes("home", 7, seed=3))
    corpus = finding._corpus(call, 0)
    kept = finding._neighbours(call, corpus)
    assert kept is not None
    assert np.array_equal(kept, nearest_neighbours(corpus.vectors)[0])


def test_ten_percent_more_memories_move_none_of_the_others(quick: World) -> None:
    discovered(quick)
    before = membership(quick)
    store_all(quick, notes("infra", 4, seed=5) + notes("home", 4, seed=6))
    quick.call("domains", action="discover")
    quick.call("domains", action="discover")
    after = membership(quick)
    assert {name: after[name] for name in before} == before


def test_another_model_keeps_ids_labels_and_members(world: World) -> None:
    discovered(world)
    before = (labels(world), membership(world))
    rebuild(Call(engine=world.app.engine, access=EVERYTHING), vectors=True)
    assert (labels(world), membership(world)) == before
    assert world.call("domains", action="discover")["proposals"] == 0


def test_without_vectors_discovery_says_how_to_get_them(tmp_path: Path) -> None:
    with open_world(tmp_path / "data", provider="off", **IN_MEMORY) as bare:
        for text in notes("dev", 3):
            bare.remember(text)
        for force in (False, True):
            refused = bare.refused("domains", action="discover", force=force)
            assert refused["code"] == "invalid_input"
            assert "have no vectors" in refused["message"]


def test_vectors_of_two_models_are_refused_with_the_way_out(quick: World) -> None:
    three_topics(quick)
    other = EmbedderSource.of(HashingEmbedder(dimension=32))
    object.__setattr__(quick.app.engine, "embedders", other)
    refused = quick.refused("domains", action="discover")
    assert refused["code"] == "invalid_input"
    assert "migrate --reembed" in refused["hint"]
    assert not any(membership(quick).values())


def test_a_thousand_communities_are_found_and_none_is_lost() -> None:
    rng = np.random.default_rng(4)
    middles = np.repeat(rng.standard_normal((1000, 96)), 12, axis=0)
    found = discover(direction(middles + 0.02 * rng.standard_normal(middles.shape)), samples=1)
    assert len(found.communities) == 1000
    assert {len(one.rows) for one in found.communities} == {12}


def test_the_doctor_finds_nothing_after_a_discovery_of_threads(world: World) -> None:
    """What a search reads of a thread depends on the domains of its turns."""
    three_topics(world)
    for at in range(4):
        world.call("smart_ingest", content=f"{TOPICS['dev']} talk{at}", thread="talk", position=at)
    world.call("domains", action="discover")
    doctor = registry.operations["doctor"]
    findings = doctor.call(Call(engine=world.app.engine, local=True), {})["findings"]
    assert [one for one in findings if one["severity"] == "broken"] == []
