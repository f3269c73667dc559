"""The log, read as what happened to the strength of memories."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from vestige.cognition.decay import W20
from vestige.cognition.strength import Sighting
from vestige.engine.context import Call
from vestige.engine.history import logged
from vestige.models import EVERYTHING, Evidence, LogEvent
from vestige.store.changes import CREATED, REMARKED, STATE, TUNED
from vestige.store.logquery import LogQuery

ALL = 2**31
"""More than there will ever be: the curve changes a few times a day at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """When memories were made, and what was seen of them since, in order; deleted ones too.

    `curve` is the one in force at the end, `position` that of the last event (0 without any).
    """

    made_at: dict[str, datetime]
    sightings: dict[str, list[Sighting]]
    curve: float
    position: int


def story(call: Call, *, after: int = 0) -> Story:
    """What the log tells after a position. The whole store's: strength does not depend on who asks."""
    return _told(logged(call, access=EVERYTHING, after=after))


def story_of(call: Call, memory_ids: Iterable[str]) -> Story:
    """What the log tells about some memories, and about the curve."""
    tuned = call.engine.store.latest(LogQuery(kinds=(TUNED,)), access=EVERYTHING, limit=ALL)
    about = (event for one in memory_ids for event in logged(call, access=EVERYTHING, memory_id=one))
    return _told(sorted([*tuned, *about], key=lambda event: event.position))


def _told(events: Iterable[LogEvent]) -> Story:
    made_at: dict[str, datetime] = {}
    sightings: dict[str, list[Sighting]] = defaultdict(list)
    curve, position = W20, 0
    for event in events:
        position = event.position
        if event.kind == TUNED:
            curve = float(event.payload["w20"])
        elif event.memory_id is not None and event.kind == CREATED:
            made_at[event.memory_id] = event.at
        elif event.memory_id is not None and event.kind in (REMARKED, STATE):
            sightings[event.memory_id].append(_sighting(event, curve))
    return Story(made_at=made_at, sightings=dict(sightings), curve=curve, position=position)


def _sighting(event: LogEvent, curve: float) -> Sighting:
    evidence = Evidence(event.payload["evidence"]) if event.kind == REMARKED else None
    amount = float(event.payload.get("amount", 1.0))
    return Sighting(evidence=evidence, at=event.at, amount=amount, curve=curve)
