"""What readers of databases share: links and sentences from rows, and the account of tables that are not
read."""

from collections.abc import Collection, Iterator, Mapping
from uuid import UUID

from vestige.cognition.graph.kinds import SEMANTIC
from vestige.core.errors import VestigeError
from vestige.core.models import Edge
from vestige.exchange.importers.fields import ForeignRecord, as_json
from vestige.exchange.importers.records import CONNECTION, BroughtEdge, Target, UnreadRecords, derived_id
from vestige.store.sqlite.file.foreign import ForeignDatabase

UNKNOWN = "a table that this version of Vestige does not know"


def unread_tables(
    file: ForeignDatabase, read: Collection[str], reasons: Mapping[str, str], unknown: str = UNKNOWN
) -> Iterator[UnreadRecords]:
    """The tables that are not imported, each with its number of rows; a reason "" is not worth a line."""
    for name, count in file.counts.items():
        reason = reasons.get(name, unknown)
        if count and reason and name not in read:
            yield UnreadRecords(kind=name, place=name, reason=reason, count=count)


def kept_id(tool: str, target: Target, given: object) -> str:
    """The id of a foreign record: a UUID is kept, in its usual form; another one is derived from it."""
    try:
        return str(UUID(str(given)))
    except ValueError:
        return derived_id(tool, target.scope, str(given))


def parsed(value: object) -> object:
    """A value of a column: the JSON it holds, if it is an object or a list written as text."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        inner = as_json(value)
        return value if inner is None else inner
    return value


def sentence(subject: object, predicate: object, end: object) -> str:
    """A fact of a knowledge graph in words."""
    return " ".join(str(part).replace("_", " ").strip() for part in (subject, predicate, end))


def link(
    ends: tuple[str, str], place: str, target: Target, *, kind: str = SEMANTIC, given: Mapping[str, object]
) -> BroughtEdge | UnreadRecords:
    """A link between two memories; `given` may have its `weight` and `created_at`."""
    if ends[0] == ends[1]:
        return UnreadRecords(kind=CONNECTION, place=place, reason="it links a memory to itself")
    fields = ForeignRecord(given, target.now)
    weight = fields.number("weight", 0.0, 1.0)
    try:
        edge = Edge(
            source_id=ends[0],
            target_id=ends[1],
            kind=kind,
            weight=1.0 if weight is None else weight,
            created_at=fields.moment("created_at", past=True) or target.now,
        )
    except VestigeError as exc:
        return UnreadRecords(kind=CONNECTION, place=place, reason=exc.message)
    return BroughtEdge(place=place, edge=edge, notes=tuple(fields.notes))
