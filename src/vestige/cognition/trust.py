"""How far a memory can be trusted, from what happened to it: the mean of a Beta distribution.

Every good review, reinforcement and word of thanks speaks for it, every lapse and vote against it against
it. A memory nobody has judged yet stands in the middle. One that was replaced is trusted half as much.
"""

from vestige.cognition.strength import DEMOTE_STEP
from vestige.models import Record

REPLACED_SHARE = 0.5


def trust(record: Record) -> float:
    """Between 0 and 1; one half for a memory without any evidence."""
    strength = record.strength
    # A lowered level is all that a vote against leaves behind, until a review restores it.
    votes_against = (1.0 - strength.retrieval) / DEMOTE_STEP
    speaking_for = max(0, strength.reps - strength.lapses - votes_against) + strength.times_useful
    against = strength.lapses + votes_against
    level = (1.0 + speaking_for) / (2.0 + speaking_for + against)
    return level * (REPLACED_SHARE if record.memory.superseded_by else 1.0)
