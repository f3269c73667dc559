"""Links between memories: the tool `explore_connections`, and the `link` and `unlink` actions of `memory`."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from vestige.cognition.fsrs.strength import retention_of
from vestige.cognition.graph.paths import Path
from vestige.core.models import Edge, Record, estimate
from vestige.engine.context import Call
from vestige.engine.memory import link
from vestige.engine.recall import explore
from vestige.operations.memory.dedup import EXAMPLE_MERGED, EXAMPLE_PARTS
from vestige.operations.memory.read import EXAMPLE_ID
from vestige.operations.reasoning.reference_view import quoted
from vestige.operations.registry.arguments import MemoryId, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.memory_view import EdgeView, edge_view
from vestige.operations.shared.text import clip, count, percent, row_number, short_id, table

PREVIEW_CHARS = 120
EXAMPLE_PART = "01890000-0000-7000-8000-0000000000d3"
"""Id of a memory that was merged into the one of the undo example."""

Direction = Literal["outgoing", "incoming"]
Limit = Annotated[int, Field(ge=1, le=100, description="Maximum number of results.")]
From = Annotated[MemoryId, Field(description="Id of the first memory.")]
To = Annotated[MemoryId, Field(description="Id of the last memory.")]
LinkType = Literal["user_defined", "causal", "part_of", "spatial", "contradicts"]


class ConnectedView(Wire):
    """A memory on a path, with its provenance."""

    id: str
    preview: str
    node_type: str
    scope: str
    retention: float
    created_at: datetime
    source: str | None = None
    author: str | None = None
    superseded_by: str | None = None


class ConnectionsAssociationView(Wire):
    """A link and the memory at its other end; `direction` is relative to the memory asked about."""

    type: str
    weight: float
    direction: Direction
    memory: ConnectedView


class ConnectionsStepView(EdgeView):
    """A link on a path; `incoming` means that the path follows it backwards."""

    direction: Direction


class PathView(Wire):
    """A path: ids in order, and the links between them. `confidence` is the product of the weights, less a
    tenth for each further hop."""

    path: list[str]
    steps: list[ConnectionsStepView]
    confidence: float
    total_hops: int


class BridgeView(Wire):
    """A memory on paths between two others."""

    memory: ConnectedView
    paths: int
    confidence: float


class AssociationsFound(Wire):
    """The links of a memory, strongest first."""

    action: str = "associations"
    memory: ConnectedView
    total: int
    associations: list[ConnectionsAssociationView]


class Chain(Wire):
    """The paths from one memory to another, best first, and every memory on them."""

    action: str = "chain"
    paths_found: int
    confidence: float | None = None
    total_hops: int | None = None
    paths: list[PathView]
    memories: list[ConnectedView]


class BridgesFound(Wire):
    """The memories that connect two others, those on most paths first."""

    action: str = "bridges"
    bridges: list[BridgeView]


class LinkChanged(Wire):
    action: str = "link"
    success: bool = True
    changed: bool
    edge: EdgeView


class LinksCut(Wire):
    """The links that were removed."""

    action: str = "unlink"
    success: bool = True
    changed: bool
    edges: list[EdgeView]


def render_associations(answer: AssociationsFound) -> str:
    rows = (
        (row_number(one.memory.id), "→" if one.direction == "outgoing" else "←", one.type,
         f"{one.weight:.2f}", short_id(one.memory.id), clip(one.memory.preview))
        for one in answer.associations
    )  # fmt: skip
    shown = f"{len(answer.associations)} of {count(answer.total, 'link')} of {short_id(answer.memory.id)}."
    return f"{table(('#', '', 'link', 'weight', 'memory', 'text'), rows)}\n\n{shown}"


def render_chain(answer: Chain) -> str:
    """Paths as text, one memory a line."""
    if not answer.paths:
        return "No path connects them."
    texts = {one.id: one.preview for one in answer.memories}
    blocks = []
    for path in answer.paths:
        lines = [f"{count(path.total_hops, 'hop')}, confidence {percent(path.confidence)}"]
        arrows = [
            f"  {'→' if step.direction == 'outgoing' else '←'} {step.type} ({step.weight:.2f})"
            for step in path.steps
        ]
        for memory_id, arrow in zip(path.path, [*arrows, ""], strict=True):
            lines += [f"{quoted(texts[memory_id], 60)} [{short_id(memory_id)}]", *([arrow] if arrow else [])]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def render_bridges(answer: BridgesFound) -> str:
    if not answer.bridges:
        return "No memory connects them."
    rows = (
        (
            row_number(one.memory.id),
            one.paths,
            percent(one.confidence),
            short_id(one.memory.id),
            clip(one.memory.preview),
        )
        for one in answer.bridges
    )
    return table(("#", "paths", "confidence", "memory", "what it says"), rows)


def _render_cut(result: LinksCut) -> str:
    return f"{count(len(result.edges), 'link')} removed." if result.changed else "They were not linked."


def _render_linked(result: LinkChanged) -> str:
    edge = result.edge
    head = "Linked" if result.changed else "Already linked"
    return f"{head}: {short_id(edge.source)} → {short_id(edge.target)} ({edge.type}, {edge.weight:.2f})."


@registry.operation(
    "connections.associations",
    permission="read",
    positional=(),
    example={"from": EXAMPLE_MERGED, "limit": 5},
    render=render_associations,
)
def connections_associations(call: Call, from_: From, limit: Limit = 10) -> AssociationsFound:
    """List the links of a memory, strongest first.

    Suppressed memories are left out; `memory` with action `get` lists every link with its ids.
    """
    now = call.engine.now()
    found = explore.associations(call, from_, limit)
    return AssociationsFound(
        memory=_connected(found.record, now),
        total=found.total,
        associations=[
            ConnectionsAssociationView(
                type=one.edge.kind,
                weight=round(one.edge.weight, 4),
                direction=_direction(one.edge, from_),
                memory=_connected(one.record, now),
            )
            for one in found.found
        ],
    )


@registry.operation(
    "connections.chain",
    permission="read",
    positional=(),
    example={"from": EXAMPLE_MERGED, "to": EXAMPLE_PART},
    render=render_chain,
)
def connections_chain(call: Call, from_: From, to: To, limit: Limit = 10) -> Chain:
    """Find the paths of links between two memories, best first, at most five.

    Links are followed in both directions, among memories that are up to three hops from either end. Links
    weaker than 0.1 and suppressed memories are ignored.
    """
    now = call.engine.now()
    found = explore.connection(call, from_, to, limit)
    paths = [_path(path) for path in found.paths]
    return Chain(
        paths_found=len(paths),
        confidence=paths[0].confidence if paths else None,
        total_hops=paths[0].total_hops if paths else None,
        paths=paths,
        memories=[_connected(record, now) for record in found.records.values()],
    )


@registry.operation(
    "connections.bridges",
    permission="read",
    positional=(),
    example={"from": EXAMPLE_PARTS[0], "to": EXAMPLE_PARTS[1]},
    render=render_bridges,
)
def connections_bridges(call: Call, from_: From, to: To, limit: Limit = 10) -> BridgesFound:
    """Find the memories that connect two others: those on most of the ten best paths."""
    now = call.engine.now()
    return BridgesFound(
        bridges=[
            BridgeView(
                memory=_connected(one.record, now), paths=one.paths, confidence=estimate(one.confidence)
            )
            for one in explore.between(call, from_, to, limit)
        ]
    )


@registry.operation(
    "memory.link",
    permission="write",
    example={"id": EXAMPLE_ID, "target": EXAMPLE_PARTS[0], "type": "causal"},
    render=_render_linked,
)
def memory_link(
    call: Call,
    id: MemoryId,
    target: Annotated[MemoryId, Field(description="Id of the other memory.")],
    type: Annotated[
        LinkType, Field(description="Type of the link from the first memory to the other.")
    ] = "user_defined",
    weight: Annotated[float, Field(gt=0, le=1, description="Strength of the link.")] = 1.0,
) -> LinkChanged:
    """Link two memories: a search that finds one may also return the other.

    A link made this way never fades. Linking again sets the weight.
    """
    made = link.link(call, id, target, type, weight)
    return LinkChanged(changed=made.changed, edge=edge_view(made.edge))


@registry.operation(
    "memory.unlink",
    permission="write",
    example={"id": EXAMPLE_ID, "target": EXAMPLE_PARTS[0]},
    render=_render_cut,
)
def memory_unlink(
    call: Call,
    id: MemoryId,
    target: Annotated[MemoryId, Field(description="Id of the other memory.")],
    type: Annotated[
        str | None, Field(min_length=1, max_length=64, description="Only links of this type. Default: all.")
    ] = None,
) -> LinksCut:
    """Remove the links between two memories, in both directions.

    Links that record a supersession or a merge stay: they are history.
    """
    cut = link.unlink(call, id, target, type)
    return LinksCut(changed=bool(cut), edges=[edge_view(edge) for edge in cut])


def _connected(record: Record, now: datetime) -> ConnectedView:
    memory = record.memory
    return ConnectedView.of(
        memory,
        preview=clip(memory.content, PREVIEW_CHARS),
        retention=round(retention_of(record.strength, now), 4),
    )


def _path(path: Path) -> PathView:
    steps = [
        ConnectionsStepView(**edge_view(edge).model_dump(), direction=_direction(edge, start))
        for edge, start in zip(path.edges, path.ids[:-1], strict=True)
    ]
    return PathView(
        path=list(path.ids), steps=steps, confidence=estimate(path.confidence), total_hops=len(steps)
    )


def _direction(edge: Edge, start: str) -> Direction:
    return "outgoing" if edge.source_id == start else "incoming"
