"""What the stages of recall judge by beside the pool: the time asked for, the caller's context, links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from vestige.cognition.activation import Activation, received, step
from vestige.cognition.moments import Anchor, time_asked
from vestige.cognition.query import analyse
from vestige.cognition.ranking import Ranking, Situation
from vestige.cognition.relevance import relevance
from vestige.cognition.rivalry import is_statement, newer_rivals
from vestige.cognition.text import terms
from vestige.engine.context import Call
from vestige.engine.history import as_known
from vestige.engine.probing import Depth
from vestige.engine.rewording import probe_as_known
from vestige.models import Edge, Filter
from vestige.pool import Floats, Integers, Pool

SEEDS = 10
"""The best candidates, from which activation spreads and whose rivals are looked for."""
MOST_EDGES = 500
"""Links looked at in one step: a hub must not cost more than the search itself."""
SUPERSEDES = "supersedes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """What links lead to from the best candidates beyond the pool, how many of it may join, and the links
    between candidates."""

    beyond: Mapping[str, Activation]
    quota: int
    inside: Sequence[Edge]


def situate(
    call: Call,
    text: str,
    where: Filter,
    topics: Sequence[str],
    pool: Pool,
    ranking: Ranking,
    depth: Depth,
) -> tuple[Situation, Links]:
    """Everything the stages need, loaded at once."""
    now = call.engine.now()
    active, lent = _spread(call, ranking, depth, where.known_at)
    here = {memory_id: at for at, memory_id in enumerate(pool.ids)}
    inside = known_then(call.engine.store.edges(pool.ids, access=call.access, among=True), where.known_at)
    asked_time = time_asked(text, now)
    window = None
    if asked_time.window is not None:
        window = (asked_time.window.start.timestamp(), asked_time.window.end.timestamp())
    elif asked_time.anchor is not None:
        window = _anchored(call, asked_time.anchor, where, depth)
    situation = Situation(
        now=now.timestamp(),
        traits=pool.traits,
        window=window,
        latest=asked_time.latest,
        context=_context(call, topics, pool, where.known_at),
        replaced_by=_replaced_by(inside, here),
        newer=_newer(call, pool, ranking) if window is None else np.full(len(pool.ids), -1),
        activation=_activation(lent, here),
    )
    beyond = {memory_id: one for memory_id, one in active.items() if memory_id not in here}
    return situation, Links(beyond=beyond, quota=depth.associations, inside=inside)


def _newer(call: Call, pool: Pool, ranking: Ranking) -> Integers:
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


def _spread(
    call: Call, ranking: Ranking, depth: Depth, known_at: datetime | None
) -> tuple[Activations, Activations]:
    """What is active after as many steps as the depth allows, and what each memory received from others:
    being a seed is no activation by itself."""
    best = ranking.best(SEEDS)
    top = float(ranking.scores[best[0]]) if best else 0.0
    if top <= 0:
        return {}, {}
    active = {ranking.ids[at]: Activation(level=float(ranking.scores[at]) / top) for at in best}
    fresh = list(active)
    lent: dict[str, Activation] = {}
    for _ in range(depth.steps):
        edges = call.engine.store.edges(fresh, access=call.access, heaviest=MOST_EDGES)
        nearby = known_then(edges, known_at)
        known = active.keys()
        lent = received(active, nearby) | lent
        active = step(active, nearby)
        fresh = [memory_id for memory_id in active if memory_id not in known]
        if not fresh:
            break
    return active, lent


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


def _context(call: Call, topics: Sequence[str], pool: Pool, known_at: datetime | None) -> Floats:
    """The share of the caller's topics that each candidate has among its tags."""
    wanted = {" ".join(terms(topic)) for topic in topics} - {""}
    if not wanted:
        return np.zeros(len(pool.ids))
    records = as_known(call, call.engine.store.get_many(pool.ids, access=call.access), known_at)
    tagged = {record.memory.id: {" ".join(terms(tag)) for tag in record.memory.tags} for record in records}
    shares = [len(wanted & tagged.get(memory_id, set())) / len(wanted) for memory_id in pool.ids]
    return np.array(shares, dtype=np.float64)


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
