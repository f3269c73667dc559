"""Exploring links: the neighbours of a memory, paths between two memories, and a graph that can be drawn.

Links are followed level by level, the strongest first, with limits on everything. A suppressed memory is
neither shown nor passed through, unless the caller named it: reading by id is always allowed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from vestige.cognition.graph.islands import islands, joined, links_of
from vestige.cognition.graph.layout import layout
from vestige.cognition.graph.paths import Path, best_paths, bridges
from vestige.core.errors import InvalidInput, NotFound
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Edge, Filter, Record
from vestige.engine.context import Call
from vestige.engine.recall.recall import RecallQuery, recall
from vestige.engine.revise import load
from vestige.store.filter_rule import passes

SHOWN = Filter(include_suppressed=False)
HOPS = 3
MOST_NODES = 200
"""Paths between two memories are searched within HOPS links, and among this many memories, around each of
them."""
MOST_EDGES = 500
"""The strongest links that one step reads …"""
MOST_LINKS = 2_000
"""… and among all memories found."""
MOST_PATHS = 5
BRIDGING_PATHS = 10
"""The paths that are examined for memories on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    record: Record
    edge: Edge


@dataclass(frozen=True, slots=True, kw_only=True)
class Associations:
    """The links of a memory, strongest first; `total` counts all of them."""

    record: Record
    found: tuple[Association, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeMemory:
    """A memory between two others: the number of paths it lies on, and the confidence of the best one."""

    record: Record
    paths: int
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPaths:
    """The paths between two memories, best first, and every memory on them."""

    paths: tuple[Path, ...]
    records: Mapping[str, Record]


def associations(call: Call, memory_id: str, limit: int) -> Associations:
    record = load(call, memory_id)
    edges = call.engine.store.edges([memory_id], access=call.access, heaviest=MOST_EDGES)
    records = _visible(call, [_other(edge, memory_id) for edge in edges], SHOWN)
    there = [edge for edge in _strongest_first(edges) if _other(edge, memory_id) in records]
    found = (Association(record=records[_other(edge, memory_id)], edge=edge) for edge in there[:limit])
    return Associations(record=record, found=tuple(found), total=len(there))


def connection(call: Call, start: str, end: str, limit: int) -> MemoryPaths:
    """How two memories are connected: up to `limit` paths, at most MOST_PATHS."""
    return _paths_between(call, start, end, min(limit, MOST_PATHS))


def between(call: Call, start: str, end: str, limit: int) -> list[BridgeMemory]:
    """The memories that connect two others; those on most paths first."""
    found = _paths_between(call, start, end, BRIDGING_PATHS)
    return [
        BridgeMemory(record=found.records[memory_id], paths=paths, confidence=confidence)
        for memory_id, paths, confidence in bridges(found.paths)[:limit]
    ]


def _paths_between(call: Call, start: str, end: str, most: int) -> MemoryPaths:
    if start == end:
        raise InvalidInput(
            "`from` and `to` are the same memory.",
            hint="Name two memories; the links of one are its `associations`.",
            details={"argument": "to"},
        )
    ends = [load(call, memory_id) for memory_id in (start, end)]
    records: dict[str, Record] = {}
    for record in ends:
        records |= around(call, record, where=SHOWN, hops=HOPS, most=MOST_NODES, named=(start, end))
    edges = call.engine.store.edges(list(records), access=call.access, among=True, heaviest=MOST_LINKS)
    paths = best_paths(edges, start, end, most=most)
    used = {start, end}.union(*(path.ids for path in paths))
    shown = {one: record for one, record in records.items() if one in used}
    return MemoryPaths(paths=tuple(paths), records=shown)


def around(
    call: Call, centre: Record, *, where: Filter, hops: int, most: int, named: Sequence[str] = ()
) -> dict[str, Record]:
    """At most `most` memories within some hops of a memory that pass the filter: level by level, strongest
    links first. The centre, which comes first, and those in `named` need not pass."""
    records = {centre.memory.id: centre}
    level = [centre.memory.id]
    for _ in range(hops):
        call.check()
        edges = call.engine.store.edges(level, access=call.access, heaviest=MOST_EDGES)
        met = _new_neighbours(edges, records)
        found = _visible(call, met, where, named)
        level = [memory_id for memory_id in met if memory_id in found][: most - len(records)]
        records |= {memory_id: found[memory_id] for memory_id in level}
        if not level or len(records) == most:
            break
    return records


def _new_neighbours(edges: Sequence[Edge], known: Mapping[str, Record]) -> list[str]:
    """The new memories at the ends of these links, those with the strongest links first."""
    ends = (end for edge in _strongest_first(edges) for end in (edge.source_id, edge.target_id))
    return [end for end in dict.fromkeys(ends) if end not in known]


def _visible(
    call: Call, memory_ids: Sequence[str], where: Filter, named: Sequence[str] = ()
) -> dict[str, Record]:
    records = call.engine.store.get_many(memory_ids, access=call.access)
    return {
        record.memory.id: record
        for record in records
        if record.memory.id in named or passes(record.memory, where, call.access)
    }


def _strongest_first(edges: Iterable[Edge]) -> list[Edge]:
    return sorted(edges, key=lambda edge: (-edge.weight, edge.source_id, edge.target_id, edge.kind))


def _other(edge: Edge, memory_id: str) -> str:
    return edge.target_id if edge.source_id == memory_id else edge.source_id


# -- The graph that is drawn

MOST_DRAWN_EDGES = 1_000
"""The strongest links that are drawn; more are unreadable."""
MOST_COUNTED_EDGES = 50_000
"""The links that are counted to find what is connected most."""
CANDIDATES = 4
"""The memories that are read for each one that is drawn: some are outside of the filter."""
ISLAND_PULL = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Memories with their coordinates, the centre first, and the links among them."""

    records: tuple[Record, ...] = ()
    places: Mapping[str, tuple[float, float]]
    edges: tuple[Edge, ...] = ()


def centre_for_query(call: Call, query: str, where: Filter) -> Record:
    """The best hit for a query. It leaves no trace on the memory."""
    valid_now = replace(where, valid_at=call.engine.now())
    hits = recall(call, RecallQuery(text=query, where=valid_now, limit=1)).hits
    if not hits:
        raise NotFound(
            "No memory was found for this query.",
            hint="Use other words, or leave `query` out to see all that is connected.",
            details={"argument": "query"},
        )
    return hits[0].record


def overview(call: Call, *, where: Filter, most: int) -> Graph:
    """What is connected, as islands, the most linked memory first; without any link the newest memories."""
    streamed = call.engine.store.stream_edges(access=call.access, batch=1_000)
    edges = list(islice((edge for batch in streamed for edge in batch), MOST_COUNTED_EDGES))
    call.check()
    best = [one for one, _ in sorted(links_of(edges).items(), key=lambda of: (-of[1], of[0]))]
    records = _visible(call, best[: CANDIDATES * most], where)
    linked = [edge for edge in edges if edge.source_id in records and edge.target_id in records]
    parts = islands(linked)
    if not parts:
        newest = call.engine.store.find(where, access=call.access, limit=most)
        records = {record.memory.id: record for record in newest}
        parts = [[memory_id] for memory_id in records]
    shown = joined(parts, most)
    hubs = [part[0] for part in parts if part[0] in shown]
    return _drawn(call, {memory_id: records[memory_id] for memory_id in shown}, hubs)


def graph(call: Call, centre: Record, *, where: Filter, depth: int, most: int) -> Graph:
    """The memories that are linked to the centre within `depth` hops, with coordinates for drawing."""
    return _drawn(call, around(call, centre, where=where, hops=depth, most=most))


def _drawn(call: Call, records: Mapping[str, Record], hubs: Sequence[str] = ()) -> Graph:
    """Memories with their links and coordinates. The centres of islands attract each other a little, so that
    the drawing has no gaps between them."""
    ids = list(records)
    edges = call.engine.store.edges(ids, access=call.access, among=True, heaviest=MOST_DRAWN_EDGES)
    at = {memory_id: number for number, memory_id in enumerate(ids)}
    links = [(at[edge.source_id], at[edge.target_id], min(1.0, max(0.0, edge.weight))) for edge in edges]
    links += [(at[hubs[0]], at[hub], ISLAND_PULL) for hub in hubs[1:]]
    spots = layout(len(ids), links).tolist()
    return Graph(
        records=tuple(records.values()),
        places={memory_id: (x, y) for memory_id, (x, y) in zip(ids, spots, strict=True)},
        edges=tuple(edges),
    )
