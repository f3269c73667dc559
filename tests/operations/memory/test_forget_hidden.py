"""What is suppressed or archived comes back through no door but its id; a suppressed one by a flag too."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.world import World
from tests.transports.parity.project_examples import project_example
from vestige.core.models import EVERYTHING
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry
from vestige.store.contract.changes import Revise

WORD = "Quillonberg"
FACT = f"The staging cluster runs PostgreSQL 14, as {WORD} told us."
TWIN = f"The staging cluster runs PostgreSQL 14, as {WORD} told us again."
RIVAL = "The staging cluster runs PostgreSQL 16, not 14."
VISIBLE = "The staging cluster is restarted every Sunday."
QUERY = "Which PostgreSQL does the staging cluster run?"
FILE = "src/staging.py"
HIDDEN = ("fact", "twin", "note")

Ids = dict[str, str]
Arguments = dict[str, Any]

BY_ID = {
    "memory.get", "memory.get_batch", "memory.state", "memory.history", "dedup.plan", "domains.explain",
    "review.show",
}  # fmt: skip
BY_SESSION = {"read_session", "sessions.resume"}
"""Whoever names a memory reads it; a session holds none."""
BY_LETTER = {"memory.trace"}
"""It finds every copy of a phrase, to have it erased: hidden and archived ones above all."""
DOORS: dict[str, Callable[[Ids], Arguments]] = {
    "agent.context": lambda ids: {},
    "agent.doctor": lambda ids: {},
    "agent.impact": lambda ids: {},
    "agent.recall": lambda ids: {"prompt": QUERY},
    "archive.list": lambda ids: {},
    "installation.backups": lambda ids: {},
    "codebase.get_context": lambda ids: {"codebase": "shop"},
    "codebase.structure": lambda ids: {"codebase": "shop"},
    "connections.associations": lambda ids: {"from": ids["visible"]},
    "connections.bridges": lambda ids: {"from": ids["visible"], "to": ids["rival"]},
    "connections.chain": lambda ids: {"from": ids["visible"], "to": ids["rival"]},
    "contradictions": lambda ids: {},
    "deep_reference": lambda ids: {"query": QUERY},
    "keys.list": lambda ids: {},
    "domains.list": lambda ids: {},
    "domains.map": lambda ids: {},
    "domains.proposals": lambda ids: {},
    "domains.show": lambda ids: {"domain": "staging"},
    "find_duplicates": lambda ids: {"similarity_threshold": 0.5},
    "gc": lambda ids: {"min_retention": 0.5},
    "importance_score": lambda ids: {"content": FACT.replace(WORD, "somebody")},
    "insights.list": lambda ids: {},
    "insights.runs": lambda ids: {},
    "intention.check": lambda ids: {},
    "intention.list": lambda ids: {},
    "memory.bulk_runs": lambda ids: {},
    "memory.list": lambda ids: {"limit": 200},
    "memory_changelog": lambda ids: {"limit": 100},
    "memory_graph": lambda ids: {"center_id": ids["visible"], "depth": 3},
    "memory_health": lambda ids: {},
    "memory_timeline": lambda ids: {"start": "2020-01-01", "limit": 200},
    "review.policy": lambda ids: {},
    "review.list": lambda ids: {"status": "all"},
    "review.waiting": lambda ids: {},
    "predict": lambda ids: {"context": {"current_topics": ["staging", "PostgreSQL"]}},
    "recall_sessions": lambda ids: {"query": QUERY},
    "project.citations": lambda ids: {"path": ids["project"]},
    "project.doctor": lambda ids: {"path": ids["project"]},
    "project.graph": lambda ids: {"path": ids["project"]},
    "project.search": lambda ids: {"path": ids["project"], "query": QUERY},
    "project.status": lambda ids: {"path": ids["project"]},
    "project_recall": lambda ids: {"path": ids["project"], "task": QUERY},
    "project_warm_up": lambda ids: {"path": ids["project"]},
    "session_context": lambda ids: {"queries": [QUERY], "context": {"codebase": "shop"}},
    "sessions.doctor": lambda ids: {},
    "sessions.list": lambda ids: {},
    "smart_ingest": lambda ids: {"content": RIVAL},
    "installation.peers": lambda ids: {},
    "system_settings": lambda ids: {},
    "system_status": lambda ids: {},
    "tools.describe": lambda ids: {},
}
"""How to ask each operation that may show a memory, so that it would."""
SHOWING = {
    "agent.recall", "codebase.get_context", "codebase.structure", "connections.associations",
    "connections.bridges", "connections.chain", "contradictions", "deep_reference", "domains.map",
    "domains.show", "find_duplicates", "gc", "insights.list", "memory.list", "memory_changelog",
    "memory_graph", "memory_timeline", "predict", "project_recall", "project_warm_up", "review.waiting",
    "session_context",
}  # fmt: skip
"""Those that do show it before it is put out of mind."""


def planted(world: World) -> Ids:
    ids = {
        "visible": world.remember(VISIBLE, force_create=True),
        "fact": world.remember(FACT, force_create=True),
        "twin": world.remember(TWIN, force_create=True),
    }
    world.call("domains", action="create", label="staging")
    world.call("domains", action="assign", domain="staging", ids=list(ids.values()))
    world.clock.advance(days=1)
    ids["rival"] = world.remember(RIVAL, force_create=True)
    noted = world.call(
        "codebase",
        action="remember_pattern",
        name=f"Staging {WORD}",
        description="Staging is never deployed by hand.",
        files=[FILE, f"src/{WORD}.py"],
        codebase="shop",
    )
    ids["note"] = str(noted["nodeId"])
    ids["project"] = str(world.app.engine.settings.data_dir / "code")
    project_example(world, Path(ids["project"]))
    for end in ("visible", "rival"):
        world.call("memory", action="link", id=ids["fact"], target=ids[end])
    for _ in range(3):
        world.find(QUERY)
        world.app.settle()
        world.clock.advance(hours=1)
    world.call("dream", memory_count=5)
    world.app.settle()
    for _ in range(4):  # faded enough for gc
        world.call("memory", action="demote", id=ids["fact"])
    world.clock.advance(days=40)
    return ids


def suppress(world: World, memory_id: str) -> None:
    world.call("suppress", id=memory_id)


def archive(world: World, memory_id: str) -> None:
    store = world.app.engine.store
    memory = store.get_many([memory_id], access=EVERYTHING)[0].memory
    aside = replace(memory, archived_at=world.clock.now, revision=memory.revision + 1)
    store.commit([Revise(memory=aside, reason="archived")], access=EVERYTHING)


def ask(world: World, name: str, ids: Ids) -> str:
    """The answer of an operation, as a client would get it through whichever tool offers it."""
    tool, action = next(
        (tool.name, action)
        for tool in registry.tools.values()
        for action, member in tool.actions.items()
        if member == name
    )
    given = DOORS[name](ids) | ({"action": action} if action else {})
    return json.dumps(world.call(tool, **given))


def test_every_operation_that_reads_is_asked_here() -> None:
    reading = {
        name
        for name, operation in registry.operations.items()
        if operation.effect in ("none", "touch") and not operation.command_only
    }
    assert reading - BY_ID - BY_SESSION - BY_LETTER - {"search"} == set(DOORS) - {"gc", "smart_ingest"}


@pytest.mark.parametrize("way", [suppress, archive])
def test_what_is_out_of_mind_comes_back_through_no_door_but_its_id(
    world: World, way: Callable[[World, str], None]
) -> None:
    ids = planted(world)
    assert {name for name in DOORS if WORD in ask(world, name, ids)} == SHOWING

    for name in HIDDEN:
        way(world, ids[name])
    world.app.settle()

    assert [name for name in DOORS if WORD in ask(world, name, ids)] == []
    assert [uri for uri in registry.resources if WORD in read(world, uri)] == []
    assert WORD not in str(world.find(QUERY))
    asked = {"include_suppressed": True}
    for answer in (
        world.call("search", query=QUERY, min_confidence=0, **asked),
        world.call("memory", action="list", limit=200, **asked),
        world.call("session_context", queries=[QUERY], token_budget=5000, **asked),
    ):
        assert (WORD in str(answer)) == (way is suppress)
    assert all(WORD in str(world.get(ids[name])) for name in HIDDEN)


def read(world: World, uri: str) -> str:
    if "{" in uri:  # by its id
        return ""
    operation, arguments = registry.match_resource(uri)
    return json.dumps(operation.call(Call(engine=world.app.engine), arguments))


@pytest.mark.parametrize("way", [suppress, archive])
def test_it_does_not_come_back_by_asking_for_an_earlier_time(
    world: World, way: Callable[[World, str], None]
) -> None:
    memory_id = world.remember(FACT)
    world.clock.advance(days=1)
    then = world.clock.now.isoformat()
    world.clock.advance(days=1)
    way(world, memory_id)

    for answer in (
        world.call("memory_timeline", start="2020-01-01", known_at=then),
        world.call("search", query=QUERY, known_at=then),
        world.call("deep_reference", query=QUERY, known_at=then),
    ):
        assert WORD not in str(answer)


LIKED, NOW_LIKED = "Zorblax prefers quantum marmalade on toast.", "Zorblax prefers strawberry jam on toast."


def pattern(text: str) -> Arguments:
    return {"action": "remember_pattern", "name": "Zorblax", "description": text, "codebase": "shop"}


@pytest.mark.parametrize(
    ("tool", "known", "new"),
    [
        ("smart_ingest", {"content": LIKED}, {"content": NOW_LIKED}),
        ("codebase", pattern(LIKED), pattern(NOW_LIKED)),
    ],
)
def test_a_new_text_is_judged_by_a_suppressed_one_without_telling_its_words(
    world: World, tool: str, known: Arguments, new: Arguments
) -> None:
    memory_id = str(world.call(tool, **known)["nodeId"])
    suppress(world, memory_id)

    answer = world.call(tool, **new)

    assert answer["rivalId"] == memory_id
    assert "quantum" not in str(answer)
    assert "conflict" in answer


def test_a_suppressed_memory_is_still_superseded(world: World) -> None:
    memory_id = world.remember(f"The port of {WORD} is 8080.")
    suppress(world, memory_id)

    answer = world.call("smart_ingest", content=f"The port of {WORD} is 9090.")

    assert (answer["decision"], answer["supersededId"]) == ("supersede", memory_id)
    assert "8080" not in str(answer)


@pytest.mark.parametrize("again", [LIKED, f"{LIKED[:-1]}, with butter and salt."])
def test_telling_a_suppressed_memory_again_says_that_it_stays_suppressed(world: World, again: str) -> None:
    memory_id = world.remember(LIKED)
    suppress(world, memory_id)

    answer = world.call("smart_ingest", content=again)

    assert answer["nodeId"] == memory_id
    assert "stays suppressed" in answer["message"]
    assert "rivalPreview" not in answer
    assert world.get(memory_id)["suppressionCount"] == 1
