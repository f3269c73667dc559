"""Spreading activation over the links between memories (Collins & Loftus 1975), one step at a time.

A step is pure: activations and edges in, activations out. The engine loads the edges of what is active and
takes the next step, so the graph is walked level by level and a cycle costs nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vestige.models import Edge

DECAY = 0.7
"""What is left of an activation after one link of full weight."""
LEAST = 0.2
"""Below this an activation has died out."""
SILENT_KINDS = frozenset({"supersedes", "merges"})
"""Links over which nothing spreads: what was replaced must not come back with its successor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """How active a memory is, and through which memory and kind of link (None for a seed)."""

    level: float
    via: str | None = None
    kind: str | None = None


def received(active: Mapping[str, Activation], edges: Iterable[Edge]) -> dict[str, Activation]:
    """What reaches each memory in one step along the edges, either way; the strongest path counts."""
    reached: dict[str, Activation] = {}
    for edge in sorted(edges, key=lambda one: (one.source_id, one.target_id, one.kind)):
        if edge.kind in SILENT_KINDS:
            continue
        for start, end in ((edge.source_id, edge.target_id), (edge.target_id, edge.source_id)):
            if start not in active:
                continue
            level = active[start].level * DECAY * min(1.0, max(0.0, edge.weight))
            if level >= LEAST and (end not in reached or level > reached[end].level):
                reached[end] = Activation(level=level, via=start, kind=edge.kind)
    return reached


def step(active: Mapping[str, Activation], edges: Iterable[Edge]) -> dict[str, Activation]:
    """The activations after one step: what was active stays so, the rest by what it received."""
    return received(active, edges) | dict(active)
