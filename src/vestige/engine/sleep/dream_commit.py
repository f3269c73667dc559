"""The second half of a dream: storing what it found, in one transaction.

Memories that were changed, suppressed or deleted meanwhile are left out, as are links that another process
has made and insights that another dream has had. No text is changed, and a pinned memory only gets links.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from vestige.cognition.dreams.insights import Insight, fresh
from vestige.cognition.dreams.replay import (
    OLD_AMOUNT,
    STRENGTHENED_EVERY,
    LinkProposal,
    faint,
    pair,
    stronger,
)
from vestige.cognition.text.analyser import text_hash
from vestige.core.models import Edge, Evidence, Filter, Memory
from vestige.engine.context import Call
from vestige.engine.revise import load_passing, retry_on_conflict, save
from vestige.engine.sleep.dream_replay import Replay, edges_of
from vestige.engine.sleep.insights import KeptInsight, insight_from, insight_put, known_insights
from vestige.engine.sleep.runs import DREAM, RunRecord, history_row, run_records
from vestige.store.contract.changes import Change, Drop, Link, Put, RecordEvidence, Unlink

REPLAYED = "replayed"
"""The kind of the documents that list the memories a dream has strengthened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamFindings:
    """What a dream would store, by the memories as they were when it read them."""

    scope: str
    turn: int
    replay: Replay
    proposals: Sequence[LinkProposal]
    insights: Sequence[Insight]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptDream:
    """What was stored."""

    run: str
    linked: tuple[Edge, ...]
    reinforced: int
    pruned: int
    strengthened: int
    insights: tuple[KeptInsight, ...]


def commit_dream(call: Call, found: DreamFindings) -> KeptDream:
    """Store everything that still holds, or nothing; decided again if another process wrote meanwhile."""
    return retry_on_conflict(call, lambda: _attempt(call, found))


def _attempt(call: Call, found: DreamFindings) -> KeptDream:
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
    return KeptDream(
        run=history[0].document.id,
        linked=tuple(links),
        reinforced=len(heavier),
        pruned=len(pruned),
        strengthened=len(remarks),
        insights=tuple(insight_from(one.document) for one in insights),
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
    """The row of the history, and the ids of what was strengthened, without text.

    They cite no memory, so that they outlive the memories.
    """
    row = history_row(call, DREAM, found.scope, {"turn": found.turn, **counts})
    names = [one.memory_id for one in evidence]
    strengthened = replace(row.document, kind=REPLAYED, body={"memories": names})
    return [row, Put(document=strengthened, logged=False)]
