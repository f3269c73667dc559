"""How the memory is doing: counts, states, coverage, and what would help."""

from dataclasses import dataclass

import numpy as np

from vestige.cognition.strength import state
from vestige.embed.background import EmbedderStatus
from vestige.engine.context import Call
from vestige.models import MemoryState, StoreStats

LOW_RETENTION = 0.5
MANY_DUE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The state of the store and the model, with warnings and advice in words."""

    status: str
    stats: StoreStats
    average_retention: float
    states: dict[MemoryState, int]
    embedder: EmbedderStatus
    warnings: tuple[str, ...]
    advice: tuple[str, ...]


def health(call: Call) -> Health:
    """Look at everything this call may see."""
    engine = call.engine
    stats = engine.store.stats(access=call.access, now=engine.now())
    embedder = engine.embedders.status()
    average = float(np.mean(stats.retentions)) if stats.retentions else 0.0
    states = dict.fromkeys(MemoryState, 0)
    for value in stats.retentions:
        states[state(value)] += 1
    warnings, advice = _judge(stats, average, embedder)
    return Health(
        status="empty" if not stats.memories else "degraded" if warnings else "healthy",
        stats=stats,
        average_retention=average,
        states=states,
        embedder=embedder,
        warnings=warnings,
        advice=advice,
    )


def _judge(
    stats: StoreStats, average: float, embedder: EmbedderStatus
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    warnings, advice = [], []
    if embedder.state != "ready":
        warnings.append(f"Search works on words only: {embedder.detail or embedder.state}.")
        if embedder.state in ("absent", "failed", "offline"):
            advice.append("Run `vestige model install` so that memories are found by meaning too.")
    missing = stats.memories - stats.embedded
    if missing and embedder.state == "ready":
        warnings.append(f"{missing} of {stats.memories} memories have no vectors.")
        advice.append("Run `vestige rebuild --vectors`.")
    if stats.memories and average < LOW_RETENTION:
        advice.append("Most memories are fading; review the due ones or let them go.")
    if stats.due > MANY_DUE:
        advice.append(f"{stats.due} memories are due for review (`vestige memory list --order due`).")
    return tuple(warnings), tuple(advice)
