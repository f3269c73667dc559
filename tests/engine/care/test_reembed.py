"""Another model for a store in use: everything goes on meanwhile, and nothing written meanwhile is lost."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.world import HandClock, World, open_world
from vestige.core.caller import Progress
from vestige.core.errors import Cancelled, InvalidInput, ModelMismatch, ModelUnavailable, StoreBusy
from vestige.core.models import EVERYTHING
from vestige.embed.background import EmbedderSource
from vestige.embed.hashing import HashingEmbedder
from vestige.embed.protocol import Encoded
from vestige.engine import embedding
from vestige.engine.care.rebuild import rebuild
from vestige.engine.care.reembed import (
    ROUNDS,
    drop_former,
    estimate,
    estimate_rollback,
    former,
    roll_back,
    switch_model,
)
from vestige.engine.context import Call

TEXTS = (
    "The granite comes from Aswan.",
    "Cobalt is on the upper shelf.",
    "Tea is in the kitchen.",
    "The harbour runs on PostgreSQL.",
    "Ada plays the xylophone.",
)
OLD, NEW = HashingEmbedder(), HashingEmbedder(dimension=32)


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "SLICE", 2)


def anew(world: World, *, progress: Progress = lambda *_: None, cancelled: Callable[[], bool] = bool) -> int:
    """Embed everything with the new model, as another process would."""
    engine = replace(world.app.engine, embedders=EmbedderSource.of(NEW))
    return rebuild(Call(engine=engine, progress=progress, cancelled=cancelled), vectors=True).vectors


class Counting(HashingEmbedder):
    """Knows how many texts it was given."""

    texts = 0

    def encode_documents(self, texts: Sequence[str]) -> list[Encoded]:
        self.texts += len(texts)
        return super().encode_documents(texts)


def back(world: World, source: EmbedderSource) -> int:
    """Go back to the former model, as another process would."""
    return roll_back(Call(engine=replace(world.app.engine, embedders=source)))


def nobody() -> EmbedderSource:
    return EmbedderSource.off("Nobody needs a model.")


def use(world: World, embedder: HashingEmbedder) -> None:
    """As if the settings named another model."""
    object.__setattr__(world.app.engine, "embedders", EmbedderSource.of(embedder))


def method(world: World) -> str:
    return str(world.call("search", query="where is the tea")["method"])


def unembedded(world: World, embedder: HashingEmbedder) -> list[str]:
    return [memory.content for memory in world.app.engine.store.unembedded(embedder.signature, limit=99)]


def test_searches_and_writes_go_on_while_everything_is_embedded_anew(world: World) -> None:
    ids = [world.remember(text) for text in TEXTS]
    seen: list[str] = []

    def meanwhile(done: float, _total: float | None, _what: str | None) -> None:
        seen.append(method(world))
        if done == 4:
            world.remember("The mortar is in the shed.")
            world.call("memory", action="edit", id=ids[0], content="The granite comes from Sweden.")

    assert anew(world, progress=meanwhile) == 7, "five, one that is new, one that has another text"

    assert set(seen) == {"hybrid"}
    store = world.app.engine.store
    assert store.signature() == NEW.signature
    assert unembedded(world, NEW) == []
    assert store.index_status().vectors == 6
    use(world, NEW)
    assert method(world) == "hybrid"
    assert world.find("where does the granite come from", limit=1) == ["The granite comes from Sweden."]
    assert world.find("where is the mortar", limit=1) == ["The mortar is in the shed."]


def test_a_change_of_model_that_was_stopped_leaves_the_old_one_and_goes_on_later(world: World) -> None:
    for text in TEXTS:
        world.remember(text)
    seen: list[float] = []
    with pytest.raises(Cancelled):
        anew(world, progress=lambda done, *_: seen.append(done), cancelled=lambda: len(seen) == 2)
    assert world.app.engine.store.signature() == OLD.signature
    assert method(world) == "hybrid"
    assert anew(world) == 1, "four of the five were kept"
    assert world.app.engine.store.signature() == NEW.signature


def test_what_is_written_with_a_model_that_is_not_in_use_any_more_is_embedded_by_the_one_that_is(
    tmp_path: Path,
) -> None:
    clock = HandClock()
    with open_world(tmp_path, clock=clock) as world:
        world.remember(TEXTS[0])
        anew(world)
        late = world.remember("Written by a server that was started before.")
        world.call("memory", action="edit", id=late, content="Written by an older server.")
        world.call("consolidate")
        assert unembedded(world, NEW) == ["Written by an older server."]
        assert method(world) == "keyword"
        assert world.find("an older server", limit=1) == ["Written by an older server."]
        use(world, NEW)
        world.call("consolidate")
        assert unembedded(world, NEW) == []


def test_a_model_that_cannot_keep_up_with_the_writers_is_not_adopted(world: World) -> None:
    world.remember(TEXTS[0])
    memory_id = world.remember(TEXTS[1])
    rounds = 0

    def meanwhile(*_: object) -> None:
        nonlocal rounds
        rounds += 1
        content = f"The number of the house is {rounds}, and it changes all the time."
        world.call("memory", action="edit", id=memory_id, content=content)

    # Every slice is overtaken before the store is asked whether all is there.
    with pytest.raises(StoreBusy, match="faster than they can be embedded") as refused:
        anew_until(world, meanwhile)
    assert refused.value.details["rounds"] == ROUNDS
    assert world.app.engine.store.signature() == OLD.signature
    assert method(world) == "hybrid"


def anew_until(world: World, act: Callable[..., None]) -> None:
    """Embed anew while somebody changes a text just before each look whether all is there."""
    store = world.app.engine.store

    class Overtaken:
        """The store, seen by somebody who is always late."""

        def __getattr__(self, name: str) -> object:
            if name == "adopt":
                act()
            return getattr(store, name)

    engine = replace(world.app.engine, embedders=EmbedderSource.of(NEW))
    object.__setattr__(engine, "store", Overtaken())
    rebuild(Call(engine=engine), vectors=True)


def test_two_processes_do_not_change_the_model_at_once(world: World) -> None:
    world.remember(TEXTS[0])
    with world.app.engine.store.alone("re-embedding"), pytest.raises(StoreBusy, match="re-embedding"):
        anew(world)
    assert anew(world) == 1


def test_a_model_that_was_given_up_for_the_old_one_leaves_nothing(world: World) -> None:
    for text in TEXTS:
        world.remember(text)
    seen: list[float] = []
    with pytest.raises(Cancelled):
        anew(world, progress=lambda done, *_: seen.append(done), cancelled=lambda: len(seen) == 2)
    assert len(unembedded(world, NEW)) == 1
    assert rebuild(Call(engine=world.app.engine), vectors=True).vectors == 0
    assert len(unembedded(world, NEW)) == 5


def test_going_back_needs_no_model_when_nothing_was_written_since(world: World) -> None:
    for text in TEXTS:
        world.remember(text)
    anew(world)
    assert back(world, nobody()) == 0
    assert world.app.engine.store.signature() == OLD.signature
    assert method(world) == "hybrid"
    assert world.find("where is the tea", limit=1) == ["Tea is in the kitchen."]
    assert back(world, nobody()) == 0, "and there again"
    assert world.app.engine.store.signature() == NEW.signature


def test_going_back_embeds_what_was_written_since_with_the_former_model(world: World) -> None:
    for text in TEXTS:
        world.remember(text)
    anew(world)
    use(world, NEW)
    world.remember("The mortar is in the shed.")
    counting = Counting()
    assert back(world, EmbedderSource.of(counting)) == counting.texts == 1
    use(world, OLD)
    assert method(world) == "hybrid"
    assert world.find("where is the mortar", limit=1) == ["The mortar is in the shed."]
    assert unembedded(world, OLD) == []


@pytest.mark.parametrize(
    ("source", "refusal"),
    [(EmbedderSource.of(NEW), ModelMismatch), (EmbedderSource.off("No model."), ModelUnavailable)],
)
def test_without_the_former_model_the_way_back_is_refused_before_anything_is_written(
    world: World, source: EmbedderSource, refusal: type[Exception]
) -> None:
    world.remember(TEXTS[0])
    anew(world)
    use(world, NEW)
    world.remember(TEXTS[1])
    store = world.app.engine.store
    before = store.profiles()
    with pytest.raises(refusal):
        back(world, source)
    assert store.profiles() == before
    assert method(world) == "hybrid"


def test_there_is_no_way_back_before_a_change_and_after_the_former_model_was_dropped(world: World) -> None:
    world.remember(TEXTS[0])
    call = Call(engine=world.app.engine)
    assert drop_former(call) is None
    with pytest.raises(InvalidInput, match="no former model"):
        roll_back(call)
    anew(world)
    dropped = drop_former(call)
    assert dropped is not None
    assert (dropped.signature, dropped.memories) == (OLD.signature, 1)
    assert former(call) is None
    with pytest.raises(InvalidInput, match="no former model"):
        roll_back(call)
    assert unembedded(world, NEW) == []


def test_changing_to_the_model_in_use_embeds_nothing(world: World) -> None:
    world.remember(TEXTS[0])
    counting = Counting()
    assert switch_model(Call(engine=world.app.engine), counting) == counting.texts == 0


def test_the_outlook_counts_what_a_change_would_take_and_changes_nothing(world: World) -> None:
    long = " ".join(f"Line {number} of a long report about granite." for number in range(200))
    for text in (*TEXTS, long):
        world.remember(text)
    store = world.app.engine.store
    pieces = sum(
        len(embedding.spans_of(record.memory))
        for records in store.stream(access=EVERYTHING)
        for record in records
    )
    assert pieces > len(TEXTS) + 2
    call, before = Call(engine=world.app.engine), store.profiles()
    seen = estimate(call, NEW)
    assert (seen.memories, seen.done, seen.pieces) == (6, 0, pieces)
    assert seen.size_bytes is not None
    assert seen.size_bytes > 4 * 32 * pieces
    assert store.profiles() == before
    nothing = estimate(call, counting := Counting())
    assert (nothing.done, nothing.pieces, nothing.seconds, counting.texts) == (6, 0, None, 0)


def test_the_outlook_knows_what_was_done_before(world: World) -> None:
    for text in TEXTS:
        world.remember(text)
    seen: list[float] = []
    with pytest.raises(Cancelled):
        anew(world, progress=lambda done, *_: seen.append(done), cancelled=lambda: len(seen) == 2)
    told = estimate(Call(engine=world.app.engine), NEW)
    assert (told.memories, told.done, told.pieces) == (5, 4, 1)
    anew(world)
    told = estimate_rollback(Call(engine=replace(world.app.engine, embedders=nobody())))
    assert (told.signature, told.done, told.pieces) == (OLD.signature, 5, 0)


def test_a_search_that_began_before_the_change_and_ends_after_it_answers_by_words(world: World) -> None:
    world.remember("Tea is in the kitchen.")

    class Slow(HashingEmbedder):
        def encode_query(self, text: str) -> Encoded:
            anew(world)
            return super().encode_query(text)

    use(world, Slow())
    found = world.call("search", query="where is the tea")
    assert [hit["content"] for hit in found["results"]] == ["Tea is in the kitchen."]
    assert found["method"] == "keyword"
    assert "The store holds vectors of" in found["note"]
