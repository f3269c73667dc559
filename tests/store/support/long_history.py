"""A store of many memories with a long life behind them, made by ordinary commits."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random

import numpy as np

from tests.store.support.generators import (
    DOMAINS,
    SCOPES,
    T0,
    TAGS,
    TYPES,
    WORDS,
    embedded,
    memory_id,
    some_tokens,
)
from vestige.core.documents import Document
from vestige.core.models import EVERYTHING, Edge, Evidence, Memory
from vestige.store.contract.changes import (
    Add,
    Change,
    Claim,
    Forget,
    Link,
    Put,
    RecordEvidence,
    Revise,
    Tune,
    Unlink,
)
from vestige.store.contract.store import MemoryStore

TOGETHER = 2_000
EVIDENCE = (Evidence.GOOD, Evidence.EXPOSED, Evidence.PROMOTED, Evidence.HARD)


def live_long(store: MemoryStore, memories: int, *, together: int = TOGETHER) -> None:
    """Fill a store: of every ten memories some are revised, reviewed, linked, cited and forgotten."""
    rng = Random(11)
    store.commit([Tune(w20=0.2, at=T0)], access=EVERYTHING)
    for first in range(0, memories, together):
        some = [_memory(rng, number) for number in range(first, min(first + together, memories))]
        claim = Claim(key=f"batch-{first}", digest="d", answer='{"ok":true}', at=T0)
        store.commit(list(_made(rng, some)), access=EVERYTHING, claim=claim)
        store.commit(list(_lived(rng, some)), access=EVERYTHING)


def _memory(rng: Random, number: int) -> Memory:
    at = T0 + timedelta(minutes=number)
    words = " ".join(rng.choice(WORDS) for _ in range(8))
    talks = number % 3 > 0
    return Memory(
        id=memory_id(number),
        content=f"Note {number}: {words}",
        created_at=at,
        updated_at=at,
        scope=rng.choice(SCOPES),
        node_type=rng.choice(TYPES),
        tags=tuple(dict.fromkeys(rng.choices(TAGS, k=number % 3))),
        domains=(rng.choice(DOMAINS),) if number % 4 == 0 else (),
        metadata={"number": number, "share": number / 7, "ü": None} if number % 2 else {},
        source=f"chat {number % 9}" if number % 5 else None,
        thread=f"talk {number // 50}" if talks else None,
        position=number % 50 if talks else None,
    )


def _made(rng: Random, memories: Sequence[Memory]) -> Iterator[Change]:
    for number, memory in enumerate(memories):
        vector = np.array([rng.gauss(0, 1) for _ in range(8)], dtype=np.float32)
        vector /= np.linalg.norm(vector)
        tokens = [some_tokens(rng.randrange(256), rng.randrange(256))]
        told = None if number % 10 == 9 else embedded(memory, vector, tokens=tokens)
        yield Add(memory=memory, embedded=told)


def _lived(rng: Random, memories: Sequence[Memory]) -> Iterator[Change]:
    for place, memory in enumerate(memories):
        at = memory.created_at + timedelta(days=1 + rng.random())
        near = memories[place - 1]
        if place % 10 in (1, 2, 3):
            content = f"{memory.content} Or so." if place % 10 == 1 else memory.content
            revised = replace(memory, revision=2, updated_at=at, content=content, pinned=place % 10 == 2)
            yield Revise(memory=revised, reason="edited")
        if place % 5 == 0:
            yield RecordEvidence(memory_id=memory.id, evidence=rng.choice(EVIDENCE), at=at)
        if place % 4 == 1:
            yield Link(
                edge=Edge(source_id=memory.id, target_id=near.id, kind="near", weight=0.5, created_at=at)
            )
        if place % 8 == 1:
            yield Unlink(source_id=memory.id, target_id=near.id, kind="near", at=at)
        if place % 50 == 3:
            yield Put(document=_note(memory, place))
        if place % 40 == 7:
            yield Forget(memory_id=memory.id, at=at, reason="asked to")


def _note(memory: Memory, place: int) -> Document:
    at = memory.created_at
    body = {"terms": {"granite": place}, "said": "a note"}
    return Document(
        kind="note",
        id=memory.id,
        body=body,
        cites=(memory.id,),
        scope=memory.scope,
        created_at=at,
        updated_at=at,
    )
