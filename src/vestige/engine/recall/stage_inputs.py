"""Inputs of the ranking stages beside the pool: the time asked about, the caller's context, links.

Spreading activation and context memory are computed here, because both read the store.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from vestige.cognition.fsrs.strength import retention_of
from vestige.cognition.gate.relation import competes
from vestige.cognition.graph.kinds import CONTRADICTS, SUPERSEDES
from vestige.cognition.graph.spread import Activation, raised, received
from vestige.cognition.query.analyse import Asked, analyse
from vestige.cognition.ranking.relevance import relevance
from vestige.cognition.ranking.stages import (
    Context,
    Hints,
    Ranking,
    StageInputs,
    hints,
    later_rivals,
    nearness,
)
from vestige.cognition.time.query_window import (
    Anchor,
    PastAsked,
    TimeAsked,
    fits,
    last_valid,
    stretch,
    successor,
)
from vestige.core.candidates import CandidatePool, Floats, Integers
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ROOT_SCOPE, Edge, Filter, Memory, MemoryContext, Record
from vestige.engine.context import Call
from vestige.engine.recall.as_known import as_known, gather_as_known, known_records
from vestige.engine.recall.candidates import Depth

SEEDS = 10
"""The best candidates: activation spreads from them, and their rivals are looked up."""
MOST_EDGES = 500
"""Links read in one step: a hub must not cost more than the search itself."""
MOST_ACTIVE = 20
"""Memories that one step activates; each of them is loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedFinds:
    """What links bring in: the activation of each such memory, and the records of those beyond the pool."""

    brought: Mapping[str, Activation]
    beyond: Sequence[Record]


NO_LINKS = LinkedFinds(brought={}, beyond=())


def load_stage_inputs(
    call: Call,
    asked: Asked,
    asked_time: TimeAsked,
    where: Filter,
    context: Floats,
    pool: CandidatePool,
    ranking: Ranking,
    depth: Depth,
) -> tuple[StageInputs, LinkedFinds]:
    now = call.engine.now()
    lent = _lent(call, ranking, depth, where.known_at)
    here = {memory_id: at for at, memory_id in enumerate(pool.ids)}
    inside = edges_known_at(call.engine.store.edges(pool.ids, access=call.access, among=True), where.known_at)
    window = None
    if asked_time.window is not None:
        window = (asked_time.window.start.timestamp(), asked_time.window.end.timestamp())
    elif asked_time.anchor is not None:
        window = _anchor_window(call, asked_time.anchor, where, depth)
    brought, beyond = _brought(call, where, ranking, here, lent, depth.associations)
    inputs = StageInputs(
        now=now.timestamp(),
        traits=pool.traits,
        window=window,
        latest=asked_time.latest,
        context=context,
        replaced_by=_replaced_by(inside, here),
        newer=np.full(len(pool.ids), -1),
        activation=_activation(lent, here),
        lent=_activation(brought, here),
        # A search in a given scope has no other project to prefer it to.
        home=nearness(pool.traits.scope, ROOT_SCOPE if where.scope else call.scope),
    )
    if asked_time.past is not None:
        then = asked_time.window.validity() if asked_time.window is not None else window
        inputs = _as_of_then(call, asked_time.past, then, inputs, pool, ranking, where)
    elif window is None:
        inputs = replace(inputs, newer=_newer(call, asked, where, pool, ranking, inside))
    return inputs, LinkedFinds(brought=brought, beyond=beyond)


def _newer(
    call: Call, asked: Asked, where: Filter, pool: CandidatePool, ranking: Ranking, inside: Sequence[Edge]
) -> Integers:
    """For each candidate the index of the later statement that it competes with, or -1. One that begins later
    is behind: a plan. The one that holds the names and numbers of the question is behind none without."""
    newer = np.full(len(pool.ids), -1, dtype=np.int64)
    pairs = later_rivals(pool, ranking.scores)
    if not pairs:
        return newer
    records = known_records(call, sorted({pool.ids[at] for pair in pairs for at in pair}), where)
    memories = {one.memory.id: one.memory for one in records}
    among = [edge for edge in inside if {edge.source_id, edge.target_id} <= memories.keys()]
    marked = marked_pairs(call, records, among, where).pairs
    now = call.engine.now().timestamp()
    plans = {one for one, memory in memories.items() if stretch(memory).begin > now}
    for older, later in pairs:
        ids = pool.ids[older], pool.ids[later]
        if not memories.keys() >= {*ids}:
            continue
        behind, ahead = (later, older) if ids[1] in plans and ids[0] not in plans else (older, later)
        one, other = memories[pool.ids[behind]], memories[pool.ids[ahead]]
        lost = any(named.mentioned_in(one) and not named.mentioned_in(other) for named in asked.particulars)
        if newer[behind] < 0 and not lost and competes(one, other, marked=frozenset(ids) in marked):
            newer[behind] = ahead
    return newer


Activations = Mapping[str, Activation]


