"""The file of the official MCP memory server: entities with observations, and relations between them, as
lines.

That server fetches a whole entity by its name. Here single memories are found by their text, so each one
names its subject: an observation becomes `Ada (person): drinks tea`, a relation a sentence of its own, `Ada
works at Acme`. The name and the type are tags, observations of one entity follow each other in a thread, and
a relation is linked to the memories of both its ends.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

from vestige.core.errors import VestigeError
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Edge, Memory
from vestige.core.origin import Origin
from vestige.exchange.importers.fields import usable
from vestige.exchange.importers.json_files import objects
from vestige.exchange.importers.records import (
    MEMORY,
    Brought,
    BroughtEdge,
    BroughtMemory,
    Reading,
    Target,
    UnreadRecords,
    derived_id,
)

SOURCE = "server-memory"
LINKED = "user_defined"
RELATION = "relation"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Relation:
    place: str
    begin: str
    end: str
    kind: str


@dataclass(slots=True, kw_only=True)
class _Graph:
    """The entities and relations read so far: the first memory of each entity, and the relations, which may
    come before them."""

    target: Target
    first: dict[str, str] = field(default_factory=dict)
    relations: list[_Relation] = field(default_factory=list)


def is_graph(record: Mapping[str, object]) -> bool:
    """Whether this line is of such a file."""
    if record.get("type") == "entity":
        return "name" in record and "observations" in record
    return record.get("type") == RELATION and {"from", "to", "relationType"} <= record.keys()


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    yield Reading(records=_records(path, target))


def _records(path: Path, target: Target) -> Iterator[Brought]:
    """A memory for each observation and relation, then the links between them."""
    graph = _Graph(target=target)
    for number, found in objects(path):
        if isinstance(found, UnreadRecords):
            yield found
        else:
            yield from _line(graph, found, f"line {number}")
    made = []
    for relation in graph.relations:
        memory = _sentence(graph, relation)
        yield memory
        if isinstance(memory, BroughtMemory):
            made.append((relation, memory.memory))
    for relation, sentence in made:
        yield from _links(graph, relation, sentence)


def _line(graph: _Graph, record: Mapping[str, object], place: str) -> Iterator[Brought]:
    match record:
        case {"type": "entity", "name": str(name)} if usable(name):
            yield from _entity(graph, name, record, place)
        case {"type": "relation", "from": str(begin), "to": str(end), "relationType": str(kind)} if (
            usable(begin) and usable(end) and usable(kind)
        ):
            graph.relations.append(_Relation(place=place, begin=begin, end=end, kind=kind))
        case {"type": "entity" | "relation"}:
            yield UnreadRecords(kind=MEMORY, place=place, reason="an entity or relation without its names")
        case _:
            yield UnreadRecords(kind=MEMORY, place=place, reason="neither an entity nor a relation")


def _entity(graph: _Graph, name: str, record: Mapping[str, object], place: str) -> Iterator[Brought]:
    listed, type_ = record.get("observations"), record.get("entityType")
    kind = type_ if isinstance(type_, str) and usable(type_) else None
    observations = listed if isinstance(listed, list) else []
    about = f"{name} ({kind})" if kind else name
    if not observations:
        text = f"{name} is known, but nothing about it." if kind is None else f"{name} is of the type {kind}."
        yield _memory(graph, text, (name, ""), (name, kind), place, None)
    for number, one in enumerate(observations, start=1):
        where = f"{place}, observation {number}"
        if isinstance(one, str) and one.strip():
            yield _memory(graph, f"{about}: {one.strip()}", (name, one), (name, kind), where, number)
        else:
            yield UnreadRecords(kind=MEMORY, place=where, reason="the observation is not text")


def _memory(
    graph: _Graph,
    content: str,
    known_by: tuple[str, ...],
    tags: tuple[str | None, ...],
    place: str,
    position: int | None,
) -> BroughtMemory | UnreadRecords:
    now, scope, name = graph.target.now, graph.target.scope, known_by[0]
    try:
        memory = Memory(
            id=derived_id(SOURCE, scope, *known_by),
            content=content,
            created_at=now,
            updated_at=now,
            tags=tuple(dict.fromkeys(tag for tag in tags if tag)),
            scope=scope,
            source=SOURCE,
            thread=f"{SOURCE}:{name}"[:1000] if position is not None else None,
            position=position,
            origin=Origin.IMPORT.value,
        )
    except VestigeError as exc:
        return UnreadRecords(kind=MEMORY, place=place, reason=exc.message)
    graph.first.setdefault(name, memory.id)
    return BroughtMemory(place=place, memory=memory)


def _sentence(graph: _Graph, relation: _Relation) -> BroughtMemory | UnreadRecords:
    words = relation.kind.replace("_", " ").strip()
    text = f"{relation.begin} {words} {relation.end}"
    known_by = (f"{RELATION} {relation.kind}", relation.begin, relation.end)
    tags = (relation.begin, relation.end, RELATION)
    return _memory(graph, text, known_by, tags, relation.place, None)


def _links(graph: _Graph, relation: _Relation, sentence: Memory) -> Iterator[BroughtEdge]:
    """The links from a relation to the memories of its ends; an end that is not an entity of the file has
    none."""
    for end in dict.fromkeys((relation.begin, relation.end)):
        first = graph.first.get(end)
        if first is not None:
            edge = Edge(source_id=sentence.id, target_id=first, kind=LINKED, created_at=graph.target.now)
            yield BroughtEdge(place=relation.place, edge=edge)
