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
from vestige.cognition.text import terms
from vestige.engine.context import Call
from vestige.engine.probing import Depth, probe
from vestige.models import Edge, Filter
from vestige.pool import Floats, Integers, Pool

SEEDS = 10
"""The best candidates, from which activation spreads and whose rivals are looked for."""
MOST_EDGES = 500
"""Links looked at in one step: a hub must not cost more than the search itself."""
SUPERSEDES = "supersedes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """What links lead to from the best candidates beyond the pool, and how many of it may join."""

    beyond: Mapping[str, Activation]
    quota: int


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
        context=_context(call, topics, pool),
        replaced_by=_replaced_by(call, where, here),
        activation=np.array([lent[one].level if one in lent else 0.0 for one in pool.ids]),
    )
    beyond = {memory_id: one for memory_id, one in active.items() if memory_id not in here}
    return situation, Links(beyond=beyond, quota=depth.associations)


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
        nearby = _edges(call, fresh, known_at)
        known = active.keys()
        lent = received(active, nearby) | lent
        active = step(active, nearby)
        fresh = [memory_id for memory_id in active if memory_id not in known]
        if not fresh:
            break
    return active, lent


def _edges(call: Call, memory_ids: Sequence[str], known_at: datetime | None) -> tuple[Edge, ...]:
    """The heaviest edges of these memories, as far as they were known then."""
    edges = call.engine.store.edges(memory_ids, access=call.access, heaviest=MOST_EDGES)
    return tuple(edge for edge in edges if known_at is None or edge.created_at <= known_at)


def _replaced_by(call: Call, where: Filter, here: Mapping[str, int]) -> Integers:
    replaced = np.full(len(here), -1, dtype=np.int64)
    for edge in call.engine.store.edges(list(here), access=call.access, among=True):
        if edge.kind == SUPERSEDES and (where.known_at is None or edge.created_at <= where.known_at):
            replaced[here[edge.target_id]] = here[edge.source_id]
    return replaced


def _context(call: Call, topics: Sequence[str], pool: Pool) -> Floats:
    """The share of the caller's topics that each candidate has among its tags."""
    wanted = {" ".join(terms(topic)) for topic in topics} - {""}
    if not wanted:
        return np.zeros(len(pool.ids))
    records = call.engine.store.get_many(pool.ids, access=call.access)
    tagged = {record.memory.id: {" ".join(terms(tag)) for tag in record.memory.tags} for record in records}
    shares = [len(wanted & tagged.get(memory_id, set())) / len(wanted) for memory_id in pool.ids]
    return np.array(shares, dtype=np.float64)


def _anchored(call: Call, anchor: Anchor, where: Filter, depth: Depth) -> tuple[float, float] | None:
    """The time before or after an event, when the store knows of it: its best memory says when it was."""
    asked = analyse(anchor.event)
    probed = probe(call, asked, where, depth)
    found = relevance(asked, probed.pool, probed.matched)
    best = Ranking(ids=probed.pool.ids, scores=found.scores).best(1)
    if not best or not probed.pool.by_words[best[0]]:
        return None
    traits = probed.pool.traits
    at = float(traits.happened[best[0]])
    at = float(traits.created[best[0]]) if np.isnan(at) else at
    return (-np.inf, at) if anchor.relation == "before" else (at, np.inf)
