"""What `system_status` says about the memory, and that it is true."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.world import START, World, open_world
from vestige.core.errors import MissingExtra, ModelUnavailable, VestigeError
from vestige.core.models import EVERYTHING, Memory
from vestige.core.pair_model import PairModelState
from vestige.embed.background import EmbedderSource, EmbedderState, Progress
from vestige.embed.hashing import HashingEmbedder
from vestige.embed.protocol import Embedder
from vestige.engine.care.health import Health, health
from vestige.engine.context import Call
from vestige.store.contract.changes import Add

OTHER_MODEL = HashingEmbedder(dimension=32)


def health_with(world: World, source: EmbedderSource) -> Health:
    """The health of the world when its embedder comes from another source."""
    return health(Call(engine=replace(world.app.engine, embedders=source)))


def failing(error: VestigeError) -> EmbedderSource:
    def refuse(_progress: Progress) -> Embedder:
        raise error

    return EmbedderSource(refuse)


def test_a_model_that_nobody_asked_for_yet_is_loaded_and_told_truthfully(world: World) -> None:
    world.remember("The door is painted green.")

    seen = health_with(world, EmbedderSource(lambda _progress: HashingEmbedder()))

    assert (seen.embedder.state, seen.status, seen.warnings) == (EmbedderState.READY, "healthy", ())


def test_vectors_of_another_model_are_told_with_what_to_do(world: World) -> None:
    world.remember("The door is painted green.")

    seen = health_with(world, EmbedderSource.of(OTHER_MODEL))

    assert seen.status == "degraded"
    (warning,) = seen.warnings
    assert HashingEmbedder().signature.profile in warning
    assert OTHER_MODEL.signature.profile in warning
    assert "works on words only" in warning
    assert "get no vectors" in warning
    assert "`vestige rebuild --vectors`" in seen.advice[0]


def test_a_store_that_acknowledges_no_more_writes_is_degraded_even_if_empty(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = world.app.engine.store
    monkeypatch.setattr(type(store), "write_failure", "The write-ahead log was removed")

    seen = health(Call(engine=world.app.engine))

    assert (seen.status, seen.warnings[0]) == (
        "degraded",
        "No write is acknowledged: The write-ahead log was removed.",
    )


class WithoutRelations(HashingEmbedder):
    """A model that could have a pair model and has none."""

    def __init__(self, state: PairModelState) -> None:
        super().__init__()
        self._state = state

    @property
    def pair_model_state(self) -> PairModelState:
        return self._state


@pytest.mark.parametrize("state", [PairModelState.ABSENT, PairModelState.OUTDATED])
def test_a_missing_relation_model_is_advice_and_no_fault(world: World, state: PairModelState) -> None:
    world.remember("The door is painted green.")

    seen = health_with(world, EmbedderSource.of(WithoutRelations(state)))

    assert (seen.status, seen.warnings) == ("healthy", ())
    (advice,) = seen.advice
    assert advice.startswith(f"The pair model is {state}")
    assert "`vestige model install`" in advice


def test_the_status_names_the_state_of_the_pair_model_graph(world: World) -> None:
    assert world.call("system_status")["embeddingModel"]["pairModel"] == "unsupported"
    assert health_with(world, EmbedderSource.of(WithoutRelations(PairModelState.READY))).advice == ()


def test_an_empty_store_that_refuses_to_be_written_is_degraded(world: World) -> None:
    memory_id = world.remember("The door is painted green.")
    world.call("memory", action="delete", id=memory_id)

    assert health(Call(engine=world.app.engine)).status == "empty"
    assert health_with(world, EmbedderSource.of(OTHER_MODEL)).status == "degraded"


def test_states_are_counted_as_each_memory_tells_its_own(world: World) -> None:
    store = world.app.engine.store
    for number, suppressions in enumerate((0, 1, 3, 9)):
        memory = Memory(
            id=f"m{number}",
            content=f"Fact {number}.",
            created_at=START,
            updated_at=START,
            suppression_count=suppressions,
        )
        store.commit([Add(memory=memory)], access=EVERYTHING)
    own = Counter(world.call("memory", action="state", id=f"m{number}")["state"] for number in range(4))

    told = world.call("system_status")["stateDistribution"]

    assert {name: number for name, number in told.items() if number} == own
    assert len(own) > 1


def test_embeddings_that_are_off_are_a_choice_and_no_fault(tmp_path: Path) -> None:
    with open_world(tmp_path, provider="off") as world:
        world.remember("The door is painted green.")

        status = world.call("system_status")

        assert (status["status"], status["warnings"], status["recommendations"]) == ("healthy", [], [])
        assert status["embeddingModel"]["state"] == "off"


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (
            ModelUnavailable("The model is not there.", details={"reason": "absent"}),
            "To find memories by meaning too: Run `vestige model install`.",
        ),
        (
            MissingExtra.named("local", "The local embedding model"),
            f"To find memories by meaning too: {MissingExtra.named('local', 'it').hint}",
        ),
    ],
)
def test_a_missing_model_is_told_once_with_what_helps(world: World, error: VestigeError, advice: str) -> None:
    world.remember("The door is painted green.")

    seen = health_with(world, failing(error))

    assert seen.status == "degraded"
    assert seen.warnings == (f"Search works on words only: {error.message}",)
    assert seen.advice == (advice,)


def test_memories_without_vectors_are_told(world: World) -> None:
    world.remember("The door is painted green.")
    bare = Memory(id="bare", content="Tea is in the kitchen.", created_at=START, updated_at=START)
    world.app.engine.store.commit([Add(memory=bare)], access=EVERYTHING)

    seen = health(Call(engine=world.app.engine))

    assert seen.warnings == ("1 of 2 memories have no vectors.",)
    assert seen.advice == ("Run `vestige rebuild --vectors`.",)
