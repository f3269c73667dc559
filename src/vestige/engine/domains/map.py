"""The map of the memories: which are drawn, and where (`cognition.graph.domains.map`)."""

import numpy as np

from vestige.cognition.graph.domains.map import Islands, islands, member_place, plane
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Filter, Order, Record
from vestige.engine.context import Call
from vestige.engine.domains.catalogue import DomainCentre, centres, home_of, memory_vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Island:
    """A domain on the map. Memories of no domain have an island without one."""

    domain: str | None
    label: str
    memories: int
    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MapNode:
    """A memory on the map, with its domain."""

    record: Record
    domain: str | None
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryMap:
    islands: tuple[Island, ...]
    nodes: tuple[MapNode, ...]
    total: int


ALL = "All memories"


def memory_map(call: Call, *, domain: str | None, limit: int) -> MemoryMap:
    """The islands, and the strongest memories on them: of one domain, or of all."""
    store = call.engine.store
    where = Filter(domains=(domain,) if domain else (), include_suppressed=False, now=call.engine.now())
    total = store.count(where, access=call.access)
    records = store.find(
        where, access=call.access, order=Order.RETENTION, limit=limit, offset=max(0, total - limit)
    )
    records = sorted(records, key=lambda one: one.memory.id)
    middles = dict(sorted(centres(store).items()))
    if not middles:
        return _without_domains(call, records, total)
    found = islands(
        np.stack([one.vector for one in middles.values()]), [one.size for one in middles.values()]
    )
    nodes = tuple(_node(record, middles, found) for record in records)
    drawn = {name: number for number, name in enumerate(middles) if domain in (None, name)}
    return MemoryMap(
        islands=tuple(
            Island(
                domain=name,
                label=middles[name].label,
                memories=store.count(Filter(domains=(name,)), access=call.access),
                x=float(found.centres[row][0]),
                y=float(found.centres[row][1]),
                radius=float(found.radii[row]),
            )
            for name, row in drawn.items()
        ),
        nodes=nodes,
        total=total,
    )


def _node(record: Record, middles: dict[str, DomainCentre], found: Islands) -> MapNode:
    memory, names = record.memory, list(middles)
    home = home_of(memory, middles)
    scores = np.array([memory.domain_scores.get(name, np.nan) for name in names], dtype=np.float64)
    x, y = member_place(
        memory.id,
        scores,
        names.index(home) if home else None,
        found,
        (middles[home].range.low, middles[home].range.high) if home else None,
    )
    return MapNode(record=record, domain=home, x=x, y=y)


def _without_domains(call: Call, records: list[Record], total: int) -> MemoryMap:
    vectors = memory_vectors(call, [one.memory for one in records])
    shown = [one for one in records if one.memory.id in vectors]
    if not shown:
        return MemoryMap(islands=(), nodes=(), total=total)
    places = plane(np.stack([vectors[one.memory.id] for one in shown]))
    island = Island(domain=None, label=ALL, memories=total, x=0.0, y=0.0, radius=float(np.sqrt(len(shown))))
    return MemoryMap(
        islands=(island,),
        nodes=tuple(
            MapNode(record=one, domain=None, x=float(x), y=float(y))
            for one, (x, y) in zip(shown, places, strict=True)
        ),
        total=total,
    )
