"""Trust in a memory, from its reviews and its origin.

The mean of a Beta distribution over the evidence for and against it, less what has faded:

    trust = (1 + for) / (2 + for + against) · (0.8 + 0.2 · retention) · (0.5 if it was replaced)

For it speak every good review and reinforcement (1), every "useful" vote (1), every independent source that
says the same (1, up to 3), a pin (2) and a known source or author (0.5). Against it speak every lapse and
every vote against it (1). Being found in a search is no evidence. A memory without judgement is in the
middle.
"""

from datetime import datetime

from vestige.cognition.fsrs.strength import DEMOTE_STEP, retention_of
from vestige.core.models import MOST_SURE, Memory, Record

REPLACED_SHARE = 0.5
FADING_SHARE = 0.2
"""The share of its trust that a fully faded memory loses."""
PIN_VOTES = 2.0
PROVENANCE_VOTES = 0.5
MOST_CORROBORATIONS = 3


def trust(record: Record, now: datetime, *, corroborations: int = 0) -> float:
    """The trust in a memory at this moment, from 0 to MOST_SURE."""
    memory, strength = record.memory, record.strength
    # A lowered level is all that a vote against leaves behind, until a review restores it.
    votes_against = (1.0 - strength.retrieval) / DEMOTE_STEP
    speaking_for = max(0, strength.reps - strength.lapses - votes_against) + strength.times_useful
    speaking_for += _vouched(memory) + min(corroborations, MOST_CORROBORATIONS)
    against = strength.lapses + votes_against
    level = (1.0 + speaking_for) / (2.0 + speaking_for + against)
    replaced = memory.superseded_by is not None and not memory.valid_at(now)
    faded = 1.0 - retention_of(strength, now)
    return min(MOST_SURE, level * (1.0 - FADING_SHARE * faded) * (REPLACED_SHARE if replaced else 1.0))


def _vouched(memory: Memory) -> float:
    """The evidence from a pin and a known origin."""
    known = memory.source is not None or memory.author is not None
    return PIN_VOTES * memory.pinned + PROVENANCE_VOTES * known


def origin(memory: Memory) -> str | None:
    """The origin of a memory, if known: two memories of the same origin are one witness."""
    named = (memory.source, memory.thread, memory.session_id, memory.author, memory.agent_id)
    return next((name for name in named if name is not None), None)
