"""What taking lives in comes to: decided here for every store, before anything is written."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import assert_never

from vestige.core.checks import check_json, check_moment, check_name
from vestige.core.documents import LOCAL
from vestige.core.errors import Forbidden, InvalidInput
from vestige.core.models import EVERYTHING, Access, Edge, LogEvent, Memory, MemoryState, normal_scope
from vestige.store.contract.changes import (
    CREATED,
    DELETED,
    DROPPED,
    LINKED,
    PUT,
    REVISED,
    STATE,
    TUNED,
    UNLINKED,
    Embedded,
    check_document,
    check_memory,
)
from vestige.store.hybrid_clock import LAST_READING
from vestige.store.merge.histories import Absorbed, CurveLife, DocumentLife, EdgeLife, Life, MemoryLife, stamp
from vestige.store.merge.strength_log import EVIDENCE, FOLDED_FROM, sighting, w20_of
from vestige.store.merge.union import (
    Key,
    edge,
    filed,
    folded,
    key_of,
    last,
    name,
    present,
    subject,
    two_events,
    united,
    versions_of,
    without,
    writes,
)

# -- Whether a life can be true: what comes from elsewhere is refused whole before anything is written.


def check(life: Life) -> None:
    """Refuse a life that contradicts itself: InvalidInput."""
    try:
        _check_events(life)
        match life:
            case MemoryLife():
                _check_memory(life)
            case EdgeLife():
                _check_edge(life)
            case DocumentLife():
                _check_document(life)
            case CurveLife():
                pass
            case _:
                assert_never(life)
    except (KeyError, TypeError, ValueError) as exc:
        raise _refused(life, f"it cannot be read ({exc!r})") from exc


def _check_events(life: Life) -> None:
    for event in life.events:
        check_name("node", event.node)
        check_moment("at", event.at)
        _check_payload(life, event)
        if event.scope != normal_scope(event.scope):
            raise _refused(life, f"the scope {event.scope!r} is not in normal form")
        if not (0 < event.clock <= LAST_READING and 0 < event.seq <= LAST_READING):
            raise _refused(life, f"event {event.seq} of {event.node} has an impossible number or time")
        if event.kind not in CHECKS:
            raise _refused(
                life, f"nothing is known here of events called {event.kind!r}: it is from a newer Vestige"
            )
        if subject(event) != key_of(life):
            raise _refused(life, f"event {event.seq} of {event.node} is about something else")
        CHECKS[event.kind](event)
    if not all(stamp(one) < stamp(two) for one, two in pairwise(life.events)):
        raise _refused(life, "its events are not in order")
    if len({name(event) for event in life.events}) < len(life.events):
        raise _refused(life, "an event is told twice")


def _check_payload(life: Life, event: LogEvent) -> None:
    """It can be written again: JSON may be nested deeper than what is written may."""
    try:
        check_json("payload", event.payload)
    except InvalidInput as exc:
        raise _refused(life, f"an event cannot be kept ({exc.message})") from exc


def _check_memory(life: MemoryLife) -> None:
    check_name("id", life.memory_id)
    written = writes(life.events)
    if not written or written[0].kind != CREATED:
        raise _refused(life, "it was never created")
    if any(event.kind == DELETED for event in life.events):
        if life.versions:
            raise _refused(life, "it was deleted, and its text is still told")
        return
    if len(life.versions) != len(written) or any(one.id != life.memory_id for one in life.versions):
        raise _refused(life, "its versions are not those of its events")
    for version in life.versions:
        check_memory(version)
    if folded(written, versions_of(life)) != life.versions:
        raise _refused(life, "a version differs from the one before in more than its event says")


def _check_edge(life: EdgeLife) -> None:
    check_name("source", life.source_id)
    check_name("target", life.target_id)
    check_name("kind", life.kind)
    if not life.events:
        raise _refused(life, "nothing ever happened to it")
    if life.source_id == life.target_id:
        raise _refused(life, "a memory cannot be linked to itself")


def _check_document(life: DocumentLife) -> None:
    if life.kind in LOCAL:
        raise _refused(life, "it belongs to one installation")
    held = filed(life)
    if held is None:
        if not life.events:
            raise _refused(life, "nothing ever happened to it")
        return
    put, document = held
    check_document(document)
    check_name("node", life.node)
    if (document.kind, document.id) != (life.kind, life.id):
        raise _refused(life, "its document is another one")
    if not 0 < life.clock <= LAST_READING:
        raise _refused(life, "it was put at an impossible time")
    if put < last(life.events, PUT) or put <= last(life.events, DROPPED):
        raise _refused(life, "it is older than its own events")


def _check_revised(event: LogEvent) -> None:
    _check_reason(event)
    if not all(isinstance(field, str) for field in event.payload["fields"]):
        raise InvalidInput("A revision tells the names of the fields that it changed.")


def _check_reason(event: LogEvent) -> None:
    if not isinstance(event.payload["reason"], str):
        raise InvalidInput("The reason of a change is text.")


def _check_linked(event: LogEvent) -> None:
    if not isfinite(float(event.payload["weight"])):
        raise InvalidInput("The weight of an edge is a finite number.")


def _check_evidence(event: LogEvent) -> None:
    sighting(event, curve=1.0)
    if event.kind == STATE:
        _check_reason(event)
        MemoryState(event.payload["from"]), MemoryState(event.payload["to"])
    elif "state" in event.payload:
        before, after = event.payload["state"]
        MemoryState(before), MemoryState(after)


def _check_nothing(event: LogEvent) -> None:
    """What it tells is looked at elsewhere, or by nobody."""


CHECKS: Mapping[str, Callable[[LogEvent], object]] = {
    CREATED: _check_nothing,
    REVISED: _check_revised,
    DELETED: _check_reason,
    **dict.fromkeys(EVIDENCE, _check_evidence),
    LINKED: _check_linked,
    UNLINKED: _check_nothing,
    PUT: _check_nothing,
    DROPPED: _check_nothing,
    TUNED: w20_of,
}
"""Every kind of event there is, with what its payload must hold."""


def _refused(life: Life, why: str) -> InvalidInput:
    entity = " ".join(key_of(life))
    return InvalidInput(
        f"What is told of {entity} cannot be true: {why}.",
        hint="Nothing was taken in. The file is damaged or was edited; write it again where it comes from.",
        details={"entity": entity},
    )


# -- absorbing

EdgeKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """A memory of which something new is told: its whole life, what it was here, and what is new."""

    life: MemoryLife
    before: Memory | None
    fresh: tuple[LogEvent, ...]

    @property
    def after(self) -> Memory | None:
        """What it is now; None when it is deleted."""
        return present(self.life)

    @property
    def weighed(self) -> bool:
        """Whether its strength may be another one."""
        return self.after is not None and any(event.kind in FOLDED_FROM for event in self.fresh)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsorbPlan:
    """What must be written: events that are new here, by stamp; memories, edges (None: gone) and documents
    that are another than before; the curve's whole story where it has grown. `reading` is the highest that
    was seen of the clock."""

    events: tuple[LogEvent, ...]
    memories: tuple[Meeting, ...]
    edges: Mapping[EdgeKey, Edge | None]
    documents: tuple[DocumentLife, ...]
    curve: CurveLife | None
    embedded: Mapping[str, Embedded]
    reading: int
    waiting: tuple[str, ...]

    def absorbed(self) -> Absorbed:
        """What to tell of it."""
        stood = [one for one in self.memories if one.before != one.after]
        return Absorbed(
            events=len(self.events),
            memories_added=sum(one.before is None for one in stood),
            memories_changed=sum(one.before is not None and one.after is not None for one in stood),
            memories_ended=sum(one.after is None for one in stood),
            edges=len(self.edges),
            documents=len(self.documents),
            waiting=self.waiting,
        )


def gathered(lives: Iterable[Life], access: Access) -> dict[Key, Life]:
    """One life for each entity; InvalidInput for one that cannot be true, Forbidden for whoever does not
    reach the whole store."""
    if access != EVERYTHING:
        raise Forbidden("Only a caller who reaches the whole store may take lives in.")
    found: dict[Key, Life] = {}
    for life in lives:
        check(life)
        key = key_of(life)
        found[key] = united(found[key], life) if key in found else life
    return found


def mentioned(given: Mapping[Key, Life]) -> set[str]:
    """The memories that these lives are of, link or cite."""
    found: set[str] = set()
    for life in given.values():
        match life:
            case MemoryLife():
                found.add(life.memory_id)
            case EdgeLife():
                found.update((life.source_id, life.target_id))
            case DocumentLife(document=document) if document is not None:
                found.update(document.cites)
    return found


def plan(
    given: Mapping[Key, Life], mine: Mapping[Key, Life], held: Collection[str], buried: Collection[str]
) -> AbsorbPlan:
    """What these lives make with what is here.

    `mine` are the lives here of the same entities, and of all edges at memories that come in. Of the
    memories that any of these lives mention, `held` are here and `buried` were.
    """
    together = {key: united(mine[key], life) if key in mine else life for key, life in given.items()}
    memories = [life for life in together.values() if isinstance(life, MemoryLife)]
    ended = {life.memory_id for life in memories if not life.versions}
    here = ({life.memory_id for life in memories} | set(held)) - ended
    known = {*here, *ended, *buried}
    waiting = [key for key, life in together.items() if _waits(life, known)]
    for key in waiting:
        del together[key]
    fresh = {key: _fresh(life, mine.get(key)) for key, life in together.items()}
    documents = [_standing(life, here) for life in together.values() if isinstance(life, DocumentLife)]
    return AbsorbPlan(
        events=_in_order(fresh.values()),
        memories=tuple(
            Meeting(life=life, before=_before(mine.get(key_of(life))), fresh=fresh[key_of(life)])
            for life in memories
            if fresh[key_of(life)]
        ),
        edges=_rewired({**mine, **together}, mine, here, held),
        documents=tuple(life for life in documents if _differs(life, mine.get(key_of(life)))),
        curve=next(
            (one for one in together.values() if isinstance(one, CurveLife) and fresh[key_of(one)]), None
        ),
        embedded=_vectors(given.values(), here),
        reading=max((_reading(life) for life in together.values()), default=0),
        waiting=tuple(f"{kind}/{document_id}" for _, kind, document_id in waiting),
    )


def _in_order(fresh: Iterable[Sequence[LogEvent]]) -> tuple[LogEvent, ...]:
    events = sorted((event for several in fresh for event in several), key=stamp)
    for one, other in pairwise(sorted(events, key=name)):
        if name(one) == name(other):
            raise two_events(one)
    return tuple(events)


def _rewired(
    lives: Mapping[Key, Life], mine: Mapping[Key, Life], here: Collection[str], held: Collection[str]
) -> dict[EdgeKey, Edge | None]:
    """The edges that are another than before. One is there when both its ends are, and goes with them."""
    found: dict[EdgeKey, Edge | None] = {}
    for key, life in lives.items():
        if isinstance(life, EdgeLife) and life.source_id in here and life.target_id in here:
            after = edge(life)
            if after != _linking(mine.get(key), held):
                found[life.source_id, life.target_id, life.kind] = after
    return found


def _vectors(lives: Iterable[Life], here: Collection[str]) -> dict[str, Embedded]:
    return {
        life.memory_id: life.embedded
        for life in lives
        if isinstance(life, MemoryLife) and life.embedded is not None and life.memory_id in here
    }


def _waits(life: Life, known: Collection[str]) -> bool:
    """Whether it is a document that cites a memory nobody has told of yet."""
    if not isinstance(life, DocumentLife) or life.document is None:
        return False
    return not set(life.document.cites).issubset(known)


def _standing(life: DocumentLife, here: Collection[str]) -> DocumentLife:
    """The document, unless it cites a memory that is deleted."""
    if life.document is None or set(life.document.cites).issubset(here):
        return life
    return without(life)


def _differs(life: DocumentLife, known: Life | None) -> bool:
    if not isinstance(known, DocumentLife):
        return life.document is not None
    return (life.document, life.clock, life.node) != (known.document, known.clock, known.node)


def _linking(life: Life | None, here: Collection[str]) -> Edge | None:
    if not isinstance(life, EdgeLife) or life.source_id not in here or life.target_id not in here:
        return None
    return edge(life)


def _before(known: Life | None) -> Memory | None:
    return present(known) if isinstance(known, MemoryLife) else None


def _fresh(life: Life, known: Life | None) -> tuple[LogEvent, ...]:
    if known is None:
        return life.events
    names = {name(event) for event in known.events}
    return tuple(event for event in life.events if name(event) not in names)


def _reading(life: Life) -> int:
    latest = max((event.clock for event in life.events), default=0)
    return max(latest, life.clock) if isinstance(life, DocumentLife) else latest
