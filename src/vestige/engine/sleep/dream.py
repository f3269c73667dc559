"""Dreams: replay → cross-reference → insight, all without a lock, then one transaction that stores the
result."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from vestige.cognition.dreams.insights import DreamMaterial, Insight, draw, fresh
from vestige.cognition.dreams.replay import (
    CONFLICT_SIMILARITY,
    LEAST_MEMORIES,
    LINKS_EACH,
    LinkProposal,
    Pair,
    degrees_of,
    pair,
    propose,
)
from vestige.cognition.evidence.evidence import LONG_CHARS
from vestige.cognition.gate.conflict import StatementConflict as Difference
from vestige.cognition.gate.relation import comes_after, conflict_between, is_contradiction
from vestige.cognition.text.form import Form, features, is_threaded
from vestige.cognition.text.vocabulary import Vocabulary, named_in, vocabulary_of
from vestige.core.errors import InvalidInput
from vestige.core.events import DreamCompleted, DreamProgress, DreamStarted, EventScope
from vestige.core.models import Edge, Filter, Memory
from vestige.engine.context import Call
from vestige.engine.revise import connected_event
from vestige.engine.sleep.dream_commit import DreamFindings, commit_dream
from vestige.engine.sleep.dream_replay import Replay, choose, compare, edges_of, groups
from vestige.engine.sleep.insights import KeptInsight, known_insights
from vestige.engine.sleep.runs import DREAM, accessible_scope, alone, last_run
from vestige.engine.sleep.throttle import throttled

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
    """The result of a dream."""

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
    duration_ms: float


def dream(call: Call, query: DreamQuery) -> Dreamed:
    """Dream of a scope. Raises Conflict while another dream runs, InvalidInput if there are too few
    memories."""
    query = replace(query, scope=accessible_scope(call, query.scope))
    _check_enough(call, query)
    engine = call.engine
    started = engine.monotonic()
    with alone(call, DREAM) as lease:
        call = throttled(call, lease.renew)
        here = (EventScope(scope=query.scope),)
        engine.events.emit(DreamStarted(timestamp=engine.now(), scopes=here, memory_count=query.memories))
        found = _look_for_findings(call, query)
        _enter(call, query, "commit")
        done = commit_dream(call, found)
    dreamed = Dreamed(
        id=done.run,
        scope=query.scope,
        replayed=len(found.replay.replayed),
        salient=len(found.replay.salient),
        linked=done.linked,
        reinforced=done.reinforced,
        pruned=done.pruned,
        strengthened=done.strengthened,
        insights=done.insights,
        by_words=found.replay.by_words,
        duration_ms=round(1000 * (engine.monotonic() - started), 1),
    )
    _announce(call, dreamed)
    return dreamed


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
    found = _CrossReferenced(replay=replay, proposals=proposals, linked=linked, vocabulary=vocabulary)
    return DreamFindings(
        scope=query.scope,
        turn=turn,
        replay=replay,
        proposals=proposals,
        insights=_insights(call, found, query.least),
    )


def _vocabulary(call: Call, replay: Replay) -> Vocabulary:
    named: dict[str, frozenset[str]] = {}
    for at, memory in enumerate(replay.memories.values()):
        if at % READ_AT_ONCE == 0:
            call.check()
        named[memory.id] = named_in(memory)
    return vocabulary_of(named)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CrossReferenced:
    """What was replayed, the existing and the proposed links, and the names in all of it."""

    replay: Replay
    proposals: Sequence[LinkProposal]
    linked: AbstractSet[Pair]
    vocabulary: Vocabulary


def _insights(call: Call, found: _CrossReferenced, least: float) -> list[Insight]:
    """The new insights into what was replayed and what it is linked to now."""
    replay, memories = found.replay, found.replay.memories
    ends = (end for one in found.proposals for end in (one.source_id, one.target_id))
    involved = {name: memories[name] for name in (*replay.replayed, *ends)}
    near = {both: similarity for both, similarity in replay.near.items() if involved.keys() >= set(both)}
    alike = groups(call, replay, list(involved), least)
    call.check()
    material = DreamMaterial(
        memories=involved,
        replayed=list(replay.replayed),
        groups=alike,
        near=near,
        linked=found.linked,
        conflicts=dict(_conflicts(call, near, involved)),
        vocabulary=found.vocabulary,
    )
    return fresh(draw(material), known_insights(call, list(involved)))


def _conflicts(
    call: Call, near: Mapping[Pair, float], memories: Mapping[str, Memory]
) -> Iterator[tuple[tuple[str, str], Difference]]:
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
    """Whether a memory is a statement by itself; in a conversation nearly everything was said otherwise
    before."""
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
