"""What the stages of recall judge by beside the pool: the time asked for, the caller's context, links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from vestige.cognition.graph.kinds import SUPERSEDES
from vestige.cognition.graph.spread import Activation, raised, received
from vestige.cognition.query.analyse import analyse
from vestige.cognition.ranking.context import Context, Hints, hints
from vestige.cognition.ranking.relevance import relevance
from vestige.cognition.ranking.stages import Ranking, StageInputs, is_statement, newer_rivals
from vestige.cognition.time.query_window import Anchor, time_asked
from vestige.core.candidates import CandidatePool, Floats, Integers
from vestige.core.models import Edge, Filter, Memory
from vestige.engine.context import Call
from vestige.engine.recall.as_known import as_known, probe_as_known
from vestige.engine.recall.candidates import Depth

SEEDS = 10
"""The best candidates, from which activation spreads and whose rivals are looked for."""
MOST_EDGES = 500
"""Links looked at in one step: a hub must not cost more than the search itself."""
MOST_ACTIVE = 20
"""Memories that one step may reach: no more comes to mind at once, and each is looked up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedFinds:
    """What links lead to from the best candidates beyond the pool, how many of it may join, and the links
    between candidates."""

    beyond: Mapping[str, Activation]
    quota: int
    inside: Sequence[Edge]


def situate(
    call: Call,
    text: str,
    where: Filter,
    context: Floats,
    pool: CandidatePool,
    ranking: Ranking,
    depth: Depth,
) -> tuple[StageInputs, LinkedFinds]:
    """Everything the stages need, loaded at once."""
    now = call.engine.now()
    active, lent = _activated(call, ranking, depth, where.known_at)
    here = {memory_id: at for at, memory_id in enumerate(pool.ids)}
    inside = known_then(call.engine.store.edges(pool.ids, access=call.access, among=True), where.known_at)
    asked_time = time_asked(text, now)
    window = None
    if asked_time.window is not None:
        window = (asked_time.window.start.timestamp(), asked_time.window.end.timestamp())
    elif asked_time.anchor is not None:
        window = _anchored(call, asked_time.anchor, where, depth)
    situation = StageInputs(
        now=now.timestamp(),
        traits=pool.traits,
        window=window,
        latest=asked_time.latest,
        context=context,
        replaced_by=_replaced_by(inside, here),
        newer=_newer(call, pool, ranking) if window is None else np.full(len(pool.ids), -1),
        activation=_activation(lent, here),
    )
    beyond = {memory_id: one for memory_id, one in active.items() if memory_id not in here}
    return situation, LinkedFinds(beyond=beyond, quota=depth.associations, inside=inside)


def _newer(call: Call, pool: CandidatePool, ranking: Ranking) -> Integers:
    """The rivals told later, among plain statements."""
    newer = newer_rivals(pool, ranking.scores)
    older = np.flatnonzero(newer >= 0)
    if not len(older):
        return newer
    ids = [pool.ids[at] for at in np.union1d(older, newer[older])]
    records = call.engine.store.get_many(ids, access=call.access)
    plain = {one.memory.id for one in records if is_statement(one.memory.content)}
    for at in older:
        if not {pool.ids[at], pool.ids[newer[at]]} <= plain:
            newer[at] = -1
    return newer


Activations = Mapping[str, Activation]


def _activated(
    call: Call, ranking: Ranking, depth: Depth, known_at: datetime | None
) -> tuple[Activations, Activations]:
    """What is active around the best candidates, and what each memory received from others: being a seed is
    no activation by itself."""
    best = ranking.best(SEEDS) if depth.steps and call.engine.settings.mechanisms.spreading else []
    top = float(ranking.scores[best[0]]) if best else 0.0
    if top <= 0:
        return {}, {}
    seeds = {ranking.ids[at]: Activation(level=float(ranking.scores[at]) / top) for at in best}
    return spread(call, seeds, steps=depth.steps, known_at=known_at)


def spread(
    call: Call,
    seeds: Activations,
    *,
    steps: int,
    known_at: datetime | None = None,
) -> tuple[Activations, Activations]:
    """What is active after so many steps along the links, the seeds too, and what each memory received.

    A memory that was active already is passed on from again only when it has become more so.
    """
    active, fresh = dict(seeds), dict(seeds)
    lent: dict[str, Activation] = {}
    for _ in range(steps):
        edges = call.engine.store.edges(list(fresh), access=call.access, heaviest=MOST_EDGES)
        reached = _reached(call, fresh, known_then(edges, known_at))
        lent |= raised(lent, reached)
        fresh = raised(active, reached)
        if not fresh:
            break
        active |= fresh
    return active, lent


