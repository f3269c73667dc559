"""Links between memories: created and cut by users, strengthened by use, weakened over time."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from vestige.cognition.fsrs.suppression import neighbours
from vestige.cognition.graph.kinds import LEARNED, PRUNE_BELOW, SILENT, faded, fading_days, reinforced
from vestige.core.errors import Conflict, InvalidInput, NotFound
from vestige.core.events import ActivationSpread, EventScope, MemoryPromoted, scopes_of
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Edge, Filter
from vestige.engine.context import Call
from vestige.engine.recall.stage_inputs import MOST_EDGES
from vestige.engine.revise import connected_event, find_document, load, put_document, retry_on_conflict
from vestige.store.contract.changes import Link, Put, Unlink
from vestige.store.filter_rule import passes

FADED_AT_ONCE = 500
"""Links that fade in one transaction: a search or a write never waits for more."""
DAY = timedelta(days=1)
FADED, LINKS = "faded", "links"
"""The kind and the id of the document that says until when links have faded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """A link, and whether it is new or has a new weight."""

    edge: Edge
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FadedLinks:
    """How many learned links became weaker, and how many were cut."""

    faded: int
    pruned: int


def link(call: Call, source_id: str, target_id: str, kind: str, weight: float) -> Linked:
    """Link two memories at a user's request, or change the weight of that link."""
    if source_id == target_id:
        raise InvalidInput(
            "A memory cannot be linked to itself.",
            hint="Name another memory as its `target`.",
            details={"id": source_id},
        )
    ends = {memory_id: load(call, memory_id).memory for memory_id in (source_id, target_id)}
    between = _between(call, source_id, target_id)
    present = next((one for one in between if (one.source_id, one.kind) == (source_id, kind)), None)
    if present and present.weight == weight:
        return Linked(edge=present, changed=False)
    now = call.engine.now()
    edge = Edge(source_id=source_id, target_id=target_id, kind=kind, weight=weight, created_at=now)
    call.engine.store.commit([Link(edge=edge)], access=call.access)
    if not present:
        call.engine.events.emit(connected_event(edge, ends))
    return Linked(edge=edge, changed=True)


def unlink(call: Call, one: str, other: str, kind: str | None) -> list[Edge]:
    """Cut the links of a kind between two memories, or all of them; returns those that were cut. Links that
    record the past of a memory stay: InvalidInput if there are no others."""

    def attempt() -> list[Edge]:
        for memory_id in (one, other):
            load(call, memory_id)
        between = [edge for edge in _between(call, one, other) if kind in (None, edge.kind)]
        cut = [edge for edge in between if edge.kind not in SILENT]
        if between and not cut:
            raise _history_link_error(between[0])
        if not cut:
            return []
        now = call.engine.now()
        try:
            call.engine.store.commit([_end(edge, now) for edge in cut], access=call.access)
        except NotFound as exc:  # another process cut one first
            raise Conflict() from exc
        return cut

    return retry_on_conflict(call, attempt)


def _between(call: Call, one: str, other: str) -> list[Edge]:
    return call.engine.store.edges([one, other], access=call.access, among=True)


def _history_link_error(edge: Edge) -> InvalidInput:
    return InvalidInput(
        f"The link `{edge.kind}` between {edge.source_id} and {edge.target_id} records their past and stays.",
        hint="Undo a merge with `dedup undo`, or make a memory valid again with `memory set_validity`.",
        details={"type": edge.kind},
    )


def fade(call: Call) -> FadedLinks:
    """Weaken learned links for the time since the last run, and cut the weakest; those of pinned memories
    stay. The first of many small transactions records the time: if a run is interrupted, the other links miss
    a step."""
    store, now = call.engine.store, call.engine.now()
    pins = store.stream(Filter(pinned=True, archived=None), access=call.access)
    pinned = {record.memory.id for batch in pins for record in batch}
    last = find_document(call, FADED, LINKS)
    mark: tuple[Put, ...] = (put_document(FADED, LINKS, last, now, body={}),)
    weaker = cut = seen = 0
    for edges in store.stream_edges(LEARNED, access=call.access, batch=FADED_AT_ONCE):
        call.check()
        seen += len(edges)
        free = [edge for edge in edges if pinned.isdisjoint((edge.source_id, edge.target_id))]
        saved = _save(call, list(_fading(free, last.updated_at if last else None, now)), *mark)
        if saved:
            mark = ()
        ended = sum(isinstance(change, Unlink) for change in saved)
        weaker, cut = weaker + len(saved) - ended, cut + ended
        call.progress(seen, None, "Fading links")
    return FadedLinks(faded=weaker, pruned=cut)


