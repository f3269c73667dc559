"""Deriving again what is derived: strengths from the log, lexical rows and vectors from the text."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from vestige.cognition.strength import fold
from vestige.engine.context import Call
from vestige.engine.embedding import backfill
from vestige.errors import ModelUnavailable
from vestige.models import EVERYTHING, Evidence, LogEvent, Strength

LOG_PAGE = 5_000
REMARKED = "memory.remarked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What was derived again. `drifted` strengths were not what the log says they should be."""

    strengths: int
    drifted: int
    words: int
    vectors: int


def rebuild(call: Call, *, strengths: bool, words: bool, vectors: bool) -> Rebuilt:
    """Derive the chosen surfaces again. Canonical data is only read."""
    replayed, drifted = rebuild_strengths(call) if strengths else (0, 0)
    call.check()
    rows = call.engine.store.rebuild_words() if words else 0
    call.check()
    return Rebuilt(
        strengths=replayed,
        drifted=drifted,
        words=rows,
        vectors=rebuild_vectors(call) if vectors else 0,
    )


def rebuild_strengths(call: Call) -> tuple[int, int]:
    """Fold every memory's evidence from the log; (memories, how many had drifted)."""
    store = call.engine.store
    evidence = _evidence(_whole_log(call))
    replayed: dict[str, Strength] = {}
    drifted = 0
    for records in store.stream(access=EVERYTHING):
        call.check()
        for record in records:
            memory = record.memory
            strength = fold(memory.created_at, evidence.get(memory.id, ()))
            drifted += strength != record.strength
            replayed[memory.id] = strength
        call.progress(len(replayed), None, f"{len(replayed)} strengths replayed")
    return store.put_strengths(replayed), drifted


def rebuild_vectors(call: Call) -> int:
    """Make the vectors those of the configured model, and embed every memory that has none."""
    engine = call.engine
    embedder = engine.embedders.get(engine.settings.embeddings.wait_seconds)
    if embedder is None:
        raise ModelUnavailable(
            engine.embedders.status().detail, hint="Run `vestige model install`, then try again."
        )
    if engine.store.signature() != embedder.signature:
        engine.store.adopt(embedder.signature)
    return backfill(call, embedder)


def _whole_log(call: Call) -> Iterable[LogEvent]:
    after = 0
    while page := call.engine.store.log(access=EVERYTHING, after=after, limit=LOG_PAGE):
        call.check()
        yield from page
        after = page[-1].position


def _evidence(log: Iterable[LogEvent]) -> dict[str, list[tuple[Evidence, datetime]]]:
    found: dict[str, list[tuple[Evidence, datetime]]] = defaultdict(list)
    for event in log:
        if event.kind == REMARKED and event.memory_id is not None:
            found[event.memory_id].append((Evidence(event.payload["evidence"]), event.at))
    return found
