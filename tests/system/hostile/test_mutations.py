"""Files of other stores with any field changed: each is refused with a reason or taken in, and afterwards
every operation works and the doctor finds nothing.

The usual run makes few of them; `make nightly` makes 10,000.
"""

import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from testbed.effort import effort
from testbed.failures import Failures
from testbed.world import HandClock, World, open_world
from tests.system.hostile.mutations import (
    AFTERWARDS,
    IN_MEMORY,
    Elsewhere,
    Lines,
    fill,
    full_lines,
    mutate_cell,
    mutated,
    sealed,
)
from vestige.core.documents import PENDING
from vestige.core.errors import VestigeError
from vestige.engine.care.restore import check_copy
from vestige.engine.context import Call
from vestige.engine.domains.catalogue import documents_of
from vestige.operations.registry.groups import registry

UNTRIED = frozenset({"backup", "sync", "import", "keys.create", "keys.list", "keys.revoke", "keys.rotate"})
"""Operations that write files elsewhere, or read no memory."""


def local(world: World) -> Call:
    return Call(engine=world.app.engine, local=True)


def work(world: World, ids: Sequence[str]) -> None:
    """Every operation works on a store, and the doctor finds nothing in it."""
    for name, operation in registry.operations.items():
        if name in UNTRIED:
            continue
        arguments: dict[str, Any] = dict(operation.example)
        arguments |= {one: ids[0] for one in ("id", "from", "memory_id") if one in arguments}
        arguments |= {one: ids[-1] for one in ("to", "target") if one in arguments}
        try:
            answer = operation.answer(local(world), arguments)
        except VestigeError:
            continue  # a reason is an answer; anything else is a crash
        operation.render(answer)
    decide(world, ids)
    world.app.settle()
    assert world.app.autopilot.status().failed == 0
    findings = registry.operations["doctor"].call(local(world), {})["findings"]
    assert [one for one in findings if one["severity"] == "broken"] == []


def decide(world: World, ids: Sequence[str]) -> None:
    """Every text in the review inbox can be shown and decided about, or a reason is given."""
    for waiting in documents_of(world.app.engine.store, PENDING):
        for name in ("show", "undo", "edit", "merge", "reject", "undo", "approve", "undo", "delete"):
            arguments = {"id": waiting.id}
            arguments |= {"content": "Other words."} if name == "edit" else {}
            arguments |= {"into": ids[0]} if name == "merge" else {}
            with suppress(VestigeError):
                operation = registry.operations[f"review.{name}"]
                operation.render(operation.answer(local(world), arguments))


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    return full_lines(tmp_path_factory.mktemp("full"))


def imported(world: World, file: Path, raw: bytes) -> bool:
    """Whether a store took a file in; else it gave a reason."""
    file.write_bytes(raw)
    try:
        registry.operations["import"].call(local(world), {"path": str(file)})
    except VestigeError as exc:
        return not exc.message
    return True


def synced(world: World, file: Path, raw: bytes) -> bool:
    file = file.with_suffix(".vestige.jsonl.gz")
    file.write_bytes(raw)
    (met,) = registry.operations["sync"].call(local(world), {"folder": str(file.parent)})["met"]
    assert met["state"] == "new" or met["reason"]
    return bool(met["state"] == "new")


Taken = Callable[[World, Path, bytes], bool]


def outcomes(folder: Path, lines: Lines, seeds: Iterator[int], take: Taken, **settings: Any) -> Counter[bool]:
    """What became of mutated files, each in a new store."""
    failures, seen = Failures(), Counter[bool]()
    for seed in seeds:
        changed, said = mutated(lines, random.Random(seed))
        with (
            failures.case(f"{seed}: {said}"),
            open_world(folder / str(seed), clock=HandClock(AFTERWARDS), **settings) as world,
        ):
            (folder / f"{seed}-files").mkdir()
            raw = sealed(changed, zipped=take is synced)
            taken = take(world, folder / f"{seed}-files" / "file", raw)
            if taken:
                touched = [one for one, before in zip(changed, lines, strict=True) if one is not before]
                of_memories = [one for one in (*touched, *changed) if one.get("type") == "memory"]
                work(world, [str(one["id"]) for one in of_memories])
            seen[taken] += 1
    failures.check()
    return seen


def test_the_unchanged_file_is_taken_in(lines: Lines, tmp_path: Path) -> None:
    with open_world(tmp_path / "data", clock=HandClock(AFTERWARDS), **IN_MEMORY) as world:
        assert imported(world, tmp_path / "file", sealed(lines, zipped=False))
        work(world, [one["id"] for one in lines if one.get("type") == "memory"])


@pytest.mark.parametrize("take", [imported, synced])
def test_a_mutated_file_is_refused_with_a_reason_or_does_no_harm(
    lines: Lines, tmp_path: Path, take: Taken
) -> None:
    seen = outcomes(tmp_path, lines, iter(range(effort(90, nightly=4_500))), take, **IN_MEMORY)
    assert seen[True]
    assert seen[False]


def test_a_mutated_snapshot_is_refused_with_a_reason_or_does_no_harm(tmp_path: Path) -> None:
    with open_world(tmp_path / "source", clock=Elsewhere()) as source:
        fill(source)
        source.app.engine.store.backup(tmp_path / "copy.db")
    failures, seen = Failures(), Counter[bool]()
    for seed in range(effort(20, nightly=1_000)):
        folder, dice = tmp_path / str(seed), random.Random(seed)
        folder.mkdir()
        database = folder / "vestige.db"
        database.write_bytes((tmp_path / "copy.db").read_bytes())
        with closing(sqlite3.connect(database, isolation_level=None)) as db:
            said = mutate_cell(db, dice)
        with failures.case(f"{seed}: {said}"):
            seen[restored(folder)] += 1
    failures.check()
    assert seen[True]


def restored(folder: Path) -> bool:
    """Whether a copy may become the store, as `vestige restore` decides it."""
    options: dict[str, Any] = {"embeddings.provider": "off", "mechanisms.autopilot": False}
    try:
        with open_world(folder, clock=HandClock(AFTERWARDS), template=False, **options) as world:
            check_copy(local(world), folder)
    except VestigeError as exc:
        return not exc.message
    with open_world(folder, clock=HandClock(AFTERWARDS), template=False) as world:
        ids = [one["id"] for one in world.call("memory", action="list", limit=50)["results"]]
        work(world, ids or ["none"])
    return True