def _fading(edges: Sequence[Edge], since: datetime | None, now: datetime) -> Iterator[Link | Unlink]:
    """The changes that time makes to links: those that are due become weaker, or are cut."""
    ages = [(now - edge.created_at) / DAY for edge in edges]
    then = [0.0 if since is None else (since - edge.created_at) / DAY for edge in edges]
    due = fading_days(ages, then)
    left = faded([edge.weight for edge in edges], due)
    for edge, days, weight in zip(edges, due.tolist(), left.tolist(), strict=True):
        if days and weight < PRUNE_BELOW:
            yield _end(edge, now)
        elif days:
            yield Link(edge=_with_weight(edge, weight, now))


def _with_weight(edge: Edge, weight: float, now: datetime) -> Edge:
    """The link with a new weight. The time is for the log; a stored link keeps its creation time."""
    return replace(edge, weight=weight, created_at=now)


def _end(edge: Edge, at: datetime) -> Unlink:
    return Unlink(source_id=edge.source_id, target_id=edge.target_id, kind=edge.kind, at=at)


def _save(call: Call, changes: Sequence[Link | Unlink], *mark: Put) -> Sequence[Link | Unlink]:
    """Commit the changes, with the mark, without those whose memories were deleted meanwhile; returns the
    rest. If nothing is left, no mark is written either."""
    if not changes:
        return ()
    patience = call.patience_seconds
    try:
        call.engine.store.commit([*changes, *mark], access=call.access, patience_seconds=patience)
    except NotFound:
        left = _possible(call, changes)
        if len(left) == len(changes):
            raise
        return _save(call, left, *mark)
    return changes


def _possible(call: Call, changes: Sequence[Link | Unlink]) -> list[Link | Unlink]:
    """The changes whose memories, or whose link, still exist."""
    named = [change.edge if isinstance(change, Link) else change for change in changes]
    ids = sorted({end for one in named for end in (one.source_id, one.target_id)})
    store = call.engine.store
    there = {record.memory.id for record in store.get_many(ids, access=call.access)}
    edges = store.edges(ids, access=call.access, among=True)
    linked = {(edge.source_id, edge.target_id, edge.kind) for edge in edges}
    return [
        change
        for change, one in zip(changes, named, strict=True)
        if there >= {one.source_id, one.target_id}
        and (isinstance(change, Link) or (one.source_id, one.target_id, one.kind) in linked)
    ]


def on_promoted(call: Call, event: MemoryPromoted) -> None:
    """Spread activation from a promoted memory to its neighbours, and strengthen its learned links."""
    engine = call.engine
    if not engine.settings.mechanisms.spreading:
        return
    edges = engine.store.edges([event.id], access=call.access, heaviest=MOST_EDGES)
    near = neighbours(event.id, edges)
    awake, scopes = _visible_neighbours(call, event.id, sorted(near, key=lambda one: (-near[one], one)))
    if not awake:
        return
    now = engine.now()
    learned = [edge for edge in edges if edge.kind in LEARNED and edge.weight < 1.0]
    used = [edge for edge in learned if not {edge.source_id, edge.target_id}.isdisjoint(awake)]
    _save(call, [Link(edge=_with_weight(edge, reinforced(edge.weight), now)) for edge in used])
    engine.events.emit(
        ActivationSpread(timestamp=now, scopes=scopes, source_id=event.id, activated_ids=tuple(awake))
    )


def _visible_neighbours(
    call: Call, source: str, near: Sequence[str]
) -> tuple[list[str], tuple[EventScope, ...]]:
    """The neighbours of a memory that are not hidden, in the same order, and the scopes of all of them."""
    found = [one.memory for one in call.engine.store.get_many([source, *near], access=call.access)]
    visible = Filter(include_suppressed=False)
    awake = [one for one in found if one.id == source or passes(one, visible, call.access)]
    return [one.id for one in awake if one.id != source], scopes_of(*awake)
