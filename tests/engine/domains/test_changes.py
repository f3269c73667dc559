"""Changes of domains by hand: labels, merges, removal and membership, and what is refused."""

from typing import Any

from testbed.world import World
from tests.engine.domains.corpus import discovered, domain_of, membership, notes, three_topics
from vestige.core.api_key import ApiKey
from vestige.engine.care.keys import caller_of
from vestige.engine.domains.catalogue import all_domains, centres


def test_a_new_label_keeps_the_id_and_finds_the_same_memories(world: World) -> None:
    domain, *_ = discovered(world)
    world.call("domains", action="rename", domain=domain, label="My topic")
    assert world.call("domains", action="show", domain="my topic")["id"] == domain
    named = world.call("memory", action="list", domains=["My topic"], limit=50)
    assert named["total"] == world.call("memory", action="list", domains=[domain], limit=50)["total"] > 0


def test_a_merge_moves_the_members_and_old_names_lead_to_the_domain_that_stays(world: World) -> None:
    one, other, _ = discovered(world)
    before = membership(world)
    answer = world.call("domains", action="merge", domain=one, other=other)
    assert (answer["domains"], answer["moved"]) == ([one], 24)
    assert world.call("memory", action="list", domains=[other], limit=5)["total"] == 48
    key = ApiKey(
        id="k", hash="a" * 64, label="k", permissions=("read",), created_at=world.clock.now, domains=(other,)
    )
    assert caller_of(world.app.engine, key).access.domains == (one,)
    assert other not in centres(world.app.engine.store)
    world.call("domains", action="undo", proposal=answer["undo"])
    assert membership(world) == before
    assert caller_of(world.app.engine, key).access.domains == (other,)
    assert "undone" in world.refused("domains", action="undo", proposal=answer["undo"])["message"]


def test_a_removed_domain_leaves_its_memories_and_can_be_undone(world: World) -> None:
    domain, *_ = discovered(world)
    before, label = membership(world), all_domains(world.app.engine.store)[domain].label
    answer = world.call("domains", action="remove", domain=domain)
    assert answer["moved"] == 24
    assert all(domain not in domains for domains in membership(world).values())
    assert world.refused("domains", action="show", domain=domain)["code"] == "not_found"
    world.call("domains", action="undo", proposal=answer["undo"])
    assert membership(world) == before
    assert world.call("domains", action="show", domain=domain)["label"] == label


def test_members_of_a_removed_domain_made_by_hand_take_part_in_the_next_discovery(world: World) -> None:
    mine = three_topics(world)["dev"]
    world.call("domains", action="create", label="Mine")
    world.call("domains", action="assign", domain="Mine", ids=mine)
    world.call("domains", action="remove", domain="Mine")
    assert world.call("domains", action="discover")["memories"] == 3 * len(mine)
    assert all(domain_of(world, name) for name in mine)


def test_a_domain_made_by_hand_has_the_memories_that_carry_its_name(world: World) -> None:
    memory = world.remember("The roses bloom in June.", domains=["garden"])
    world.call("domains", action="create", label="Garden")
    shown = world.call("domains", action="show", domain="Garden")
    assert (shown["id"], shown["origin"], shown["memories"]) == ("garden", "hand", 1)
    assert domain_of(world, memory) == ["garden"]


