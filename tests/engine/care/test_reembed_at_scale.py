"""Thousands of memories go over to another model while others search: nobody gets nothing, or a mixture."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count

import pytest

from testbed.effort import effort
from testbed.patience import PATIENCE_SECONDS, until
from testbed.project import PROJECT
from testbed.world import World, on_postgres
from vestige.core.errors import ModelMismatch, StoreBusy
from vestige.core.models import ANYTHING, EVERYTHING, Memory
from vestige.embed.background import EmbedderSource
from vestige.embed.hashing import HashingEmbedder
from vestige.embed.protocol import Encoded
from vestige.engine.care.reembed import PURPOSE, roll_back, switch_model
from vestige.engine.context import Call
from vestige.engine.embedding import SLICE, embed_memories
from vestige.store.contract.answers import Scored
from vestige.store.contract.changes import Add
from vestige.store.inmemory import InMemoryStore

pytestmark = pytest.mark.slow

MEMORIES, SEARCHES = effort(1_000, nightly=5_000), effort(50, nightly=200)
FEWER = 250
"""For the reference store, which scans everything at every question."""
ASKED = range(0, FEWER, 23)
STONES = ("granite", "basalt", "marble", "slate", "quartz", "flint", "chalk")
OLD, NEW = HashingEmbedder(), HashingEmbedder(dimension=32)
CHANGING = """
import json, sys
from pathlib import Path
from tests.engine.care.test_reembed_at_scale import Dying
from testbed.world import open_world
from vestige.engine.context import Call
from vestige.engine.care.reembed import switch_model

folder, settings, texts = sys.argv[1:]
with open_world(Path(folder), **json.loads(settings)) as world:
    switch_model(Call(engine=world.app.engine), Dying(int(texts), of_process=True))
"""


class Killed(BaseException):
    """Nobody catches it, as nobody catches the end of a process."""


class Dying(HashingEmbedder):
    """Embeds so many texts, and no more: then the process is killed, or only what is under way."""

    def __init__(self, texts: int, *, of_process: bool = False) -> None:
        super().__init__(NEW.signature.dimension)
        self._left = texts
        self._of_process = of_process

    def encode_documents(self, texts: Sequence[str]) -> list[Encoded]:
        self._left -= len(texts)
        if self._left < 0 and self._of_process:
            os.kill(os.getpid(), signal.SIGKILL)
        if self._left < 0:
            raise Killed
        return super().encode_documents(texts)


class Patient(HashingEmbedder):
    """Embeds the last of so many texts when others have searched enough."""

    def __init__(self, texts: int, enough: threading.Event) -> None:
        super().__init__(NEW.signature.dimension)
        self._left = texts
        self._enough = enough

    def encode_documents(self, texts: Sequence[str]) -> list[Encoded]:
        self._left -= len(texts)
        if self._left <= 0:
            assert self._enough.wait(PATIENCE_SECONDS)
        return super().encode_documents(texts)


def content(number: int) -> str:
    return f"Shelf {number} of hall {number % 37} holds {STONES[number % 7]} in box {number * 7919 % 10_007}."


def fill(world: World) -> int:
    """Add memories with vectors of the old model; how many."""
    store, now = world.app.engine.store, world.clock.now
    size = FEWER if isinstance(store, InMemoryStore) else MEMORIES
    for start in range(0, size, FEWER):
        memories = [
            Memory(id=world.clock.new_id(), content=content(number), created_at=now, updated_at=now)
            for number in range(start, start + FEWER)
        ]
        made = embed_memories(Call(engine=world.app.engine), OLD, memories)
        added = [Add(memory=one, embedded=vectors) for one, vectors in zip(memories, made, strict=True)]
        store.commit(added, access=EVERYTHING)
    return size


def nearest(world: World, embedder: HashingEmbedder, number: int) -> list[Scored] | None:
    """The memories nearest to a text by a model; None when it is not the store's."""
    query, store = embedder.embed_query(content(number))[None], world.app.engine.store
    try:
        return store.nearest(query, embedder.signature, ANYTHING, access=EVERYTHING, limit=10)[0]
    except ModelMismatch:
        return None


def change_until_killed(world: World, texts: int) -> None:
    """Begin to change over, in a process that is killed after so many texts. Nobody else has the store of the
    reference, so there an error ends it."""
    engine = world.app.engine
    if isinstance(engine.store, InMemoryStore):
        with pytest.raises(Killed):
            switch_model(Call(engine=engine), Dying(texts))
        return
    storage = engine.settings.storage
    settings = on_postgres(storage.postgres.url.get_secret_value()) if storage.backend == "postgres" else {}
    words = (str(engine.settings.data_dir), json.dumps(settings), str(texts))
    ended = subprocess.run([sys.executable, "-c", CHANGING, *words], cwd=PROJECT)
    assert ended.returncode == -signal.SIGKILL
    until(lambda: is_free(world))  # a server notices a moment later


def is_free(world: World) -> bool:
    try:
        with world.app.engine.store.alone(PURPOSE):
            return True
    except StoreBusy:
        return False


@dataclass
class Searcher:
    """Somebody with the old model who searches until the store has gone over, and once more."""

    world: World
    begun: threading.Event = field(default_factory=threading.Event)
    enough: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    methods: list[str] = field(default_factory=list)
    seen: list[tuple[HashingEmbedder, int, list[Scored]]] = field(default_factory=list)

    def search(self) -> None:
        last = False
        for turn in count():
            if last:
                return
            last = self.over.is_set()
            number = ASKED[turn % len(ASKED)]
            found = self.world.call("search", query=content(number), limit=3, record=False)
            assert found["results"][0]["content"] == content(number)
            self.methods.append(found["method"])
            for embedder in (OLD, NEW):
                scored = nearest(self.world, embedder, number)
                if scored is not None:
                    self.seen.append((embedder, number, scored))
            self.begun.set()
            if turn + 1 == SEARCHES:
                self.enough.set()


def test_everything_goes_over_to_another_model_while_others_search(world: World) -> None:
    size, store = fill(world), world.app.engine.store
    expected = {(OLD, number): nearest(world, OLD, number) for number in ASKED}
    elsewhere, searcher = Call(engine=world.app.engine), Searcher(world=world)
    with ThreadPoolExecutor() as pool:
        searching = pool.submit(searcher.search)
        try:
            assert searcher.begun.wait(PATIENCE_SECONDS)
            change_until_killed(world, size // 2)
            assert store.signature() == OLD.signature
            made = size - len(store.unembedded(NEW.signature, limit=size))
            assert size // 2 - SLICE <= made <= size // 2
            rest = Patient(size - made, searcher.enough)
            assert switch_model(elsewhere, rest) == size - made, "what was made before the end was kept"
        finally:
            searcher.over.set()
        searching.result()

    assert store.signature() == NEW.signature
    expected |= {(NEW, number): nearest(world, NEW, number) for number in ASKED}
    assert {embedder for embedder, _, _ in searcher.seen} == {OLD, NEW}
    assert all(scored == expected[embedder, number] for embedder, number, scored in searcher.seen)
    switched = searcher.methods.index("keyword")
    assert switched >= SEARCHES
    assert set(searcher.methods[:switched]) == {"hybrid"}
    assert set(searcher.methods[switched:]) == {"keyword"}, "its model is not the store's any more"

    nobody = replace(world.app.engine, embedders=EmbedderSource.off("Nobody needs a model."))
    assert roll_back(Call(engine=nobody)) == 0
    assert {(OLD, number): nearest(world, OLD, number) for number in ASKED}.items() <= expected.items()
