"""Dreams: replay → cross-reference → insight, without a lock, then one transaction that stores the result.

Memories that were changed, suppressed or deleted meanwhile are left out, as are links that another process
has made and insights that another dream has had. No text is changed, and a pinned memory only gets links.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime

from vestige.cognition.gate.conflict import StatementConflict
from vestige.cognition.gate.relation import LONG_CHARS, comes_after, conflict_between, is_contradiction
from vestige.cognition.graph.dreams.insights import DreamMaterial, Insight, draw, fresh
from vestige.cognition.graph.dreams.replay import (
    CONFLICT_SIMILARITY,
    LEAST_MEMORIES,
    LINKS_EACH,
    OLD_AMOUNT,
    STRENGTHENED_EVERY,
    LinkProposal,
    Pair,
    degrees_of,
    faint,
    pair,
    propose,
    stronger,
)
from vestige.cognition.text.analyser import text_hash
from vestige.cognition.text.form import Form, features, is_threaded
from vestige.cognition.text.vocabulary import Vocabulary, named_in, vocabulary_of
from vestige.core.errors import InvalidInput
from vestige.core.events import DreamCompleted, DreamProgress, DreamStarted, EventScope
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, Edge, Evidence, Filter, Memory
from vestige.engine.context import Call
from vestige.engine.revise import connected_event, load_passing, retry_on_conflict, save
from vestige.engine.sleep.dream_replay import Replay, choose, compare, edges_of, groups
from vestige.engine.sleep.insights import KeptInsight, insight_from, insight_put, known_insights
from vestige.engine.sleep.runs import (
    DREAM,
    RunRecord,
    accessible_scope,
    alone,
    history_row,
    last_run,
    run_records,
)
from vestige.store.contract.changes import Change, Drop, Link, Put, RecordEvidence, Unlink

REPLAYED = "replayed"
"""The kind of the documents that list the memories a dream has strengthened."""
JUDGED = 100
"""The most alike pairs, which are checked for contradictions: half a millisecond each."""
READ_AT_ONCE = 100
"""Texts that are analysed between two checks for cancellation."""
PHASES = {"replay": 10, "cross-reference": 30, "insight": 70, "commit": 90}
"""The progress in percent when a phase begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamQuery:
    """What to dream of: how many memories of which scope, and how alike two must be to be linked."""

    where: Filter
    scope: str
    memories: int
    least: float
    links_each: int = LINKS_EACH


@dataclass(frozen=True, slots=True, kw_only=True)
class Dreamed:
    id: str
    scope: str
    replayed: int
    salient: int
    linked: tuple[Edge, ...]
    reinforced: int
    pruned: int
    strengthened: int
    insights: tuple[KeptInsight, ...]
    by_words: bool
    duration_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamFindings:
    """What a dream would store, by the memories as they were when it read them."""

    scope: str
    turn: int
    replay: Replay
    proposals: Sequence[LinkProposal]
    insights: Sequence[Insight]


def dream(call: Call, query: DreamQuery) -> Dreamed:
    """Dream of a scope. Raises Conflict while another dream runs, InvalidInput for too few memories."""
    query = replace(query, scope=accessible_scope(call, query.scope))
    _check_enough(call, query)
    engine = call.engine
    started = engine.monotonic()
    with alone(call, DREAM) as call:
        here = (EventScope(scope=query.scope),)
        engine.events.emit(DreamStarted(timestamp=engine.now(), scopes=here, memory_count=query.memories))
        found = _look_for_findings(call, query)
        _enter(call, query, "commit")
        dreamed = retry_on_conflict(call, lambda: _commit(call, found))
    _look_for_domains(call, found.turn)
    dreamed = replace(dreamed, duration_ms=round(1000 * (engine.monotonic() - started), 1))
    _announce(call, dreamed)
    return dreamed


def _look_for_domains(call: Call, turn: int) -> None:
    """Every few dreams of the whole store, look whether the domains still fit. It only makes proposals, and
    does nothing before a person has asked for domains."""
    settings = call.engine.settings.domains
    every = settings.recluster_interval if settings.enabled else 0
    if not every or (turn + 1) % every or call.access != EVERYTHING:
        return
    # Imported late: most dreams do not need it.
    from vestige.engine.domains.discovery import look_again

    look_again(call)


def _check_enough(call: Call, query: DreamQuery) -> None:
    there = call.engine.store.count(query.where, access=call.access)
    if there < LEAST_MEMORIES:
        raise InvalidInput(
            f"A dream needs {LEAST_MEMORIES} valid memories; {query.scope} has {there}.",
            hint="Store more memories first, or give a wider `scope`.",
            details={"memories": there, "needed": LEAST_MEMORIES, "scope": query.scope},
        )


