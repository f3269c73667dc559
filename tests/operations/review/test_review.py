"""`review`: what waits, what a decision makes of it, and that nothing else sees it."""

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.world import HandClock, World, open_world
from tests.operations.memory.test_forget_hidden import DOORS, QUERY, VISIBLE, WORD, ask, planted
from vestige.core.caller import Caller, Invocation
from vestige.core.errors import VestigeError
from vestige.core.events import ReviewWaiting
from vestige.core.models import Access
from vestige.core.origin import Origin
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

TEXT = "Ada prefers tea over coffee."


def hold(world: World, content: str = TEXT, **arguments: Any) -> str:
    """Let a text wait; its id in the inbox."""
    answer = world.call("smart_ingest", content=content, review=True, **arguments)
    assert (answer["status"], answer["decision"]) == ("pending", "pending")
    return str(answer["nodeId"])


def review(world: World, action: str, **arguments: Any) -> dict[str, Any]:
    return world.call("review", action=action, **arguments)


def waiting(world: World) -> list[str]:
    return [one["id"] for one in review(world, "list")["texts"]]


def test_a_waiting_text_is_seen_by_review_and_through_no_other_door(world: World) -> None:
    secret = "Murmelstadt"
    ids = planted(world)
    text = f"The staging cluster runs PostgreSQL 15, as {secret} told us."
    hold(world, text, tags=[secret], source=secret, author=secret)
    world.app.settle()

    others = [name for name in DOORS if name not in {"review.list", "review.waiting"}]
    seen = [name for name in others if secret in ask(world, name, ids)]
    assert seen == []
    assert secret in ask(world, "review.list", ids)
    assert secret not in str([event.message() for event in world.heard])
    assert secret not in str(world.find(f"{QUERY} {secret}", min_confidence=0))
    assert secret not in str(world.call("memory", action="list", limit=200, include_suppressed=True))
    resources = [uri for uri in registry.resources if "{" not in uri]
    reads = [registry.match_resource(uri) for uri in resources]
    answers = [operation.call(Call(engine=world.app.engine), given) for operation, given in reads]
    assert secret not in json.dumps(answers)
    assert VISIBLE in str(world.find(QUERY))
    assert WORD in ask(world, "memory.list", ids)


def test_waiting_texts_move_no_ranking_and_no_count(world: World) -> None:
    for number in range(20):
        world.remember(f"Note {number}: the parser of module {number} is written in Rust.")
    before = world.call("search", query="parser written in Rust", record=False)
    stats = world.call("system_status")
    for number in range(100):
        hold(world, f"The parser is written in Rust, says text {number}.", tags=["parser"])
    world.app.settle()

    after = world.call("search", query="parser written in Rust", record=False)
    now = world.call("system_status")
    for answer in (before, after):
        answer.pop("durationMs", None)
    assert after == before
    assert (stats.pop("waitingForReview"), now.pop("waitingForReview")) == (0, 100)
    assert {name: now[name] for name in ("totalMemories", "byType", "byScope", "connections")} == {
        name: stats[name] for name in ("totalMemories", "byType", "byScope", "connections")
    }


def test_the_count_of_waiting_texts_is_announced(world: World) -> None:
    assert "Review" not in world.call("session_context")["context"]
    name = hold(world)
    session = world.call("session_context")
    assert session["waitingForReview"] == 1
    assert "**Review:** 1 text for the user" in session["context"]
    assert TEXT not in session["context"]
    assert [event.id for event in world.heard if isinstance(event, ReviewWaiting)] == [name]
    review(world, "reject", id=name)
    assert world.call("session_context")["waitingForReview"] == 0


def test_an_approved_text_passes_the_gate_like_a_new_one(world: World) -> None:
    known = world.remember(TEXT)
    same = hold(world)
    other = hold(world, "The harbour has three cranes.", tags=["harbour"], node_type="note", author="Bo")

    assert review(world, "approve", id=same)["decision"] == "reinforce"
    done = review(world, "approve", id=other)
    assert (done["status"], done["decision"]) == ("approved", "create")
    node = world.get(done["memoryId"])
    assert (node["tags"], node["nodeType"], node["author"]) == (["harbour"], "note", "Bo")
    assert world.call("system_status")["totalMemories"] == 2
    assert waiting(world) == []
    assert review(world, "show", id=same)["memoryId"] == known


