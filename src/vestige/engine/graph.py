"""The links around a memory as a graph that can be drawn."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from vestige.cognition.layout import layout
from vestige.engine.context import Call
from vestige.engine.exploring import around
from vestige.engine.recall import RecallQuery, recall
from vestige.errors import NotFound
from vestige.models import Edge, Filter, Record

MOST_EDGES = 1_000
"""Links drawn, the strongest ones: more is a blot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Memories with their places, the one in the centre first, and the links among them.

    There is no memory in it where nothing is remembered.
    """

    records: tuple[Record, ...] = ()
    places: Mapping[str, tuple[float, float]]
    edges: tuple[Edge, ...] = ()


def found_centre(call: Call, query: str, where: Filter) -> Record:
    """The best hit for a query, which leaves no trace on it."""
    true_now = replace(where, valid_at=call.engine.now())
    hits = recall(call, RecallQuery(text=query, where=true_now, limit=1)).hits
    if not hits:
        raise NotFound(
            "No memory was found for this query.",
            hint="Ask in other words, or leave `query` out to begin with the newest memory.",
            details={"argument": "query"},
        )
    return hits[0].record


def newest_centre(call: Call, where: Filter) -> Record | None:
    """The newest memory, if there is any."""
    return next(iter(call.engine.store.find(where, access=call.access, limit=1)), None)


def graph(call: Call, centre: Record | None, *, where: Filter, depth: int, most: int) -> Graph:
    """What is linked with the centre over so many hops, with a place for each memory."""
    if centre is None:
        return Graph(places={})
    records = around(call, centre, where=where, hops=depth, most=most)
    ids = list(records)
    edges = call.engine.store.edges(ids, access=call.access, among=True, heaviest=MOST_EDGES)
    at = {memory_id: number for number, memory_id in enumerate(ids)}
    links = [(at[edge.source_id], at[edge.target_id], min(1.0, max(0.0, edge.weight))) for edge in edges]
    spots = layout(len(ids), links).tolist()
    return Graph(
        records=tuple(records.values()),
        places={memory_id: (x, y) for memory_id, (x, y) in zip(ids, spots, strict=True)},
        edges=tuple(edges),
    )
