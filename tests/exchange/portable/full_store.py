"""A store with a past: everything that can happen to memories, through real commits."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

from tests.store.support.generators import Dice, generated_memory, memory_id
from vestige.core.documents import Document
from vestige.core.models import EVERYTHING, Edge, Evidence, Memory
from vestige.embed.protocol import Embedder
from vestige.engine.context import Call
from vestige.engine.embedding import backfill, embed_memories
from vestige.store.contract.changes import (
    Add,
    Change,
    Drop,
    Forget,
    Link,
    Put,
    RecordEvidence,
    Revise,
    Tune,
    Unlink,
)

BATCH = 500
KINDS = ("finding", "sample")
EVIDENCE = (Evidence.EXPOSED, Evidence.GOOD, Evidence.AGAIN, Evidence.PROMOTED, Evidence.DEMOTED)


def people(call: Call, embedder: Embedder | None, number: int, seed: int = 1) -> list[Memory]:
    """Fill a store; the memories that are left, as they are in the end."""
    dice = Dice(seed)
    memories = [generated_memory(dice, memory_id(at)) for at in range(number)]
    made = embed_memories(call, embedder, memories) if embedder else [None] * number
    commit(call, [Add(memory=memory, embedded=one) for memory, one in zip(memories, made, strict=True)])
    present = {memory.id: memory for memory in memories}
    for _ in range(2):
        commit(call, revisions(dice, present))
    commit(call, remarks(dice, memories))
    commit(call, [Tune(w20=0.2, at=dice.moment())])
    commit(call, remarks(dice, memories))
    edges = links(dice, memories)
    commit(call, [Link(edge=edge) for edge in edges])
    commit(call, [Unlink(**_ends(edge), at=dice.moment()) for edge in edges[::7]])
    filed = documents(dice, memories)
    commit(call, [Put(document=one) for one in filed])
    again = [replace(one, version=2, body={"n": 2}, updated_at=dice.moment()) for one in filed[::2]]
    commit(call, [Put(document=one, logged=False) for one in again])
    commit(call, [Drop(kind=one.kind, id=one.id, at=dice.moment()) for one in filed[::5]])
    gone = memories[:: max(number // 20, 2)]
    commit(call, [Forget(memory_id=one.id, at=dice.moment(), reason="asked to") for one in gone])
    for memory in gone:
        del present[memory.id]
    if embedder:
        backfill(call, embedder)
    return list(present.values())


def commit(call: Call, changes: Sequence[Change]) -> None:
    for at in range(0, len(changes), BATCH):
        call.engine.store.commit(changes[at : at + BATCH], access=EVERYTHING)


def revisions(dice: Dice, present: dict[str, Memory]) -> list[Change]:
    """New texts, tags, suppressions and pins for some; `present` follows."""
    changes: list[Change] = []
    for memory in list(present.values()):
        if not dice.often(0.3):
            continue
        at = memory.updated_at + timedelta(hours=1)
        new = replace(memory, revision=memory.revision + 1, updated_at=at)
        if dice.often(0.4):
            new = replace(new, content=dice.text())
        elif dice.often(0.5):
            new = replace(new, tags=dice.some(("red", "green"), 2), pinned=dice.often(0.5))
        else:
            new = replace(new, suppression_count=memory.suppression_count + 1, suppressed_at=at)
        present[memory.id] = new
        changes.append(Revise(memory=new, reason="edited"))
    return changes


def remarks(dice: Dice, memories: Sequence[Memory]) -> list[Change]:
    return [
        RecordEvidence(
            memory_id=memory.id,
            evidence=dice.one(EVIDENCE),
            at=dice.moment(),
            amount=dice.one((1.0, 0.3)),
            details={"share": float(dice.rng.random())},
        )
        for memory in memories
        if dice.often(0.5)
    ]


def links(dice: Dice, memories: Sequence[Memory]) -> list[Edge]:
    return [
        Edge(
            source_id=source.id,
            target_id=target.id,
            kind=dice.one(("related", "supersedes")),
            weight=float(dice.rng.random()),
            created_at=dice.moment(),
        )
        for source, target in pairwise(memories)
        if dice.often(0.6)
    ]


def documents(dice: Dice, memories: Sequence[Memory]) -> list[Document]:
    return [
        Document(
            kind=dice.one(KINDS),
            id=f"document {at}",
            body={"n": 1, "text": dice.text(3)},
            scope=memory.scope,
            cites=(memory.id,) if dice.often(0.7) else (),
            created_at=memory.created_at,
            updated_at=memory.created_at,
        )
        for at, memory in enumerate(memories[::10])
    ]


def _ends(edge: Edge) -> dict[str, str]:
    return {"source_id": edge.source_id, "target_id": edge.target_id, "kind": edge.kind}
