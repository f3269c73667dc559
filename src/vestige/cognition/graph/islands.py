"""Islands of a graph: the parts that links connect."""

from collections import Counter
from collections.abc import Sequence

from vestige.core.models import Edge


def links_of(edges: Sequence[Edge]) -> Counter[str]:
    """The number of links of each memory."""
    return Counter(end for edge in edges for end in (edge.source_id, edge.target_id))


def islands(edges: Sequence[Edge]) -> list[list[str]]:
    """The connected parts, the largest first; in each the memory with the most links first, then level by
    level from it, so that the beginning of an island is connected too."""
    links, near = links_of(edges), dict[str, set[str]]()
    for edge in edges:
        near.setdefault(edge.source_id, set()).add(edge.target_id)
        near.setdefault(edge.target_id, set()).add(edge.source_id)

    def order(memory_id: str) -> tuple[int, str]:
        return -links[memory_id], memory_id

    found: list[list[str]] = []
    seen: set[str] = set()
    for start in sorted(near, key=order):
        if start in seen:
            continue
        seen.add(start)
        island = [start]
        for memory_id in island:  # grows while it is read
            level = sorted(near[memory_id] - seen, key=order)
            seen.update(level)
            island += level
        found.append(island)
    return sorted(found, key=lambda island: (-len(island), order(island[0])))


def joined(parts: Sequence[Sequence[str]], most: int) -> list[str]:
    """At most a number of memories, part by part; a single memory of a part that does not fit is left out."""
    chosen: list[str] = []
    for part in parts:
        room = most - len(chosen)
        if room >= min(2, len(part)):
            chosen += part[:room]
    return chosen
