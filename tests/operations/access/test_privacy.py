"""Where and how a store runs is told to those who may do everything with all of it, and to nobody else."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.failures import Failures
from testbed.world import World, open_world
from tests.operations.access.access_world import LIMITS, MINE, Answer, asked, reach_world
from tests.operations.access.test_access import ONE, ways
from vestige.core.caller import LOCAL_USER, PERMISSIONS, Caller
from vestige.core.errors import (
    ConfigError,
    EmbedderError,
    MissingExtra,
    ModelUnavailable,
    StoreError,
    StoreUnavailable,
    VestigeError,
)
from vestige.core.models import EVERYTHING, Access, Memory
from vestige.embed.background import EmbedderSource
from vestige.embed.hashing import HashingEmbedder
from vestige.embed.protocol import Encoded, Reranker
from vestige.embed.rerank import RerankerSource
from vestige.engine.context import Call, Engine
from vestige.operations.registry.groups import registry
from vestige.operations.registry.registry import hide_installation_errors
from vestige.store.contract.changes import Add

READER = Caller(name="reader", permissions=frozenset({"read", "write"}))
"""Who reaches everything, and may not do everything with it."""
ELSEWHERE = Caller(name="elsewhere", permissions=frozenset(PERMISSIONS), access=Access(scopes=(MINE,)))

TELLING = "/srv/hidden"
"""What of the installation an error names."""
LESS = pytest.mark.parametrize("caller", [READER, ELSEWHERE], ids=["reader", "limited"])


def called(engine: Engine, caller: Caller) -> Call:
    return Call(
        engine=engine, access=caller.access, permissions=caller.permissions, scope=MINE, request_id="r7"
    )


class FailingEmbedder(HashingEmbedder):
    """A model that was there when it was loaded, and fails when it is used."""

    def __init__(self, error: VestigeError) -> None:
        super().__init__()
        self._error = error

    def encode_query(self, text: str) -> Encoded:
        raise self._error

    def encode_documents(self, texts: Sequence[str]) -> list[Encoded]:
        raise self._error


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A world with a part that is limited to domains."""
    with reach_world(tmp_path, LIMITS["domains"]) as opened:
        yield opened


@pytest.mark.parametrize("caller", [READER, ONE], ids=["reader", "limited"])
def test_only_who_may_do_everything_is_told_of_the_installation(world: World, caller: Caller) -> None:
    status = registry.operations["system_status"]
    less, whole = asked(world, status, {}, caller), asked(world, status, {}, LOCAL_USER)
    hidden = {"node", "dataDir", "autopilot"}
    assert hidden <= whole.keys()
    assert hidden.isdisjoint(less)
    assert (less["processes"], len(whole["processes"])) == ([], 1)
    assert (less["totalMemories"] < whole["totalMemories"]) is (caller is ONE)


@pytest.mark.parametrize("caller", [READER, ONE], ids=["reader", "limited"])
def test_no_answer_says_where_the_store_is_to_who_may_not_do_everything(
    tmp_path: Path, caller: Caller
) -> None:
    failures = Failures()
    for name, operation in registry.operations.items():
        with failures.case(name), reach_world(tmp_path / name, LIMITS["domains"]) as world:
            answers = [asked(world, operation, arguments, caller) for arguments in ways(operation)]
            assert str(tmp_path) not in json.dumps(answers, default=str)
    failures.check()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("search", {"query": "tea"}), ("deep_reference", {"query": "Who drinks tea?"}), ("system_status", {})],
)
def test_an_endpoint_that_fails_is_named_to_who_may_do_everything_only(
    tmp_path: Path, name: str, arguments: Answer
) -> None:
    host = "127.0.0.9"  # where nobody listens
    endpoint: Answer = {"embeddings.url": f"http://{host}:9/v1", "embeddings.model": "m"}
    with open_world(tmp_path, provider="openai", **endpoint) as world:
        world.remember("Ada drinks tea.")
        operation = registry.operations[name]
        for caller in (READER, ELSEWHERE):
            assert host not in json.dumps(asked(world, operation, arguments, caller))
        assert host in json.dumps(asked(world, operation, arguments, LOCAL_USER))


