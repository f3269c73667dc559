"""Everything canonical, read once, and what it says the derived state must be."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from vestige.cognition.strength import fold
from vestige.engine.context import Call
from vestige.engine.history import logged
from vestige.errors import InvalidInput
from vestige.models import EVERYTHING, Edge, Strength
from vestige.store.evidence import Curves
from vestige.store.lives import CurveLife, DocumentLife, EdgeLife, Life, MemoryLife
from vestige.store.logquery import LogQuery
from vestige.store.plausible import check
from vestige.store.uniting import edge, present

EdgeName = tuple[str, str, str]


@dataclass(slots=True, kw_only=True)
class Retold:
    """What the log and the versions say: the strength of each memory, the edges, what documents cite, the
    curve in force. `impossible` are lives that contradict themselves: the memory, if it is one, and why."""

    position: int
    curves: Curves = field(default_factory=Curves)
    strengths: dict[str, Strength] = field(default_factory=dict)
    edges: dict[EdgeName, Edge] = field(default_factory=dict)
    cited: dict[str, tuple[str, ...]] = field(default_factory=dict)
    impossible: list[tuple[str | None, str]] = field(default_factory=list)


def retell(call: Call) -> Retold:
    """Read every life of one moment."""
    store, done = call.engine.store, 0
    last = store.latest(LogQuery(), access=EVERYTHING, limit=1)
    told = Retold(position=last[0].position if last else 0)
    for lives in store.lives(access=EVERYTHING):
        call.check()
        for life in lives:
            _take(told, life)
        done += len(lives)
        call.progress(done, None, f"{done} lives read")
    there = told.strengths.keys()
    told.edges = {name: one for name, one in told.edges.items() if there >= {name[0], name[1]}}
    return told


def moved_since(call: Call, told: Retold) -> set[str]:
    """The memories that something has happened to since everything was read."""
    return set(_touched(call, told.position))


def _take(told: Retold, life: Life) -> None:
    try:
        check(life)
    except InvalidInput as exc:
        told.impossible.append((life.memory_id if isinstance(life, MemoryLife) else None, exc.message))
    match life:
        case CurveLife():
            told.curves = Curves.told(life.events)
        case MemoryLife():
            memory = present(life)
            if memory is not None:
                seen = told.curves.sightings(life.events)
                told.strengths[memory.id] = fold(memory.created_at, seen, told.curves.present)
        case EdgeLife():
            found = edge(life)
            if found is not None:
                told.edges[life.source_id, life.target_id, life.kind] = found
        case DocumentLife():
            if life.document is not None:
                told.cited[f"{life.kind} {life.id}"] = life.document.cites


def _touched(call: Call, position: int) -> Iterator[str]:
    for event in logged(call, access=EVERYTHING, after=position):
        if event.memory_id is not None:
            yield event.memory_id
        target = event.payload.get("target")
        if isinstance(target, str):
            yield target
