"""Plans how histories from another store are merged into this one. Pure, and the same for every store."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import assert_never

from vestige.cognition.fsrs.formulas import is_curve
from vestige.core.clock import LAST_READING, check_reading, tick
from vestige.core.documents import LOCAL, SHARE, Check, Fields, list_of, one_of, row_of, text
from vestige.core.errors import Forbidden, InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import (
    EVERYTHING,
    Access,
    Edge,
    Evidence,
    LogEvent,
    Memory,
    MemoryState,
    check_json,
    check_moment,
    check_name,
    normal_scope,
)
from vestige.store.contract import changes
from vestige.store.merge import forks, union
from vestige.store.merge.histories import (
    Absorbed,
    CurveHistory,
    DocumentHistory,
    EdgeHistory,
    EntityHistory,
    MemoryHistory,
    stamp,
)
from vestige.store.merge.strength_log import FOLDED_FROM, carried_strength

# -- Validation: a history that contradicts itself is refused before anything is written


def check(history: EntityHistory, now: datetime | None = None) -> None:
    """Refuse a history that contradicts itself, or that has a value of another type or out of its range:
    InvalidInput. With `now`, also one of a clock that is too far ahead."""
    try:
        _check_events(history, now)
        match history:
            case MemoryHistory():
                _check_memory(history)
            case EdgeHistory():
                _check_edge(history)
            case DocumentHistory():
                _check_document(history, now)
            case CurveHistory():
                pass
            case _:
                assert_never(history)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as exc:
        raise _refused(history, f"it cannot be read ({exc!r})") from exc


def _check_events(history: EntityHistory, now: datetime | None) -> None:
    for event in history.events:
        try:
            if now is not None:
                check_reading(event.clock, now)
            check_event(event)
        except InvalidInput as exc:
            raise _refused(history, f"event {event.seq} of {event.node}: {exc.message.rstrip('.')}") from exc
        if not forks.is_well_named(event):
            raise _refused(history, f"event {event.seq} of {event.node} is named by another content")
        if union.subject(event) != union.key_of(history):
            raise _refused(history, f"event {event.seq} of {event.node} is about something else")
    if not all(stamp(one) < stamp(two) for one, two in pairwise(history.events)):
        raise _refused(history, "its events are not in order")
    if len({union.name(event) for event in history.events}) < len(history.events):
        raise _refused(history, "an event occurs twice")


def check_event(event: LogEvent) -> None:
    """Refuse an event with a field of another type or out of its range."""
    check_name("node", event.node)
    check_name("kind", event.kind)
    check_moment("at", event.at)
    # JSON that was read may be nested deeper than JSON that is written.
    check_json("payload", event.payload)
    if event.scope != normal_scope(event.scope):
        raise InvalidInput(f"the scope {event.scope!r} is not in normal form")
    if not (0 < event.clock <= LAST_READING and 0 < event.seq <= LAST_READING):
        raise InvalidInput("it has an impossible number or time")
    if event.kind not in PAYLOADS:
        raise InvalidInput(f"the kind {event.kind!r} is unknown: the history is from a newer Vestige")
    wrong = PAYLOADS[event.kind].fault(event.payload)
    if wrong is not None:
        raise InvalidInput(f"in its payload {wrong}")


def is_sound(event: LogEvent) -> bool:
    """Whether every field of an event has its type and is in its range."""
    try:
        check_event(event)
    except InvalidInput:
        return False
    return True


def _check_memory(history: MemoryHistory) -> None:
    check_name("id", history.memory_id)
    written = union.writes(history.events)
    if not written or written[0].kind != changes.CREATED:
        raise _refused(history, "it was never created")
    if any(event.kind == changes.DELETED for event in history.events):
        if history.versions:
            raise _refused(history, "it was deleted, and its text is still there")
        return
    if len(history.versions) != len(written) or any(one.id != history.memory_id for one in history.versions):
        raise _refused(history, "its versions are not those of its events")
    for version in history.versions:
        changes.check_memory(version)
    if union.folded(written, union.versions_of(history)) != history.versions:
        raise _refused(history, "a version differs from the one before in more than its event says")


def _check_edge(history: EdgeHistory) -> None:
    check_name("source", history.source_id)
    check_name("target", history.target_id)
    check_name("kind", history.kind)
    if not history.events:
        raise _refused(history, "it has no events")
    if history.source_id == history.target_id:
        raise _refused(history, "a memory cannot be linked to itself")


def _check_document(history: DocumentHistory, now: datetime | None) -> None:
    if history.kind in LOCAL:
        raise _refused(history, "it belongs to one installation")
    held = union.filed(history)
    if held is None:
        if not history.events:
            raise _refused(history, "it has no events")
        return
    put, document = held
    changes.check_document(document)
    check_name("node", history.node)
    if (document.kind, document.id) != (history.kind, history.id):
        raise _refused(history, "its document has another kind or id")
    if not 0 < history.clock <= LAST_READING:
        raise _refused(history, "it was put at an impossible time")
    if now is not None:
        try:
            check_reading(history.clock, now)
            check_reading(tick(0, max(document.created_at, document.updated_at)), now)
        except InvalidInput as exc:
            raise _refused(history, exc.message) from exc
    if put < union.last(history.events, changes.PUT) or put <= union.last(history.events, changes.DROPPED):
        raise _refused(history, "it is older than its own events")


def _is_strength(value: object) -> bool:
    try:
        carried_strength({"strength": value})
    except (InvalidInput, OverflowError):
        return False
    return True


def _payload(**required: Check) -> Fields:
    """The payload of a kind of event. What readers of all events look at is checked in every kind."""
    return Fields(required, _READ)


_STATE = one_of(*MemoryState)
_READ: Mapping[str, Check] = {
    "fields": list_of(text),
    "reason": text,
    "evidence": one_of(*(one for one in Evidence if one is not Evidence.ENCODED)),
    "amount": SHARE,
    "details": lambda value: isinstance(value, Mapping),
    "state": row_of(_STATE, _STATE),
    "target": text,
    "kind": text,
    "id": text,
    "weight": SHARE,
}
PAYLOADS: Mapping[str, Fields] = {
    changes.CREATED: _payload(),
    changes.REVISED: _payload(fields=list_of(text), reason=text),
    changes.DELETED: _payload(reason=text),
    changes.REMARKED: _payload(evidence=_READ["evidence"]),
    changes.STATE: Fields({"from": _STATE, "to": _STATE, "reason": text}, _READ),
    changes.CARRIED: _payload(strength=_is_strength),
    changes.LINKED: _payload(target=text, kind=text, weight=SHARE),
    changes.UNLINKED: _payload(target=text, kind=text),
    changes.PUT: _payload(kind=text, id=text),
    changes.DROPPED: _payload(kind=text, id=text),
    changes.TUNED: _payload(w20=is_curve),
}
"""Every kind of event, with the schema of its payload."""


def _refused(history: EntityHistory, why: str) -> InvalidInput:
    entity = " ".join(union.key_of(history))
    return InvalidInput(
        f"The history of {entity} is invalid: {why}.",
        hint="Nothing was imported. The file is damaged or was edited; export it again at its source.",
        details={"entity": entity},
    )


# -- Plan of a merge: what each history changes

EdgeKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """A memory whose history changed: the whole history, the memory before, the new events, and those whose
    clock was set back."""

    history: MemoryHistory
    before: Memory | None
    fresh: tuple[LogEvent, ...]
    set_back: tuple[LogEvent, ...]

    @property
    def after(self) -> Memory | None:
        """The memory after the merge; None when it is deleted."""
        return union.present(self.history)

    @property
    def weighed(self) -> bool:
        return self.after is not None and any(
            event.kind in FOLDED_FROM for event in (*self.fresh, *self.set_back)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsorbPlan:
    """The rows to write: events that are new here, by stamp; events here with a lower clock than before;
    memories, edges (None: gone) and documents that changed; all events of the curve where it changed.
    `reading` is the highest clock reading seen."""

    events: tuple[LogEvent, ...]
    set_back: tuple[LogEvent, ...]
    memories: tuple[Meeting, ...]
    edges: Mapping[EdgeKey, Edge | None]
    documents: tuple[DocumentHistory, ...]
    curve: CurveHistory | None
    embedded: Mapping[str, changes.Embedded]
    reading: int
    waiting: tuple[str, ...]

    def absorbed(self) -> Absorbed:
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


def gathered(histories: Iterable[EntityHistory], access: Access) -> dict[union.Key, EntityHistory]:
    """One history for each entity. InvalidInput for an invalid one, Forbidden for a caller without access to
    the whole store."""
    if access != EVERYTHING:
        raise Forbidden("Only a caller with access to the whole store may merge histories into it.")
    found: dict[union.Key, EntityHistory] = {}
    for history in histories:
        check(history)
        key = union.key_of(history)
        found[key] = union.merged(found[key], history) if key in found else history
    return found


def mentioned(given: Mapping[union.Key, EntityHistory]) -> set[str]:
    """The memories that these histories are of, link to or cite."""
    found: set[str] = set()
    for history in given.values():
        match history:
            case MemoryHistory():
                found.add(history.memory_id)
            case EdgeHistory():
                found.update((history.source_id, history.target_id))
            case DocumentHistory(document=document) if document is not None:
                found.update(document.cites)
    return found


def absorb_plan(
    given: Mapping[union.Key, EntityHistory],
    mine: Mapping[union.Key, EntityHistory],
    held: Collection[str],
    buried: Collection[str],
) -> AbsorbPlan:
    """Plan the merge of histories with those of this store. `mine` are the histories here of the same
    entities, and of all edges at memories that come in. Of the memories that any of these mention, `held` are
    here and `buried` were deleted here."""
    together = {
        key: union.merged(mine[key], history) if key in mine else history for key, history in given.items()
    }
    memories = [history for history in together.values() if isinstance(history, MemoryHistory)]
    ended = {history.memory_id for history in memories if not history.versions}
    here = ({history.memory_id for history in memories} | set(held)) - ended
    known = {*here, *ended, *buried}
    waiting = [key for key, history in together.items() if _waits(history, known)]
    for key in waiting:
        del together[key]
    fresh = {key: _fresh(history, mine.get(key)) for key, history in together.items()}
    set_back = {key: _events_set_back(history, mine.get(key)) for key, history in together.items()}
    documents = {
        key: _cited_here(history, here)
        for key, history in together.items()
        if isinstance(history, DocumentHistory)
    }
    curve = together.get(union.CURVE)
    return AbsorbPlan(
        events=_in_order(fresh.values()),
        set_back=tuple(event for several in set_back.values() for event in several),
        memories=tuple(
            Meeting(history=history, before=_before(mine.get(key)), fresh=fresh[key], set_back=set_back[key])
            for key, history in together.items()
            if isinstance(history, MemoryHistory) and (fresh[key] or set_back[key])
        ),
        edges=_rewired({**mine, **together}, mine, here, held),
        documents=tuple(history for key, history in documents.items() if _differs(history, mine.get(key))),
        curve=curve
        if isinstance(curve, CurveHistory) and (fresh[union.CURVE] or set_back[union.CURVE])
        else None,
        embedded=_vectors(given.values(), here),
        reading=max((_reading(history) for history in together.values()), default=0),
        waiting=tuple(f"{kind}/{document_id}" for _, kind, document_id in waiting),
    )


def _in_order(fresh: Iterable[Sequence[LogEvent]]) -> tuple[LogEvent, ...]:
    events = sorted((event for several in fresh for event in several), key=stamp)
    for one, other in pairwise(sorted(events, key=union.name)):
        if union.name(one) == union.name(other):
            raise union.two_events(one)
    return tuple(events)


def _rewired(
    histories: Mapping[union.Key, EntityHistory],
    mine: Mapping[union.Key, EntityHistory],
    here: Collection[str],
    held: Collection[str],
) -> dict[EdgeKey, Edge | None]:
    """The edges that changed. An edge exists while both its ends do."""
    found: dict[EdgeKey, Edge | None] = {}
    for key, history in histories.items():
        if isinstance(history, EdgeHistory) and history.source_id in here and history.target_id in here:
            after = union.edge(history)
            if after != _linking(mine.get(key), held):
                found[history.source_id, history.target_id, history.kind] = after
    return found


def _vectors(histories: Iterable[EntityHistory], here: Collection[str]) -> dict[str, changes.Embedded]:
    return {
        history.memory_id: history.embedded
        for history in histories
        if isinstance(history, MemoryHistory) and history.embedded is not None and history.memory_id in here
    }


def _waits(history: EntityHistory, known: Collection[str]) -> bool:
    """Whether it is a document that cites a memory unknown here."""
    if not isinstance(history, DocumentHistory) or history.document is None:
        return False
    return not set(history.document.cites).issubset(known)


def _cited_here(history: DocumentHistory, here: Collection[str]) -> DocumentHistory:
    """The document, or its history without it where it cites a deleted memory."""
    if history.document is None or set(history.document.cites).issubset(here):
        return history
    return union.without(history)


def _differs(history: DocumentHistory, known: EntityHistory | None) -> bool:
    if not isinstance(known, DocumentHistory):
        return history.document is not None
    return (history.document, history.clock, history.node) != (known.document, known.clock, known.node)


def _linking(history: EntityHistory | None, here: Collection[str]) -> Edge | None:
    if not isinstance(history, EdgeHistory) or history.source_id not in here or history.target_id not in here:
        return None
    return union.edge(history)


def _before(known: EntityHistory | None) -> Memory | None:
    return union.present(known) if isinstance(known, MemoryHistory) else None


def _fresh(history: EntityHistory, known: EntityHistory | None) -> tuple[LogEvent, ...]:
    if known is None:
        return history.events
    names = {union.name(event) for event in known.events}
    return tuple(event for event in history.events if union.name(event) not in names)


def _events_set_back(history: EntityHistory, known: EntityHistory | None) -> tuple[LogEvent, ...]:
    """The events that have a lower clock than they have here."""
    here = {} if known is None else {union.name(event): event.clock for event in known.events}
    return tuple(event for event in history.events if here.get(union.name(event), 0) > event.clock)


def _reading(history: EntityHistory) -> int:
    latest = max((event.clock for event in history.events), default=0)
    return max(latest, history.clock) if isinstance(history, DocumentHistory) else latest
