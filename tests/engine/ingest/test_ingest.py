"""The write path through the public tools, on every store."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.world import HandClock, World, open_world
from vestige.core.caller import Invocation
from vestige.core.errors import Cancelled, EmbedderError, SecretFound
from vestige.embed.background import EmbedderSource
from vestige.embed.hashing import HashingEmbedder
from vestige.embed.protocol import Encoded
from vestige.engine.context import Call
from vestige.engine.ingest.batch import NewText
from vestige.engine.ingest.ingest import ingest
from vestige.engine.ingest.secrets import SCREENED


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

    again = world.call("smart_ingest", content="  ada prefers TEA in the morning", tags=["daily"])

    assert (again["decision"], again["nodeId"]) == ("reinforce", first)
    assert world.call("system_status")["totalMemories"] == 1
    node = world.get(first)
    assert node["tags"] == ["drink", "daily"]
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


def test_every_turn_of_a_thread_is_kept_and_a_repeated_delivery_is_not(world: World) -> None:
    turns = [f"Ada: I think we should meet on day {n} at the office." for n in range(28)] + ["Yes.", "Yes."]
    items = [{"content": text, "thread": "chat", "position": n} for n, text in enumerate(turns)]

    first = world.call("smart_ingest", items=items)
    again = world.call("smart_ingest", items=items)
    elsewhere = world.call("smart_ingest", content="Yes.", thread="other", position=1)
    note = world.call("smart_ingest", content="Yes.")

    whole = {"total": 30, "skipped": 0, "errors": 0}
    assert first["summary"] == whole | {"created": 30, "updated": 0, "create": 30}
    assert again["summary"] == whole | {"created": 0, "updated": 30, "reinforce": 30}
    assert [r["nodeId"] for r in again["results"]] == [r["nodeId"] for r in first["results"]]
    assert (elsewhere["decision"], note["decision"]) == ("create", "create")
    assert world.call("memory", action="list", thread="other")["total"] == 1


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
        assert world.app.embed_missing_when_ready().wait(PATIENCE_SECONDS)
        assert world.get(memory_id)["hasEmbedding"] is True
        assert world.call("search", query="probes")["method"] == "hybrid"


def test_with_another_model_texts_are_kept_without_vectors_and_found_by_words(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path, clock=clock) as world:
        assert "warning" not in world.call("smart_ingest", content="One text.")
    with open_world(tmp_path, clock=clock) as world:
        object.__setattr__(world.app.engine, "embedders", EmbedderSource.of(HashingEmbedder(dimension=32)))
        answer = world.call("smart_ingest", content="Another text, of the harbour.", idempotency_key="k")
        written = answer["nodeId"]
        assert answer["hasEmbedding"] is False
        assert answer["warning"].startswith("Stored without meaning search")
        assert all(
            one.signature.profile in answer["warning"]
            for one in (HashingEmbedder(), HashingEmbedder(dimension=32))
        )
        assert "vestige migrate --reembed" in answer["warning"]
        batch = world.call("smart_ingest", items=[{"content": "Tea."}, {"content": "Cobalt is blue."}])
        assert batch["warning"] == answer["warning"]
        again = world.call("smart_ingest", content="Another text, of the harbour.", idempotency_key="k")
        assert again == {**answer, "replayed": True}
        assert world.get(written)["hasEmbedding"] is False
        found = world.call("search", query="harbour")
        assert (found["method"], found["total"]) == ("keyword", 1)
        assert "vestige rebuild --vectors" in found["note"]
        assert any("no vectors" in said for said in world.call("system_status")["warnings"])
    with open_world(tmp_path, clock=clock) as world:
        assert world.app.embed_missing_when_ready().wait(PATIENCE_SECONDS)
        assert world.get(written)["hasEmbedding"] is True


def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path, clock=clock) as world:
        memory_id = world.remember("Feature flags live in LaunchDarkly.", tags=["ops"])
        world.call("memory", action="promote", id=memory_id)
        before = world.get(memory_id)
    with open_world(tmp_path, clock=clock) as world:
        assert world.get(memory_id) == before
        assert world.find("where do feature flags live") == ["Feature flags live in LaunchDarkly."]


def test_an_older_fact_does_not_end_the_present_one(world: World) -> None:
    present = world.remember("Harbour runs on PostgreSQL 16 today.", occurred_at="2025-05-01")

    older = world.call(
        "smart_ingest", content="Harbour runs on PostgreSQL 14 today.", occurred_at="2020-05-01"
    )
    past = world.call(
        "smart_ingest",
        content="Harbour runs on PostgreSQL 13 today.",
        valid_from="2018-01-01",
        valid_until="2019-12-31",
    )

    assert (older["decision"], past["decision"]) == ("create", "create")
    assert "validUntil" not in world.get(present)
    assert "Harbour runs on PostgreSQL 16 today." in world.find("Harbour PostgreSQL")


def test_a_correction_that_says_since_when_ends_the_old_fact_then(world: World) -> None:
    world.remember("Harbour runs on PostgreSQL 14 today.", occurred_at="2020-05-01")

    world.call("smart_ingest", content="Harbour runs on PostgreSQL 16 today.", occurred_at="2025-05-01")

    assert world.find("Harbour PostgreSQL", as_of="2024-01-01") == ["Harbour runs on PostgreSQL 14 today."]
    assert world.find("Harbour PostgreSQL", as_of="2025-06-01") == ["Harbour runs on PostgreSQL 16 today."]


def test_an_expired_fact_told_again_is_true_again(world: World) -> None:
    old = world.remember("The canteen is open on Sundays.")
    world.call("memory", action="set_validity", id=old, valid_until="2020-01-01", valid_from="2019-01-01")
    assert world.find("canteen Sundays") == []

    answer = world.call("smart_ingest", content="The canteen is open on Sundays.")

    assert answer["decision"] == "create"
    assert world.find("canteen Sundays") == ["The canteen is open on Sundays."]


def test_what_is_told_with_the_same_text_again_is_kept(world: World) -> None:
    first = world.remember("Invoices are due in two weeks.", metadata={"a": 1})

    world.call(
        "smart_ingest",
        content="Invoices are due in two weeks.",
        metadata={"a": 2, "b": 3},
        domains=["money"],
        author="ada",
        valid_until="2027-01-01T00:00:00Z",
    )

    node = world.get(first)
    assert node["metadata"] == {"a": 1, "b": 3}
    assert (node["domains"], node["author"]) == (["money"], "ada")
    assert node["validUntil"] == "2027-01-01T00:00:00Z"


def test_a_new_text_at_the_same_place_brings_its_own_fields(world: World) -> None:
    first = world.remember("def old(): ...", source="a.py", position=1, metadata={"sha": "a"}, author="x")

    world.call("smart_ingest", content="def new(): ...", source="a.py", position=1, metadata={"sha": "b"})

    node = world.get(first)
    assert (node["content"], node["metadata"], node["author"]) == ("def new(): ...", {"sha": "b"}, "x")


def test_two_texts_for_one_place_in_one_batch_are_one_memory(world: World) -> None:
    answer = world.call(
        "smart_ingest",
        items=[
            {"content": "First version of the section.", "source": "doc.md", "position": 2},
            {"content": "Another text altogether.", "source": "doc.md", "position": 2},
        ],
    )

    assert [result["decision"] for result in answer["results"]] == ["create", "update"]
    assert world.call("system_status")["totalMemories"] == 1


def test_a_paragraph_does_not_judge_the_long_text_it_resembles(world: World) -> None:
    paragraphs = [
        f"Rule {n}: do not leave machine {n} running for more than {n + 5} minutes." for n in range(60)
    ]
    document = world.remember(" ".join(paragraphs))

    answer = world.call("smart_ingest", content=" ".join(paragraphs[:4]).replace("do not ", ""))

    assert answer["decision"] in ("create", "merge")
    assert world.get(document)["revision"] == 1
    assert world.get(document)["reps"] == 0


class Broken(HashingEmbedder):
    """An endpoint that went away."""

    def encode_documents(self, texts: Sequence[str]) -> list[Encoded]:
        raise EmbedderError("The endpoint does not answer.")

    def encode_query(self, text: str) -> Encoded:
        raise EmbedderError("The endpoint does not answer.")


def test_memory_goes_on_by_words_while_the_model_fails(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path, clock=clock) as world:
        world.remember("Before the outage.")
    with open_world(tmp_path, clock=clock) as world:
        object.__setattr__(world.app.engine, "embedders", EmbedderSource.of(Broken()))
        kept = world.remember("Written during the outage.")
        found = world.call("search", query="outage")
        assert (found["method"], found["total"]) == ("keyword", 2)
        assert "does not answer" in found["note"]
        assert world.get(kept)["hasEmbedding"] is False
    with open_world(tmp_path, clock=clock) as world:
        assert world.app.embed_missing_when_ready().wait(PATIENCE_SECONDS)
        assert world.get(kept)["hasEmbedding"] is True


class Stopping(HashingEmbedder):
    """A caller who goes away while the first slice is embedded."""

    def __init__(self, cancelled: threading.Event) -> None:
        super().__init__()
        self.cancelled = cancelled

    def encode_documents(self, texts: Sequence[str]) -> list[Encoded]:
        self.cancelled.set()
        return super().encode_documents(texts)


def test_cancelling_while_a_batch_is_embedded_writes_nothing(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        cancelled = threading.Event()
        object.__setattr__(world.app.engine, "embedders", EmbedderSource.of(Stopping(cancelled)))
        steps: list[float] = []
        with pytest.raises(Cancelled):
            world.app.call_tool(
                Invocation(
                    name="smart_ingest",
                    arguments={"items": [{"content": f"text number {n}"} for n in range(300)]},
                    progress=lambda done, total, what: steps.append(done),
                    cancelled=cancelled,
                )
            )
        assert steps == [64]
        assert world.call("system_status")["totalMemories"] == 0


def test_a_long_batch_tells_how_far_it_is(world: World) -> None:
    steps: list[tuple[float, float | None]] = []
    world.app.call_tool(
        Invocation(
            name="smart_ingest",
            arguments={"items": [{"content": f"text number {n}"} for n in range(150)]},
            progress=lambda done, total, what: steps.append((done, total)),
        )
    )
    assert steps == [(64, 150), (128, 150), (150, 150)]


def test_what_was_true_once_and_what_is_true_now_are_two_memories(world: World) -> None:
    past = {"content": "Ada works at Acme", "valid_from": "2015-01-01", "valid_until": "2017-12-31"}

    answer = world.call("smart_ingest", items=[past, {"content": "Ada works at Acme"}])

    assert [result["decision"] for result in answer["results"]] == ["create", "create"]
    assert world.find("Ada Acme") == ["Ada works at Acme"]


def test_later_items_of_a_batch_are_judged_by_what_earlier_ones_made_of_a_memory(world: World) -> None:
    known = world.remember("The office is in Berlin today.", source="wiki", position=1)

    answer = world.call(
        "smart_ingest",
        items=[
            {"content": "Correction: the office is in Munich today."},
            {"content": "Parking is behind the building.", "source": "wiki", "position": 1},
            {"content": "The office is in Berlin today."},
        ],
    )

    decisions = [result["decision"] for result in answer["results"]]
    assert decisions[0] == "supersede"
    assert decisions[1] == "create"
    assert answer["results"][2]["nodeId"] != known
    assert "Parking is behind the building." in world.find("parking building")


def test_a_new_text_at_a_place_leaves_the_wordings_of_the_old_one_behind(world: World) -> None:
    place = {"source": "notes.md", "position": 7}
    first = world.remember("Tea is what Ada wants in the morning.", **place)
    world.call("memory", action="edit", id=first, content="Tea is what Ada wants in the morning!")

    world.call("smart_ingest", content="The kitchen was painted yellow.", **place)
    again = world.call("smart_ingest", content="Tea is what Ada wants in the morning!")

    assert world.get(first)["phrasings"] == []
    assert again["nodeId"] != first


def test_a_place_is_filled_in_whole_or_not_at_all(world: World) -> None:
    memory_id = world.remember("Ada lives in Berlin.", source="a.md")

    world.call("smart_ingest", content="Ada lives in Berlin.", source="b.md", position=5)

    node = world.get(memory_id)
    assert (node["source"], node.get("position")) == ("a.md", None)


def test_the_same_thing_on_two_days_is_two_memories(world: World) -> None:
    world.remember("Ada went running.", occurred_at="2026-02-01")

    answer = world.call("smart_ingest", content="Ada went running.", occurred_at="2026-02-02")

    assert answer["decision"] != "reinforce"
    assert world.call("system_status")["totalMemories"] == 2


def test_the_last_day_there_is_can_be_an_end(world: World) -> None:
    memory_id = world.remember("True for ever.", valid_until="9999-12-31")

    assert world.get(memory_id)["validUntil"].startswith("9999-12-31")


@pytest.mark.parametrize("field", SCREENED)
def test_a_secret_is_found_in_a_field_that_is_not_named_as_given(field: str, world: World) -> None:
    key = "ghp_" + "a8Kx93mPq0ZvT2rYw7LdNc51sBfUeJhGi4Xo"  # made up
    value: Any = {"tags": (key,), "domains": (key,), "metadata": {"key": key}}.get(field, key)
    with pytest.raises(SecretFound) as refused:
        ingest(Call(engine=world.app.engine), [NewText(**{"content": "A mirror.", field: value})])

    assert refused.value.details["argument"].partition(".")[0] == field
    assert world.call("system_status")["totalMemories"] == 0
