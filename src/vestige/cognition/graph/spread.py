"""Spreading activation over the links between memories (Collins & Loftus 1975), one step at a time.

A step is pure: activations and edges in, activations out. The engine loads the edges of newly active memories
and takes the next step, so the graph is walked level by level and a cycle costs nothing.
"""

from collections.abc import Iterable, Mapping

from vestige.cognition.graph.kinds import SILENT
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Edge, Memory

DECAY = 0.7  # The share of an activation that is left after one link of full weight.
CROSSING = 0.8  # The factor for a link into another branch of the scopes.
CROSS_DOMAIN = 0.5  # The factor for a link into another domain: the default of `domains.cross_domain_decay`.
LEAST = 0.2  # Below this an activation has died out.


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """The activation of a memory, and the memory and kind of link it came through (None for a seed)."""

    level: float
    via: str | None = None
    kind: str | None = None


def received(
    active: Mapping[str, Activation],
    edges: Iterable[Edge],
    memories: Mapping[str, Memory] | None = None,
    cross_domain: float = CROSS_DOMAIN,
) -> dict[str, Activation]:
    """The activation each memory receives in one step along the edges, either way; the strongest path counts.
    Whether a link crosses into another field is known only if both ends are among `memories`."""
    known = memories or {}
    reached: dict[str, Activation] = {}
    for edge in sorted(edges, key=lambda one: (one.source_id, one.target_id, one.kind)):
        if edge.kind in SILENT:
            continue
        share = DECAY * min(1.0, max(0.0, edge.weight)) * _carried(edge, known, cross_domain)
        for start, end in ((edge.source_id, edge.target_id), (edge.target_id, edge.source_id)):
            if start not in active:
                continue
            level = active[start].level * share
            if level >= LEAST and (end not in reached or level > reached[end].level):
                reached[end] = Activation(level=level, via=start, kind=edge.kind)
    return reached


def _carried(edge: Edge, memories: Mapping[str, Memory], cross_domain: float) -> float:
    if edge.source_id not in memories or edge.target_id not in memories:
        return 1.0
    one, other = memories[edge.source_id], memories[edge.target_id]
    factor = CROSSING if one.scope != other.scope else 1.0
    return min(factor, cross_domain) if in_other_domains(one, other) else factor


def in_other_domains(one: Memory, other: Memory) -> bool:
    """Whether two memories both have domains, and none in common."""
    return bool(one.domains) and bool(other.domains) and set(one.domains).isdisjoint(other.domains)


def raised(active: Mapping[str, Activation], reached: Mapping[str, Activation]) -> dict[str, Activation]:
    """The memories that are more active than before: only these need another step."""
    return {
        memory_id: one
        for memory_id, one in reached.items()
        if memory_id not in active or one.level > active[memory_id].level
    }
