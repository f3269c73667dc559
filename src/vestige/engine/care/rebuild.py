"""Rebuilding derived data: strengths from the log, lexical rows and vectors from the text, and the lists of
neighbours from the vectors."""

from vestige.cognition.fsrs.strength import fold
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, Strength
from vestige.engine.care.health import why_no_model
from vestige.engine.care.reembed import no_model_error, switch_model
from vestige.engine.context import Call
from vestige.engine.domains.arrivals import catch_up
from vestige.engine.embedding import embedder_or_none
from vestige.engine.sleep.personal_curve import strength_history


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What was rebuilt. `drifted` strengths differed from the log; `note` says what was left out, and why."""

    strengths: int
    drifted: int
    words: int
    vectors: int
    note: str | None = None


def rebuild(call: Call, *, strengths: bool = False, words: bool = False, vectors: bool = False) -> Rebuilt:
    """Rebuild the chosen data; without a choice, everything possible. Vectors that were asked for need a
    model; otherwise they are left out without one."""
    everything = not (strengths or words or vectors)
    embedder = embedder_or_none(call.engine) if vectors or everything else None
    status = call.engine.embedders.status()
    if vectors and embedder is None:
        raise no_model_error(status)
    replayed, drifted = rebuild_strengths(call) if strengths or everything else (0, 0)
    call.check()
    rows = call.engine.store.rebuild_words() if words or everything else 0
    call.check()
    left_out = everything and embedder is None
    made = switch_model(call, embedder) if embedder else 0
    if vectors or everything:
        call.check()
        call.engine.store.rebuild_neighbours()
        catch_up(call)
    return Rebuilt(
        strengths=replayed,
        drifted=drifted,
        words=rows,
        vectors=made,
        note=f"Vectors were left out: {why_no_model(status)}." if left_out else None,
    )


def rebuild_strengths(call: Call) -> tuple[int, int]:
    """Fold every memory's evidence from the log: how many, and how many had drifted. A memory with evidence
    after the log was read, from another process, keeps its strength."""
    store = call.engine.store
    history = strength_history(call)
    replayed: dict[str, Strength] = {}
    drifted: set[str] = set()
    for records in store.stream(access=EVERYTHING):
        call.check()
        for record in records:
            memory = record.memory
            strength = fold(memory.created_at, history.sightings.get(memory.id, ()), history.curve)
            replayed[memory.id] = strength
            if strength != record.strength:
                drifted.add(memory.id)
        call.progress(len(replayed), None, f"{len(replayed)} strengths replayed")
    later = strength_history(call, after=history.position)
    return store.put_strengths(replayed, after=history.position), len(drifted - later.sightings.keys())
