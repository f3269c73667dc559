"""The map of the memories: the action `map` of the tool `domains`."""

from typing import Annotated

from pydantic import Field

from vestige.cognition.fsrs.strength import retention_of
from vestige.core.events import preview
from vestige.engine.context import Call
from vestige.engine.domains import map as mapping
from vestige.engine.domains.catalogue import find_domain
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import count, table

LABEL_CHARS = 80


class IslandView(Wire):
    """A domain on the map: a circle. The island of a store without domains has no `domain`."""

    domain: str | None = None
    label: str
    memories: int
    x: float
    y: float
    radius: float


class PlacedView(Wire):
    """A memory on the map."""

    id: str
    label: str
    type: str
    retention: float
    domain: str | None = None
    x: float
    y: float


class MapView(Wire):
    """Islands and the strongest memories on them; `total` counts all memories."""

    islands: list[IslandView]
    nodes: list[PlacedView]
    total: int


def render_map(shown: MapView) -> str:
    rows = [
        (one.label, f"{one.memories:,}", f"{one.x:.1f}", f"{one.y:.1f}", f"{one.radius:.1f}")
        for one in shown.islands
    ]
    drawn = f"{count(len(shown.nodes), 'memory')} of {shown.total:,} on the map."
    return f"{table(('island', 'memories', 'x', 'y', 'radius'), rows)}\n\n{drawn}" if rows else drawn


@registry.operation(
    "domains.map",
    permission="read",
    effect="none",
    example={"limit": 10},
    title="Map of the memories",
    render=render_map,
)
def domain_map(
    call: Call,
    domain: Annotated[
        str | None, Field(min_length=1, max_length=200, description="Only the island of this domain.")
    ] = None,
    limit: Annotated[int, Field(ge=1, le=2000, description="Maximum number of memories.")] = 500,
) -> MapView:
    """Place memories on a map: domains are islands, and similar memories are near each other.

    A place follows from the scores of a memory for the domains; it stays while the domains stay. Without
    domains it follows from the vectors. Suppressed memories are left out.
    """
    call.require_everything()
    name = find_domain(call, domain).id if domain is not None else None
    found, now = mapping.memory_map(call, domain=name, limit=limit), call.engine.now()
    return MapView(
        islands=[
            IslandView(
                domain=one.domain,
                label=one.label,
                memories=one.memories,
                x=round(one.x, 2),
                y=round(one.y, 2),
                radius=round(one.radius, 2),
            )
            for one in found.islands
        ],
        nodes=[
            PlacedView(
                id=one.record.memory.id,
                label=preview(one.record.memory.content, LABEL_CHARS),
                type=one.record.memory.node_type,
                retention=round(retention_of(one.record.strength, now), 4),
                domain=one.domain,
                x=round(one.x, 2),
                y=round(one.y, 2),
            )
            for one in found.nodes
        ],
        total=found.total,
    )
