"""The log, read as what happened to the strength of memories."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from vestige.cognition.strength import Sighting
from vestige.engine.context import Call
from vestige.engine.history import logged
from vestige.models import EVERYTHING, LogEvent
from vestige.store.changes import CREATED, TUNED
from vestige.store.evidence import EVIDENCE, Curves
from vestige.store.lives import stamp
from vestige.store.logquery import LogQuery

ALL = 2**31
"""More than there will ever be: the curve changes a few times a day at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """When memories were made, and what was seen of them since, in the order that all stores share; deleted
    ones too.

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
    return _told([*tuned, *about])


def _told(events: Iterable[LogEvent]) -> Story:
    """Events are logged in the order of their arrival, which is another one where stores were united."""
    tuned: list[LogEvent] = []
    created: list[LogEvent] = []
    about: dict[str, list[LogEvent]] = defaultdict(list)
    position = 0
    for event in events:
        position = max(position, event.position)
        if event.kind == TUNED:
            tuned.append(event)
        elif event.memory_id is not None and event.kind in (CREATED, *EVIDENCE):
            about[event.memory_id].append(event)
            created.extend([event] if event.kind == CREATED else ())
    curves = Curves.told(tuned)
    return Story(
        # A memory that was made in two places was made when that happened first.
        made_at={one.memory_id or "": one.at for one in sorted(created, key=stamp, reverse=True)},
        sightings={memory_id: curves.sightings(told) for memory_id, told in about.items()},
        curve=curves.present,
        position=position,
    )
