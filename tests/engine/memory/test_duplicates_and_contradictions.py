"""Duplicates and contradictions of a whole store are what comparing everything finds."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.world import World, open_world
from tests.conftest import BACKENDS, POSTGRES, store_of
from vestige.cognition.evidence.trust import origin, trust
from vestige.cognition.gate.relation import clash_between, statement_words, supports
from vestige.cognition.graph.neighbour_lists import direction
from vestige.cognition.text.analyser import text_hash
from vestige.cognition.text.likeness import alike_pairs
from vestige.core.models import EVERYTHING, Access, Filter, Memory
from vestige.engine.context import Call
from vestige.engine.embedding import embedder_or_none
from vestige.engine.memory import contradictions, duplicates
from vestige.engine.memory.contradictions import Contradiction
from vestige.store.contract.changes import Add, Embedded, Piece

THINGS = ("audit log", "retry limit", "cache", "boiler", "night shift", "garden gate", "old router", "parser")
WAYS = ("is enabled in staging", "is disabled in staging", "is set to 5", "is set to 8", "is open on Monday")


@pytest.fixture(params=[*BACKENDS, POSTGRES])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with store_of(request) as settings, open_world(tmp_path / "data", **settings) as opened:
        yield opened


def fill(world: World, count: int, seed: int) -> list[Memory]:
    """Memories of two scopes and several sources whose vectors lie close together or far apart."""
    rng, dice = np.random.default_rng(seed), random.Random(seed)
    engine = world.app.engine
    embedder = embedder_or_none(engine)
    assert embedder is not None
    signature = embedder.signature
    middles = rng.standard_normal((count // 6, signature.dimension))
    noise = rng.choice([0.1, 0.4, 0.8], count)[:, np.newaxis]
    near = middles[rng.integers(0, len(middles), count)]
    vectors = direction(near + noise * rng.standard_normal((count, signature.dimension)))
    memories = []
    for at in range(count):
        world.clock.advance(hours=1)
        now = engine.now()
        memories.append(
            Memory(
                id=engine.new_id(),
                content=f"The {dice.choice(THINGS)} {dice.choice(WAYS)}{dice.choice(('.', f', note {at}.'))}",
                created_at=now,
                updated_at=now,
                scope=dice.choice(("/", "/project/a")),
                source=dice.choice((None, "wiki", "talk")),
                tags=(dice.choice(("x", "y")),),
                valid_until=now if dice.random() < 0.1 else None,
            )
        )
    engine.store.commit(
        [
            Add(
                memory=memory,
                embedded=Embedded(
                    signature=signature,
                    text_hash=text_hash(memory),
                    pieces=(Piece(start=0, end=len(memory.content), vector=vector, tokens=None),),
                ),
            )
            for memory, vector in zip(memories, vectors, strict=True)
        ],
        access=EVERYTHING,
    )
    return memories


def found(call: Call, least: float, where: Filter) -> list[tuple[object, ...]]:
    answer = duplicates.find_duplicates(call, where, least=least, limit=1000)
    counts = (answer.total, answer.memories, answer.pairs, answer.by_words, answer.left_out)
    clusters = [
        ([one.memory.id for one in cluster.records], cluster.similarities, cluster.score, cluster.objections)
        for cluster in answer.clusters
    ]
    return [counts, *clusters]


@pytest.mark.parametrize("least", [0.5, 0.8, 0.95])
def test_duplicates_by_lists_are_those_of_comparing_all_vectors(
    world: World, monkeypatch: pytest.MonkeyPatch, least: float
) -> None:
    memories = fill(world, 240, seed=3)
    store, now = world.app.engine.store, world.app.engine.now()
    unlimited, limited = (
        Call(engine=world.app.engine, access=access)
        for access in (EVERYTHING, Access(scopes=("/project/a",)))
    )
    filters = [Filter(valid_at=now, pinned=False), Filter(valid_at=now, pinned=False, tags_any=("x",))]
    asked = [(call, where) for call in (unlimited, limited) for where in filters]
    by_lists = [found(call, least, where) for call, where in asked]
    monkeypatch.setattr(type(store), "neighbours", lambda *given, **more: None)
    compared = [found(call, least, where) for call, where in asked]
    assert by_lists == compared
    assert len(compared[0]) > 5
    assert compared[0][0] != compared[1][0] != compared[2][0]
    assert len(memories) == 240


def every_contradiction(memories: list[Memory], world: World) -> set[tuple[str, str, float, float]]:
    """The contradictions of all alike pairs, each judged by its texts, and the trust in both sides."""
    words = [statement_words(memory) for memory in memories]
    clashes, confirmed = [], {memory.id: set[str]() for memory in memories}
    for one, other in (pair for some in alike_pairs(words) for pair in some):
        clash = clash_between(memories, words, one, other, marked=False)
        if clash is not None and clash.contradicts:
            clashes.append(clash)
        elif clash is None and supports(memories[one], memories[other]):
            names = origin(memories[one]), origin(memories[other])
            if names[0] and names[1] and names[0] != names[1]:
                confirmed[memories[one].id].add(names[1])
                confirmed[memories[other].id].add(names[0])
    now = world.app.engine.now()
    records = {one.memory.id: one for one in world.app.engine.store.get_many([*confirmed], access=EVERYTHING)}

    def trusted(memory: Memory) -> float:
        return trust(records[memory.id], now, corroborations=len(confirmed[memory.id]))

    pairs = [(memories[clash.newer], memories[clash.older]) for clash in clashes]
    return {(newer.id, older.id, trusted(newer), trusted(older)) for newer, older in pairs}


def shown(answer: tuple[Contradiction, ...]) -> set[tuple[str, str, float, float]]:
    return {(one.newer.memory.id, one.older.memory.id, one.newer_trust, one.older_trust) for one in answer}


def test_contradictions_are_those_of_judging_every_alike_pair(world: World) -> None:
    memories = fill(world, 160, seed=5)
    now = world.app.engine.now()
    valid = [memory for memory in memories if memory.valid_at(now)]
    expected = every_contradiction(valid, world)
    call = Call(engine=world.app.engine, access=EVERYTHING)
    first, second = (contradictions.contradictions(call, Filter(valid_at=now), None, now) for _ in range(2))
    assert shown(first.contradictions) == shown(second.contradictions) == expected
    assert (first.pairs, first.memories, first.left_out) == (second.pairs, second.memories, second.left_out)
    assert len(expected) > 20


def test_a_pair_that_was_harmless_is_judged_again_when_its_text_changes(world: World) -> None:
    world.call("smart_ingest", content="The audit log is enabled in staging.", force_create=True)
    same = world.remember("The audit log is enabled in staging now.", force_create=True)
    assert world.call("contradictions")["total"] == 0
    world.clock.advance(days=1)
    world.call("memory", action="edit", id=same, content="The audit log is disabled in staging.")
    assert world.call("contradictions")["total"] == 1


def test_the_copy_of_a_memory_in_another_project_contradicts_nothing(world: World) -> None:
    """A pair of the same texts in other scopes is another pair."""
    one, two = (replace(memory, valid_until=None) for memory in fill(world, 12, seed=1)[:2])
    engine = world.app.engine
    apart = [
        replace(one, id=engine.new_id(), content="The cache is set to 5.", scope="/project/b"),
        replace(two, id=engine.new_id(), content="The cache is set to 8.", scope="/project/c"),
    ]
    together = [replace(memory, id=engine.new_id(), scope="/project/d") for memory in apart]
    engine.store.commit([Add(memory=memory) for memory in [*apart, *together]], access=EVERYTHING)
    call, now = Call(engine=engine, access=EVERYTHING), engine.now()
    answer = contradictions.contradictions(call, Filter(valid_at=now), None, now)
    pairs = {frozenset(pair[:2]) for pair in shown(answer.contradictions)}
    assert frozenset(memory.id for memory in together) in pairs
    assert frozenset(memory.id for memory in apart) not in pairs


def test_duplicates_are_compared_again_only_when_a_memory_changed(world: World) -> None:
    fill(world, 120, seed=7)
    call, where = Call(engine=world.app.engine, access=EVERYTHING), Filter(valid_at=world.app.engine.now())
    duplicates.COMPARED.clear()
    first = found(call, 0.8, where)
    assert found(call, 0.8, where) == first
    assert len(duplicates.COMPARED) == 1
    member = duplicates.find_duplicates(call, where, least=0.8, limit=1).clusters[0].records[0].memory.id
    world.call("memory", action="tag", id=member, add=["changed"])
    world.call("memory", action="pin", id=member)
    pinned = duplicates.find_duplicates(call, replace(where, pinned=False), least=0.8, limit=1000)
    assert member not in {one.memory.id for cluster in pinned.clusters for one in cluster.records}
    changed = found(call, 0.8, where)
    duplicates.COMPARED.clear()
    assert found(call, 0.8, where) == changed


def test_a_cluster_is_judged_again_when_its_memories_are_marked(world: World) -> None:
    for text in ("The boiler is open on Monday.", "The boiler is open on Monday!"):
        world.remember(text, force_create=True)
    (cluster,) = world.call("find_duplicates")["clusters"]
    assert cluster["suggestedAction"] == "merge"
    one, other = (member["id"] for member in cluster["members"])
    world.call("memory", action="link", id=one, target=other, type="contradicts")
    assert world.call("find_duplicates")["clusters"][0]["suggestedAction"] == "review"


def change(world: World, dice: random.Random, ids: list[str]) -> None:
    """Something that may change what contradicts or repeats what, or that should not."""
    one, other = dice.sample(ids, 2)
    near = (world.app.engine.now() + timedelta(hours=dice.randrange(-2, 5))).isoformat()
    text = f"The {dice.choice(THINGS)} {dice.choice(WAYS)}."
    changes: list[tuple[str, dict[str, Any]]] = [
        ("edit", {"content": text}),
        ("set_validity", {"valid_from": None, "valid_until": near}),
        ("set_validity", {"valid_from": near, "valid_until": None}),
        ("move", {"to": dice.choice(("/", "/project/a"))}),
        ("pin", {}),
        ("unpin", {}),
        ("link", {"target": other, "type": "contradicts"}),
        ("promote", {}),
        ("delete", {"even_pinned": True}),
        ("new", {}),
        ("search", {}),
        ("suppress", {}),
        ("wait", {}),
    ]
    action, arguments = dice.choice(changes)
    if action == "new":
        ids.append(world.remember(text, force_create=True))
    elif action == "search":
        world.call("search", query=text)
        world.app.settle()
    elif action == "suppress":
        world.call("suppress", id=one)
    elif action == "wait":
        world.clock.advance(hours=1)
    else:
        world.call("memory", action=action, id=one, **arguments)
        ids[:] = [memory_id for memory_id in ids if action != "delete" or memory_id != one]


def test_answers_that_are_kept_are_those_of_comparing_again(world: World) -> None:
    dice, engine = random.Random(11), world.app.engine
    ids = [memory.id for memory in fill(world, 60, seed=7)]
    calls = [Call(engine=engine, access=access) for access in (EVERYTHING, Access(scopes=("/project/a",)))]

    def asked() -> list[object]:
        now = engine.now()
        true = Filter(valid_at=now, include_suppressed=False, now=now)
        pairs = [contradictions.contradictions(call, true, None, now) for call in calls]
        return [
            *((shown(one.contradictions), one.memories, one.pairs, one.left_out) for one in pairs),
            *(found(call, 0.8, replace(true, pinned=False)) for call in calls),
        ]

    for _ in range(40):
        change(world, dice, ids)
        kept = asked()
        for cache in (contradictions._KNOWN, contradictions.COMPARED, duplicates._KNOWN, duplicates.COMPARED):
            cache.clear()
        contradictions.HARMLESS.clear()
        assert kept == asked()


def test_nothing_is_read_again_while_only_answers_were_given(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(world, 60, seed=7)
    call, reads = Call(engine=world.app.engine), list[Filter]()
    stream = type(world.app.engine.store).stream

    def counted(store: object, where: Filter, **more: Any) -> Any:
        reads.append(where)
        return stream(store, where, **more)  # type: ignore[arg-type]  # the store it belongs to

    def asked() -> None:
        now = world.app.engine.now()
        true = Filter(valid_at=now, include_suppressed=False, now=now)
        contradictions.contradictions(call, true, None, now)
        found(call, 0.8, replace(true, pinned=False))

    asked()
    monkeypatch.setattr(type(world.app.engine.store), "stream", counted)
    world.call("search", query="Is the audit log enabled in staging?")
    world.app.settle()
    world.clock.advance(hours=1)
    asked()
    assert reads == []
    world.remember("The audit log is on fire.", force_create=True)
    asked()
    assert len(reads) == 2
