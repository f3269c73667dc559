"""Exports the histories of an in-memory store, and merges histories into it."""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from vestige.cognition.text.analyser import text_hash
from vestige.core.documents import LOCAL
from vestige.core.models import ANYTHING, EVERYTHING, Access, Filter, LogEvent
from vestige.store.contract.changes import PUT, Embedded, Piece
from vestige.store.inmemory import search
from vestige.store.inmemory.profiles import take_vectors
from vestige.store.inmemory.state import MemoryEntry, StoreState, apart, as_json
from vestige.store.merge.absorb import AbsorbPlan, absorb_plan, gathered, mentioned
from vestige.store.merge.forks import MARK, bases, fork_plan, named_by_content
from vestige.store.merge.histories import (
    Absorbed,
    CurveHistory,
    DocumentHistory,
    EdgeHistory,
    EntityHistory,
    Fork,
    MemoryHistory,
    ever_within,
    stamp,
    successors,
)
from vestige.store.merge.strength_log import Curves
from vestige.store.merge.union import Key, edge, ending, name, revisions, subject, two_events

CURVE: Key = ("curve",)
Story = Mapping[Key, Sequence[LogEvent]]


def export(
    state: StoreState, where: Filter | None, access: Access, *, vectors: bool
) -> Iterator[EntityHistory]:
    """Every history, or those that pass the filter within the access."""
    story = _story(state)
    whole = where is None and access == EVERYTHING
    if whole:
        chosen = sorted({*state.held, *state.buried})
        if CURVE in story:
            yield CurveHistory(events=tuple(story[CURVE]))
    else:
        chosen = sorted(held.memory.id for held in search.select(state, where or ANYTHING, access))
    names: set[str] = set()
    for memory_id in chosen:
        memory = _memory(state, story, memory_id, vectors=vectors)
        named = [name for name in successors(memory) if name in state.held]
        if ever_within(memory, access) and all(state.accessible(name, access) for name in named):
            names.add(memory_id)
            yield memory
    for history in _edges(story):
        if whole or ({history.source_id, history.target_id} <= names and edge(history) is not None):
            yield history
    for document in _documents(state, story):
        if whole or _is_exported(state, document, where, access, names):
            yield document


def absorb(
    state: StoreState,
    histories: Sequence[EntityHistory],
    node: str,
    access: Access,
    new_id: Callable[[], str],
) -> Absorbed:
    """Merge histories with those of this store."""
    given, forks = _split(state, gathered(histories, access), node, new_id)
    arriving = mentioned(given) - state.held.keys()
    mine = _mine(state, given, arriving)
    plan = absorb_plan(given, mine, held=state.held.keys(), buried=state.buried.keys())
    _log(state, plan)
    _place(state, plan)
    _weigh(state, plan)
    for memory_id, embedded in plan.embedded.items():
        if state.signature in (None, embedded.signature) and not state.held[memory_id].pieces:
            take_vectors(state, memory_id, embedded)
    return replace(plan.absorbed(), forks=forks)


# -- Export of histories


def _story(state: StoreState) -> Story:
    """The log by entity, each part by stamp and without positions."""
    found: dict[Key, list[LogEvent]] = defaultdict(list)
    for event in sorted(state.log, key=stamp):
        found[subject(event)].append(replace(event, position=0, payload=as_json(event.payload)))
    return found


def _memory(state: StoreState, story: Story, memory_id: str, *, vectors: bool) -> MemoryHistory:
    held = state.held.get(memory_id)
    versions = () if held is None else (*(one.memory for one in held.past), held.memory)
    return MemoryHistory(
        memory_id=memory_id,
        events=tuple(story["memory", memory_id]),
        versions=tuple(apart(version) for version in versions),
        embedded=_embedded(state, held) if vectors and held is not None else None,
    )


def _embedded(state: StoreState, held: MemoryEntry) -> Embedded | None:
    """The vectors of a memory. The tokens of all pieces are with the first one."""
    if not held.pieces or state.signature is None:
        return None
    first, *rest = (Piece(start=one.start, end=one.end, vector=one.vector.copy()) for one in held.pieces)
    pieces = (replace(first, tokens=held.tokens()), *rest)
    return Embedded(signature=state.signature, text_hash=text_hash(held.memory), pieces=pieces)


def _edges(story: Story) -> Iterator[EdgeHistory]:
    return (_edge(story, key) for key in sorted(key for key in story if key[0] == "edge"))


def _edge(story: Story, key: Key) -> EdgeHistory:
    _, source_id, target_id, kind = key
    return EdgeHistory(source_id=source_id, target_id=target_id, kind=kind, events=tuple(story[key]))


def _documents(state: StoreState, story: Story) -> Iterator[DocumentHistory]:
    logged = {(key[1], key[2]) for key in story if key[0] == "document"}
    for kind, document_id in sorted(logged | state.documents.keys()):
        if kind not in LOCAL:
            yield _document(state, story, kind, document_id)


