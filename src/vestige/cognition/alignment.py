"""Which words of one text have a counterpart in another: by stem, or by the model's states of tokens."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.wording import Word

Likeness = NDArray[np.float32]
"""The cosine of every word of a new text (rows) with every word of an old one (columns)."""


def word_likeness(
    ours: Sequence[Word],
    our_spans: NDArray[np.int32],
    our_states: NDArray[np.float32],
    theirs: Sequence[Word],
    their_spans: NDArray[np.int32],
    their_states: NDArray[np.float32],
) -> Likeness:
    """How alike the words of two texts are in their places, from the states of the tokens they consist of."""
    left, right = _states(ours, our_spans, our_states), _states(theirs, their_spans, their_states)
    return np.asarray(left @ right.T, dtype=np.float32)


def _states(
    words: Sequence[Word], spans: NDArray[np.int32], states: NDArray[np.float32]
) -> NDArray[np.float32]:
    """One unit vector per word, the mean of its tokens; nothing for a word the model has no token for."""
    if not len(words) or not len(spans):
        return np.zeros((len(words), states.shape[1] if states.ndim == 2 else 1), dtype=np.float32)
    starts, ends = np.array([word.start for word in words]), np.array([word.end for word in words])
    inside = (spans[:, 0] < ends[:, np.newaxis]) & (spans[:, 1] > starts[:, np.newaxis])
    made = inside.astype(np.float32) @ states
    length = np.linalg.norm(made, axis=1, keepdims=True)
    return np.asarray(made / np.maximum(length, 1e-12), dtype=np.float32)


def unmatched(
    words: Sequence[Word], others: Sequence[Word], likeness: Likeness | None
) -> list[tuple[Word, float]]:
    """The telling words of a text that the other has not, each with its best likeness there (0: unknown)."""
    known = {word.key for word in others}
    return [
        (word, float(likeness[at].max()) if likeness is not None and likeness.shape[1] else 0.0)
        for at, word in enumerate(words)
        if word.telling and word.key not in known
    ]
