"""Merges histories into a relational store, in one transaction."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from vestige.cognition.fsrs.strength import encode
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Access, LogEvent, Memory, Strength
from vestige.store.contract.changes import TUNED
from vestige.store.merge import union
from vestige.store.merge.absorb import AbsorbPlan, Meeting, absorb_plan, gathered, mentioned
from vestige.store.merge.forks import AFTER_MARK, MARK, ForkPlan, bases, fork_plan, named_by_content, origin
from vestige.store.merge.histories import Absorbed, DocumentHistory, EntityHistory, Fork, MemoryHistory
from vestige.store.merge.strength_log import EVIDENCE, Curves, Folded
from vestige.store.merge.union import CURVE, Key, Name
from vestige.store.sql.commit import PendingMemory, row_of, write_endings, write_texts
from vestige.store.sql.database import Database, Surfaces, Transactions
from vestige.store.sql.merge import histories
from vestige.store.sql.rows import documents, memories, store_facts, strengths
from vestige.store.sql.rows import edges as edge_rows
from vestige.store.sql.rows import history as history_rows
from vestige.store.sql.search import index_rows, vectors

BATCH = 500
"""The number of strengths folded at once."""
KINDS = ", ".join("?" * len(EVIDENCE))
EVIDENT_SINCE = f"SELECT DISTINCT e.memory_id FROM events e WHERE e.clock >= ? AND e.kind IN ({KINDS})"
MOVED_SINCE = "SELECT DISTINCT e.memory_id FROM events e WHERE e.position > ? AND e.memory_id IS NOT NULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A folded strength, with the strengths before and after each evidence event, by node and number."""

    strength: Strength
    around: Mapping[Name, tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """The rows derived from an incoming memory that is unknown here."""

    memory: Memory
    analysis: index_rows.Analysis
    weighed: Weighed


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The histories that may change something, one for each entity, and the rows derived from them on these
    curves. `refolded` are memories here whose evidence falls on another curve than before, by the log up to a
    position."""

    given: Mapping[Key, EntityHistory]
    curves: Curves
    brought: Mapping[str, Brought]
    refolded: Mapping[str, Weighed]
    position: int


def absorb(
    connections: Transactions,
    incoming: Sequence[EntityHistory],
    access: Access,
    surfaces: Surfaces,
    new_id: Callable[[], str],
) -> Absorbed:
    given = gathered(incoming, access)
    found: tuple[Fork, ...] = ()

    def planned(db: Database) -> tuple[ForkPlan, Sequence[LogEvent], bool]:
        known = history_rows.known(db, bases(given.values()))
        plan = _fork_plan(db, given, known)
        return plan, known, bool(plan.here) or store_facts.node(db) in plan.strangers

    plan, known, forked = connections.read(planned, snapshot=False)
    if forked:
        # A step of its own: a store whose events have their new names is complete also without the merge.
        found = connections.written(lambda db: _split(db, given, new_id))
    already = known if plan.given is given else None
    prepared = connections.read(lambda db: _prepare(db, plan.given, already), snapshot=False)
    if not prepared.given:
        return Absorbed(forks=found)
    merged = connections.written(lambda db: _merge(db, prepared, surfaces).absorbed())
    return replace(merged, forks=found)


# -- Forks: a clone of this store, or of another one, wrote under the same node id

RENAMED = f"{history_rows.SELECT} WHERE e.node >= ? AND e.node < ?"


def _fork_plan(db: Database, given: Mapping[Key, EntityHistory], known: Sequence[LogEvent]) -> ForkPlan:
    nodes = {origin(event.node) for history in given.values() for event in history.events}
    renamed = [
        history_rows.from_row(row)
        for node in sorted(nodes)
        for row in db.execute(RENAMED, (f"{node}{MARK}", f"{node}{AFTER_MARK}"))
    ]
    return fork_plan(given, known, renamed)


def _split(db: Database, given: Mapping[Key, EntityHistory], new_id: Callable[[], str]) -> tuple[Fork, ...]:
    """Name the contested events here by their content, and give this store a new node id if the contested one
    is its own."""
    plan = _fork_plan(db, given, history_rows.known(db, bases(given.values())))
    for event in plan.here:
        history_rows.rename(db, event, named_by_content(event).node)
    own, successor = store_facts.node(db), None
    if own in plan.strangers or own in plan.nodes:
        successor = new_id()
        db.execute("UPDATE installation SET node = ?", (successor,))
    return plan.forks(own, successor)


# -- The merge


def _prepare(db: Database, given: Mapping[Key, EntityHistory], known: Sequence[LogEvent] | None) -> Prepared:
    """Do the slow part before the write lock is taken. `known` are those of the events that are here."""
    position = history_rows.last_position(db)  # first: later events are read again
    if known is None:
        names = [union.name(event) for history in given.values() for event in history.events]
        known = history_rows.known(db, names)
    new = _news(db, given, known)
    curve = histories.of_curve(db)
    curves = Curves.from_events((union.merged(curve, new[CURVE]) if CURVE in new else curve).events)
    return Prepared(
        given=new,
        curves=curves,
        brought={
            history.memory_id: Brought(
                memory=memory,
                analysis=index_rows.analyse(memory),
                weighed=_weighed(curves.folded(memory.created_at, history.events)),
            )
            for history in new.values()
            if isinstance(history, MemoryHistory) and (memory := union.present(history)) is not None
        },
        refolded=dict(_refolded(db, _evident(db, new[CURVE].events), curves)) if CURVE in new else {},
        position=position,
    )


def _merge(db: Database, prepared: Prepared, surfaces: Surfaces) -> AbsorbPlan:
    given = prepared.given
    mine = _mine(db, given)
    named = mentioned(given) | mentioned(mine)
    held, buried = memories.keys_of(db, named).keys(), history_rows.buried_among(db, named)
    plan = absorb_plan(given, mine, held=held, buried=buried)
    for event in history_rows.known(db, map(union.name, plan.events)):
        raise union.two_events(event)
    _write_memories(db, plan, prepared, surfaces)
    history_rows.take(db, plan.events)
    history_rows.set_back(db, plan.set_back)
    history_rows.advance(db, plan.reading)
    _rewire(db, plan)
    _file(db, plan, surfaces)
    _weigh(db, plan, prepared)
    _embed(db, plan)
    return plan


def _news(
    db: Database, given: Mapping[Key, EntityHistory], held: Sequence[LogEvent]
) -> dict[Key, EntityHistory]:
    """The histories that may change something: not those whose events are all here, nor documents that are
    here in the same state."""
    known = {union.name(event): replace(event, position=0) for event in held}
    filed = {union.key_of(history): history for history in histories.of_documents(db, _documents(given))}
    return {
        key: history
        for key, history in given.items()
        if any(known.get(union.name(event)) != event for event in history.events)
        or (isinstance(history, DocumentHistory) and filed.get(key) != history)
        or (isinstance(history, MemoryHistory) and history.embedded is not None)
    }


def _documents(given: Collection[Key]) -> list[documents.Name]:
    return [(key[1], key[2]) for key in given if key[0] == "document"]


def _mine(db: Database, given: Collection[Key]) -> dict[Key, EntityHistory]:
    """The histories here of the same entities, and of edges at memories that come in."""
    ids = [key[1] for key in given if key[0] == "memory"]
    edges = {(key[1], key[2], key[3]) for key in given if key[0] == "edge"}
    edges.update(histories.edges_at(db, set(ids) - memories.keys_of(db, ids).keys()))
    found: list[EntityHistory] = [
        *histories.of_memories(db, ids),
        *histories.of_edges(db, sorted(edges)),
        *histories.of_documents(db, _documents(given)),
        *([histories.of_curve(db)] if CURVE in given else []),
    ]
    return {union.key_of(history): history for history in found}


def _write_memories(db: Database, plan: AbsorbPlan, prepared: Prepared, surfaces: Surfaces) -> None:
    """Write and remove memories with everything derived from their text, except their strength."""
    known = memories.stored(db, [one.history.memory_id for one in plan.memories])
    key = memories.next_key(surfaces.ask_last_key(db))
    changed: list[PendingMemory] = []
    ended: list[PendingMemory] = []
    buried: list[history_rows.EndedMemory] = []
    for one in plan.memories:
        stored = known.get(one.history.memory_id)
        end = union.ending(one.history)
        if end is not None:
            buried.append(
                history_rows.EndedMemory(memory_id=one.history.memory_id, scope=end.scope, at=end.at)
            )
            ended.extend([] if stored is None else [PendingMemory.known(stored)])
        elif one.after is not None and (one.after != one.before or one.set_back):
            draft = _new(one.after, key) if stored is None else PendingMemory.known(stored)
            key += draft.is_new
            _revise(draft, one.after, one, prepared)
            changed.append(draft)
    write_endings(db, ended, surfaces)
    history_rows.bury(db, buried)
    history_rows.drop(db, [draft.key for draft in changed if not draft.is_new])
    write_texts(db, None, changed, surfaces)


def _new(memory: Memory, key: int) -> PendingMemory:
    return PendingMemory(
        key=key, memory=memory, strength=encode(memory.created_at), text_hash="", is_new=True
    )


def _revise(draft: PendingMemory, memory: Memory, one: Meeting, prepared: Prepared) -> None:
    """Make the pending row this memory, with its whole past."""
    brought = prepared.brought.get(memory.id)
    fits = brought is not None and brought.memory == memory
    analysis = brought.analysis if brought is not None and fits else index_rows.analyse(memory)
    before = draft.memory
    if draft.is_new or index_rows.is_outdated(before, memory):
        draft.analysis = analysis
    draft.row = row_of(memory, analysis.fingerprints)
    draft.lost_vectors = not draft.is_new and draft.row.text_hash != draft.text_hash
    draft.memory, draft.text_hash = memory, draft.row.text_hash
    draft.past = union.revisions(one.history)


def _rewire(db: Database, plan: AbsorbPlan) -> None:
    keys = memories.keys_of(db, {end for ends in plan.edges for end in ends[:2]})
    edge_rows.replace(
        db, {(keys[source], keys[target], kind): edge for (source, target, kind), edge in plan.edges.items()}
    )


def _file(db: Database, plan: AbsorbPlan, surfaces: Surfaces) -> None:
    documents.drop(
        db, [(history.kind, history.id) for history in plan.documents if history.document is None], surfaces
    )
    filed = [(history, history.document) for history in plan.documents if history.document is not None]
    keys = memories.keys_of(db, {memory_id for _, document in filed for memory_id in document.cites})
    for history, document in filed:
        cited = [keys[memory_id] for memory_id in dict.fromkeys(document.cites)]
        documents.put(db, document, (history.clock, history.node), cited)


def _weigh(db: Database, plan: AbsorbPlan, prepared: Prepared) -> None:
    """Fold strengths again where evidence came in, or where its curve changed."""
    curves = Curves.from_events(histories.of_curve(db).events)
    met = {one.history.memory_id: one for one in plan.memories if one.weighed}
    _write_strengths(db, ((memory_id, _folded(one, curves, prepared)) for memory_id, one in met.items()))
    if plan.curve is None:
        return
    strengths.tune(db, curves.present)
    others = [one for one in _evident(db, (*plan.events, *plan.set_back)) if one not in met]
    ready = prepared.refolded if curves == prepared.curves else {}
    moved = {row[0] for row in db.execute(MOVED_SINCE, (prepared.position,))}
    again = [one for one in others if one in moved or one not in ready]
    _write_strengths(db, ((one, ready[one]) for one in others if one in ready and one not in moved))
    _write_strengths(db, _refolded(db, again, curves))


def _evident(db: Database, events: Iterable[LogEvent]) -> list[str]:
    """The memories with evidence since the first change of the curve among these events."""
    first = min(event.clock for event in events if event.kind == TUNED)
    return [row[0] for row in db.execute(EVIDENT_SINCE, (first, *EVIDENCE))]


def _refolded(db: Database, memory_ids: Sequence[str], curves: Curves) -> Iterator[tuple[str, Weighed]]:
    for start in range(0, len(memory_ids), BATCH):
        for history in histories.of_memories(db, memory_ids[start : start + BATCH]):
            memory = union.present(history)
            if memory is not None:
                yield history.memory_id, _weighed(curves.folded(memory.created_at, history.events))


def _folded(one: Meeting, curves: Curves, prepared: Prepared) -> Weighed:
    memory_id = one.history.memory_id
    brought, sent = prepared.brought.get(memory_id), prepared.given["memory", memory_id]
    if brought is not None and curves == prepared.curves and sent.events == one.history.events:
        return brought.weighed
    return _weighed(curves.folded(one.history.versions[0].created_at, one.history.events))


def _weighed(folded: Folded) -> Weighed:
    around: dict[Name, tuple[str, str]] = {}
    last: tuple[Strength, str] | None = None  # mostly the strength that the next evidence event finds
    for event, (old, new) in folded.around.items():
        before = last[1] if last is not None and last[0] is old else strengths.as_json(old)
        last = (new, strengths.as_json(new))
        around[event] = (before, last[1])
    return Weighed(strength=folded.strength, around=around)


def _write_strengths(db: Database, weighed: Iterable[tuple[str, Weighed]]) -> None:
    coming = iter(weighed)
    while some := dict(islice(coming, BATCH)):
        keys = memories.keys_of(db, some)
        strengths.put(db, {keys[memory_id]: one.strength for memory_id, one in some.items()})
        history_rows.note_strengths(
            db, {event: both for one in some.values() for event, both in one.around.items()}
        )


def _embed(db: Database, plan: AbsorbPlan) -> None:
    """Write the vectors of memories that have none."""
    if not plan.embedded:
        return
    profile = store_facts.profile(db)
    bare = {one for one, stored in memories.stored(db, plan.embedded).items() if not stored.embedded}
    signature = next(iter(plan.embedded.values())).signature if profile is None else profile.signature
    vectors.put_by_id(
        db, {key: one for key, one in plan.embedded.items() if key in bare and one.signature == signature}
    )
