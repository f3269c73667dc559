"""Whether a life can be true: what comes from elsewhere is refused whole before anything is written."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from math import isfinite
from typing import assert_never

from vestige.checks import check_json, check_moment, check_name
from vestige.documents import LOCAL
from vestige.errors import InvalidInput
from vestige.models import LogEvent, MemoryState, normal_scope
from vestige.store.changes import (
    CREATED,
    DELETED,
    DROPPED,
    LINKED,
    PUT,
    REVISED,
    STATE,
    TUNED,
    UNLINKED,
    check_document,
    check_memory,
)
from vestige.store.clock import LAST_READING
from vestige.store.evidence import EVIDENCE, sighting, w20_of
from vestige.store.lives import CurveLife, DocumentLife, EdgeLife, Life, MemoryLife, stamp
from vestige.store.uniting import filed, folded, key_of, last, name, subject, versions_of, writes


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