@LESS
@pytest.mark.parametrize(
    "kind", [ConfigError, EmbedderError, MissingExtra, ModelUnavailable, StoreUnavailable]
)
def test_of_an_error_inside_only_its_kind_is_told_to_who_may_not_do_everything(
    world: World, caller: Caller, kind: type[VestigeError], caplog: pytest.LogCaptureFixture
) -> None:
    error = kind(f"{TELLING} is wrong.", hint=f"Look at {TELLING}.", details={"path": TELLING})

    with pytest.raises(kind) as told, hide_installation_errors(called(world.app.engine, caller)):
        raise error
    assert told.value.message == kind.__doc__
    assert TELLING not in str(told.value.value())
    assert "request r7" in str(told.value.hint)
    assert TELLING in caplog.text

    with pytest.raises(kind) as whole, hide_installation_errors(called(world.app.engine, LOCAL_USER)):
        raise error
    assert whole.value is error


@LESS
def test_why_a_reranker_failed_is_told_to_who_may_do_everything_only(world: World, caller: Caller) -> None:
    def refuse() -> Reranker:
        raise ModelUnavailable(f"{TELLING} cannot be loaded.", hint=f"Look at {TELLING}.")

    source = RerankerSource(refuse, monotonic=lambda: 0.0, wait_seconds=60.0)
    engine, status = replace(world.app.engine, reranker=source), registry.operations["system_status"]

    less = status.call(called(engine, caller), {})
    assert "Results are not reranked: the reranker cannot be used." in less["warnings"]
    assert TELLING not in json.dumps(less)
    whole = status.call(called(engine, LOCAL_USER), {})
    assert f"Results are not reranked: {TELLING} cannot be loaded." in whole["warnings"]
    assert f"Look at {TELLING}." in whole["recommendations"]


@LESS
def test_why_a_query_could_not_be_embedded_is_told_to_who_may_do_everything_only(
    world: World, caller: Caller
) -> None:
    source = EmbedderSource.of(FailingEmbedder(EmbedderError(f"{TELLING} does not answer.")))
    engine, search = replace(world.app.engine, embedders=source), registry.operations["search"]

    less = json.dumps(search.call(called(engine, caller), {"query": "tea"}))
    assert str(EmbedderError.__doc__) in less
    assert TELLING not in less
    assert f"{TELLING} does not answer." in json.dumps(
        search.call(called(engine, LOCAL_USER), {"query": "tea"})
    )


@pytest.mark.parametrize("kind", [ConfigError, EmbedderError, MissingExtra, StoreError])
def test_the_note_of_a_step_that_failed_inside_names_nothing_since_others_read_it(
    world: World, kind: type[VestigeError], caplog: pytest.LogCaptureFixture
) -> None:
    now = world.clock.now
    bare = Memory(id="bare", content="Tea is in the kitchen.", created_at=now, updated_at=now)
    world.app.engine.store.commit([Add(memory=bare)], access=EVERYTHING)
    source = EmbedderSource.of(FailingEmbedder(kind(f"{TELLING} is wrong.")))
    call = called(replace(world.app.engine, embedders=source), LOCAL_USER)

    done = registry.operations["consolidate"].call(call, {})

    notes = {one["step"]: one.get("note") for one in done["steps"]}
    assert notes["embeddings"] == f"not done: {kind.__doc__}"
    (row,) = world.app.engine.store.documents("consolidation", access=EVERYTHING, limit=9)
    assert {one["step"]: one["note"] for one in row.body["steps"]} == notes
    assert TELLING not in json.dumps(done)
    assert TELLING in caplog.text


@pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
def test_a_name_that_is_taken_is_refused_without_saying_where(world: World, name: str) -> None:
    export, folder = registry.operations["export"], str(world.app.engine.settings.data_dir)

    first, second = (asked(world, export, {"path": name}, ELSEWHERE) for _ in range(2))

    assert first["path"] == f"exports/{name}"
    assert second["error"]["message"] == f"{name} exists already."
    assert folder not in json.dumps(second)
