"""Where and how a store runs is told to those who may do everything with all of it, and to nobody else."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.operations.reach_world import LIMITS, MINE, Answer, asked, reach_world
from tests.operations.test_reach import ONE, ways
from tests.world import World, open_world
from vestige.callers import LOCAL_USER, PERMISSIONS, Caller
from vestige.models import Access
from vestige.operations.all import registry

READER = Caller(name="reader", permissions=frozenset({"read", "write"}))
"""Who reaches everything, and may not do everything with it."""
ELSEWHERE = Caller(name="elsewhere", permissions=frozenset(PERMISSIONS), access=Access(scopes=(MINE,)))


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


@pytest.mark.parametrize("name", list(registry.operations))
@pytest.mark.parametrize("caller", [READER, ONE], ids=["reader", "limited"])
def test_no_answer_says_where_the_store_is_to_who_may_not_do_everything(
    world: World, caller: Caller, name: str
) -> None:
    operation, folder = registry.operations[name], str(world.app.engine.settings.data_dir)
    answers = [asked(world, operation, arguments, caller) for arguments in ways(operation)]
    assert folder not in json.dumps(answers, default=str)


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
