"""Discovery: the first one is applied, later ones only propose, on every store alike."""

from collections.abc import Callable
from typing import Any

import pytest

from testbed.world import World
from tests.engine.domains.corpus import (
    TOPICS,
    discovered,
    domain_of,
    membership,
    notes,
    store_all,
    three_topics,
)
from vestige.core.api_key import ApiKey
from vestige.core.events import DomainsChanged
from vestige.core.models import EVERYTHING
from vestige.engine.care.keys import caller_of


def test_three_topics_become_three_domains_with_a_word_of_theirs_in_the_label(world: World) -> None:
    stored = three_topics(world)
    answer = world.call("domains", action="discover")
    assert (answer["applied"], answer["clusters"], answer["memories"]) == (True, 3, 72)
    listed = world.call("domains", action="list")
    assert listed["unclassified"] == 0
    for topic, ids in stored.items():
        homes = {domain_of(world, one)[0] for one in ids}
        assert len(homes) == 1
        (found,) = (one for one in listed["domains"] if one["id"] in homes)
        assert {word for term in found["terms"] for word in term.split()} <= set(TOPICS[topic].split())
        assert found["memories"] == len(ids)


def test_a_second_discovery_changes_and_proposes_nothing(world: World) -> None:
    discovered(world)
    before = membership(world)
    answer = world.call("domains", action="discover")
    assert (answer["applied"], answer["proposals"]) == (False, 0)
    assert membership(world) == before
    assert len(answer["domains"]) == 3


def test_a_new_topic_is_proposed_after_two_discoveries_and_applied_when_accepted(world: World) -> None:
    discovered(world)
    new = store_all(world, [f"violin cello sonata quartet opera concerto note{at}" for at in range(15)])
    before = membership(world)
    assert world.call("domains", action="discover")["shown"] == 0
    assert world.call("domains", action="proposals") == {"proposals": [], "unconfirmed": 1}
    assert world.call("domains", action="discover")["shown"] == 1
    (proposal,) = world.call("domains", action="proposals")["proposals"]
    assert (proposal["kind"], proposal["parts"][0]["size"]) == ("new", 15)
    assert membership(world) == before

    answer = world.call("domains", action="accept", proposal=proposal["id"])
    (name,) = answer["domains"]
    assert answer["moved"] == 15
    assert {domain_of(world, one)[0] for one in new} == {name}
    again = world.refused("domains", action="accept", proposal=proposal["id"])
    assert "accepted already" in again["message"]

    world.call("domains", action="undo", proposal=proposal["id"])
    assert membership(world) == before
    assert name not in {one["id"] for one in world.call("domains", action="list")["domains"]}


def access_of_a_key(world: World, domain: str) -> Callable[[], set[str]]:
    """What a key that is made now and limited to a domain opens whenever that is asked."""
    key = ApiKey(
        id="k", hash="a" * 64, label="k", permissions=("read",), created_at=world.clock.now, domains=(domain,)
    )
    return lambda: set(caller_of(world.app.engine, key).access.domains or ())


def test_a_merged_domain_is_proposed_to_be_split_and_the_larger_part_keeps_the_id(world: World) -> None:
    domains = discovered(world)
    dev, infra, _ = domains
    extra = store_all(world, notes("dev", 3, seed=9))
    assert {domain_of(world, one)[0] for one in extra} == {dev}
    world.call("domains", action="merge", domain=dev, other=infra)
    before = access_of_a_key(world, dev)
    for _ in range(2):
        world.call("domains", action="discover")
    (proposal,) = world.call("domains", action="proposals")["proposals"]
    assert (proposal["kind"], proposal["domains"]) == ("split", [dev])
    world.clock.advance(hours=1)
    answer = world.call("domains", action="accept", proposal=proposal["id"])
    assert answer["domains"][0] == dev
    world.clock.advance(hours=1)
    assert before() == {*answer["domains"]}  # a key still opens all that it did
    assert access_of_a_key(world, dev)() == {dev}  # one that is made now opens what the domain is now
    world.call("domains", action="undo", proposal=proposal["id"])
    assert before() == {dev}
    world.call("domains", action="discover")
    world.call("domains", action="discover")
    (proposal,) = world.call("domains", action="proposals")["proposals"]
    world.call("domains", action="accept", proposal=proposal["id"])
    assert {domain_of(world, one)[0] for one in domains[dev]} == {dev}
    assert len({domain_of(world, one)[0] for one in domains[infra]} - {dev}) == 1


def test_a_rejected_proposal_changes_nothing_and_sleeps(world: World) -> None:
    domains = discovered(world)
    dev, infra, _ = domains
    world.call("domains", action="merge", domain=dev, other=infra)
    for _ in range(2):
        world.call("domains", action="discover")
    (proposal,) = world.call("domains", action="proposals")["proposals"]
    before = membership(world)
    world.call("domains", action="reject", proposal=proposal["id"])
    for _ in range(5):
        assert world.call("domains", action="discover")["proposals"] == 0
    assert membership(world) == before
    world.call("domains", action="discover")
    assert world.call("domains", action="discover")["shown"] == 1


