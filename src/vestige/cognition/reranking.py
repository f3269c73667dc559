"""What a second judge changes: its judgement counts as much as the relevance found so far.

Only the best candidates are judged. The others are taken to deserve what the worst judged one got: they
were found less relevant, so they would hardly have done better. Hence nobody falls behind a candidate that
was not judged for having been judged, and where all are judged alike nothing changes.
"""

from collections.abc import Sequence

import numpy as np

from vestige.pool import Floats

RERANKED = 30
"""How many of the best candidates are judged: reading them is what takes the time."""


def reranked(scores: Floats, order: Sequence[int], judged: Floats) -> Floats:
    """New scores for all candidates, where those at `order` were `judged` (0 to 1, in that order).

    The judged ones stand in the order of relevance + judgement, both on the scale of the best relevance; the
    others keep their scores.
    """
    result = scores.copy()
    if len(order):
        result[np.asarray(order)] += scores.max() * (judged - judged.min())
    return result
