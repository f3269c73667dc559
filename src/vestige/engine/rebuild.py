"""Deriving again what is derived: strengths from the log, lexical rows and vectors from the text."""

from dataclasses import dataclass

from vestige.cognition.strength import fold
from vestige.embed.background import EmbedderStatus, State
from vestige.embed.protocol import Embedder
from vestige.engine.context import Call
from vestige.engine.embedding import embed_missing, embedder_or_none
from vestige.engine.health import why_no_model
from vestige.engine.replay import story
from vestige.errors import ModelUnavailable, StoreBusy
from vestige.models import EVERYTHING, Strength

ROUNDS = 20
"""How often embedding anew looks for what was written meanwhile before it gives up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What was derived again. `drifted` strengths were not what the log says they should be; `note`
    tells what was left out, and why."""

    strengths: int
    drifted: int
    words: int
    vectors: int
    note: str | None = None


def rebuild(call: Call, *, strengths: bool = False, words: bool = False, vectors: bool = False) -> Rebuilt:
    """Derive the chosen surfaces again; without a choice, all that can be. Canonical data is only read.

    Vectors that were asked for need a model; where nobody asked, they are left out without one.
    """
    everything = not (strengths or words or vectors)
    embedder = embedder_or_none(call.engine) if vectors or everything else None
    status = call.engine.embedders.status()
    if vectors and embedder is None:
        raise no_model(status)
    replayed, drifted = rebuild_strengths(call) if strengths or everything else (0, 0)
    call.check()
    rows = call.engine.store.rebuild_words() if words or everything else 0
    call.check()
    left_out = everything and embedder is None
    return Rebuilt(
        strengths=replayed,
        drifted=drifted,
        words=rows,
        vectors=rebuild_vectors(call, embedder) if embedder else 0,
        note=f"Vectors were left out: {why_no_model(status)}." if left_out else None,
    )


def rebuild_strengths(call: Call) -> tuple[int, int]:
    """Fold every memory's evidence from the log; (memories, how many had drifted).

    Others may write meanwhile: a memory that is remarked after the log was read keeps the strength
    that its remark left it with.
    """
    store = call.engine.store
    told = story(call)
    replayed: dict[str, Strength] = {}
    drifted: set[str] = set()
    for records in store.stream(access=EVERYTHING):
        call.check()
        for record in records:
            memory = record.memory
            strength = fold(memory.created_at, told.sightings.get(memory.id, ()), told.curve)
            replayed[memory.id] = strength
            if strength != record.strength:
                drifted.add(memory.id)
        call.progress(len(replayed), None, f"{len(replayed)} strengths replayed")
    later = story(call, after=told.position)
    return store.put_strengths(replayed, after=told.position), len(drifted - later.sightings.keys())


def rebuild_vectors(call: Call, embedder: Embedder) -> int:
    """Make the vectors those of this model, and embed every memory that has none; how many were embedded.

    Searches and writes go on with the vectors in use until those of this model are complete. Whatever ends it
    before, the store is as it was, and what was made is there when it is begun again.
    """
    store = call.engine.store
    with store.alone("embedding anew"):
        done = 0
        for _ in range(ROUNDS):
            # What others wrote or changed since the last round is what this one finds.
            done += embed_missing(call, embedder, coming=True)
            if store.adopt(embedder.signature):
                return done
    raise StoreBusy(
        "Memories are written faster than they can be embedded, so the model was not changed.",
        hint="Run it again when less is written: what was embedded so far is kept.",
        details={"embedded": done, "rounds": ROUNDS},
    )


def no_model(status: EmbedderStatus) -> ModelUnavailable:
    """The error for vectors that were asked for while there is no model, with what to do."""
    hint = "Run `vestige model install`, then try again."
    if status.state is State.OFF:
        hint = "embeddings.provider is off: set it to `local` or another provider, then try again."
    elif status.error is not None and status.error.get("hint"):
        hint = str(status.error["hint"])
    return ModelUnavailable(f"No vectors can be made: {why_no_model(status)}.", hint=hint)
