"""Bringing the arms' scores onto one scale and together.

Ranks throw away how much better the first is than the second, and plain reciprocal-rank fusion is known
to fall below its better arm on conversations; so the scores themselves are added. Each is divided by
the best of its arm, so that both arms speak in [0, 1].
"""

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]

LEXICAL_WEIGHT = 0.5
DENSE_WEIGHT = 0.5


def normalised(scores: Scores) -> Scores:
    """Scores divided by their maximum, negative ones cut to 0; zeros when none is positive."""
    if scores.size == 0 or scores.max() <= 0:
        return np.zeros_like(scores)
    return np.asarray(np.clip(scores, 0, None) / scores.max())


def weighted(lexical: Scores, dense: Scores | None) -> Scores:
    """One score in [0, 1] per candidate. Without a dense arm the lexical one counts alone."""
    if dense is None:
        return normalised(lexical)
    return LEXICAL_WEIGHT * normalised(lexical) + DENSE_WEIGHT * normalised(dense)
