"""Synaptic tagging and capture: an important event strengthens what was learned shortly before and after it.

A document beside the trigger holds what the event captured and until when it lasts: ids and numbers. It is
deleted with the trigger.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from itertools import groupby, islice
from operator import itemgetter

from vestige.cognition.fsrs.capture import (
    CLUSTER,
    FORCES,
    FORWARD,
    TAG_LIFE,
    CaptureEvent,
    amounts,
    bounded,
    capture_window,
    event_of,
)
from vestige.cognition.graph.kinds import CONTRADICTS
from vestige.core.documents import Document
from vestige.core.events import Event, ImportanceScored, MemoryCreated, MemoryPromoted
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Evidence, Filter, Memory
from vestige.engine.context import Call
from vestige.engine.revise import find_document, load_passing, put_document, retry_on_conflict, save
from vestige.store.contract.changes import Change, RecordEvidence

KIND = "capture"
PAGE = 100
DIGITS = 4
_HOUR = timedelta(hours=1)
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureCluster:
    """What one event has captured: memory ids with the amounts. `kept` is its document, None if new."""

    trigger: str
    event: CaptureEvent
    at: datetime
    until: datetime
    captured: Mapping[str, float] = field(default_factory=dict)
    kept: Document | None = None


def on_learned(call: Call, events: Sequence[Event]) -> None:
    """Capture new memories by the events that still last, and what was learned around a memory that is
    promoted or important by itself; in the order of the events, so that each finds those before it."""
    if not call.engine.settings.mechanisms.capture:
        return
    triggers = ((event, _trigger(call, event)) for event in events)
    wanted = [(event, trigger) for event, trigger in triggers if trigger or isinstance(event, MemoryCreated)]
    for trigger, several in groupby(wanted, key=itemgetter(1)):
        call.check()
        if trigger is None:
            _capture_new(call, [event.id for event, _ in several if isinstance(event, MemoryCreated)])
        else:
            for event, _ in several:
                _capture_before(call, trigger[0], trigger[1], event.timestamp)


def _trigger(call: Call, event: Event) -> tuple[str, CaptureEvent] | None:
    """The memory by which an event captures what was learned around it; None if it captures nothing."""
    match event:
        case MemoryPromoted():
            return event.id, CaptureEvent.FLAG
        case ImportanceScored(memory_id=memory_id) if memory_id is not None:
            emotion = call.engine.settings.mechanisms.emotion
            kind = event_of(event.composite_score, event.novelty, event.arousal, emotion=emotion)
            return None if kind is None else (memory_id, kind)
        case _:
            return None


def _capture_new(call: Call, memory_ids: Sequence[str]) -> None:
    """Capture new memories by the events that still last."""

    def attempt() -> None:
        by_scope: defaultdict[str, list[Memory]] = defaultdict(list)
        for record in load_passing(call, memory_ids, _can_be_captured(call)):
            by_scope[record.memory.scope].append(record.memory)
        changes = [one for scope, learned in by_scope.items() for one in _captures_of(call, scope, learned)]
        if changes:
            save(call, changes)

    retry_on_conflict(call, attempt)


def _captures_of(call: Call, scope: str, learned: Sequence[Memory]) -> list[Change]:
    """The changes by which the clusters of a scope capture new memories: one document for each cluster."""
    recent = _recent(call, scope, min(memory.created_at for memory in learned))
    gains: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for memory in learned:
        for number, cluster in enumerate(recent):
            if cluster.at < memory.created_at <= cluster.until and memory.id != cluster.trigger:
                recent[number], taken = _with_captured(cluster, [memory], _gained(recent))
                gains[_name(cluster)].update(taken)
    grown = (cluster for cluster in recent if gains[_name(cluster)])
    return [one for cluster in grown for one in _capture_changes(call, scope, cluster, gains[_name(cluster)])]


def _capture_before(call: Call, trigger: str, event: CaptureEvent, at: datetime) -> None:
    """Capture what was learned before the event, and open the window after it."""

    def attempt() -> None:
        memory = _memory(call, trigger, Filter(valid_at=call.engine.now(), include_suppressed=False))
        if memory is None:
            return
        recent = _recent(call, memory.scope, at)
        cluster = CaptureCluster(trigger=trigger, event=event, at=at, until=at + capture_window(event)[1])
        earlier = next((one for one in recent if _name(one) == _name(cluster)), None)
        if earlier is not None:
            # While its memories have their tags, a repeated event does not capture them again.
            cluster = replace(cluster, captured=earlier.captured, kept=earlier.kept)
        else:
            cluster = replace(cluster, kept=find_document(call, KIND, _name(cluster)))
        grown, taken = _with_captured(cluster, _tagged(call, memory, cluster), _gained(recent))
        save(call, _capture_changes(call, memory.scope, grown, taken))

    retry_on_conflict(call, attempt)


def _can_be_captured(call: Call) -> Filter:
    """The filter for what may be captured: valid, not pinned, not suppressed."""
    return Filter(valid_at=call.engine.now(), pinned=False, include_suppressed=False)


def _memory(call: Call, memory_id: str, where: Filter) -> Memory | None:
    return next((one.memory for one in load_passing(call, [memory_id], where)), None)


def _tagged(call: Call, trigger: Memory, cluster: CaptureCluster) -> list[Memory]:
    """What was learned before the event in its scope and may be captured, same session first, then latest.
    What contradicts the trigger is left out."""
    where = replace(
        _can_be_captured(call),
        scope=trigger.scope,
        scope_only=True,
        created_from=cluster.at - capture_window(cluster.event)[0],
        created_to=cluster.at + _MOMENT,
    )
    room = CLUSTER - len(cluster.captured)
    most = 1 + CLUSTER + len(cluster.captured)  # the trigger, and what it has captured already
    found = call.engine.store.find(where, access=call.access, limit=most)
    if trigger.session_id is not None and len(found) > room:
        session = replace(where, session_id=trigger.session_id)
        found = [*call.engine.store.find(session, access=call.access, limit=most), *found]
    edges = call.engine.store.edges([trigger.id], access=call.access)
    against = {end for edge in edges if edge.kind == CONTRADICTS for end in (edge.source_id, edge.target_id)}
    memories = {one.memory.id: one.memory for one in found if one.memory.id not in {trigger.id, *against}}
    return list(memories.values())


def _with_captured(
    cluster: CaptureCluster, memories: Iterable[Memory], held: Mapping[str, float]
) -> tuple[CaptureCluster, dict[str, float]]:
    """The cluster with as many of these memories as it has room for, and the gain of each."""
    fresh = [one for one in memories if one.id not in cluster.captured]
    apart = [(one.created_at - cluster.at) / _HOUR for one in fresh]
    offered = zip((one.id for one in fresh), amounts(cluster.event, apart).tolist(), strict=True)
    room = CLUSTER - len(cluster.captured)
    gains = islice(bounded(offered, held).items(), room)
    taken = {one: round(amount, DIGITS) for one, amount in gains}
    return replace(cluster, captured={**cluster.captured, **taken}), taken


def _capture_changes(
    call: Call, scope: str, cluster: CaptureCluster, taken: Mapping[str, float]
) -> list[Change]:
    now, details = call.engine.now(), {"event": cluster.event.value}
    body = {
        **details,
        "strength": FORCES[cluster.event].strength,
        "at": cluster.at.isoformat(),
        "until": cluster.until.isoformat(),
        "captured": dict(cluster.captured),
    }
    remarks = (
        RecordEvidence(memory_id=one, evidence=Evidence.CAPTURED, at=now, amount=amount, details=details)
        for one, amount in taken.items()
    )
    cites = (cluster.trigger,)
    return [
        put_document(KIND, _name(cluster), cluster.kept, now, body=body, scope=scope, cites=cites),
        *remarks,
    ]


def _name(cluster: CaptureCluster) -> str:
    return f"{cluster.trigger}:{cluster.event.value}"


def _recent(call: Call, scope: str, at: datetime) -> list[CaptureCluster]:
    """The clusters of exactly this scope whose memories may still have had their tags at a time."""
    since = at - TAG_LIFE - FORWARD
    recent: list[CaptureCluster] = []
    while True:
        page = call.engine.store.documents(
            KIND, access=call.access, scope=scope, limit=PAGE, offset=len(recent)
        )
        fresh = [_cluster(one) for one in page if one.updated_at >= since]
        recent.extend(fresh)
        if len(fresh) < PAGE:
            return [one for one in recent if one.kept is not None and one.kept.scope == scope]


def _cluster(document: Document) -> CaptureCluster:
    body = document.body
    return CaptureCluster(
        trigger=document.cites[0],
        event=CaptureEvent(body["event"]),
        at=datetime.fromisoformat(body["at"]),
        until=datetime.fromisoformat(body["until"]),
        captured=dict(body["captured"]),
        kept=document,
    )


def _gained(clusters: Iterable[CaptureCluster]) -> dict[str, float]:
    gained: defaultdict[str, float] = defaultdict(float)
    for memory_id, amount in (one for cluster in clusters for one in cluster.captured.items()):
        gained[memory_id] += amount
    return gained
