"""Assignment of new memories: by score, never against what the caller named, never failing."""

from pathlib import Path

from testbed.world import World, open_world
from tests.engine.domains.corpus import IN_MEMORY, LIMITS, discovered, domain_of, membership, notes
from vestige.core.events import MemoryClassified
from vestige.engine.domains.catalogue import HAND, centres, documents_of


def test_domains_that_the_caller_named_stay_the_only_ones_and_count_as_by_hand(quick: World) -> None:
    dev, infra, _ = discovered(quick)
    label = quick.call("domains", action="show", domain=infra)["label"]
    memory = quick.remember(notes("dev", 1, seed=4)[0], domains=[label])
    assert domain_of(quick, memory) == [infra]
    assert [one.id for one in documents_of(quick.app.engine.store, HAND)] == [memory]
    free = quick.remember(notes("dev", 1, seed=5)[0], domains=["diary"])
    assert domain_of(quick, free) == ["diary"]
    assert dev not in domain_of(quick, free)


def test_listeners_hear_of_each_classified_memory(quick: World) -> None:
    dev, *_ = discovered(quick)
    memory = quick.remember(notes("dev", 1, seed=4)[0])
    (heard,) = (one for one in quick.heard if isinstance(one, MemoryClassified))
    assert (heard.id, heard.domains) == (memory, (dev,))
    assert heard.scopes is not None
    assert heard.scopes[0].domains == (dev,)


def test_a_repository_in_the_metadata_raises_the_score_of_domains_about_code(quick: World) -> None:
    discovered(quick)
    plain, boosted = (
        quick.remember(notes("dev", 1, seed=7)[0], scope=scope, metadata=metadata)
        for scope, metadata in (("/a", {}), ("/b", {"git_repo": "vestige"}))
    )
    scores = {
        memory: quick.call("domains", action="explain", id=memory)["scores"][0]["score"]
        for memory in (plain, boosted)
    }
    assert scores[boosted] - scores[plain] >= 0.04
    assert all(score <= 1.0 for score in scores.values())


def test_nothing_is_assigned_where_it_is_turned_off(tmp_path: Path) -> None:
    settings = {**IN_MEMORY, "domains.enabled": False}
    with open_world(tmp_path / "data", **settings) as world:
        discovered(world)
        assert domain_of(world, world.remember(notes("dev", 1, seed=4)[0])) == []


def test_a_flat_cosine_can_be_the_threshold_and_a_higher_one_assigns_no_more(tmp_path: Path) -> None:
    counts = []
    for cosine in (0.40, 0.85):
        settings = {**IN_MEMORY, "domains.assign_threshold": cosine}
        with open_world(tmp_path / str(cosine), **settings) as world:
            discovered(world)
            assert {one.range.cut for one in centres(world.app.engine.store).values()} == {cosine}
            new = [world.remember(text) for topic in ("dev", "infra") for text in notes(topic, 5, seed=8)]
            counts.append(sum(bool(domain_of(world, one)) for one in new))
    assert counts[0] == 10
    assert counts[1] <= counts[0]


def test_domains_labels_and_members_survive_a_restart(tmp_path: Path) -> None:
    settings = {"storage.backend": "sqlite", **LIMITS}
    with open_world(tmp_path / "data", **settings) as world:
        discovered(world)
        before, listed = membership(world), world.call("domains", action="list")
        clock = world.clock
    with open_world(tmp_path / "data", clock=clock, **settings) as world:
        assert membership(world) == before
        assert world.call("domains", action="list") == listed


def test_an_explained_search_shows_the_score_beside_those_of_the_members(quick: World) -> None:
    discovered(quick)
    found = quick.call("search", query="rust compiler borrow", explain=True)["results"][0]
    (line,) = found["explain"]["domains"]
    assert "(its members ." in line
    assert ", cut ." in line


def test_five_dreams_with_new_memories_move_nothing_and_make_proposals(quick: World) -> None:
    discovered(quick)
    before = membership(quick)
    for number in range(10):
        for at in range(3):
            quick.remember(f"violin cello sonata quartet opera concerto night{number}x{at}")
        quick.clock.advance(days=1)
        quick.call("dream", memory_count=20)
    after = membership(quick)
    assert {name: after[name] for name in before} == before
    (proposal,) = quick.call("domains", action="proposals")["proposals"]
    assert proposal["kind"] == "new"