def test_an_approved_correction_supersedes_from_the_time_it_was_said(world: World) -> None:
    old = world.remember("The release is planned for March 3.")
    world.clock.advance(days=1)
    said = world.clock.now
    name = hold(world, "Correction: the release is planned for March 9, not March 3.")
    world.clock.advance(days=2)
    done = review(world, "approve", id=name)
    assert done["decision"] == "supersede"
    ended = world.get(old)
    assert (ended["supersededBy"], ended["validUntil"][:10]) == (done["memoryId"], f"{said:%Y-%m-%d}")

    assert review(world, "undo", id=name)["status"] == "waiting"
    assert not {"supersededBy", "validUntil"} & world.get(old).keys()
    assert world.refused("memory", action="get", id=done["memoryId"])["code"] == "not_found"
    assert waiting(world) == [name]


def test_a_rejected_text_is_kept_out_of_sight_and_can_come_back(world: World) -> None:
    name = hold(world)
    assert review(world, "reject", id=name)["status"] == "rejected"
    assert (waiting(world), world.find("tea coffee")) == ([], [])
    (kept,) = review(world, "list", status="rejected")["texts"]
    assert kept["content"] == TEXT
    assert "already" in world.refused("review", action="approve", id=name)["message"]

    review(world, "undo", id=name)
    assert review(world, "approve", id=name)["decision"] == "create"
    assert world.find("tea coffee") == [TEXT]


def test_an_edited_text_keeps_its_first_wording(world: World) -> None:
    name = hold(world)
    shown = review(world, "edit", id=name, content="Ada prefers green tea.", tags=["tea"])
    assert (shown["content"], shown["original"]) == ("Ada prefers green tea.", TEXT)
    assert shown["status"] == "waiting"
    review(world, "edit", id=name, node_type="preference")
    memory_id = review(world, "approve", id=name)["memoryId"]
    node = world.get(memory_id)
    assert node["content"] == "Ada prefers green tea."
    assert (node["tags"], node["nodeType"]) == (["tea"], "preference")
    assert world.refused("review", action="edit", id=name, content="Late.")["code"] == "invalid_input"


def test_a_text_can_join_a_memory_by_choice(world: World) -> None:
    into = world.remember("Ada likes tea.")
    first = hold(world, "Tea is what Ada drinks.")
    done = review(world, "merge", id=first, into=into)
    assert (done["status"], done["memoryId"]) == ("merged", into)
    assert world.get(into)["phrasings"] == ["Tea is what Ada drinks."]

    second = hold(world, "Ada drinks tea at four.")
    review(world, "merge", id=second, into=into, content="Ada likes tea, and drinks it at four.")
    assert world.get(into)["content"] == "Ada likes tea, and drinks it at four."
    versions = world.call("memory", action="history", id=into)
    assert "Ada likes tea." in str(versions)
    assert "part of the memory" in world.refused("review", action="undo", id=first)["message"]


def test_a_text_goes_with_the_memory_that_it_became(world: World) -> None:
    name = hold(world, "The vault code word is Murmelstadt.")
    memory_id = review(world, "approve", id=name)["memoryId"]
    world.call("memory", action="delete", id=memory_id)
    assert world.refused("review", action="show", id=name)["code"] == "not_found"
    assert "Murmelstadt" not in str(review(world, "list", status="all"))


def test_a_deleted_text_is_gone(world: World) -> None:
    name = hold(world)
    review(world, "delete", id=name)
    assert review(world, "list", status="all")["total"] == 0
    assert world.refused("review", action="delete", id=name)["code"] == "not_found"


def test_a_batch_may_hold_some_texts_and_store_others(world: World) -> None:
    items = [{"content": "Bo walks."}, {"content": TEXT, "review": True}, {"content": "Bo cycles at night."}]
    answer = world.call("smart_ingest", items=items, idempotency_key="once")
    assert [one["decision"] for one in answer["results"]] == ["create", "pending", "create"]
    assert {name: answer["summary"][name] for name in ("total", "created", "pending")} == {
        "total": 3,
        "created": 2,
        "pending": 1,
    }
    again = world.call("smart_ingest", items=items, idempotency_key="once")
    assert (again["replayed"], again["results"]) == (True, answer["results"])
    assert len(waiting(world)) == 1


