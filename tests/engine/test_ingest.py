"""The write path through the public tools, on every store."""

from pathlib import Path

import pytest

from tests.world import HandClock, World, open_world


def test_a_first_text_becomes_a_new_memory_with_everything_it_was_told(world: World) -> None:
    told = {
        "content": "The release is cut on Thursdays.",
        "tags": ["release", "process"],
        "node_type": "decision",
        "source": "https://example.org/wiki/release",
        "scope": "/project/vestige",
        "author": "ada",
        "agent_id": "agent-7",
        "session_id": "s-1",
        "thread": "t-1",
        "position": 4,
        "occurred_at": "2026-02-01T10:00:00Z",
        "valid_from": "2026-02-02",
        "valid_until": "2027-01-01T00:00:00Z",
        "pinned": True,
        "domains": ["delivery"],
        "metadata": {"ticket": 12, "nested": {"a": [1, None]}},
    }

    answer = world.call("smart_ingest", **told)
    node = world.get(answer["nodeId"])

    assert answer["decision"] == "create"
    assert node["content"] == told["content"]
    assert node["tags"] == ["release", "process"]
    assert (node["nodeType"], node["scope"], node["author"]) == ("decision", "/project/vestige", "ada")
    assert (node["agentId"], node["sessionId"], node["thread"]) == ("agent-7", "s-1", "t-1")
    assert (node["position"], node["pinned"], node["domains"]) == (4, True, ["delivery"])
    assert node["occurredAt"] == "2026-02-01T10:00:00Z"
    assert (node["validFrom"], node["validUntil"]) == ("2026-02-02T00:00:00Z", "2027-01-01T00:00:00Z")
    assert node["metadata"] == told["metadata"]
    assert node["createdAt"] == "2026-03-01T09:00:00Z"


def test_telling_the_same_again_strengthens_and_adds_no_memory(world: World) -> None:
    first = world.remember("Ada prefers tea in the morning.", tags=["drink"])
    world.clock.advance(days=3)

    again = world.call("smart_ingest", content="  ada prefers TEA in the morning", tags=["habit"])

    assert (again["decision"], again["nodeId"]) == ("reinforce", first)
    assert world.call("system_status")["totalMemories"] == 1
    node = world.get(first)
    assert node["tags"] == ["drink", "habit"]
    assert node["reps"] == 1
    assert node["stability"] > 2.4


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Always run the migrations before the deploy.", "Never run the migrations before the deploy."),
        ("The service runs on PostgreSQL 14 today.", "The service runs on PostgreSQL 16 today."),
        ("Retries are enabled for the payment client.", "Retries are disabled for the payment client."),
        ("Use tabs for indentation in this code.", "Do not use tabs for indentation in this code."),
    ],
)
def test_a_contradiction_is_never_a_reinforcement(world: World, old: str, new: str) -> None:
    first = world.remember(old)
    world.clock.advance(days=1)

    answer = world.call("smart_ingest", content=new)

    assert answer["decision"] in ("supersede", "create")
    assert answer["nodeId"] != first
    assert world.get(first)["content"] == old
    assert world.get(first)["reps"] == 0


def test_a_correction_ends_the_old_fact_and_keeps_it_reachable(world: World) -> None:
    old = world.remember("The API listens on port 3927 in production.")
    world.clock.advance(days=10)

    answer = world.call("smart_ingest", content="The API listens on port 4100 in production.")

    assert (answer["decision"], answer["supersededId"]) == ("supersede", old)
    assert world.find("API port production") == ["The API listens on port 4100 in production."]
    before = world.find("API port production", as_of="2026-03-05")
    assert before == ["The API listens on port 3927 in production."]
    both = world.find("API port production", include_expired=True)
    assert set(both) == {
        "The API listens on port 3927 in production.",
        "The API listens on port 4100 in production.",
    }
    edges = world.call("memory", action="get", id=old)["edges"]
    assert [(edge["type"], edge["source"]) for edge in edges] == [("supersedes", answer["nodeId"])]


def test_the_old_fact_told_again_takes_over_again(world: World) -> None:
    world.remember("The API listens on port 3927 in production.")
    world.clock.advance(days=1)
    newer = world.remember("The API listens on port 4100 in production.")
    world.clock.advance(days=1)

    answer = world.call("smart_ingest", content="The API listens on port 3927 in production.")

    assert (answer["decision"], answer["supersededId"]) == ("supersede", newer)
    assert world.find("API port") == ["The API listens on port 3927 in production."]


def test_a_text_that_contains_the_old_one_becomes_its_next_revision(world: World) -> None:
    first = world.remember("The build uses Bazel with remote caching for all of the services")
    world.clock.advance(days=1)

    answer = world.call(
        "smart_ingest",
        content="The build uses Bazel with remote caching for all of the services, and tests run there.",
    )

    assert (answer["decision"], answer["nodeId"]) == ("update", first)
    node = world.get(first)
    assert node["revision"] == 2
    assert node["content"].endswith("and tests run there.")
    history = world.call("memory", action="history", id=first)
    assert [revision["content"] for revision in history["revisions"]] == [
        "The build uses Bazel with remote caching for all of the services"
    ]
    assert world.find("tests run there")[0] == node["content"]


def test_the_same_source_and_position_is_an_update_whatever_the_words(world: World) -> None:
    first = world.remember("def old(): return 1", source="src/a.py", position=3)

    answer = world.call("smart_ingest", content="class Entirely: ...", source="src/a.py", position=3)

    assert (answer["decision"], answer["nodeId"]) == ("update", first)
    assert world.get(first)["content"] == "class Entirely: ..."
    assert world.find("old") == []