def _lent(call: Call, ranking: Ranking, depth: Depth, known_at: datetime | None) -> Activations:
    """The activation that memories around the best candidates receive. Being a seed is not counted."""
    best = ranking.best(SEEDS) if depth.steps and call.engine.settings.mechanisms.spreading else []
    top = float(ranking.scores[best[0]]) if best else 0.0
    if top <= 0:
        return {}
    seeds = {ranking.ids[at]: Activation(level=float(ranking.scores[at]) / top) for at in best}
    _, lent = spread(call, seeds, steps=depth.steps, known_at=known_at)
    return lent


def _brought(
    call: Call, where: Filter, ranking: Ranking, here: Mapping[str, int], lent: Activations, quota: int
) -> tuple[Activations, Sequence[Record]]:
    """The memories that links bring in: the most active ones, up to the quota, and the records of those
    beyond the pool. Whether an arm found such a memory does not matter, because in a small store the arms
    find everything: what matters is that it ranks lower by itself than links would have it."""
    top = ranking.scores.max(initial=0.0)
    beyond = [one for one in lent if one not in here]
    joining = {one.memory.id: one for one in _joining(call, where, beyond)} if beyond else {}
    lifted = {one for one, at in here.items() if one in lent and ranking.scores[at] < top * lent[one].level}
    best = sorted({*joining, *lifted}, key=lambda one: (-lent[one].level, one))[:quota]
    return {one: lent[one] for one in best}, [joining[one] for one in best if one in joining]


def _joining(call: Call, where: Filter, memory_ids: Sequence[str]) -> Iterator[Record]:
    """The records beyond the pool that the filters of the arms allow."""
    for record in known_records(call, memory_ids, where):
        level = retention_of(record.strength, where.now or call.engine.now())
        if where.min_retention is None or level >= where.min_retention:
            yield record


def spread(
    call: Call, seeds: Activations, *, steps: int, known_at: datetime | None = None
) -> tuple[Activations, Activations]:
    """Spread activation along links for some steps: what is active, and what each memory received. An active
    memory passes activation on again only if it has become more active."""
    active, fresh = dict(seeds), dict(seeds)
    lent: dict[str, Activation] = {}
    for _ in range(steps):
        edges = call.engine.store.edges(list(fresh), access=call.access, heaviest=MOST_EDGES)
        reached = _reached(call, fresh, edges_known_at(edges, known_at))
        lent |= raised(lent, reached)
        fresh = raised(active, reached)
        if not fresh:
            break
        active |= fresh
    return active, lent


def _reached(call: Call, fresh: Activations, edges: Sequence[Edge]) -> Activations:
    """What one step activates: the most active memories, judged by their scopes."""
    possible = received(fresh, edges)
    best = set(sorted(possible, key=lambda one: (-possible[one].level, one))[:MOST_ACTIVE])
    used = [edge for edge in edges if edge.source_id in best or edge.target_id in best]
    ends = {end for edge in used for end in (edge.source_id, edge.target_id)} & (best | fresh.keys())
    if not ends:
        return {}
    records = call.engine.store.get_many(sorted(ends), access=call.access)
    memories = {record.memory.id: record.memory for record in records}
    reached = received(fresh, used, memories, call.engine.settings.domains.cross_domain_decay)
    return {memory_id: one for memory_id, one in reached.items() if memory_id in best}


def edges_known_at(edges: Sequence[Edge], known_at: datetime | None) -> Sequence[Edge]:
    """The edges that existed at a time; all of them without a time."""
    return edges if known_at is None else [edge for edge in edges if edge.created_at <= known_at]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedPairs:
    """Pairs of memories, by id, that links mark as contradicting; `beyond` are those that were not given."""

    pairs: frozenset[frozenset[str]]
    beyond: tuple[Record, ...]

    def places(self, memories: Sequence[Memory]) -> set[frozenset[int]]:
        """The pairs as indices of these memories."""
        at = {memory.id: place for place, memory in enumerate(memories)}
        return {frozenset(at[one] for one in pair) for pair in self.pairs if pair <= at.keys()}


def marked_pairs(call: Call, records: Sequence[Record], edges: Sequence[Edge], where: Filter) -> MarkedPairs:
    """The pairs that these edges mark as contradicting, of these records with each other and with memories
    beyond them that pass the filter. A mark counts until it is removed or one of the texts changes."""
    marks = [edge for edge in edges if edge.kind == CONTRADICTS and edge.source_id != edge.target_id]
    given = {record.memory.id: record for record in records}
    missing = {end for edge in marks for end in (edge.source_id, edge.target_id)} - given.keys()
    beyond = {one.memory.id: one for one in known_records(call, sorted(missing), where)} if missing else {}
    known = given | beyond
    pairs = {
        frozenset((edge.source_id, edge.target_id))
        for edge in marks
        if {edge.source_id, edge.target_id} <= known.keys()
        and _unchanged(call, known[edge.source_id].memory, edge.created_at)
        and _unchanged(call, known[edge.target_id].memory, edge.created_at)
    }
    used = {end for pair in pairs for end in pair}
    return MarkedPairs(
        pairs=frozenset(pairs), beyond=tuple(beyond[end] for end in sorted(used & beyond.keys()))
    )