def test_a_long_text_can_wait(world: World) -> None:
    name = hold(world, "Tea. " * 150_000)
    shown = review(world, "show", id=name)
    assert shown["contentLength"] == 750_000
    assert len(review(world, "list")["texts"][0]["content"]) < 1_100
    assert review(world, "approve", id=name)["decision"] == "create"


@pytest.mark.parametrize("policy", ["off", "low_trust", "all"])
def test_the_policy_of_the_nearest_scope_decides_what_waits(tmp_path: Path, policy: str) -> None:
    scopes = "/project/open=off,/project=all"
    settings: dict[str, Any] = {"review.policy": policy, "review.scopes": scopes}
    with open_world(tmp_path, **settings) as world:

        def status(scope: str) -> str:
            answer = world.call("smart_ingest", content=f"Bo walks in {scope}.", scope=scope)
            return str(answer["status"])

        assert status("/elsewhere") == ("pending" if policy == "all" else "saved")
        assert status("/project/closed/deep") == "pending"
        assert status("/project/open/deep") == "saved"


def test_what_the_user_writes_at_the_command_line_never_waits_by_policy(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"review.policy": "all"}
    with open_world(tmp_path, **settings) as world:
        operation = registry.operations["smart_ingest"]
        answer = operation.call(Call(engine=world.app.engine, origin=Origin.USER), {"content": TEXT})
        assert answer["status"] == "saved"


def test_a_caller_limited_to_scopes_sees_and_decides_only_there(world: World) -> None:
    mine, theirs = hold(world, scope="/mine"), hold(world, "Bo likes coffee.", scope="/theirs")
    caller = Caller(name="key", permissions=frozenset({"read", "write"}), access=Access(scopes=("/mine",)))

    def ask_as(action: str, **arguments: Any) -> dict[str, Any]:
        given = {"action": action, **arguments}
        return world.app.call_tool(Invocation(name="review", arguments=given, caller=caller))

    assert [one["id"] for one in ask_as("list", status="all")["texts"]] == [mine]
    for action in ("show", "approve", "reject", "delete", "undo"):
        with pytest.raises(VestigeError, match="no text"):
            ask_as(action, id=theirs)
    assert ask_as("approve", id=mine)["status"] == "approved"


def test_a_text_of_a_caller_limited_to_a_domain_waits_for_the_owner(world: World) -> None:
    caller = Caller(name="key", permissions=frozenset({"read", "write"}), access=Access(domains=("tea",)))
    given = {"content": TEXT, "review": True}
    made = world.app.call_tool(Invocation(name="smart_ingest", arguments=given, caller=caller))
    listed = world.app.call_tool(Invocation(name="review", arguments={"action": "list"}, caller=caller))
    assert listed["texts"] == []
    memory_id = review(world, "approve", id=made["nodeId"])["memoryId"]
    assert world.get(memory_id)["domains"] == ["tea"]


def test_texts_wait_through_a_restart_an_export_and_a_merge(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path / "one", clock=clock) as world:
        name, refused = hold(world, tags=["tea"]), hold(world, "Bo likes coffee.")
        review(world, "reject", id=refused)
    with open_world(tmp_path / "one", clock=clock) as world:
        assert waiting(world) == [name]
        exported = world.call("export", format="portable")
    with open_world(tmp_path / "two", clock=HandClock(first=1000)) as other:
        exports = tmp_path / "two" / "exports"
        exports.mkdir(parents=True, exist_ok=True)
        (exports / "brought.jsonl").write_bytes(Path(exported["path"]).read_bytes())
        other.call("import", path="brought.jsonl")
        assert (waiting(other), other.find("tea coffee")) == ([name], [])
        assert [one["id"] for one in review(other, "list", status="rejected")["texts"]] == [refused]
        done = review(other, "approve", id=name)
        assert other.get(done["memoryId"])["tags"] == ["tea"]