def _document(state: StoreState, story: Story, kind: str, document_id: str) -> DocumentHistory:
    document = state.documents.get((kind, document_id))
    clock, node = state.stamps.get((kind, document_id), (0, ""))
    return DocumentHistory(
        kind=kind,
        id=document_id,
        events=tuple(story.get(("document", kind, document_id), ())),
        document=None if document is None else replace(document, body=as_json(document.body)),
        clock=clock,
        node=node,
    )


def _is_exported(
    state: StoreState, history: DocumentHistory, where: Filter | None, access: Access, chosen: Container[str]
) -> bool:
    if history.document is None or not state.may_read(history.document, access):
        return False
    cites = history.document.cites
    return all(memory_id in chosen for memory_id in cites) and (where is None or bool(cites))


# -- Merge of histories


def _mine(state: StoreState, given: Iterable[Key], arriving: Container[str]) -> dict[Key, EntityHistory]:
    """The histories here of the same entities, and of edges at memories that come in."""
    story = _story(state)
    found: dict[Key, EntityHistory] = {
        key: _edge(story, key)
        for key in story
        if key[0] == "edge" and (key[1] in arriving or key[2] in arriving)
    }
    for key in given:
        match key:
            case ("curve",) if key in story:
                found[key] = CurveHistory(events=tuple(story[key]))
            case ("memory", memory_id) if key in story:
                found[key] = _memory(state, story, memory_id, vectors=False)
            case ("edge", _, _, _) if key in story:
                found[key] = _edge(story, key)
            case ("document", kind, document_id) if key in story or (kind, document_id) in state.documents:
                found[key] = _document(state, story, kind, document_id)
    return found


def _split(
    state: StoreState, given: Mapping[Key, EntityHistory], own: str, new_id: Callable[[], str]
) -> tuple[Mapping[Key, EntityHistory], tuple[Fork, ...]]:
    """Name the events that a clone made ambiguous by their content, and choose a new node id if they are of
    this store's own node."""
    asked = set(bases(given.values()))
    log = [replace(event, payload=as_json(event.payload)) for event in state.log]
    plan = fork_plan(
        given,
        [event for event in log if name(event) in asked],
        [event for event in log if MARK in event.node],
    )
    new = {name(event): named_by_content(event).node for event in plan.here}
    for event in plan.here:
        key = (str(event.payload.get("kind")), str(event.payload.get("id")))
        if event.kind == PUT and state.stamps.get(key) == (event.clock, event.node):
            state.stamps[key] = (event.clock, new[name(event)])
    state.log = [replace(event, node=new.get(name(event), event.node)) for event in state.log]
    forked = own in plan.strangers or own in plan.nodes
    if forked:
        state.seq = 0
    return plan.given, plan.forks(own, new_id() if forked else None)


def _log(state: StoreState, plan: AbsorbPlan) -> None:
    readings = {name(event): event.clock for event in plan.set_back}
    state.log = [replace(event, clock=readings.get(name(event), event.clock)) for event in state.log]
    names = {name(event) for event in state.log}
    for event in plan.events:
        if name(event) in names:
            raise two_events(event)
        at_end = replace(event, position=len(state.log) + 1, payload=as_json(event.payload))
        state.log.append(at_end)
    state.clock = max(state.clock, plan.reading)


def _place(state: StoreState, plan: AbsorbPlan) -> None:
    """Write the merged memories, except their strength, then edges and documents."""
    for one in plan.memories:
        end = ending(one.history)
        if end is not None:
            state.end(one.history.memory_id, end.at, end.scope)
        elif one.after is not None:
            past = tuple(replace(past, memory=apart(past.memory)) for past in revisions(one.history))
            state.hold(apart(one.after), past)
    for ends, linked in plan.edges.items():
        state.edges.pop(ends, None)
        if linked is not None:
            state.edges[ends] = linked
    for history in plan.documents:
        key = (history.kind, history.id)
        if history.document is not None:
            state.documents[key] = replace(history.document, body=as_json(history.document.body))
            state.stamps[key] = (history.clock, history.node)
        elif key in state.documents:
            state.lose(*key)


def _weigh(state: StoreState, plan: AbsorbPlan) -> None:
    """Fold strengths again where evidence came in, or everywhere on a curve that came in."""
    story = _story(state)
    curves = Curves.from_events(story.get(CURVE, ()))
    state.curve = curves.present
    anew = {one.history.memory_id for one in plan.memories if one.weighed}
    for memory_id in anew if plan.curve is None else list(state.held):
        held = state.held[memory_id]
        folded = curves.folded(held.memory.created_at, story["memory", memory_id])
        state.held[memory_id] = replace(held, strength=folded.strength)
