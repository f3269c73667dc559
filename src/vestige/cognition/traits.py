"""What the stages of recall need to know about memories, from the memories themselves."""

from collections.abc import Sequence
from math import nan

import numpy as np

from vestige.cognition.form import features
from vestige.models import Record
from vestige.pool import Traits


def traits_of(records: Sequence[Record], threads: Sequence[int]) -> Traits:
    """The traits of these records; `threads` are the numbers of their threads, -1 outside any."""
    memories, strengths = [one.memory for one in records], [one.strength for one in records]
    told = [features(memory) for memory in memories]
    return Traits(
        created=np.array([one.created_at.timestamp() for one in memories]),
        happened=np.array([one.occurred_at.timestamp() if one.occurred_at else nan for one in memories]),
        stability=np.array([one.stability for one in strengths]),
        decay_from=np.array([one.decay_from.timestamp() for one in strengths]),
        retrieval=np.array([one.retrieval for one in strengths]),
        storage=np.array([one.storage for one in strengths]),
        curve=np.array([one.curve for one in strengths]),
        suppressions=np.array([one.suppression_count for one in memories], dtype=np.int64),
        retrieved=np.array([one.times_retrieved for one in strengths], dtype=np.int64),
        useful=np.array([one.times_useful for one in strengths], dtype=np.int64),
        thread=np.array(threads, dtype=np.int64),
        form=np.array([one.form for one in told], dtype=np.int64),
        first_person=np.array([one.first_person for one in told], dtype=np.bool_),
        asks=np.array([one.asks for one in told], dtype=np.bool_),
        timed=np.array([one.timed for one in told], dtype=np.bool_),
        speaker=np.array([one.speaker for one in told], dtype=np.int64),
    )
