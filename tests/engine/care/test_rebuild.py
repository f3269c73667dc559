"""Deriving again what is derived, while others write and with or without a model."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from testbed.world import START, World, open_world
from vestige.cognition.fsrs.strength import StrengthLine, encode, fold
from vestige.core.errors import ModelUnavailable
from vestige.core.models import ANYTHING, EVERYTHING, Evidence, Memory, MemoryState, Record
from vestige.embed.background import EmbedderSource, Progress
from vestige.embed.hashing import HashingEmbedder
from vestige.embed.protocol import Embedder
from vestige.engine.care.rebuild import rebuild
from vestige.engine.context import Call, Engine
from vestige.engine.embedding import embed_memories
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.groups import registry
from vestige.operations.shared.text import unmarked
from vestige.store.contract.changes import Add, Carry, Change, ChangeState, Forget, RecordEvidence, Tune
from vestige.store.contract.store import MemoryStore
from vestige.store.inmemory import InMemoryStore

DAY = timedelta(days=1)


def not_installed(_progress: Progress) -> Embedder:
    raise ModelUnavailable("The model is not installed.", hint="Fetch it.", details={"reason": "absent"})


def with_source(world: World, source: EmbedderSource) -> Engine:
    """The world's engine with another source of embedders."""
    return replace(world.app.engine, embedders=source)


def once(act: Callable[[], object]) -> Callable[[float, float | None, str | None], None]:
    """A listener to progress that does something at the first news."""
    heard: list[float] = []

    def listen(done: float, _total: float | None, _what: str | None) -> None:
        if not heard:
            act()
        heard.append(done)

    return listen


def promote(store: MemoryStore, memory_id: str) -> None:
    remark = RecordEvidence(memory_id=memory_id, evidence=Evidence.PROMOTED, at=START + DAY)
    store.commit([remark], access=EVERYTHING)


def spoil(store: MemoryStore, memory_id: str) -> None:
    """Give a memory a strength that the log does not explain."""
    store.put_strengths({memory_id: replace(encode(START), stability=999.0)}, after=10**9)


def held(store: MemoryStore, memory_id: str) -> Record:
    (record,) = store.get_many([memory_id], access=EVERYTHING)
    return record


def run(world: World, **chosen: bool) -> Wire:
    return world.app.run(registry.operations["rebuild"], chosen, lambda *_: None)


def test_evidence_that_arrives_during_a_rebuild_is_kept(world: World) -> None:
    remarked, spoiled = world.remember("The door is painted green."), world.remember("Tea is in the kitchen.")
    store = world.app.engine.store
    spoil(store, spoiled)
    call = Call(engine=world.app.engine, progress=once(lambda: promote(store, remarked)))

    done = rebuild(call, strengths=True)

    assert (done.strengths, done.drifted) == (1, 1)
    assert held(store, remarked).strength == fold(
        START, [StrengthLine(evidence=Evidence.PROMOTED, at=START + DAY)]
    )
    assert held(store, spoiled).strength == encode(START)


def test_evidence_that_arrives_during_a_rebuild_is_no_drift(world: World) -> None:
    store = world.app.engine.store
    # More than one batch of the stream, so that the last one is read after its evidence arrived.
    memories = [
        Memory(id=f"m{number}", content=f"Fact {number}.", created_at=START, updated_at=START)
        for number in range(501)
    ]
    store.commit([Add(memory=memory) for memory in memories], access=EVERYTHING)
    call = Call(engine=world.app.engine, progress=once(lambda: promote(store, "m500")))

    done = rebuild(call, strengths=True)

    assert (done.strengths, done.drifted) == (500, 0)
    assert held(store, "m500").strength == fold(
        START, [StrengthLine(evidence=Evidence.PROMOTED, at=START + DAY)]
    )


def test_without_a_choice_everything_is_derived_again(world: World) -> None:
    memory_id = world.remember("The door is painted green.")
    store = world.app.engine.store
    spoil(store, memory_id)
    other = EmbedderSource.of(HashingEmbedder(dimension=32))
    rebuild(Call(engine=with_source(world, other)), vectors=True)
    store.drop_vectors(HashingEmbedder().signature)

    answer = run(world).wire()

    assert answer == {"success": True, "strengths": 1, "drifted": 1, "words": 1, "vectors": 1}
    assert store.signature() == HashingEmbedder().signature


def test_vectors_that_lost_their_tokens_are_made_again(world: World) -> None:
    world.remember("The door is painted green.")
    wordless = world.remember("… !? …")
    store = world.app.engine.store
    assert run(world, vectors=True).wire()["vectors"] == 0
    (memory,) = [one.memory for one in store.get_many([wordless], access=EVERYTHING)]
    (made,) = embed_memories(Call(engine=world.app.engine), HashingEmbedder(), [memory])
    store.put_vectors({wordless: replace(made, pieces=(replace(made.pieces[0], tokens=None),))})
    assert run(world, vectors=True).wire()["vectors"] == 1
    assert run(world, vectors=True).wire()["vectors"] == 0