def _unchanged(call: Call, memory: Memory, since: datetime) -> bool:
    """Whether a memory has the text that it had at a time."""
    if memory.updated_at <= since or memory.revision == 1:
        return True
    history = call.engine.store.history(memory.id, access=call.access)
    texts = [one.memory.content for one in history if one.memory.updated_at <= since]
    return not texts or texts[-1] == memory.content


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


def _anchor_window(call: Call, anchor: Anchor, where: Filter, depth: Depth) -> tuple[float, float] | None:
    """The time before or after an event, if the store knows the event: its best memory has the date."""
    asked = analyse(anchor.event)
    gathered = gather_as_known(call, asked, where, depth)
    found = relevance(asked, gathered.pool, gathered.matched)
    best = Ranking(ids=gathered.pool.ids, scores=found.scores).best(1)
    if not best or not gathered.pool.by_words[best[0]]:
        return None
    traits = gathered.pool.traits
    at = float(traits.happened[best[0]])
    at = float(traits.created[best[0]]) if np.isnan(at) else at
    return (-np.inf, at) if anchor.relation == "before" else (at, np.inf)


# -- A question about the past: what was valid then comes first

LOOKED_BACK_AT = 30  # The number of best candidates whose validity is compared with the time asked about.
OF_NEXT = 0.4
"""The share of the score of what came next that a memory needs to be what came before it."""


def _as_of_then(
    call: Call,
    past: PastAsked,
    window: tuple[float, float] | None,
    inputs: StageInputs,
    pool: CandidatePool,
    ranking: Ranking,
    where: Filter,
) -> StageInputs:
    """The inputs for a question about the past (`window` if it says when). In a chain of replacements the
    memory that was valid then comes first, instead of the one that is valid now."""
    chains = _chains(inputs.replaced_by)
    best = ranking.best(LOOKED_BACK_AT)
    looked_at = [
        *best,
        *sorted({at for chain in chains if not chain.isdisjoint(best) for at in chain} - {*best}),
    ]
    known = {one.memory.id: one for one in known_records(call, [pool.ids[at] for at in looked_at], where)}
    stretches = {at: stretch(known[pool.ids[at]].memory) for at in looked_at if pool.ids[at] in known}
    replacing = frozenset(inputs.replaced_by.tolist())
    following = successor(past, stretches, replacing)
    then = np.zeros(len(pool.ids))
    for at, fit in fits(window, inputs.now, stretches, following).items():
        then[at] = fit
    newer, replaced_by = inputs.newer.copy(), inputs.replaced_by.copy()
    if following is not None:
        before = [
            at for at in best if then[at] > 0 and ranking.scores[at] >= OF_NEXT * ranking.scores[following]
        ]
        newer[following] = before[0] if before else -1
    for chain in chains:
        members = [at for at in sorted(chain) if at in stretches]
        if members and then[winner := last_valid(past, {at: stretches[at] for at in members}, then)] > 0:
            replaced_by[members] = -1
            newer[[at for at in members if at != winner]] = winner
            newer[winner] = -1
    return replace(inputs, then=then, newer=newer, replaced_by=replaced_by)


def _chains(replaced_by: Integers) -> list[set[int]]:
    """The candidates that replaced one another."""
    chains: dict[int, set[int]] = {}
    for at in np.flatnonzero(replaced_by >= 0).tolist():
        chain, last = {at}, at
        while replaced_by[last] >= 0 and int(replaced_by[last]) not in chain:
            last = int(replaced_by[last])
            chain.add(last)
        chains.setdefault(last, set()).update(chain)
    return list(chains.values())


# -- Context memory: matching a memory's context with the present one, and reinstating it

AROUND = timedelta(hours=1)
"""Memories created within this time of each other belong to the same episode."""
RELATED = 5
LOOKED_AT = 50
"""Memories of the episode that are loaded; the RELATED nearest in time are returned."""
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reinstated:
    """The context of a memory: its cues, and what else was learned in it, nearest in time first."""

    memory_id: str
    hints: Hints
    related: tuple[str, ...]


def context_match(
    call: Call, context: Context, memory_ids: Sequence[str], known_at: datetime | None
) -> Floats:
    """How well each memory's context matches this one, 0 to 1; 0 if the query states no context."""
    levels = np.zeros(len(memory_ids))
    if not (call.engine.settings.mechanisms.context and context.is_known):
        return levels
    store, access = call.engine.store, call.access
    if known_at is None:
        made = store.contexts(memory_ids, access=access)
    else:
        records = as_known(call, store.get_many(memory_ids, access=access), known_at)
        made = [MemoryContext.of(one.memory) for one in records]
    here = {memory_id: at for at, memory_id in enumerate(memory_ids)}
    levels[[here[one.id] for one in made]] = context.matches(made)
    return levels


def reinstate(call: Call, memory: Memory, where: Filter) -> Reinstated:
    """The context of a memory. Related memories are in its scope, were known and true at the time asked
    about, and are not suppressed."""
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
        memory_id=memory.id, hints=hints(memory, call.zone), related=tuple(one.id for one in others[:RELATED])
    )
