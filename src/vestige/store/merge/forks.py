"""Forks of a node: two installations that write under one node id, because one is a clone of the other (a
cloned machine, volume or image, which have the same fingerprint).

Both number their events on from the same point, so one name (node, seq) stands for two events. Such events
get a name with a digest of their content, `<node>~<digest>`. Every store derives the same names, whichever of
the events it meets and in whichever order, so merging stays a union of sets. A store that finds a fork of its
own node takes a new node id.

An event that was repaired in one of two stores is still one event, and no fork (`union.is_same`): each store
keeps its payload, and both come to the lower reading of its clock (`union.merged`).
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from hashlib import blake2b

from vestige.core.errors import StoreError
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import LogEvent
from vestige.store.merge.histories import EntityHistory, Fork
from vestige.store.merge.union import Key, Name, is_same, name, with_events

MARK = "~"
AFTER_MARK = "\x7f"
"""The character after the mark: the names of a node's forked events are between `node~` and `node\\x7f`."""
DIGEST_BYTES = 10


def no_ids() -> str:
    """The source of ids of a store that was opened without one."""
    raise StoreError("A clone of this store was found, and there is no source of ids for a new node.")


def origin(node: str) -> str:
    """The node id under which an event was logged."""
    return node.partition(MARK)[0]


def base(event: LogEvent) -> Name:
    """The name under which an event was logged."""
    return (origin(event.node), event.seq)


def named_by_content(event: LogEvent) -> LogEvent:
    """The event under the name that it has once its node is known to be forked."""
    node = origin(event.node)
    at = event.at.astimezone(UTC).isoformat()
    # Without the clock, which a repair sets back.
    content = (node, event.seq, at, event.kind, event.memory_id, event.scope)
    text = json.dumps([*content, event.payload], sort_keys=True, separators=(",", ":"), default=dict)
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).hexdigest()
    return replace(event, node=f"{node}{MARK}{digest}")


def is_well_named(event: LogEvent) -> bool:
    """False for an event with the digest of another content in its name."""
    return MARK not in event.node or named_by_content(event).node == event.node


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkPlan:
    """The histories that came in, with the names and the versions that their events have here; the events
    here that get names by content, still under their names; and the nodes of which a clone's events are new
    here."""

    given: Mapping[Key, EntityHistory]
    here: tuple[LogEvent, ...]
    strangers: frozenset[str]

    @property
    def nodes(self) -> list[str]:
        """The nodes that were not known to be forked."""
        return sorted({event.node for event in self.here})

    def forks(self, own: str, successor: str | None) -> tuple[Fork, ...]:
        """What was found, for the report. `own` is this store's node, and `successor` its new one."""
        found = {*self.nodes, *([] if successor is None else [own])}
        return tuple(Fork(node=node, successor=successor if node == own else None) for node in sorted(found))


def bases(given: Iterable[EntityHistory]) -> list[Name]:
    """The names under which the events of these histories were logged."""
    return list(dict.fromkeys(base(event) for history in given for event in history.events))


def fork_plan(
    given: Mapping[Key, EntityHistory], held: Iterable[LogEvent], renamed: Iterable[LogEvent]
) -> ForkPlan:
    """Find the names that stand for two events. `held` are the events here with the names in `bases`, and
    `renamed` the events of these nodes that have names by content here."""
    here = {name(event): replace(event, position=0) for event in held}
    by_content = [replace(event, position=0) for event in renamed]
    contested = {base(event) for event in by_content}
    stored: dict[Name, list[LogEvent]] = {}
    for event in (*here.values(), *by_content):
        stored.setdefault(base(event), []).append(event)
    kept: dict[Name, LogEvent] = {}
    for event in (event for history in given.values() for event in history.events):
        same = _same(event, stored.get(base(event), ()))
        if same is not None:
            one = replace(same, clock=min(same.clock, event.clock))
            if one != event:
                kept[name(event)] = one
        if MARK in event.node or (name(event) in here and same is None):
            contested.add(base(event))
    changed = contested or kept
    both = {key: _named(history, contested, kept) for key, history in given.items()} if changed else given
    known = {name(_of(event, contested)) for event in (*here.values(), *by_content)}
    return ForkPlan(
        given=both,
        here=tuple(event for named, event in here.items() if named in contested),
        strangers=frozenset(
            origin(event.node)
            for history in both.values()
            for event in history.events
            if name(event) not in known
        ),
    )


def _same(event: LogEvent, stored: Sequence[LogEvent]) -> LogEvent | None:
    """The version of an event that is here."""
    alike = [one for one in stored if is_same(one, event)]
    return next((one for one in alike if one.payload == event.payload), alike[0] if alike else None)


def _of(event: LogEvent, contested: Collection[Name]) -> LogEvent:
    return named_by_content(event) if MARK not in event.node and base(event) in contested else event


def _named(
    history: EntityHistory, contested: Collection[Name], kept: Mapping[Name, LogEvent]
) -> EntityHistory:
    """A history whose contested events are named by their content, and with the versions of `kept` events."""
    new = {name(event): _of(kept.get(name(event), event), contested) for event in history.events}
    return with_events(history, new)