def test_wrong_names_are_refused_and_change_nothing(quick: World) -> None:
    one, other, _ = discovered(quick)
    before = membership(quick)
    refusals: dict[str, list[dict[str, Any]]] = {
        "not_found": [
            {"action": "rename", "domain": "nowhere", "label": "x"},
            {"action": "merge", "domain": one, "other": "nowhere"},
            {"action": "remove", "domain": "nowhere"},
            {"action": "assign", "domain": one, "ids": ["nowhere"]},
            {"action": "accept", "proposal": "nowhere"},
            {"action": "reject", "proposal": "nowhere"},
            {"action": "undo", "proposal": "nowhere"},
            {"action": "explain", "id": "nowhere"},
        ],
        "invalid_input": [
            {"action": "merge", "domain": one, "other": one},
            {"action": "merge", "domain": one, "other": other, "into": "elsewhere"},
            {"action": "rename", "domain": one, "label": other},
            {"action": "rename", "domain": one, "label": "   "},
            {"action": "create", "label": one},
        ],
    }
    for code, calls in refusals.items():
        for arguments in calls:
            answer = quick.refused("domains", **arguments)
            assert answer["code"] in (code, "not_found"), arguments
            assert answer["message"]
    assert membership(quick) == before


def test_an_id_that_is_a_path_of_the_api_is_never_given(quick: World) -> None:
    made = [
        quick.call("domains", action="create", label=label)["domains"][0] for label in ("Proposals", "日本")
    ]
    assert made == ["proposals-2", "domain"]


def test_many_domains_can_be_listed_and_named(quick: World) -> None:
    for number in range(120):
        quick.call("domains", action="create", label=f"Topic {number}")
    assert len(quick.call("domains", action="list")["domains"]) == 120
    assert quick.call("domains", action="show", domain="Topic 77")["id"] == "topic-77"


def test_a_new_memory_goes_to_the_domain_of_its_topic_in_the_same_transaction(world: World) -> None:
    domains = discovered(world)
    for topic, domain in zip(("dev", "infra", "home"), domains, strict=True):
        memory = world.remember(notes(topic, 1, seed=3)[0])
        assert domain_of(world, memory) == [domain]
    stranger = world.remember("Entirely unrelated words about violins.")
    assert domain_of(world, stranger) == []
    explained = world.call("domains", action="explain", id=stranger)
    assert len(explained["scores"]) == 3
    assert not any(one["member"] for one in explained["scores"])


def test_undoing_a_merge_leaves_a_domain_where_it_was_merged_since(quick: World) -> None:
    one, other, third = discovered(quick)
    quick.call("domains", action="merge", domain=one, other=other)
    onwards = quick.call("domains", action="merge", domain=third, other=one)
    quick.call("domains", action="create", label="All")
    quick.call("domains", action="merge", domain="all", other=third)
    undone = quick.call("domains", action="undo", proposal=onwards["undo"])
    assert "48 were moved again since and stay" in undone["message"]
    assert quick.call("memory", action="list", domains=[third], limit=5)["total"] == 72


def test_a_domain_that_comes_back_shares_its_label_with_no_other(quick: World) -> None:
    one, other, third = discovered(quick)
    for action, arguments in (("merge", {"domain": one, "other": other}), ("remove", {"domain": other})):
        label = all_domains(quick.app.engine.store)[other].label
        answer = quick.call("domains", action=action, **arguments)
        quick.call("domains", action="rename", domain=third, label=label)
        quick.call("domains", action="undo", proposal=answer["undo"])
        assert all_domains(quick.app.engine.store)[other].label == other
        quick.call("domains", action="rename", domain=third, label="Something else")
        quick.call("domains", action="rename", domain=other, label=label)


def test_scores_are_of_the_present_text_and_domain(quick: World) -> None:
    domains = discovered(quick)
    one, other, _ = domains
    memory, text = domains[one][0], notes("infra", 1, seed=9)[0]
    quick.call("memory", action="edit", id=memory, content=text)
    (hit,) = quick.call("search", query=text, domains=[one], explain=True, limit=1)["results"]
    assert hit["id"] == memory
    assert " .00 (" in hit["explain"]["domains"][0]

    quick.call("domains", action="merge", domain=one, other=other)
    assert sum(quick.call("domains", action="show", domain=one)["histogram"]) == 48
    (hit,) = quick.call("search", query=notes("infra", 1)[0], explain=True, limit=1)["results"]
    assert len(hit["explain"]["domains"]) == 1