def test_every_turn_of_a_thread_is_kept_unless_it_is_identical(world: World) -> None:
    turns = [f"Ada: I think we should meet on day {n} at the office." for n in range(30)]
    turns.append(turns[4])

    answer = world.call(
        "smart_ingest",
        items=[{"content": text, "thread": "chat", "position": n} for n, text in enumerate(turns)],
    )

    assert answer["summary"] == {"total": 31, "create": 30, "reinforce": 1}
    assert answer["results"][30]["nodeId"] == answer["results"][4]["nodeId"]


def test_a_pinned_memory_is_not_touched_by_a_correction(world: World) -> None:
    pinned = world.remember("The cache is enabled for the search service.", pinned=True)

    answer = world.call("smart_ingest", content="The cache is disabled for the search service.")

    assert answer["decision"] == "create"
    assert answer["relatedIds"] == [pinned]
    node = world.get(pinned)
    assert node["revision"] == 1
    assert "validUntil" not in node
    edges = world.call("memory", action="get", id=pinned)["edges"]
    assert [edge["type"] for edge in edges] == ["contradicts"]


def test_items_of_one_batch_see_what_earlier_ones_became(world: World) -> None:
    answer = world.call(
        "smart_ingest",
        items=[
            {"content": "The queue is RabbitMQ 3 in staging."},
            {"content": "The queue is RabbitMQ 4 in staging."},
            {"content": "The queue is RabbitMQ 4 in staging."},
        ],
    )

    assert [result["decision"] for result in answer["results"]] == ["create", "supersede", "reinforce"]
    assert world.find("queue staging") == ["The queue is RabbitMQ 4 in staging."]


def test_rivals_in_another_scope_are_left_alone(world: World) -> None:
    other = world.remember("The linter is enabled in this project.", scope="/project/a")

    answer = world.call("smart_ingest", content="The linter is disabled in this project.", scope="/project/b")

    assert answer["decision"] == "create"
    assert "validUntil" not in world.get(other)


def test_force_create_keeps_even_an_identical_text_apart(world: World) -> None:
    first = world.remember("Same words.")

    answer = world.call("smart_ingest", content="Same words.", force_create=True)

    assert answer["decision"] == "create"
    assert answer["nodeId"] != first


def test_a_retry_with_the_same_key_gets_the_same_answer_and_writes_once(world: World) -> None:
    told = {"content": "Deploys need two approvals.", "idempotency_key": "req-1"}
    first = world.call("smart_ingest", **told)
    world.clock.advance(days=1)

    again = world.call("smart_ingest", **told)

    assert again == {**first, "replayed": True}
    assert world.get(first["nodeId"])["reps"] == 0
    refused = world.refused("smart_ingest", content="Something else.", idempotency_key="req-1")
    assert refused["code"] == "idempotency_conflict"
    assert world.call("system_status")["totalMemories"] == 1


def test_a_batch_with_one_bad_item_writes_nothing(world: World) -> None:
    error = world.refused("smart_ingest", items=[{"content": "Good."}, {"content": "   "}])

    assert error["code"] == "invalid_input"
    assert error["details"]["index"] == 1
    assert world.call("system_status")["totalMemories"] == 0


def test_the_bus_hears_what_was_committed(world: World) -> None:
    world.remember("The cron job is enabled on the worker.", tags=["ops"])
    world.remember("The cron job is disabled on the worker.")

    names = [type(event).__name__ for event in world.heard]
    assert names == ["MemoryCreated", "MemoryCreated", "MemoryUpdated", "ConnectionDiscovered"]
    message = world.heard[0].message()
    assert message["data"]["content_preview"] == "The cron job is enabled on the worker."
    assert message["data"]["tags"] == ("ops",)


def test_without_a_model_texts_are_kept_and_embedded_once_it_is_there(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path, clock=clock, provider="off") as world:
        memory_id = world.remember("Kubernetes probes need a start-up delay.")
        assert world.get(memory_id)["hasEmbedding"] is False
        found = world.call("search", query="probes")
        assert found["method"] == "keyword"
        assert "words only" in found["note"]

    with open_world(tmp_path, clock=clock) as world:
        assert world.app.embed_missing_when_ready().wait(10)
        assert world.get(memory_id)["hasEmbedding"] is True
        assert world.call("search", query="probes")["method"] == "hybrid"


def test_vectors_of_another_model_are_refused_with_what_to_do(tmp_path: Path) -> None:
    from vestige.embed.background import EmbedderSource
    from vestige.embed.hashing import HashingEmbedder

    with open_world(tmp_path) as world:
        world.remember("One text.")
    with open_world(tmp_path) as world:
        object.__setattr__(world.app.engine, "embedders", EmbedderSource.of(HashingEmbedder(dimension=32)))
        error = world.refused("smart_ingest", content="Another text.")
        assert error["code"] == "model_mismatch"
        assert "vestige rebuild --vectors" in error["hint"]
        assert world.call("system_status")["totalMemories"] == 1
        found = world.call("search", query="text")
        assert (found["method"], found["total"]) == ("keyword", 1)


def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path, clock=clock) as world:
        memory_id = world.remember("Feature flags live in LaunchDarkly.", tags=["ops"])
        world.call("memory", action="promote", id=memory_id)
        before = world.get(memory_id)
    with open_world(tmp_path, clock=clock) as world:
        assert world.get(memory_id) == before
        assert world.find("where do feature flags live") == ["Feature flags live in LaunchDarkly."]
