"""Domains as operations: what the terminal shows, and what a caller limited to a domain can see."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.world import World, open_world
from tests.engine.domains.corpus import IN_MEMORY, discovered, store_all
from vestige.cognition.graph.domains.assignment import DomainRange
from vestige.core.caller import PERMISSIONS, Caller, Invocation, ignore_progress
from vestige.core.errors import Forbidden, NotFound
from vestige.core.models import Access
from vestige.engine.domains.catalogue import DomainCentre
from vestige.engine.domains.overview import DomainScore
from vestige.operations.domains.view import score_view
from vestige.operations.registry.registry import registry


@pytest.fixture
def world(tmp_path: Path) -> Any:
    with open_world(tmp_path / "data", **IN_MEMORY) as opened:
        yield opened


def limited(world: World, only: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """Run a tool for a caller that is limited to a domain."""
    return called(world, Access(domains=(only,)), tool, **arguments)


def called(world: World, access: Access, tool: str, **arguments: Any) -> dict[str, Any]:
    """Run a tool for a caller with this access."""
    caller = Caller(name="limited", permissions=frozenset(PERMISSIONS), access=access)
    return world.app.call_tool(
        Invocation(name=tool, arguments=arguments, caller=caller, request_id="limited")
    )


MINE = Access(scopes=("/project/mine",))


def found(answer: dict[str, Any]) -> list[str]:
    return [one["id"] for one in answer["results"]]


def test_what_a_filter_by_domain_returns_are_members_only(world: World) -> None:
    domains = discovered(world)
    for domain, ids in domains.items():
        for other, canaries in domains.items():
            text = world.get(canaries[0])["content"]
            found = world.call("search", query=text, domains=[domain], all=True, limit=50)["results"]
            listed = world.call("memory", action="list", domains=[domain], limit=50)["results"]
            assert {one["id"] for one in (*found, *listed)} <= set(ids), other


def test_every_list_of_memories_takes_a_domain(world: World, tmp_path: Path) -> None:
    dev, infra, home = domains = discovered(world)
    outside = {*domains[infra], *domains[home]}
    centre = domains[dev][0]
    world.call("memory", action="link", id=centre, target=domains[infra][0])
    world.call("memory", action="link", id=centre, target=domains[dev][1])
    words = world.get(domains[infra][0])["content"]
    label = {one["id"]: one["label"] for one in world.call("domains", action="list")["domains"]}[dev]
    (tmp_path / "data").mkdir(exist_ok=True)
    exported = Path(world.call("export", format="jsonl", domains=[dev])["path"])
    lines = (tmp_path / "data" / "exports" / exported.name).read_text(encoding="utf-8")
    answers = [
        world.call("memory_timeline", start="2020-01-01", limit=100, domains=[label]),
        world.call("memory_graph", domains=[dev], max_nodes=100),
        world.call("memory_graph", center_id=centre, domains=[dev]),
        world.call("search", query=words, domains=[dev], all=True, limit=50),
        world.call("memory", action="list", domains=[dev], limit=50),
    ]
    for shown in (*(json.dumps(one) for one in answers), lines):
        assert sum(one in shown for one in domains[dev]) >= 2
        assert not [one for one in outside if one in shown]


def test_a_caller_limited_to_a_domain_sees_its_members_only_wherever_memories_are_listed(
    world: World,
) -> None:
    dev, infra, home = domains = discovered(world)
    outside = {*domains[infra], *domains[home]}
    words = world.get(domains[infra][0])["content"]
    answers = [
        limited(world, dev, "search", query=words, all=True, limit=50),
        limited(world, dev, "memory", action="list", limit=50),
        limited(world, dev, "memory_timeline", start="2020-01-01", limit=50),
        limited(world, dev, "memory_graph"),
        limited(world, dev, "find_duplicates"),
        limited(world, dev, "deep_reference", query=words),
        limited(world, dev, "session_context", queries=[words]),
        limited(world, dev, "system_status"),
        limited(world, dev, "domains", action="list"),
        limited(world, dev, "domains", action="explain", id=domains[dev][0]),
    ]
    told = json.dumps(answers)
    assert not [one for one in outside if one in told]
    assert "router" not in told.replace(words, "")
    assert infra not in told


def test_a_limited_caller_sees_ids_and_no_labels_and_changes_no_domain(world: World) -> None:
    dev, *_ = discovered(world)
    world.call("domains", action="rename", domain=dev, label="Secret plan")
    (shown,) = limited(world, dev, "domains", action="list")["domains"]
    assert (shown["id"], shown["label"], shown["terms"]) == (dev, dev, [])
    assert shown["origin"] == "found"
    with pytest.raises(Exception, match="whole store"):
        limited(world, dev, "domains", action="rename", domain=dev, label="x")


def test_a_domain_shows_a_caller_limited_to_a_scope_nothing_of_other_scopes(world: World) -> None:
    dev, *_ = domains = discovered(world)
    inside = world.remember(world.get(domains[dev][0])["content"], scope="/guest", metadata={"git_repo": "a"})
    access = Access(scopes=("/guest",))
    caller = Caller(name="guest", permissions=frozenset({"read", "write"}), access=access)

    def seen(**arguments: Any) -> dict[str, Any]:
        return world.app.call_tool(
            Invocation(name="domains", arguments=arguments, caller=caller, request_id="guest")
        )

    assert seen(action="list")["domains"] == []
    assert seen(action="explain", id=inside)["scores"] == []
    with pytest.raises(NotFound):
        seen(action="explain", id=domains[dev][0])
    with pytest.raises(Forbidden):  # labels, terms and scores of members are of the whole store
        seen(action="show", domain=dev)


def test_a_score_that_other_domains_explain_is_shown_with_its_own_part() -> None:
    centre = DomainCentre(
        id="dev", label="dev", terms=(), vector=np.array([1.0, 0.0], dtype=np.float32), size=10,
        range=DomainRange(cut=0.4, low=0.4, high=0.8),
    )  # fmt: skip

    def line(own: float | None) -> str:
        score = DomainScore(
            domain="dev", label="dev", score=0.48, centre=centre, member=False, by_hand=False, own=own
        )
        return score_view(score).line

    assert line(0.05) == "dev .48 (its members .40-.80, cut .40), own part .05 of .24"
    assert line(0.3) == line(None) == "dev .48 (its members .40-.80, cut .40)"


@pytest.mark.parametrize("access", [MINE, Access(scopes=MINE.scopes, domains=("home",))])
def test_a_limited_caller_cannot_try_labels(world: World, access: Access) -> None:
    """A label is made of words of texts that the caller may not read."""
    world.call("domains", action="create", label="Home")
    world.call("domains", action="rename", domain="home", label="Secret plan")
    mine = world.remember("The mast is oak.", scope="/project/mine", domains=["home"])
    asked = {"query": "mast oak", "all": True}
    assert found(called(world, access, "search", **asked, domains=["home"])) == [mine]
    for label in ("Secret plan", "secret PLAN", "no such label"):
        assert found(called(world, access, "search", **asked, domains=[label])) == []
        listed = called(world, access, "memory", action="list", domains=[label])
        assert found(listed) == []
    assert found(world.call("search", **asked, domains=["Secret plan"])) == [mine]


def test_a_limited_caller_that_writes_learns_no_label_either(world: World) -> None:
    world.call("domains", action="create", label="Home")
    world.call("domains", action="rename", domain="home", label="Secret plan")
    given: dict[str, Any] = {"scope": "/project/mine", "domains": ["Secret plan"]}
    stored = called(world, MINE, "smart_ingest", content="The mast is oak.", **given)
    assert world.get(stored["nodeId"])["domains"] == ["Secret plan"]
    own = world.remember("The keel is lead.", domains=["Secret plan"])
    assert world.get(own)["domains"] == ["home"]


def test_old_ids_of_a_domain_lead_a_caller_of_this_domain_on_and_nobody_else(world: World) -> None:
    for label in ("Home", "Attic"):
        world.call("domains", action="create", label=label)
    mine = world.remember("The mast is oak.", scope="/project/mine", domains=["attic"])
    world.call("domains", action="merge", domain="home", other="attic")
    assert world.get(mine)["domains"] == ["home"]
    asked = {"query": "mast oak", "all": True, "domains": ["attic"]}
    assert found(limited(world, "home", "search", **asked)) == [mine]
    assert found(called(world, MINE, "search", **asked)) == []
    assert found(world.call("search", **asked)) == [mine]


def test_a_limited_caller_gets_no_label_and_no_score_of_others_explained(world: World) -> None:
    dev, *_ = domains = discovered(world)
    world.call("domains", action="rename", domain=dev, label="Secret plan")
    memory = domains[dev][0]
    answer = limited(world, dev, "domains", action="explain", id=memory)
    assert [(one["domain"], one["label"]) for one in answer["scores"]] == [(dev, dev)]
    assert "Secret plan" not in json.dumps(answer)
    mine = world.remember(f"{world.get(memory)['content']} oak", scope="/project/mine", force_create=True)
    assert world.get(mine)["domains"] == [dev]
    for access in (MINE, Access(scopes=MINE.scopes, domains=(dev,))):
        assert called(world, access, "domains", action="explain", id=mine)["scores"] == []
    assert world.call("domains", action="explain", id=mine)["scores"]


def test_an_export_of_a_limited_caller_has_no_scores(world: World, tmp_path: Path) -> None:
    dev, *_ = discovered(world)
    (tmp_path / "data").mkdir(exist_ok=True)
    for export, has in (
        (limited(world, dev, "export", format="jsonl", domains=[dev]), False),
        (world.call("export", format="jsonl", domains=[dev]), True),
    ):
        text = (tmp_path / "data" / "exports" / Path(export["path"]).name).read_text(encoding="utf-8")
        assert ("domainScores" in text) is has


def test_the_terminal_shows_a_table_terms_and_a_histogram(world: World) -> None:
    domain, *_ = discovered(world)

    def shown(name: str, **arguments: Any) -> str:
        operation = registry.operations[name]
        assert operation.render is not None
        return operation.render(world.app.run(operation, arguments, ignore_progress))

    assert "(unclassified)" in shown("domains.list")
    assert "0.9-1.0" in shown("domains.show", domain=domain)
    assert "Terms:" in shown("domains.show", domain=domain)
    assert shown("domains.proposals") == "No proposals."
    store_all(world, [f"violin cello sonata quartet opera concerto note{at}" for at in range(15)])
    for _ in range(2):
        world.call("domains", action="discover")
    text = shown("domains.proposals")
    assert "15 memories; " in text
    assert "terms gained: " in text
    assert "violin cello sonata quartet" in text


def test_a_session_names_the_domain_that_its_queries_are_about(world: World) -> None:
    _, infra, _ = discovered(world)
    world.call("domains", action="rename", domain=infra, label="Network")
    asked = {"queries": ["bgp router vlan"], "token_budget": 2000}
    assert "**Domain:** Network" in world.call("session_context", **asked)["context"]
    assert f"**Domain:** {infra}" in limited(world, infra, "session_context", **asked)["context"]
    mixed = world.call("session_context", queries=["bgp router", "rust compiler", "boiler garden"])
    assert "**Domain:**" not in mixed["context"]
