"""Links between memories of the reference system."""

from collections.abc import Mapping

from vestige.cognition.graph.kinds import KINDS, SEMANTIC, SHARED_CONCEPTS
from vestige.core.models import Edge
from vestige.exchange.importers.fields import ForeignRecord
from vestige.exchange.importers.records import BroughtEdge, Target, UnreadRecords

CONNECTION = "connection"
RENAMED = {"shared_concept": SHARED_CONCEPTS, "sequential": "temporal"}
"""Kinds of links with another name here."""


def edge_of(record: Mapping[str, object], place: str, target: Target) -> BroughtEdge | UnreadRecords:
    """The link of a record. An unknown kind becomes the general one, which fades."""
    fields = ForeignRecord(record, target.now)
    source, end = fields.label("source_id"), fields.label("target_id")
    if source is None or end is None:
        return UnreadRecords(kind=CONNECTION, place=place, reason="one of its ends is missing")
    if source == end:
        return UnreadRecords(kind=CONNECTION, place=place, reason="it links a memory to itself")
    weight = fields.number("strength", 0.0, 1.0)
    if weight is None:
        return UnreadRecords(kind=CONNECTION, place=place, reason="its strength is not a number")
    given = (fields.label("link_type") or SEMANTIC).lower()
    kind = RENAMED.get(given, given)
    if kind not in KINDS:
        fields.note(f"the link type `{kind}` is `{SEMANTIC}` here")
        kind = SEMANTIC
    edge = Edge(
        source_id=source,
        target_id=end,
        kind=kind,
        weight=weight,
        created_at=fields.moment("created_at", past=True) or target.now,
    )
    return BroughtEdge(place=place, edge=edge, notes=tuple(fields.notes))
