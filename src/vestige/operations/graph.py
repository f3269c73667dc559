"""The links around a memory, with a place for each to be drawn at: `memory_graph`."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from vestige.cognition.strength import retention_of
from vestige.engine.context import Call
from vestige.engine.exploring import SHOWN
from vestige.engine.graph import Graph, found_centre, graph, newest_centre
from vestige.engine.revising import load
from vestige.engine.scopes import require_scope
from vestige.errors import InvalidInput
from vestige.models import Filter, Record
from vestige.operations.asking import MAX_QUERY_CHARS, check_query
from vestige.operations.catalog import registry
from vestige.operations.drawing import Line, Spot, mermaid, svg
from vestige.operations.fields import MemoryId, Scope
from vestige.operations.prose import clip, count, percent, table
from vestige.operations.scoping import scoped
from vestige.operations.views import EdgeView, edge_view
from vestige.operations.wire import Arguments, Wire

LABEL_CHARS = 60

Format = Literal["json", "mermaid", "svg"]


class NodeView(Wire):
    """A memory in the graph: its label is the beginning of its text, `x` and `y` are of 800 by 600."""

    id: str
    label: str
    type: str
    retention: float
    tags: list[str]
    scope: str
    created_at: datetime
    source: str | None = None
    author: str | None = None
    superseded_by: str | None = None
    x: float
    y: float
    is_center: bool
    # As the clients of the reference system read them.
    suppression_count: Annotated[int, Field(alias="suppression_count")]
    suppressed_at: Annotated[datetime | None, Field(alias="suppressed_at")] = None


class GraphView(Wire):
    """Memories and the links among them; `drawing` is the picture that was asked for."""

    center_id: Annotated[str | None, Field(alias="center_id")] = None
    depth: int
    node_count: int
    edge_count: int
    nodes: list[NodeView]
    edges: list[EdgeView]
    drawing: str | None = None


class GraphArguments(Arguments):
    """Where to begin, and how much to show."""

    center_id: Annotated[
        MemoryId | None, Field(description="Id of the memory in the centre; default the newest.")
    ] = None
    query: Annotated[
        str | None,
        Field(min_length=1, max_length=MAX_QUERY_CHARS, description="Begin with what is found for this."),
    ] = None
    depth: Annotated[int, Field(ge=1, le=3, description="How many links away from the centre.")] = 2
    max_nodes: Annotated[int, Field(ge=1, le=200, description="Most memories to show.")] = 50
    scope: Annotated[
        Scope | None,
        Field(
            description="Only this scope and what is below it. Default: around a `center_id` all that you "
            "may see, else your own and what it inherits."
        ),
    ] = None
    format: Annotated[
        Format, Field(description="mermaid or svg: also give the graph as a picture, in `drawing`.")
    ] = "json"


def render_graph(answer: GraphView) -> str:
    """The drawing, where one was asked for; else the memories, the most linked first."""
    if answer.drawing is not None:
        return answer.drawing
    if not answer.nodes:
        return "Nothing is remembered here yet."
    links = {node.id: 0 for node in answer.nodes}
    for edge in answer.edges:
        links[edge.source] += 1
        links[edge.target] += 1
    ordered = sorted(answer.nodes, key=lambda node: (not node.is_center, -links[node.id], node.id))
    rows = (
        (
            "●" if node.is_center else "",
            links[node.id],
            percent(node.retention),
            node.id,
            clip(node.label, 50),
        )
        for node in ordered
    )
    shown = f"{count(answer.node_count, 'memory')}, {count(answer.edge_count, 'link')}."
    return f"{table(('', 'links', 'there', 'memory', 'what it says'), rows)}\n\n{shown}"


@registry.operation(
    "memory_graph",
    permission="read",
    effect="none",
    example={"depth": 2, "max_nodes": 20, "format": "mermaid"},
    command="graph",
    title="Memory graph",
    render=render_graph,
)
def memory_graph(call: Call, asked: GraphArguments) -> GraphView:
    """Show the memories linked with one, over up to three links, with places to draw them at.

    Begin with `center_id`, with the best hit for `query`, or with the newest memory. What was suppressed is
    left out, unless it is the `center_id` itself.
    """
    if asked.center_id is not None and asked.query is not None:
        raise InvalidInput(
            "`center_id` and `query` both say where to begin.",
            hint="Give one of them.",
            details={"argument": "query"},
        )
    centre, where = _centre(call, asked)
    drawn = graph(call, centre, where=where, depth=asked.depth, most=asked.max_nodes)
    now = call.engine.now()
    nodes = [_node(record, drawn, now) for record in drawn.records]
    edges = [edge_view(edge) for edge in drawn.edges]
    return GraphView(
        center_id=nodes[0].id if nodes else None,
        depth=asked.depth,
        node_count=len(nodes),
        edge_count=len(edges),
        nodes=nodes,
        edges=edges,
        drawing=_drawing(asked.format, nodes, edges),
    )


def _centre(call: Call, asked: GraphArguments) -> tuple[Record | None, Filter]:
    """The memory to begin with, and which others may be shown."""
    if asked.center_id is not None:
        return load(call, asked.center_id), replace(SHOWN, scope=asked.scope)
    where = scoped(call, SHOWN, asked.scope)
    if asked.query is not None:
        check_query("query", asked.query)
        return found_centre(call, asked.query, where), where
    newest = newest_centre(call, where)
    if newest is None:
        require_scope(call, asked.scope)
    return newest, where


def _node(record: Record, drawn: Graph, now: datetime) -> NodeView:
    memory = record.memory
    x, y = drawn.places[memory.id]
    return NodeView(
        id=memory.id,
        label=clip(memory.content, LABEL_CHARS),
        type=memory.node_type,
        retention=round(retention_of(record.strength, now), 4),
        tags=list(memory.tags),
        scope=memory.scope,
        created_at=memory.created_at,
        source=memory.source,
        author=memory.author,
        superseded_by=memory.superseded_by,
        x=round(x, 1),
        y=round(y, 1),
        is_center=memory.id == drawn.records[0].memory.id,
        suppression_count=memory.suppression_count,
        suppressed_at=memory.suppressed_at,
    )


def _drawing(form: Format, nodes: list[NodeView], edges: list[EdgeView]) -> str | None:
    if form == "json":
        return None
    number = {node.id: at for at, node in enumerate(nodes)}
    spots = [
        Spot(id=n.id, label=n.label, x=n.x, y=n.y, retention=n.retention, centre=n.is_center) for n in nodes
    ]
    lines = [Line(start=number[e.source], end=number[e.target], kind=e.type, weight=e.weight) for e in edges]
    return svg(spots, lines) if form == "svg" else mermaid(spots, lines)