def _reached(call: Call, fresh: Activations, edges: Sequence[Edge]) -> Activations:
    """What one step reaches: the most active, judged by where each memory belongs."""
    possible = received(fresh, edges)
    best = set(sorted(possible, key=lambda one: (-possible[one].level, one))[:MOST_ACTIVE])
    used = [edge for edge in edges if edge.source_id in best or edge.target_id in best]
    ends = {end for edge in used for end in (edge.source_id, edge.target_id)} & (best | fresh.keys())
    if not ends:
        return {}
    records = call.engine.store.get_many(sorted(ends), access=call.access)
    memories = {record.memory.id: record.memory for record in records}
    reached = received(fresh, used, memories)
    return {memory_id: one for memory_id, one in reached.items() if memory_id in best}


def known_then(edges: Sequence[Edge], known_at: datetime | None) -> Sequence[Edge]:
    """The edges that were known then."""
    return edges if known_at is None else [edge for edge in edges if edge.created_at <= known_at]


def _replaced_by(inside: Sequence[Edge], here: Mapping[str, int]) -> Integers:
    replaced = np.full(len(here), -1, dtype=np.int64)
    for edge in inside:
        if edge.kind == SUPERSEDES:
            replaced[here[edge.target_id]] = here[edge.source_id]
    return replaced


def _activation(lent: Activations, here: Mapping[str, int]) -> Floats:
    levels = np.zeros(len(here))
    for memory_id, one in lent.items():
        if memory_id in here:
            levels[here[memory_id]] = one.level
    return levels


def _anchored(call: Call, anchor: Anchor, where: Filter, depth: Depth) -> tuple[float, float] | None:
    """The time before or after an event, when the store knows of it: its best memory says when it was."""
    asked = analyse(anchor.event)
    probed, _ = probe_as_known(call, asked, where, depth)
    found = relevance(asked, probed.pool, probed.matched)
    best = Ranking(ids=probed.pool.ids, scores=found.scores).best(1)
    if not best or not probed.pool.by_words[best[0]]:
        return None
    traits = probed.pool.traits
    at = float(traits.happened[best[0]])
    at = float(traits.created[best[0]]) if np.isnan(at) else at
    return (-np.inf, at) if anchor.relation == "before" else (at, np.inf)


# -- Context memory: how well the present context fits that of a memory, and bringing that one back.

AROUND = timedelta(hours=1)
"""What was learned so shortly before or after belongs to the same episode."""
RELATED = 5
LOOKED_AT = 50
"""Of these, the nearest in time are named."""
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reinstated:
    """The context of a memory: cues, and what else was learned in it, the nearest in time first."""

    memory_id: str
    hints: Hints
    related: tuple[str, ...]


def matches(call: Call, context: Context, memory_ids: Sequence[str], known_at: datetime | None) -> Floats:
    """How well each memory's context fits this one, 0 to 1; nothing is read where none is told."""
    levels = np.zeros(len(memory_ids))
    if not (call.engine.settings.mechanisms.context and context.is_known):
        return levels
    records = as_known(call, call.engine.store.get_many(memory_ids, access=call.access), known_at)
    here = {memory_id: at for at, memory_id in enumerate(memory_ids)}
    levels[[here[one.memory.id] for one in records]] = context.matches([one.memory for one in records])
    return levels


def reinstate(call: Call, memory: Memory, where: Filter) -> Reinstated:
    """What brings back the context of a memory. What was learned beside it is of its own scope, was known
    and true at the time asked about, and is not suppressed."""
    beside = Filter(
        scope=memory.scope,
        scope_only=True,
        session_id=memory.session_id,
        created_from=memory.created_at - AROUND,
        created_to=memory.created_at + AROUND + _MOMENT,
        valid_at=where.valid_at,
        known_at=where.known_at,
        include_suppressed=False,
    )
    found = call.engine.store.find(beside, access=call.access, limit=LOOKED_AT)
    others = [one.memory for one in found if one.memory.id != memory.id]
    others.sort(key=lambda one: (abs(one.created_at - memory.created_at), one.id))
    return Reinstated(
        memory_id=memory.id,
        hints=hints(memory),
        related=tuple(one.id for one in others[:RELATED]),
    )
