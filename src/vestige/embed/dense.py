"""Helpers for embedders without token states: unit rows, checks, and vectors as `Encoded`."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from vestige.core.errors import EmbedderError
from vestige.embed.protocol import Encoded, Vectors

_BYTES_PER_TOKEN = 4


def unit_rows(rows: ArrayLike, *, count: int, dimension: int) -> Vectors:
    """`rows` at length one; EmbedderError unless they are `count` finite vectors of `dimension`."""
    try:
        matrix = np.asarray(rows, dtype=np.float32).reshape(count, -1) if count else np.zeros((0, dimension))
    except (ValueError, TypeError) as error:
        raise EmbedderError(f"The embedder did not answer with {count} vectors: {error}") from error
    if matrix.shape[1] != dimension:
        raise EmbedderError(
            f"The embedder answered with vectors of {matrix.shape[1]} dimensions instead of {dimension}.",
            hint="Correct the configured dimension, or migrate the store to the new model.",
        )
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not bool(np.all(np.isfinite(lengths) & (lengths > 0))):
        raise EmbedderError("The embedder answered with a vector that has no direction (zero or NaN).")
    unit: Vectors = (matrix / lengths).astype(np.float32)
    return unit


def without_tokens(vectors: Vectors) -> list[Encoded]:
    """The vectors as Encoded values of a model without token states."""
    return [Encoded(vector=vector, tokens=None) for vector in vectors]


def estimated_tokens(texts: Sequence[str]) -> list[int]:
    """An estimate of the tokens without a tokenizer: four bytes each, and never fewer than words."""
    return [
        max(len(text.split()), math.ceil(len(text.encode("utf-8", "replace")) / _BYTES_PER_TOKEN))
        for text in texts
    ]