def test_a_proposal_whose_memories_changed_is_brought_up_to_date_instead(quick: World) -> None:
    discovered(quick)
    new = store_all(quick, [f"violin cello sonata quartet opera concerto note{at}" for at in range(15)])
    for _ in range(2):
        quick.call("domains", action="discover")
    (proposal,) = quick.call("domains", action="proposals")["proposals"]
    quick.call("memory", action="delete", id=new[0])
    refused = quick.refused("domains", action="accept", proposal=proposal["id"])
    assert "1 of the 15 memories" in refused["message"]
    assert all(not domain_of(quick, one) for one in new[1:])
    assert quick.call("domains", action="accept", proposal=proposal["id"])["moved"] == 14


def test_a_proposal_that_nothing_is_left_of_is_dropped(quick: World) -> None:
    domains = discovered(quick)
    new = store_all(quick, [f"violin cello sonata quartet opera concerto note{at}" for at in range(15)])
    for _ in range(2):
        quick.call("domains", action="discover")
    (proposal,) = quick.call("domains", action="proposals")["proposals"]
    quick.call("domains", action="assign", domain=next(iter(domains)), ids=new)
    assert quick.refused("domains", action="accept", proposal=proposal["id"])["details"]["left"] == 0
    assert quick.refused("domains", action="accept", proposal=proposal["id"])["code"] == "not_found"
    assert len(quick.call("domains", action="list")["domains"]) == 3


def retirements(world: World) -> list[dict[str, Any]]:
    proposals = world.call("domains", action="proposals", all=True)["proposals"]
    return [one for one in proposals if one["kind"] == "retire"]


def test_a_domain_that_has_grown_is_not_retired_unseen(quick: World) -> None:
    dev, members = next(iter(discovered(quick).items()))
    store_all(quick, notes("infra", 20, seed=4))
    for memory in members[:18]:
        quick.call("memory", action="delete", id=memory)
    for _ in range(2):
        quick.call("domains", action="discover")
    (proposal,) = retirements(quick)
    assert proposal["before"] == {dev: 6}
    come = sum(domain_of(quick, one) == [dev] for one in store_all(quick, notes("dev", 20, seed=7)))
    before = membership(quick)
    refused = quick.refused("domains", action="accept", proposal=proposal["id"])
    assert f"{6 + come} memories now" in refused["message"]
    assert membership(quick) == before
    quick.call("domains", action="discover")
    assert retirements(quick) == []


def test_a_domain_whose_members_were_put_there_by_hand_is_not_proposed_to_be_retired(quick: World) -> None:
    dev, members = next(iter(discovered(quick).items()))
    store_all(quick, notes("infra", 20, seed=4))
    quick.call("domains", action="assign", domain=dev, ids=members)
    quick.call("domains", action="discover")
    assert retirements(quick) == []


def test_memories_assigned_by_hand_stay_where_they_are(world: World) -> None:
    domains = discovered(world)
    dev, infra, home = domains
    world.call("domains", action="assign", domain=home, ids=domains[dev][:1])
    world.call("domains", action="unassign", domain=dev, ids=domains[dev][:1])
    world.call("domains", action="merge", domain=dev, other=infra)
    for _ in range(2):
        world.call("domains", action="discover")
    for proposal in world.call("domains", action="proposals")["proposals"]:
        world.call("domains", action="accept", proposal=proposal["id"])
    assert domain_of(world, domains[dev][0]) == [home]


def test_a_thread_is_assigned_as_a_whole(quick: World) -> None:
    texts = [*notes("dev"), *notes("infra"), *notes("home")]
    store_all(quick, texts)
    turns = [*notes("dev", 4, seed=5), *notes("infra", 1, seed=5)]
    thread = [quick.remember(text, thread="talk", position=at) for at, text in enumerate(turns)]
    quick.call("domains", action="discover")
    assert len({tuple(domain_of(quick, one)) for one in thread}) == 1
    late = quick.remember(notes("home", 1, seed=6)[0], thread="talk", position=9)
    assert domain_of(quick, late) == domain_of(quick, thread[0])


def test_listeners_learn_of_domains_and_of_proposals(quick: World) -> None:
    discovered(quick)
    store_all(quick, [f"violin cello sonata quartet opera concerto note{at}" for at in range(15)])
    for _ in range(2):
        quick.call("domains", action="discover")
    assert [one.action for one in quick.heard if isinstance(one, DomainsChanged)] == ["discover", "propose"]


@pytest.mark.parametrize("count", [0, 3])
def test_too_few_memories_are_refused_with_the_number_needed(quick: World, count: int) -> None:
    for text in notes("dev", count):
        quick.remember(text)
    refused = quick.refused("domains", action="discover")
    assert refused["code"] == "invalid_input"
    assert "60" in refused["message"]


def test_texts_that_are_all_alike_are_one_domain(quick: World) -> None:
    store_all(quick, ["The same words again."] * 70, force_create=True)
    assert quick.call("domains", action="discover")["clusters"] == 1
    assert quick.call("domains", action="list")["unclassified"] == 0


def test_a_larger_least_size_finds_no_more_domains(quick: World) -> None:
    three_topics(quick)
    refused_or_none = quick.call("domains", action="discover", min_cluster_size=30)
    assert refused_or_none["clusters"] == 0
    assert refused_or_none["unclassified"] == 72
    assert quick.call("domains", action="discover")["clusters"] == 3


def test_one_discovery_at_a_time(quick: World) -> None:
    from vestige.engine.context import Call
    from vestige.engine.sleep.runs import alone

    three_topics(quick)
    with alone(Call(engine=quick.app.engine, access=EVERYTHING), "domains"):
        assert quick.refused("domains", action="discover")["code"] == "conflict"
    assert quick.call("domains", action="discover")["applied"] is True
