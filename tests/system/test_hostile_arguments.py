"""Every operation, called directly with hostile arguments: a result or a named error, and a sound store."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from testbed.effort import effort
from testbed.world import World
from tests.conftest import BACKENDS, POSTGRES, store_of
from tests.system.hostile_arguments import PROJECT, HostileArguments
from tests.transports.parity.example_store import example_of, planted
from vestige.core.errors import INSIDE, MissingExtra, VestigeError
from vestige.core.models import EVERYTHING, Access
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry
from vestige.operations.registry.registry import Operation

ROUNDS = effort(4, nightly=60)
CALLERS = (EVERYTHING, EVERYTHING, Access(scopes=("/project/mill",)), Access(domains=("tea",)))


@pytest.fixture(params=[*BACKENDS, POSTGRES])
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    folder = tmp_path / "data"
    (folder / "kept").mkdir(parents=True)
    monkeypatch.chdir(folder)  # some operations write where they are told to
    with store_of(request) as settings, planted(folder, settings) as opened:
        yield opened


def stored_ids(world: World) -> list[str]:
    """Memories in several scopes and states, what was made of them, an intention and a key."""
    ids = [
        world.remember(f"The {what} is in the {where}.", scope=scope, tags=[what], force_create=True)
        for what, where, scope in (
            ("mill", "valley", "/project/mill"),
            ("mill", "valley below", "/project/mill"),
            ("old mill", "valley", "/project/mill"),
            ("mill", "valley", "/project/other"),
            ("tea", "kitchen", "/user"),
            ("key", "drawer", "/"),
        )
    ]
    world.call("memory", action="pin", id=ids[5])
    world.call("suppress", id=ids[4])
    plan = world.call("dedup", action="plan", ids=ids[1:3])
    merged = world.call("dedup", action="apply", ids=ids[1:3], plan_id=plan["planId"])
    gone = world.remember("It is gone soon.", force_create=True)
    world.call("memory", action="delete", id=gone)
    intention = world.call("intention", action="set", description="Remind me to call Ada tomorrow at 10:00")
    key = world.call("keys", action="create", label="fuzz", permissions=["read"])
    return [*ids, gone, merged["node"]["id"], intention["intentionId"], key["id"]]


def failure(operation: Operation, call: Call, arguments: dict[str, Any]) -> str | None:
    """What is wrong with the outcome of a call; None for an answer in JSON or a named error."""
    try:
        answer = operation.call(call, arguments)
        json.dumps(answer, allow_nan=False)
    except MissingExtra as error:  # a method that needs another package
        return None if "scikit-learn" in error.message else error.message
    except INSIDE as error:  # the store or the model failed, which no argument may cause
        return f"{type(error).__name__}: {error.message}"
    except VestigeError as error:
        json.dumps(error.value())
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def call_of(world: World, access: Access = EVERYTHING, *, here: bool = True) -> Call:
    """A call from the folder of the planted project; `here` by the user of this machine."""
    folder = world.app.engine.settings.data_dir / PROJECT
    return Call(engine=world.app.engine, access=access, folder=folder, local=here, on_this_machine=here)


def test_the_hostile_arguments_are_about_things_that_every_operation_finds(world: World) -> None:
    answered = set()
    for operation in sorted(registry.operations.values(), key=_order):
        with suppress(VestigeError):
            operation.call(call_of(world), example_of(operation))
            answered.add(operation.name)
    assert registry.operations.keys() - answered <= TAKEN | {"backup"}


TAKEN = {"domains.accept", "domains.reject", "insights.dismiss", "project.forget", "purge"}
"""Operations whose subject another operation has deleted, or whose example is about another project."""
FIRST = ("dedup.apply", "domains.accept", "domains.merge", "keys.rotate", "project.share")
"""Operations whose subject others change."""


def _order(operation: Operation) -> tuple[int, bool]:
    return ("none", "touch", "write", "delete").index(operation.effect), operation.name not in FIRST


@pytest.mark.parametrize("seed", range(effort(2, nightly=10)))
def test_every_operation_answers_or_names_what_is_wrong(world: World, seed: int) -> None:
    made = HostileArguments(seed, stored_ids(world), registry.operations.values())
    wrong: list[str] = []
    for number in range(ROUNDS):
        world.clock.advance(days=(0, 400, 0, 20_000)[number % 4])
        for operation in registry.operations.values():
            access = CALLERS[(number + seed) % len(CALLERS)]
            call = call_of(world, access, here=number % 2 == 0)
            arguments = made.of(operation)
            if problem := failure(operation, call, arguments):
                wrong.append(f"{operation.name} {arguments!r:.400}: {problem}")
    assert wrong == []
    checked = world.call("doctor", deep=True)
    assert (checked["status"], checked["findings"]) == ("ok", [])