def _look_for_findings(call: Call, query: DreamQuery) -> DreamFindings:
    """Everything that takes long. It only reads."""
    before = last_run(call, DREAM, query.scope)
    turn = before.body["turn"] + 1 if before else 0
    _enter(call, query, "replay")
    records, mattered = choose(call, query.where, query.memories, turn)
    _enter(call, query, "cross-reference")
    replay = compare(call, query.where, records, mattered, query.least)
    edges = edges_of(call, list(replay.memories))
    linked = frozenset(pair(edge.source_id, edge.target_id) for edge in edges)
    near = {both: similarity for both, similarity in replay.near.items() if similarity >= query.least}
    vocabulary = _vocabulary(call, replay)
    proposals = propose(replay.memories, near, linked, degrees_of(edges), vocabulary, query.links_each)
    _enter(call, query, "insight")
    insights = _insights(call, replay, proposals, linked, vocabulary, query.least)
    return DreamFindings(scope=query.scope, turn=turn, replay=replay, proposals=proposals, insights=insights)


def _vocabulary(call: Call, replay: Replay) -> Vocabulary:
    named: dict[str, frozenset[str]] = {}
    for at, memory in enumerate(replay.memories.values()):
        if at % READ_AT_ONCE == 0:
            call.check()
        named[memory.id] = named_in(memory)
    return vocabulary_of(named)


def _insights(
    call: Call,
    replay: Replay,
    proposals: Sequence[LinkProposal],
    linked: AbstractSet[Pair],
    vocabulary: Vocabulary,
    least: float,
) -> list[Insight]:
    """The new insights into what was replayed and what it is linked to now."""
    memories = replay.memories
    ends = (end for one in proposals for end in (one.source_id, one.target_id))
    involved = {name: memories[name] for name in (*replay.replayed, *ends)}
    near = {both: similarity for both, similarity in replay.near.items() if involved.keys() >= set(both)}
    alike = groups(call, replay, list(involved), least)
    call.check()
    material = DreamMaterial(
        memories=involved,
        replayed=list(replay.replayed),
        groups=alike,
        near=near,
        linked=linked,
        conflicts=dict(_conflicts(call, near, involved)),
        vocabulary=vocabulary,
    )
    return fresh(draw(material), known_insights(call, list(involved)))


def _conflicts(
    call: Call, near: Mapping[Pair, float], memories: Mapping[str, Memory]
) -> Iterator[tuple[tuple[str, str], StatementConflict]]:
    """The pairs of notes that contradict each other, the newer one first."""
    alike = [both for both, similarity in near.items() if similarity >= CONFLICT_SIMILARITY]
    notes = {name for name in {end for both in alike for end in both} if _states(memories[name])}
    alike = [both for both in alike if notes.issuperset(both)]
    for both in sorted(alike, key=lambda both: (-near[both], both))[:JUDGED]:
        call.check()
        one, other = (memories[name] for name in both)
        newer, older = (one, other) if comes_after(one, other) else (other, one)
        difference = conflict_between(newer, older)
        if difference is not None and is_contradiction(difference):
            yield (newer.id, older.id), difference


def _states(memory: Memory) -> bool:
    """Whether a memory is a statement by itself; in a conversation nearly everything was said before."""
    if len(memory.content) > LONG_CHARS or is_threaded(memory):
        return False
    return features(memory).form is not Form.TURN


def _enter(call: Call, query: DreamQuery, phase: str) -> None:
    call.check()
    done = PHASES[phase]
    call.progress(done, 100, phase)
    call.engine.events.emit(
        DreamProgress(
            timestamp=call.engine.now(),
            scopes=(EventScope(scope=query.scope),),
            phase=phase,
            progress_pct=float(done),
        )
    )


def _announce(call: Call, dreamed: Dreamed) -> None:
    now = call.engine.now()
    call.progress(100, 100, "done")
    linked = sorted({end for edge in dreamed.linked for end in (edge.source_id, edge.target_id)})
    records = call.engine.store.get_many(linked, access=call.access) if linked else []
    ends = {record.memory.id: record.memory for record in records}
    call.engine.events.emit(
        *(connected_event(edge, ends) for edge in dreamed.linked),
        DreamCompleted(
            timestamp=now,
            scopes=(EventScope(scope=dreamed.scope),),
            memories_replayed=dreamed.replayed,
            connections_found=len(dreamed.linked),
            insights_generated=len(dreamed.insights),
            duration_ms=dreamed.duration_ms,
        ),
    )


# -- Storing what was found


