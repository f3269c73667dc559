"""Reasoning over memories: search → follow links → load predecessors → weigh the evidence → show its
evolution."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from vestige.cognition.evidence.evidence import (
    AnswerStatus,
    EvolutionStep,
    Exhibit,
    Findings,
    evolution,
    exhibit,
    judge,
    status_of,
)
from vestige.cognition.graph.kinds import MERGES, SUPERSEDES
from vestige.cognition.graph.spread import Activation, received
from vestige.cognition.query.analyse import Intent, intent_of
from vestige.cognition.text.analyser import query_terms
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Edge, Filter, Revision
from vestige.engine.context import Call
from vestige.engine.recall.as_known import known_records
from vestige.engine.recall.candidates import Mode
from vestige.engine.recall.hits import Hit
from vestige.engine.recall.recall import Recalled, RecallQuery, recall
from vestige.engine.recall.stage_inputs import MOST_EDGES, MarkedPairs, edges_known_at, marked_pairs
from vestige.engine.sleep.insights import KeptInsight, insights_into

SURE_ENOUGH = Mode.PRECISE.depth.confidence
"""An answer that is relied on needs more confidence than a list of hits to look at."""
SEEDS = 3
"""The best hits, whose links are followed …"""
NEIGHBOURS = 3
"""… to this many memories each."""
CHAIN = 8
"""The most steps back through memories that were replaced."""
INSIGHTS = 5
UNFOUND_SHARE = 0.5
"""The share of a hit's score for a memory that was not found but is marked as contradicting it."""
LINEAGE = frozenset({SUPERSEDES, MERGES})
"""Links from a memory to those it has replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What the memories say together about a question. `hits` come from the search and from links."""

    intent: Intent
    status: AnswerStatus
    recalled: Recalled
    hits: tuple[Hit, ...]
    expanded: int
    exhibits: tuple[Exhibit, ...]
    findings: Findings
    evolution: tuple[EvolutionStep, ...]
    insights: tuple[KeptInsight, ...]


def refer(call: Call, query: RecallQuery, moment: datetime) -> Reference:
    """Search, and weigh the evidence that is found. `moment` is the time asked about."""
    intent = intent_of(query.text)
    query = replace(query, min_confidence=SURE_ENOUGH)
    recalled = recall(call, query)
    hits = (*recalled.hits, *_linked(call, query.where, recalled.hits))
    # The past, if the question is about it, or nothing holds now.
    past = _past(call, query, moment) if intent is Intent.TIMELINE or not hits else []
    before = _predecessors(call, query.where, [*hits, *past])
    known = {hit.record.memory.id: hit for hit in (*hits, *past, *before)}
    against, marked = _marked(call, query.where, list(known.values()))
    known |= {hit.record.memory.id: hit for hit in against}
    exhibits = tuple(
        exhibit(hit.record, hit.score, moment, found=hit.association is None) for hit in known.values()
    )
    call.check()
    marks = marked.places([one.memory for one in exhibits])
    asked = frozenset(query_terms(query.text))
    findings = judge(exhibits, recalled.confidence, moment, marks, asked)
    status, everywhere = status_of(findings), _all_times(query.where)
    if status is AnswerStatus.NO_EVIDENCE and not call.engine.store.count(everywhere, access=call.access):
        status = AnswerStatus.NO_MEMORIES
    return Reference(
        intent=intent,
        status=status,
        recalled=recalled,
        hits=hits,
        expanded=sum(hit.association is not None for hit in hits),
        exhibits=exhibits,
        findings=findings,
        evolution=evolution(exhibits, findings, _revisions(call, query.where, exhibits, findings), moment),
        insights=_insights(call, query.where, exhibits, findings),
    )


def _insights(
    call: Call, where: Filter, exhibits: Sequence[Exhibit], findings: Findings
) -> tuple[KeptInsight, ...]:
    names = [exhibits[at].memory.id for at in findings.roles]
    return tuple(insights_into(call, names, limit=INSIGHTS, known_at=where.known_at))


def _all_times(where: Filter) -> Filter:
    return replace(where, valid_at=None)


def _past(call: Call, query: RecallQuery, moment: datetime) -> list[Hit]:
    """The hits that were no longer valid at the time asked about."""
    found = recall(call, replace(query, where=_all_times(query.where))).hits
    return [one for one in found if (end := one.record.memory.valid_until) is not None and end <= moment]


def _linked(call: Call, where: Filter, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The memories that links lead to from the best hits, most active first."""
    seeds = hits[:SEEDS]
    if not seeds:
        return ()
    edges = _edges(call, where, [hit.record.memory.id for hit in seeds])
    active = {hit.record.memory.id: Activation(level=hit.score) for hit in seeds}
    there = {hit.record.memory.id for hit in hits}
    reached = {name: one for name, one in received(active, edges).items() if name not in there}
    best = sorted(reached, key=lambda name: (-reached[name].level, name))[: SEEDS * NEIGHBOURS]
    return tuple(
        Hit(record=record, score=reached[record.memory.id].level, association=reached[record.memory.id])
        for record in known_records(call, best, where)
    )


def _edges(call: Call, where: Filter, memory_ids: Sequence[str]) -> Sequence[Edge]:
    edges = call.engine.store.edges(memory_ids, access=call.access, heaviest=MOST_EDGES)
    return edges_known_at(edges, where.known_at)


def _marked(call: Call, where: Filter, hits: Sequence[Hit]) -> tuple[list[Hit], MarkedPairs]:
    """The pairs that are marked as contradicting, and the memories of them that were not found. Those have
    half the score of the hit, too little for an answer that the search did not find."""
    scores = {hit.record.memory.id: hit.score for hit in hits}
    edges = call.engine.store.edges(sorted(scores), access=call.access)
    records = [hit.record for hit in hits]
    marked = marked_pairs(call, records, edges_known_at(edges, where.known_at), where)
    found = [
        Hit(
            record=record,
            score=UNFOUND_SHARE
            * max(scores.get(one, 0.0) for pair in marked.pairs if record.memory.id in pair for one in pair),
        )
        for record in marked.beyond
    ]
    return found, marked


def _predecessors(call: Call, where: Filter, hits: Sequence[Hit]) -> list[Hit]:
    """The memories that the hits have replaced, step by step, each with the score of its replacement."""
    found: list[Hit] = []
    relevance = {hit.record.memory.id: hit.score for hit in hits}
    fresh = list(relevance)
    for _ in range(CHAIN):
        if not fresh:
            break
        older = {
            edge.target_id: relevance[edge.source_id]
            for edge in _edges(call, where, fresh)
            if edge.kind in LINEAGE and edge.source_id in relevance and edge.target_id not in relevance
        }
        fresh = sorted(older)
        relevance |= older
        records = known_records(call, fresh, _all_times(where))
        found += [Hit(record=record, score=older[record.memory.id]) for record in records]
    return found


def _revisions(
    call: Call, where: Filter, exhibits: Sequence[Exhibit], findings: Findings
) -> dict[str, list[Revision]]:
    """The earlier texts of the evidence, as far as they were known."""
    past: dict[str, list[Revision]] = {}
    for memory in (exhibits[at].memory for at in findings.roles):
        if memory.revision > 1:
            history = call.engine.store.history(memory.id, access=call.access)
            past[memory.id] = [one for one in history if one.memory.revision < memory.revision]
    return past
