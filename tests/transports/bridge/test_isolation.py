"""Agents kept apart: each sees and changes what is its own, and reads what is shared."""

from itertools import count
from typing import Any

import pytest

from testbed.world import open_world
from tests.transports.bridge.harness import Bridged

pytestmark = pytest.mark.slow

CANARY = "canary"
SECRET = "quicksilver"
"""What only the memories of another agent tell."""
_numbers = count(1)


@pytest.fixture
def planted(apart: Bridged) -> tuple[str, str, str]:
    """A word, and the ids of a memory and an intention about it that belong to the agent `theirs`."""
    word = f"{CANARY}{next(_numbers)}"
    memory_id = apart.remember(f"The {word} sings about {SECRET}.", agent="theirs", tags=[word])
    told = apart.data(
        "/intention", {"action": "set", "description": f"Feed the {word} with {SECRET}"}, agent="theirs"
    )
    apart.data(
        "/codebase",
        {
            "action": "remember_decision",
            "decision": f"Use the {word} for {SECRET}",
            "rationale": "It sings",
            "codebase": "x",
        },
        "theirs",
    )
    return word, memory_id, told["intentionId"]


def test_what_an_agent_tells_is_in_its_scope(apart: Bridged) -> None:
    assert apart.get(apart.remember("Geese fly south.", agent="a"), agent="a")["scope"] == "/agent/a"
    below = apart.remember("Ducks stay.", agent="a", scope="/agent/a/ponds")
    assert apart.get(below, agent="a")["scope"] == "/agent/a/ponds"
    told = apart.data("/ingest", {"items": [{"content": "Swans are white."}]}, agent="a")
    assert told["results"][0]["scope"] == "/agent/a"


def test_nothing_of_another_agent_is_told(apart: Bridged, planted: tuple[str, str, str]) -> None:
    word, _, _ = planted
    for path, body in (
        ("/search", {"query": word}),
        ("/search", {"query": word, "scope": "/agent/mine"}),
        ("/session_context", {"queries": [word]}),
        ("/session_context", {"queries": [word], "context": {"codebase": "x"}}),
        ("/search", {"query": word, "context_codebase": "x", "retrieval_mode": "exhaustive"}),
        ("/codebase", {"action": "get_context", "codebase": "x"}),
        ("/intention", {"action": "check", "context": {"topics": [word]}}),
        ("/intention", {"action": "list", "filter_status": "all"}),
        ("/predict", {"context": {"current_topics": [word]}}),
        ("/importance_score", {"content": "Something else."}),
        ("/memory", {"action": "list"}),
        ("/ingest", {"content": f"The {word} sings about something."}),
    ):  # fmt: skip
        answer = apart.told(path, body, agent="mine")
        assert answer["success"], path
        data = answer["data"]
        assert SECRET not in str(data), path
        assert "/agent/theirs" not in str(data), path


@pytest.mark.parametrize(
    "scope", ["/", "/agent", "/agent/theirs", "/agent/mine2", "/project/x", "/agent/mine/../theirs"]
)
def test_a_scope_of_others_is_refused(apart: Bridged, scope: str) -> None:
    for path, body in (
        ("/search", {"query": "x"}), ("/ingest", {"content": "x"}), ("/dream", {}), ("/session_context", {}),
        ("/codebase", {"action": "get_context"}), ("/intention", {"action": "list"}), ("/predict", {}),
        ("/importance_score", {"content": "x"}),
    ):  # fmt: skip
        response = apart.post(path, {**body, "scope": scope}, agent="mine")
        assert (response.status_code, response.json()["code"]) == (403, "forbidden"), path
    items = apart.post("/ingest", {"items": [{"content": "x", "scope": scope}]}, agent="mine")
    assert items.status_code == 403
    assert apart.post("/importance_score", {"content": "x", "project": "x"}, agent="mine").status_code == 403


@pytest.mark.parametrize("action", ["get", "state", "promote", "demote", "edit", "delete", "purge", "pin"])
def test_a_memory_of_another_agent_is_as_if_it_had_never_been(
    apart: Bridged, planted: tuple[str, str, str], action: str
) -> None:
    _, alive, _ = planted
    dead = apart.remember(f"The {CANARY} that died knew of {SECRET}.", agent="theirs", force_create=True)
    apart.data("/memory", {"action": "delete", "memory_id": dead}, agent="theirs")
    before = apart.get(alive, agent="theirs")
    needed: dict[str, dict[str, Any]] = {"edit": {"content": "x"}, "purge": {"confirm": True}}

    def told(memory_id: str) -> str:
        asked: dict[str, Any] = {"action": action, "memory_id": memory_id, **needed.get(action, {})}
        answer = apart.told("/memory", asked, agent="mine")
        assert (answer["success"], answer["code"]) == (False, "not_found")
        return str(answer).replace(memory_id, "it")

    never = told("01890000-0000-7000-8000-00000000dead")
    assert told(alive) == never
    assert told(dead) == never
    assert apart.get(alive, agent="theirs") == before


