"""The second half of a dream: keeping what it found, in one transaction.

What was changed, suppressed or deleted while it dreamed is left out, and so is what somebody else has linked
or another dream has said by then. No text is ever touched, and a pinned memory only gets links.
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
from vestige.core.errors import Conflict, NotFound
from vestige.core.models import Edge, Evidence, Filter, Memory
from vestige.engine.context import Call
from vestige.engine.revise import persistently
from vestige.engine.sleep.dream_replay import Replay, edges_of
from vestige.engine.sleep.insights import KeptInsight, held, kept, known
from vestige.engine.sleep.runs import DREAM, RunRecord, rows, written
from vestige.store.contract.changes import Change, Drop, Link, Put, RecordEvidence, Unlink
from vestige.store.filter_rule import passes

REPLAYED = "replayed"
"""The kind of the documents that say which memories a dream has strengthened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamFindings:
    """What a dream would keep, as the memories were when it looked."""

    scope: str
    turn: int
    replay: Replay
    proposals: Sequence[LinkProposal]
    insights: Sequence[Insight]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptDream:
    """What was kept."""

    run: str
    linked: tuple[Edge, ...]
    reinforced: int
    pruned: int
    strengthened: int
    insights: tuple[KeptInsight, ...]


def keep(call: Call, found: DreamFindings) -> KeptDream:
    """Write all of it that still stands, or nothing; decided again when somebody else was quicker."""
    return persistently(call, lambda: _keep(call, found))


def _keep(call: Call, found: DreamFindings) -> KeptDream:
    now = call.engine.now()
    standing = _standing(call, found, now)
    pinned = {name for name, memory in standing.items() if memory.pinned}
    strengthened = rows(call, REPLAYED)
    rested = _rested(found, strengthened, now) & standing.keys()
    links = [_edge(one, now) for one in _unlinked(call, found.proposals, standing)]
    edges = edges_of(call, [name for name in found.replay.replayed if name in standing])
    heavier, pruned = stronger(edges, rested), faint(edges, pinned)
    remarks = [_remark(name, found, now) for name in found.replay.replayed if name in rested - pinned]
    insights = [kept(one, standing, now) for one in _untold(call, found.insights, standing)]
    counts = {
        "replayed": len(found.replay.replayed),
        "linked": len(links),
        "reinforced": len(heavier),
        "pruned": len(pruned),
        "strengthened": len(remarks),
        "insights": len(insights),
    }
    history = _history(call, found, counts, remarks)
    changes: list[Change] = [*_wiring(links, heavier, pruned, now), *remarks, *insights, *history]
    changes += [Drop(kind=REPLAYED, id=row.id, at=now) for row in strengthened if not _recent(row, now)]
    try:
        call.engine.store.commit(changes, access=call.access)
    except NotFound as exc:
        raise Conflict() from exc  # one more has gone: look again
    return KeptDream(
        run=history[0].document.id,
        linked=tuple(links),
        reinforced=len(heavier),
        pruned=len(pruned),
        strengthened=len(remarks),
        insights=tuple(held(one.document) for one in insights),
    )


def _standing(call: Call, found: DreamFindings, now: datetime) -> dict[str, Memory]:
    """What is still as it was when the dream looked."""
    ends = (end for one in found.proposals for end in (one.source_id, one.target_id))
    sources = (name for one in found.insights for name in one.sources)
    names = list(dict.fromkeys((*found.replay.replayed, *ends, *sources)))
    seen, where = found.replay.memories, Filter(valid_at=now, include_suppressed=False)
    return {
        record.memory.id: record.memory
        for record in call.engine.store.get_many(names, access=call.access)
        if passes(record.memory, where, call.access)
        and text_hash(record.memory) == text_hash(seen[record.memory.id])
    }


def _unlinked(
    call: Call, proposals: Sequence[LinkProposal], standing: Mapping[str, Memory]
) -> list[LinkProposal]:
    """What still can be linked, and nobody has linked meanwhile."""
    possible = [one for one in proposals if standing.keys() >= {one.source_id, one.target_id}]
    ends = sorted({end for one in possible for end in (one.source_id, one.target_id)})
    edges = call.engine.store.edges(ends, access=call.access, among=True)
    linked = {pair(edge.source_id, edge.target_id) for edge in edges}
    return [one for one in possible if pair(one.source_id, one.target_id) not in linked]


def _untold(call: Call, insights: Sequence[Insight], standing: Mapping[str, Memory]) -> list[Insight]:
    """What still holds, and no other dream has said meanwhile."""
    holding = [one for one in insights if standing.keys() >= set(one.sources)]
    sources = sorted({name for one in holding for name in one.sources})
    return fresh(holding, known(call, sources)) if sources else []


def _rested(found: DreamFindings, strengthened: Sequence[RunRecord], now: datetime) -> set[str]:
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


def _wiring(
    links: Sequence[Edge], heavier: Sequence[Edge], pruned: Sequence[Edge], now: datetime
) -> list[Change]:
    # A link keeps when it was made; the time given is when it got its weight, for the log.
    changes: list[Change] = [Link(edge=replace(edge, created_at=now)) for edge in (*links, *heavier)]
    return changes + [
        Unlink(source_id=edge.source_id, target_id=edge.target_id, kind=edge.kind, at=now) for edge in pruned
    ]


def _remark(name: str, found: DreamFindings, now: datetime) -> RecordEvidence:
    amount = 1.0 if name in found.replay.salient else OLD_AMOUNT
    return RecordEvidence(memory_id=name, evidence=Evidence.REPLAYED, amount=amount, at=now)


def _history(
    call: Call, found: DreamFindings, counts: Mapping[str, int], remarks: Sequence[RecordEvidence]
) -> list[Put]:
    """The row of the history, and what was strengthened: ids and no text. They cite nothing, so that they
    outlive the memories."""
    row = written(call, DREAM, found.scope, {"turn": found.turn, **counts})
    names = [one.memory_id for one in remarks]
    strengthened = replace(row.document, kind=REPLAYED, body={"memories": names})
    return [row, Put(document=strengthened, logged=False)]