def _commit(call: Call, found: DreamFindings) -> Dreamed:
    """Store everything that still holds, or nothing."""
    now = call.engine.now()
    unchanged = _unchanged(call, found, now)
    pinned = {name for name, memory in unchanged.items() if memory.pinned}
    strengthened = run_records(call, REPLAYED)
    due = _not_strengthened_lately(found, strengthened, now) & unchanged.keys()
    links = [_edge(one, now) for one in _unlinked(call, found.proposals, unchanged)]
    edges = edges_of(call, [name for name in found.replay.replayed if name in unchanged])
    heavier, pruned = stronger(edges, due), faint(edges, pinned)
    remarks = [_strengthen(name, found, now) for name in found.replay.replayed if name in due - pinned]
    insights = [insight_put(one, unchanged, now) for one in _new_insights(call, found.insights, unchanged)]
    counts = {
        "replayed": len(found.replay.replayed),
        "linked": len(links),
        "reinforced": len(heavier),
        "pruned": len(pruned),
        "strengthened": len(remarks),
        "insights": len(insights),
    }
    history = _history(call, found, counts, remarks)
    changes: list[Change] = [*_link_changes(links, heavier, pruned, now), *remarks, *insights, *history]
    changes += [Drop(kind=REPLAYED, id=row.id, at=now) for row in strengthened if not _recent(row, now)]
    save(call, changes)
    return Dreamed(
        id=history[0].document.id,
        scope=found.scope,
        replayed=len(found.replay.replayed),
        salient=len(found.replay.salient),
        linked=tuple(links),
        reinforced=len(heavier),
        pruned=len(pruned),
        strengthened=len(remarks),
        insights=tuple(insight_from(one.document, unchanged) for one in insights),
        by_words=found.replay.by_words,
    )


def _unchanged(call: Call, found: DreamFindings, now: datetime) -> dict[str, Memory]:
    """The memories that are still as they were when the dream read them."""
    ends = (end for one in found.proposals for end in (one.source_id, one.target_id))
    sources = (name for one in found.insights for name in one.sources)
    names = list(dict.fromkeys((*found.replay.replayed, *ends, *sources)))
    seen, where = found.replay.memories, Filter(valid_at=now, include_suppressed=False)
    valid = [record.memory for record in load_passing(call, names, where)]
    return {one.id: one for one in valid if text_hash(one) == text_hash(seen[one.id])}


def _unlinked(
    call: Call, proposals: Sequence[LinkProposal], unchanged: Mapping[str, Memory]
) -> list[LinkProposal]:
    """The proposals whose memories are unchanged and not linked yet."""
    possible = [one for one in proposals if unchanged.keys() >= {one.source_id, one.target_id}]
    ends = sorted({end for one in possible for end in (one.source_id, one.target_id)})
    edges = call.engine.store.edges(ends, access=call.access, among=True)
    linked = {pair(edge.source_id, edge.target_id) for edge in edges}
    return [one for one in possible if pair(one.source_id, one.target_id) not in linked]


def _new_insights(call: Call, insights: Sequence[Insight], unchanged: Mapping[str, Memory]) -> list[Insight]:
    """The insights whose sources are unchanged and that no other dream has had meanwhile."""
    holding = [one for one in insights if unchanged.keys() >= set(one.sources)]
    sources = sorted({name for one in holding for name in one.sources})
    return fresh(holding, known_insights(call, sources)) if sources else []


def _not_strengthened_lately(
    found: DreamFindings, strengthened: Sequence[RunRecord], now: datetime
) -> set[str]:
    """Replayed memories that no dream of the last day has strengthened."""
    done = {name for row in strengthened if _recent(row, now) for name in row.body["memories"]}
    return found.replay.replayed.keys() - done


def _recent(row: RunRecord, now: datetime) -> bool:
    return now - row.at < STRENGTHENED_EVERY


def _edge(proposal: LinkProposal, now: datetime) -> Edge:
    return Edge(
        source_id=proposal.source_id,
        target_id=proposal.target_id,
        kind=proposal.kind,
        weight=min(1.0, proposal.similarity),
        created_at=now,
    )


def _link_changes(
    links: Sequence[Edge], heavier: Sequence[Edge], pruned: Sequence[Edge], now: datetime
) -> list[Change]:
    # The time is for the log: a stored link keeps its creation time.
    changes: list[Change] = [Link(edge=replace(edge, created_at=now)) for edge in (*links, *heavier)]
    return changes + [
        Unlink(source_id=edge.source_id, target_id=edge.target_id, kind=edge.kind, at=now) for edge in pruned
    ]


def _strengthen(name: str, found: DreamFindings, now: datetime) -> RecordEvidence:
    amount = 1.0 if name in found.replay.salient else OLD_AMOUNT
    return RecordEvidence(memory_id=name, evidence=Evidence.REPLAYED, amount=amount, at=now)


def _history(
    call: Call, found: DreamFindings, counts: Mapping[str, int], evidence: Sequence[RecordEvidence]
) -> list[Put]:
    """The row of the history, and the ids of what was strengthened. They cite no memory, to outlive it."""
    row = history_row(call, DREAM, found.scope, {"turn": found.turn, **counts})
    names = [one.memory_id for one in evidence]
    strengthened = replace(row.document, kind=REPLAYED, body={"memories": names})
    return [row, Put(document=strengthened, logged=False)]
