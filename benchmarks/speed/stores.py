"""Stores of a given size. Small ones are filled as users fill them; large ones are written straight to the
store, because embedding a million texts takes hours and says nothing about searching them."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.conversation import Turn
from benchmarks.engine import FILL_BATCH, InProcess, items_of
from benchmarks.progress import track
from vestige.cognition.text.analyser import text_hash
from vestige.core.models import EVERYTHING, Memory
from vestige.engine.context import Call
from vestige.engine.embedding import embed_memories
from vestige.store.contract.changes import Add, Embedded, Piece

MOST_EMBEDDED = 10_000
"""Up to here every text is embedded by the model."""
SAMPLES = 1_000
"""Texts whose vectors and token bits the memories of a large store are made of."""
COMMIT = 1_000
NOISE = 0.3
SEED = 3
PROJECT = "/project/speed"
"""The scope of all memories, as agents use it: also a filter that all of them pass has to be applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """How a store came to be: memories per second of wall and of CPU time, and by which way."""

    way: str
    wall_rate: float
    cpu_rate: float


def fill(opened: InProcess, turns: Sequence[Turn]) -> Filled:
    """Put the turns into an empty store."""
    count = len(turns)
    wall, cpu = time.perf_counter(), time.process_time()
    way = "smart_ingest by 100" if count <= MOST_EMBEDDED else "store, synthetic vectors"
    (_by_tool if count <= MOST_EMBEDDED else _by_store)(opened, turns)
    return Filled(
        way=way, wall_rate=count / (time.perf_counter() - wall), cpu_rate=count / (time.process_time() - cpu)
    )


def _by_tool(opened: InProcess, turns: Sequence[Turn]) -> None:
    batches = [turns[at : at + FILL_BATCH] for at in range(0, len(turns), FILL_BATCH)]
    for batch in track(batches, f"remembering {len(turns):,} by {FILL_BATCH}"):
        opened.ingest([{**item, "scope": PROJECT} for item in items_of(batch, threaded=True)])


def _by_store(opened: InProcess, turns: Sequence[Turn]) -> None:
    """Every text is different; its vector is that of another text with noise, its token bits are another
    text's. For the cost of a search that makes no difference, for what it finds it would."""
    memories = [_memory(opened, turn) for turn in turns[:SAMPLES]]
    samples = embed_memories(Call(engine=opened.engine), opened.embedder, memories)
    rng = np.random.default_rng(SEED)
    starts = range(0, len(turns), COMMIT)
    for at in track(starts, f"writing {len(turns):,} by {COMMIT}"):
        changes = list(_additions(opened, turns[at : at + COMMIT], samples, rng))
        opened.engine.store.commit(changes, access=EVERYTHING)


def _additions(
    opened: InProcess, turns: Sequence[Turn], samples: Sequence[Embedded], rng: np.random.Generator
) -> Iterator[Add]:
    for turn in turns:
        memory = _memory(opened, turn)
        sample = samples[int(rng.integers(len(samples)))]
        vector = sample.pieces[0].vector
        moved = vector + NOISE * rng.standard_normal(len(vector), dtype=np.float32) / np.sqrt(len(vector))
        moved = (moved / np.linalg.norm(moved)).astype(np.float32)
        piece = Piece(start=0, end=len(memory.content), vector=moved, tokens=sample.pieces[0].tokens)
        yield Add(memory=memory, embedded=replace(sample, text_hash=text_hash(memory), pieces=(piece,)))


def _memory(opened: InProcess, turn: Turn) -> Memory:
    now = opened.engine.now()
    return Memory(
        id=opened.engine.new_id(),
        content=turn.content,
        created_at=now,
        updated_at=now,
        author=turn.speaker,
        scope=PROJECT,
        thread=turn.thread,
        position=turn.position,
    )
