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
from vestige.engine.revise import documents_by_id, load_passing, put_document, retry_on_conflict, save
from vestige.store.contract.changes import Change, RecordEvidence

KIND = "rivalry"


def on_promoted(call: Call, event: MemoryPromoted) -> None:
    """Weaken the valid memories that contradict a promoted one."""
    if not call.engine.settings.mechanisms.competition:
        return

    def attempt() -> None:
        winner, losers = _rivals(call, event.id)
        if winner is None or not losers:
            return
        kept = documents_by_id(call, KIND, [_name(winner, loser) for loser in losers])
        changes = _inhibitions(winner, losers, kept, event.timestamp)
        if changes:
            save(call, changes)

    retry_on_conflict(call, attempt)


def _rivals(call: Call, memory_id: str) -> tuple[Memory | None, list[Memory]]:
    """The memory, if it is valid now, and the valid unpinned memories of its scope that contradict it."""
    edges = call.engine.store.edges([memory_id], access=call.access)
    opposed = {
        end for edge in edges if edge.kind == CONTRADICTS for end in (edge.source_id, edge.target_id)
    } - {memory_id}
    if not opposed:
        return None, []
    where = Filter(valid_at=call.engine.now(), include_suppressed=False)
    valid = {one.memory.id: one.memory for one in load_passing(call, [memory_id, *sorted(opposed)], where)}
    winner = valid.pop(memory_id, None)
    if winner is None:
        return None, []
    return winner, [one for one in valid.values() if one.scope == winner.scope and not one.pinned]


def _inhibitions(
    winner: Memory, losers: Sequence[Memory], kept: Mapping[str, Document], at: datetime
) -> list[Change]:
    changes: list[Change] = []
    for loser in losers:
        earlier = kept.get(_name(winner, loser))
        times = int(earlier.body["times"]) if earlier else 0
        if not is_inhibited(times, earlier.updated_at if earlier else None, at):
            continue
        name, cites, body = _name(winner, loser), (winner.id, loser.id), {"times": times + 1}
        changes += [
            put_document(KIND, name, earlier, at, body=body, scope=winner.scope, cites=cites, logged=True),
            RecordEvidence(memory_id=loser.id, evidence=Evidence.INHIBITED, at=at, amount=INHIBITION),
        ]
    return changes


def _name(winner: Memory, loser: Memory) -> str:
    return f"{winner.id}:{loser.id}"
