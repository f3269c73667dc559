"""Every address of the bridge, in front of a real `vestige-mcp`, in the words of both eras of deployments."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.transports.bridge.harness import BEARER, Bridged
from vestige.transports.bridge.requests import READERS

pytestmark = pytest.mark.slow


def texts(answer: dict[str, Any]) -> list[str]:
    return [block["text"] for block in answer["data"]["content"]]


def test_an_answer_holds_the_same_as_text_and_as_data(bridge: Bridged) -> None:
    answer = bridge.told(
        "/ingest", {"content": "The llama lives in Peru.", "node_type": "fact", "tags": ["zoo"]}
    )
    assert set(answer) == {"success", "data", "error"}
    assert (answer["success"], answer["error"]) == (True, None)
    [text] = texts(answer)
    assert json.loads(text) == answer["data"]["structured"]


@pytest.mark.parametrize("path", ["/ingest", "/smart_ingest"])
def test_what_is_ingested_is_found(bridge: Bridged, path: str) -> None:
    content = f"Walruses told of by {path} sleep on ice floes."
    told = bridge.data(path, {"content": content, "nodeType": "fact", "tags": ["sea"], "context": "a talk"})
    found = bridge.data("/search", {"query": content, "mode": "hybrid", "limit": 5, "threshold": 0.0})
    assert found["results"][0]["id"] == told["nodeId"]
    assert bridge.get(told["nodeId"])["source"] == "a talk"


def test_several_texts_are_taken_at_once(bridge: Bridged) -> None:
    items = [{"content": "Pike swim in lakes."}, {"content": "Storks nest on roofs.", "context": "the walk"}]
    told = bridge.data("/smart_ingest", {"items": items, "context": "a note"}, agent="scout")
    nodes = [bridge.get(one["nodeId"]) for one in told["results"]]
    assert [node["source"] for node in nodes] == ["agent:scout | a note", "agent:scout | the walk"]
    assert {node["agentId"] for node in nodes} == {"scout"}


def test_texts_of_a_search_are_cut_and_say_so(bridge: Bridged) -> None:
    content = "The narwhal has a long tusk. " * 20
    bridge.remember(content)
    asked = {"query": "narwhal tusk", "limit": 1}
    whole = bridge.data("/search", {**asked, "truncate_body_chars": None})["results"][0]
    assert whole["content"].strip() == content.strip()
    assert "truncated_body" not in whole
    answer = bridge.told("/search", {**asked, "truncateBodyChars": 40})
    [entry] = answer["data"]["structured"]["results"]
    assert entry["content"] == whole["content"][:40]
    assert (entry["body_length"], entry["truncated_body"]) == (len(whole["content"]), True)
    assert json.loads(texts(answer)[0]) == answer["data"]["structured"]


@pytest.mark.parametrize(("asked", "shown"), [(8_000, 8_000), (0, 10_750), (None, 10_750), (4_000, 4_000)])
def test_as_much_of_a_long_text_is_shown_as_is_asked_for(
    bridge: Bridged, asked: int | None, shown: int
) -> None:
    bridge.remember("Oysters make pearls out of grains of sand. " * 250)
    body = {"query": "oysters pearls", "limit": 1, "truncate_body_chars": asked}
    [entry] = bridge.data("/search", body)["results"]
    assert len(entry["content"]) == shown
    assert entry.get("body_length", shown) >= shown


def test_promoting_and_demoting_change_how_well_a_memory_is_kept(bridge: Bridged) -> None:
    memory_id = bridge.remember("Foxes hunt mice under the snow.")
    before = bridge.get(memory_id)["retentionStrength"]
    bridge.data("/promote", {"memory_id": memory_id})
    promoted = bridge.get(memory_id)["retentionStrength"]
    bridge.data("/demote", {"memoryId": memory_id, "reason": "wrong"})
    assert before < promoted
    assert bridge.get(memory_id)["retentionStrength"] < promoted


def test_a_memory_is_looked_at_edited_and_deleted(bridge: Bridged) -> None:
    memory_id = bridge.remember("Bears sleep in winter.")
    for action in ("state", "check_state"):
        state = bridge.data("/memory", {"action": action, "memory_id": memory_id, "reason": "curious"})
        assert state["action"] == "state"
    bridge.data(
        "/memory", {"action": "edit", "memory_id": memory_id, "content": "Bears sleep from November on."}
    )
    assert bridge.get(memory_id)["content"] == "Bears sleep from November on."
    bridge.data("/memory", {"action": "delete", "id": memory_id})
    answer = bridge.told("/memory", {"action": "get", "memory_id": memory_id})
    assert (answer["success"], answer["data"], answer["code"]) == (False, None, "not_found")
    assert memory_id in answer["error"]


def test_patterns_and_decisions_are_told_in_the_words_of_both_eras(bridge: Bridged) -> None:
    new = {
        "action": "remember_pattern",
        "name": "Ports",
        "description": "Read at the edge.",
        "codebase": "app",
    }
    old = {
        "action": "remember_decision",
        "content": "Use SQLite.",
        "tags": ["db"],
        "context": "one file is enough",
    }
    bridge.data("/codebase", {**new, "files": ["a.py"]})
    bridge.data("/codebase", {**old, "codebase": "app"})
    bridge.data(
        "/codebase", {"action": "remember_pattern", "content": "Close it.\nAlways.", "codebase": "app"}
    )
    known = bridge.data("/codebase", {"action": "get_context", "codebase": "app", "limit": 100})
    assert {item["title"] for item in known["patterns"]["items"]} == {"Ports", "Close it."}
    [decision] = known["decisions"]["items"]
    assert "Use SQLite.\n\nTags: db" in decision["content"]
    assert "one file is enough" in decision["content"]


def test_an_intention_is_set_checked_listed_and_completed(bridge: Bridged) -> None:
    new = {"action": "set", "description": "Feed the cat", "trigger": {"type": "context", "topic": "cats"}}
    old = {
        "action": "set",
        "content": "Water the plants",
        "tags": ["home"],
        "trigger": {"type": "time", "in_minutes": 5},
    }
    first = bridge.data("/intention", {**new, "priority": "high"})["intentionId"]
    second = bridge.data("/intention", old)["intention"]["description"]
    assert second == "Water the plants (tags: home)"
    checked = bridge.data(
        "/intention", {"action": "check", "context": {"topics": ["cats"]}, "include_snoozed": True}
    )
    assert [one["id"] for one in checked["triggered"]] == [first]
    bridge.data("/intention", {"action": "update", "id": first, "status": "complete"})
    listed = bridge.data("/intention", {"action": "list", "filter_status": "all", "limit": 200})
    assert {one["id"]: one["status"] for one in listed["intentions"]}[first] == "fulfilled"


def test_what_concerns_the_whole_memory_works(bridge: Bridged) -> None:
    for number in range(6):
        bridge.remember(f"Bird number {number} sings at {number} o'clock.")
    assert bridge.data("/dream", {"memory_count": 1})["memoriesReplayed"] >= 5
    assert "nodesProcessed" in bridge.data("/consolidate")
    assert bridge.data("/backup")["sizeBytes"] > 0
    session = bridge.data("/session_context", {"token_budget": 500, "context": {"topics": ["birds"]}})
    assert session["tokensUsed"] <= 500
    assert "predictions" in bridge.data("/predict", {"context": {"current_topics": ["birds"]}})
    score = bridge.data("/importance_score", {"content": "Birds sing.", "contextTopics": ["birds"]})
    assert 0 <= score["composite"] <= 1


def test_connections_are_explored(bridge: Bridged) -> None:
    memory_id = bridge.remember("Eels swim to the Sargasso Sea.")
    told = bridge.data("/explore_connections", {"action": "associations", "from": memory_id, "limit": 3})
    assert told["memory"]["id"] == memory_id


def test_a_retry_with_the_same_key_changes_nothing(bridge: Bridged) -> None:
    key = {"Idempotency-Key": "turn 1"}
    body = {"content": "Crabs walk sideways.", "force_create": True}
    first = bridge.data("/ingest", body, "one", **key)
    again = bridge.data("/ingest", body, "one", **key)
    other = bridge.data("/ingest", body, "two", **key)
    assert (again["nodeId"], again["replayed"]) == (first["nodeId"], True)
    assert (other["nodeId"] == first["nodeId"], other["replayed"]) == (False, False)


def test_without_a_key_the_same_text_can_be_told_twice(bridge: Bridged) -> None:
    body = {"content": "Snails carry their house.", "force_create": True}
    assert bridge.data("/ingest", body)["nodeId"] != bridge.data("/ingest", body)["nodeId"]


@pytest.mark.parametrize(
    ("path", "body", "argument"),
    [
        ("/search", {}, "query"),
        ("/search", {"query": "x", "limit": 1000}, "limit"),
        ("/search", {"query": "x", "limitt": 1}, "limitt"),
        ("/search", {"query": "x", "mode": "magic"}, "mode"),
        ("/search", {"query": "x", "truncate_body_chars": -1}, "truncate_body_chars"),
        ("/search", {"query": "x", "minSimilarity": 1, "min_similarity": 1}, "min_similarity"),
        ("/promote", {}, "memory_id"),
        ("/memory", {"memory_id": "x"}, "action"),
        ("/memory", {"action": 5}, "action"),
        ("/ingest", {"content": "x", "nodetype": "fact"}, "nodetype"),
        ("/intention", {"action": "set", "description": "x", "trigger": {"typ": "time"}}, "trigger.typ"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(bridge: Bridged, path: str, body: object, argument: str) -> None:
    response = bridge.post(path, body)
    assert response.status_code == 422
    told = response.json()
    assert told["details"]["argument"] == argument
    assert isinstance(told["detail"], str)


@pytest.mark.parametrize("raw", [b"{", b"[1]", b'"x"', b"\xff", b'{"a": "\\ud800"}', b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_refused(bridge: Bridged, raw: bytes) -> None:
    response = bridge.http.post("/search", content=raw, headers=BEARER)
    assert response.status_code == 422


def test_what_a_tool_decides_against_is_no_failure_of_the_bridge(bridge: Bridged) -> None:
    answer = bridge.told("/ingest", {"content": "My key is AKIAIOSFODNN7EXAMPLE, password: hunter2hunter2"})
    assert (answer["success"], answer["code"]) == (False, "secret_found")
    assert "hunter2" not in answer["error"]


def test_health_and_readiness_are_told(bridge: Bridged) -> None:
    bridge.data("/search", {"query": "anything"})
    health = bridge.http.get("/health")
    assert health.status_code == 200
    told = health.json()
    assert told.pop("uptime_seconds") >= 0
    assert told == {"status": "healthy", "vestige_process": True, "vestige_connected": True}
    assert bridge.http.get("/readyz").json() == {"ready": True}


def test_other_addresses_and_methods_are_refused(bridge: Bridged) -> None:
    nowhere = bridge.post("/nothing")
    assert (nowhere.status_code, nowhere.json()["code"]) == (404, "no_such_route")
    assert "/search" in nowhere.json()["hint"]
    assert "/api/v1" not in nowhere.json()["hint"]
    assert bridge.http.get("/search", headers=BEARER).status_code == 405


def test_every_answer_has_the_id_of_its_request(bridge: Bridged) -> None:
    mine = {"X-Request-Id": "mine-1"}
    responses = [
        bridge.post("/search", {"query": "x"}, **mine), bridge.post("/search", {}, **mine),
        bridge.http.post("/search", headers=mine), bridge.http.get("/health", headers=mine),
        bridge.post("/nothing", **mine),
    ]  # fmt: skip
    assert [one.headers["x-request-id"] for one in responses] == ["mine-1"] * 5
    odd = bridge.post("/search", {"query": "x"}, **{"X-Request-Id": "a b"})
    assert odd.headers["x-request-id"] not in ("", "a b")


def test_every_address_was_tried() -> None:
    tried = Path(__file__).read_text(encoding="utf-8")
    assert [path for path in READERS if f'"{path}"' not in tried] == []