def test_a_memory_of_another_agent_is_neither_promoted_nor_demoted(
    apart: Bridged, planted: tuple[str, str, str]
) -> None:
    _, memory_id, _ = planted
    before = apart.get(memory_id, agent="theirs")
    for path in ("/promote", "/demote"):
        assert apart.told(path, {"memory_id": memory_id}, agent="mine")["code"] == "not_found"
    assert apart.get(memory_id, agent="theirs") == before


def test_an_agent_changes_its_own(apart: Bridged) -> None:
    memory_id = apart.remember("Larks rise early.", agent="mine")
    apart.data("/promote", {"memory_id": memory_id}, agent="mine")
    apart.data(
        "/memory", {"action": "edit", "memory_id": memory_id, "content": "Larks rise at four."}, agent="mine"
    )
    assert apart.get(memory_id, agent="mine")["content"] == "Larks rise at four."
    apart.data("/memory", {"action": "delete", "memory_id": memory_id}, agent="mine")


def test_an_intention_of_another_agent_cannot_be_ended(apart: Bridged, planted: tuple[str, str, str]) -> None:
    _, _, theirs = planted
    body = {"action": "update", "id": theirs, "status": "complete"}
    assert apart.told("/intention", body, agent="mine")["code"] == "not_found"
    assert apart.data("/intention", body, agent="theirs")["success"]


def test_how_the_whole_store_does_is_not_told(apart: Bridged) -> None:
    session = apart.data("/session_context", {"include_status": True}, agent="nobody yet")
    assert session["context"].splitlines()[0] == "## Session (0 memories)"
    assert "automationTriggers" not in session
    assert "note" not in apart.data("/search", {"query": "okapi"}, agent="nobody yet")


def test_what_is_about_everything_is_refused(apart: Bridged, planted: tuple[str, str, str]) -> None:
    _, memory_id, _ = planted
    for path, body in (
        ("/consolidate", {}), ("/backup", {}),
        ("/explore_connections", {"action": "associations", "from": memory_id}),
        ("/memory", {"action": "get_batch", "ids": [memory_id]}),
        ("/memory", {"action": "link", "id": memory_id, "target": memory_id}),
        ("/memory", {"action": "history", "id": memory_id}), ("/memory", {"action": "odd"}),
    ):  # fmt: skip
        response = apart.post(path, body, agent="theirs")
        assert (response.status_code, response.json()["code"]) == (403, "not_confined"), (path, body)


@pytest.fixture(scope="module")
def shared(apart: Bridged) -> str:
    """The id of a memory that the operator has put where all agents read."""
    options: dict[str, Any] = {"memory.scope": "/shared"}
    with open_world(apart.folder, **options) as operator:
        return operator.remember("The pelican opens the office at nine.")


def test_what_is_shared_is_read_by_all_and_changed_by_none(apart: Bridged, shared: str) -> None:
    own = apart.remember("The pelican has a key to the office.", agent="reader")
    asked = {"query": "pelican office"}
    assert {hit["id"] for hit in apart.data("/search", asked, agent="reader")["results"]} == {own, shared}
    assert len(apart.data("/search", {**asked, "limit": 1}, agent="reader")["results"]) == 1
    assert [hit["id"] for hit in apart.data("/search", asked, agent="another reader")["results"]] == [shared]
    only = apart.data("/search", {**asked, "scope": "/shared"}, agent="reader")
    assert [hit["id"] for hit in only["results"]] == [shared]
    told = apart.data("/session_context", {"queries": ["pelican"], "scope": "/shared"}, agent="reader")
    assert "opens the office at nine" in told["context"]
    assert apart.get(shared, agent="reader")["scope"] == "/shared"
    assert apart.told("/promote", {"memory_id": shared}, agent="reader")["code"] == "not_found"
    assert apart.post("/ingest", {"content": "x", "scope": "/shared"}, agent="reader").status_code == 403


def test_without_a_name_nothing_is_done(apart: Bridged) -> None:
    response = apart.post("/search", {"query": "x"})
    assert (response.status_code, response.json()["code"]) == (400, "agent_id_needed")


def test_names_that_differ_in_their_letters_are_different_agents(apart: Bridged) -> None:
    apart.remember("The ibis wades at dusk.", agent="Ada")
    assert apart.data("/search", {"query": "ibis wades dusk"}, agent="ada")["results"] == []
    assert len(apart.data("/search", {"query": "ibis wades dusk"}, agent="Ada")["results"]) == 1
