"""The graph of links around a memory, with layout and drawings: `memory_graph`."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal
from xml.etree import ElementTree as ET

from pydantic import Field

from vestige.cognition.fsrs.strength import retention_of
from vestige.cognition.graph.dreams.replay import LEAST_MEMORIES
from vestige.cognition.graph.kinds import CONTRADICTS, SILENT
from vestige.cognition.graph.layout import HEIGHT, WIDTH
from vestige.core.errors import InvalidInput
from vestige.core.models import Record
from vestige.engine.context import Call, require_scope
from vestige.engine.recall.explore import SHOWN, Graph, centre_for_query, graph, overview
from vestige.engine.revise import load
from vestige.operations.registry.arguments import Arguments, DomainNames, MemoryId, SearchedScope, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import MAX_QUERY_CHARS, check_query, domains_named, searched
from vestige.operations.shared.memory_view import EdgeView, edge_view
from vestige.operations.shared.text import clip, count, row_number, short_id, strength, table, unmarked

# -- The graph as a drawing: SVG and Mermaid, with escaped labels, which are untrusted

SVG_LABEL_CHARS = 24
"""Longer labels are cut; the tooltip shows the whole text."""
CENTRE, NODE, LINE, OPPOSED = "#5b21b6", "#8b5cf6", "#94a3b8", "#dc2626"
PLAIN = frozenset(" ,")
"""Characters besides letters and digits that have no meaning in Mermaid."""


def svg(nodes: Sequence["NodeView"], edges: Sequence[EdgeView]) -> str:
    """An SVG without scripts or external resources."""
    root = ET.Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}",
        role="img",
        style="font: 11px sans-serif; background: white",
    )
    ET.SubElement(root, "title").text = "Links between memories"
    by_id = {node.id: node for node in nodes}
    for edge in edges:
        _draw_edge(root, by_id[edge.source], by_id[edge.target], edge)
    for node in nodes:
        _draw_node(root, node)
    return ET.tostring(root, encoding="unicode")


def _draw_edge(root: ET.Element, start: "NodeView", end: "NodeView", edge: EdgeView) -> None:
    drawn = ET.SubElement(
        root,
        "line",
        x1=f"{start.x:.1f}",
        y1=f"{start.y:.1f}",
        x2=f"{end.x:.1f}",
        y2=f"{end.y:.1f}",
        stroke=OPPOSED if edge.type == CONTRADICTS else LINE,
        attrib={"stroke-width": f"{0.5 + 2 * min(1.0, max(0.0, edge.weight)):.1f}"},
    )
    if edge.type in SILENT:
        drawn.set("stroke-dasharray", "4 3")
    ET.SubElement(drawn, "title").text = f"{printable(edge.type)} ({edge.weight:.2f})"


def _draw_node(root: ET.Element, node: "NodeView") -> None:
    group = ET.SubElement(root, "g", transform=f"translate({node.x:.1f} {node.y:.1f})")
    ET.SubElement(group, "title").text = f"{printable(node.label)} [{printable(node.id)}]"
    ET.SubElement(
        group,
        "circle",
        r="9" if node.is_center else "6",
        fill=CENTRE if node.is_center else NODE,
        # Faded memories are paler but stay visible.
        opacity=f"{0.3 + 0.7 * node.retention:.2f}",
    )
    # Near the right edge a label goes to the left of its node, so that it is not cut off.
    left = node.x > WIDTH * 0.75
    label = ET.SubElement(group, "text", x="-12" if left else "12", y="4", fill="#1e293b")
    if left:
        label.set("text-anchor", "end")
    text = printable(node.label)
    label.text = text if len(text) <= SVG_LABEL_CHARS else text[: SVG_LABEL_CHARS - 1] + "…"


def mermaid(nodes: Sequence["NodeView"], edges: Sequence[EdgeView]) -> str:
    """The graph in Mermaid, which many Markdown viewers draw."""
    number = {node.id: at for at, node in enumerate(nodes)}
    boxes = [
        f'  n{at}{"((" if node.is_center else "["}"{_quoted(node.label)}"{"))" if node.is_center else "]"}'
        for at, node in enumerate(nodes)
    ]
    links = [f'  n{number[edge.source]} -->|"{_quoted(edge.type)}"| n{number[edge.target]}' for edge in edges]
    return "\n".join(["graph LR", *boxes, *links])


def _quoted(text: str) -> str:
    """The text with every character that Mermaid, Markdown or HTML could interpret as a character code."""
    return "".join(char if char.isalnum() or char in PLAIN else f"#{ord(char)};" for char in printable(text))


def printable(text: str) -> str:
    """The text without invisible characters: XML forbids control characters, and direction marks can disguise
    text.
    """
    return "".join(char if char.isprintable() else " " for char in text)


# -- The operation

LABEL_CHARS = 60
MOST_NEIGHBOURS = 4
_DRAWINGS = {"mermaid": mermaid, "svg": svg}

Format = Literal["json", "mermaid", "svg"]


class NodeView(Wire):
    """A memory in the graph: `label` is the beginning of its text, `x` and `y` are within 800 by 600."""

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
    """Memories and the links between them; `drawing` is the requested picture."""

    center_id: Annotated[str | None, Field(alias="center_id")] = None
    depth: int
    node_count: int
    edge_count: int
    nodes: list[NodeView]
    edges: list[EdgeView]
    drawing: str | None = None


class GraphArguments(Arguments):
    """Where to start, and how much to show."""

    center_id: MemoryId | None = Field(
        None, description="Id of the memory in the centre. Default: all that is connected, most linked first."
    )
    query: str | None = Field(
        None, min_length=1, max_length=MAX_QUERY_CHARS, description="Start from the best match of this query."
    )
    depth: int = Field(2, ge=1, le=3, description="Maximum number of links from a given centre.")
    max_nodes: int = Field(50, ge=1, le=200, description="Maximum number of memories.")
    scope: SearchedScope = None
    domains: DomainNames = Field([], description="Only memories of these domains.")
    format: Format = Field(
        "json", description="mermaid or svg also returns a drawing of the graph in `drawing`."
    )


def render_graph(answer: GraphView) -> str:
    """The drawing if requested; otherwise the memories, most linked first."""
    if answer.drawing is not None:
        return answer.drawing
    if not answer.nodes:
        return "No memories here yet."
    links: dict[str, set[str]] = {node.id: set() for node in answer.nodes}
    for edge in answer.edges:
        links[edge.source].add(edge.target)
        links[edge.target].add(edge.source)
    ordered = sorted(answer.nodes, key=lambda node: (not node.is_center, -len(links[node.id]), node.id))
    places = {node.id: row_number(node.id) for node in ordered}
    rows = (
        (
            places[node.id],
            "●" if node.is_center else "",
            _neighbours([place for id, place in places.items() if id in links[node.id]]),
            strength(node.retention),
            short_id(node.id),
            clip(node.label),
        )
        for node in ordered
    )
    shown = f"{count(answer.node_count, 'memory')}, {count(answer.edge_count, 'link')}."
    if not answer.edges and answer.node_count > 1:
        shown += " No memory is linked to another yet: `vestige memory link @1 @2` links two"
        enough = answer.node_count >= LEAST_MEMORIES
        shown += f", `vestige dream` looks for links{'' if enough else f' among {LEAST_MEMORIES} or more'}."
    return f"{table(('#', '', 'linked to', 'strength', 'memory', 'text'), rows)}\n\n{shown}"


def _neighbours(places: Sequence[str]) -> str:
    """The rows that a memory is linked to."""
    shown = ", ".join(f"@{unmarked(place)}" for place in places[:MOST_NEIGHBOURS])
    return f"{shown} +{len(places) - MOST_NEIGHBOURS}" if len(places) > MOST_NEIGHBOURS else shown


@registry.operation(
    "memory_graph",
    permission="read",
    example={"depth": 2, "max_nodes": 20, "format": "mermaid"},
    command="graph",
    title="Memory graph",
    render=render_graph,
)
def memory_graph(call: Call, asked: GraphArguments) -> GraphView:
    """Show linked memories with coordinates for drawing: all that is connected, or what is around one.

    With `center_id`, or the best match of `query`, it shows what is up to three links away. Without, it shows
    every connected part as an island, the largest first; while nothing is linked, the newest memories.
    Suppressed memories are left out, except `center_id` itself.
    """
    if asked.center_id is not None and asked.query is not None:
        raise InvalidInput(
            "`center_id` and `query` are both given, but only one can be the start.",
            hint="Give one of them.",
            details={"argument": "query"},
        )
    drawn = _graph(call, asked)
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
        drawing=_DRAWINGS[asked.format](nodes, edges) if asked.format in _DRAWINGS else None,
    )


def _graph(call: Call, asked: GraphArguments) -> Graph:
    shown = replace(SHOWN, domains=domains_named(call, asked.domains))
    where = searched(call, shown, asked.scope)
    if asked.center_id is not None:
        centre, where = load(call, asked.center_id), replace(shown, scope=asked.scope)
    elif asked.query is not None:
        check_query("query", asked.query)
        centre = centre_for_query(call, asked.query, where)
    else:
        drawn = overview(call, where=where, most=asked.max_nodes)
        if not drawn.records:
            require_scope(call, asked.scope)
        return drawn
    return graph(call, centre, where=where, depth=asked.depth, most=asked.max_nodes)


def _node(record: Record, drawn: Graph, now: datetime) -> NodeView:
    memory = record.memory
    x, y = drawn.places[memory.id]
    return NodeView.of(
        memory,
        label=clip(memory.content, LABEL_CHARS),
        type=memory.node_type,
        retention=round(retention_of(record.strength, now), 4),
        x=round(x, 1),
        y=round(y, 1),
        is_center=memory.id == drawn.records[0].memory.id,
    )