def test_without_a_choice_vectors_are_left_out_when_the_embeddings_are_off(tmp_path: Path) -> None:
    with open_world(tmp_path, provider="off") as world:
        world.remember("The door is painted green.")

        answer = run(world)

        said = {name: answer.wire()[name] for name in ("strengths", "words", "vectors")}
        assert said == {"strengths": 1, "words": 1, "vectors": 0}
        note = "Vectors were left out: The setting embeddings.provider is off."
        assert answer.wire()["note"] == note
        shown = unmarked(registry.operations["rebuild"].render(answer))
        assert shown.endswith(f"0 memories embedded.\n! {note}")


def test_without_a_choice_vectors_are_left_out_when_there_is_no_model(world: World) -> None:
    world.remember("The door is painted green.")

    done = rebuild(Call(engine=with_source(world, EmbedderSource(not_installed))))

    assert (done.strengths, done.words, done.vectors) == (1, 1, 0)
    assert done.note == "Vectors were left out: The model is not installed."


def test_choosing_something_else_says_nothing_about_vectors(tmp_path: Path) -> None:
    with open_world(tmp_path, provider="off") as world:
        world.remember("The door is painted green.")

        assert run(world, words=True).wire() == {
            "success": True,
            "strengths": 0,
            "drifted": 0,
            "words": 1,
            "vectors": 0,
        }


def test_asking_for_vectors_while_the_embeddings_are_off_is_refused(tmp_path: Path) -> None:
    with open_world(tmp_path, provider="off") as world:
        world.remember("The door is painted green.")

        with pytest.raises(ModelUnavailable, match=r"embeddings\.provider is off\.$") as refused:
            run(world, vectors=True)

        assert refused.value.hint is not None
        assert "embeddings.provider is off" in refused.value.hint


def test_asking_for_vectors_without_a_model_passes_on_what_helps(world: World) -> None:
    with pytest.raises(ModelUnavailable, match="The model is not installed") as refused:
        rebuild(Call(engine=with_source(world, EmbedderSource(not_installed))), vectors=True)
    assert refused.value.hint == "Fetch it."


def test_a_refused_rebuild_has_changed_nothing(tmp_path: Path) -> None:
    with open_world(tmp_path, provider="off") as world:
        memory_id = world.remember("The door is painted green.")
        spoil(world.app.engine.store, memory_id)

        with pytest.raises(ModelUnavailable):
            run(world, strengths=True, vectors=True)

        assert held(world.app.engine.store, memory_id).strength.stability == 999.0


def anything(rng: random.Random, number: int, names: list[str]) -> Change:
    """Something that changes strengths, at any moment."""
    at = START + DAY * rng.uniform(0, 3 * number)
    kind = rng.choice(("add", "tune", "settle", "carry", "forget", *["remark"] * 8))
    if kind == "add" or len(names) < 3:
        names.append(f"m{number}")
        return Add(memory=Memory(id=names[-1], content=f"Fact {number}.", created_at=at, updated_at=at))
    if kind == "tune":
        return Tune(w20=rng.uniform(0.08, 0.8), at=at)
    if kind == "forget":
        return Forget(memory_id=names.pop(rng.randrange(len(names))), at=at, reason="asked to")
    name = rng.choice(names)
    if kind == "settle":
        before, after = rng.sample(list(MemoryState), 2)
        return ChangeState(memory_id=name, at=at, before=before, after=after, reason="time_decay")
    if kind == "carry":
        brought = replace(encode(at), stability=rng.uniform(0.1, 900), retrieval=rng.random())
        return Carry(memory_id=name, strength=brought, at=at)
    evidence = rng.choice([one for one in Evidence if one is not Evidence.ENCODED])
    return RecordEvidence(memory_id=name, evidence=evidence, at=at, amount=rng.random())


@pytest.mark.parametrize("seed", range(8))
def test_replaying_any_log_gives_the_strengths_it_left(world: World, seed: int) -> None:
    rng, names = random.Random(seed), list[str]()
    store = world.app.engine.store
    for number in range(60):
        some = [anything(rng, number * 3 + part, names) for part in range(rng.randint(1, 3))]
        store.commit(some, access=EVERYTHING)
    before = {one.memory.id: one.strength for records in store.stream(access=EVERYTHING) for one in records}
    assert before.keys() == set(names)

    done = rebuild(Call(engine=world.app.engine), strengths=True)

    assert (done.strengths, done.drifted) == (len(names), 0)
    for record in store.get_many(names, access=EVERYTHING):
        assert record.strength == before[record.memory.id]


@pytest.mark.parametrize("seed", range(4))
def test_replaying_the_log_of_stores_that_were_united_gives_the_strengths_it_left(
    world: World, seed: int
) -> None:
    rng, names = random.Random(seed), list[str]()
    here, elsewhere = world.app.engine.store, InMemoryStore(node="elsewhere")
    for number in range(80):
        store = rng.choice((here, elsewhere))
        known = [record.memory.id for record in store.get_many(names, access=EVERYTHING)]
        store.commit([anything(rng, number, known)], access=EVERYTHING)
        names = list(dict.fromkeys([*names, *known]))
        if rng.random() < 0.2:
            for lives in elsewhere.histories(access=EVERYTHING):
                here.absorb(lives, access=EVERYTHING)
    assert {event.node for event in here.log(access=EVERYTHING)} == {here.node, "elsewhere"}

    done = rebuild(Call(engine=world.app.engine), strengths=True)

    assert (done.strengths, done.drifted) == (here.count(ANYTHING, access=EVERYTHING), 0)
