"""Competition between memories that contradict each other: using one makes the others fade faster.

The ranking stage of the same name (cognition/ranking/stages.py) decides between rivals within one answer;
this is the lasting effect.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from vestige.cognition.graph.kinds import CONTRADICTS
from vestige.cognition.ranking.stages import INHIBITION, is_inhibited
from vestige.core.documents import Document
from vestige.core.events import MemoryPromoted
from vestige.core.models import Evidence, Filter, Memory
from vestige.engine.context import Call
from vestige.engine.revise import retry_on_conflict, save
from vestige.store.contract.changes import Change, Put, RecordEvidence
from vestige.store.filter_rule import passes

KIND = "rivalry"


def on_promoted(call: Call, happening: MemoryPromoted) -> None:
    """Weaken the valid memories that contradict a promoted one."""
    if not call.engine.settings.mechanisms.competition:
        return

    def attempt() -> None:
        winner, losers = _rivals(call, happening.id)
        if winner is None or not losers:
            return
        names = [_name(winner, loser) for loser in losers]
        found = call.engine.store.documents(KIND, access=call.access, ids=names, limit=len(names))
        kept = {one.id: one for one in found}
        changes = _inhibitions(winner, losers, kept, happening.timestamp)
        if changes:
            save(call, changes)

    retry_on_conflict(call, attempt)


def _rivals(call: Call, memory_id: str) -> tuple[Memory | None, list[Memory]]:
    """The memory, if it is valid now, and the valid memories of its scope that contradict it; never a pinned
    one."""
    store = call.engine.store
    edges = store.edges([memory_id], access=call.access)
    opposed = {
        end for edge in edges if edge.kind == CONTRADICTS for end in (edge.source_id, edge.target_id)
    } - {memory_id}
    if not opposed:
        return None, []
    records = store.get_many([memory_id, *sorted(opposed)], access=call.access)
    where = Filter(valid_at=call.engine.now(), include_suppressed=False)
    standing = [one.memory for one in records if passes(one.memory, where, call.access)]
    winner = next((one for one in standing if one.id == memory_id), None)
    if winner is None:
        return None, []
    rivals = [one for one in standing if one.id != memory_id and one.scope == winner.scope and not one.pinned]
    return winner, rivals


def _inhibitions(
    winner: Memory, losers: Sequence[Memory], kept: Mapping[str, Document], at: datetime
) -> list[Change]:
    changes: list[Change] = []
    for loser in losers:
        earlier = kept.get(_name(winner, loser))
        times = int(earlier.body["times"]) if earlier else 0
        if not is_inhibited(times, earlier.updated_at if earlier else None, at):
            continue
        document = Document(
            kind=KIND,
            id=_name(winner, loser),
            scope=winner.scope,
            cites=(winner.id, loser.id),
            body={"times": times + 1},
            version=earlier.version + 1 if earlier else 1,
            created_at=earlier.created_at if earlier else at,
            updated_at=at,
        )
        remark = RecordEvidence(memory_id=loser.id, evidence=Evidence.INHIBITED, at=at, amount=INHIBITION)
        changes += [Put(document=document), remark]
    return changes


def _name(winner: Memory, loser: Memory) -> str:
    return f"{winner.id}:{loser.id}"
