"""Agents: what they are called, and where that is kept."""

import pytest

from tests.transports.bridge.harness import BEARER, Bridged

pytestmark = pytest.mark.slow


def test_the_agent_is_kept_with_what_it_tells(bridge: Bridged) -> None:
    alone = bridge.get(bridge.remember("Owls hunt at night.", agent="main"))
    assert (alone["agentId"], alone["source"]) == ("main", "agent:main")
    both = bridge.get(bridge.remember("Bats sleep by day.", agent="main", context="in the attic"))
    assert (both["agentId"], both["source"]) == ("main", "agent:main | in the attic")
    own = bridge.get(bridge.remember("Moths love light.", agent="main", source="a book", agent_id="other"))
    assert (own["agentId"], own["source"]) == ("main", "a book")
    assert own["metadata"] == {"context": "agent:main"}
    nobody = bridge.get(bridge.remember("Mice love cheese."))
    assert "agentId" not in nobody
    assert "source" not in nobody


def test_other_agents_read_it(bridge: Bridged) -> None:
    memory_id = bridge.remember("Gulls steal chips at the harbour.", agent="one")
    found = bridge.data("/search", {"query": "gulls chips harbour"}, agent="two")
    assert memory_id in [hit["id"] for hit in found["results"]]


@pytest.mark.parametrize("agent", ["a", "Main Agent", "agent:main:telegram", "a.b-c_d@e+f", "~", "x" * 128])
def test_a_plain_name_is_taken(bridge: Bridged, agent: str) -> None:
    assert (
        bridge.get(bridge.remember(f"The name {agent} is taken.", agent=agent, force_create=True))["agentId"]
        == agent
    )


@pytest.mark.parametrize(
    "agent", ["", ".", "..", "a/b", "../a", "a\\b", "a|b", "x" * 129, "a\tb", "a\x7f", "\xe4"]
)
def test_what_could_be_a_path_or_is_not_printable_is_refused(bridge: Bridged, agent: str) -> None:
    headers = [(b"authorization", BEARER["Authorization"].encode()), (b"x-agent-id", agent.encode("latin-1"))]
    response = bridge.http.post("/search", json={"query": "x"}, headers=headers)
    assert (response.status_code, response.json()["code"]) == (400, "bad_agent_id")


def test_two_names_at_once_are_refused(bridge: Bridged) -> None:
    headers = [
        (b"authorization", BEARER["Authorization"].encode()),
        (b"x-agent-id", b"a"),
        (b"x-agent-id", b"b"),
    ]
    response = bridge.http.post("/search", json={"query": "x"}, headers=headers)
    assert (response.status_code, response.json()["code"]) == (400, "bad_agent_id")
