"""The common part of embedders without token states, with unit rows and their checks."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from vestige.core.errors import EmbedderError
from vestige.core.pair_model import PairModelState, RelationScores
from vestige.embed.protocol import Encoded, Signature, Vectors

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


_BYTES_PER_TOKEN = 4


class DenseEmbedder(ABC):
    """An embedder without token states. Short pieces are found better, so the limit is low."""

    token_states = False

    def __init__(self, signature: Signature, max_tokens: int) -> None:
        self._signature = signature
        self._max_tokens = max_tokens

    @property
    def signature(self) -> Signature:
        return self._signature

    @property
    def max_tokens(self) -> int:
        return self._max_tokens

    @property
    def pair_model_state(self) -> PairModelState:
        return PairModelState.UNSUPPORTED

    @abstractmethod
    def _embed(self, texts: list[str]) -> "ArrayLike":
        """One vector per text, of any length."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """An estimate without a tokenizer: four bytes each, and never fewer than words."""
        sizes = ((text, len(text.encode("utf-8", "replace"))) for text in texts)
        return [max(len(text.split()), math.ceil(size / _BYTES_PER_TOKEN)) for text, size in sizes]

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        rows = self._embed([self._signature.document_prefix + text for text in texts])
        return unit_rows(rows, count=len(texts), dimension=self._signature.dimension)

    def embed_query(self, text: str) -> Vectors:
        rows = self._embed([self._signature.query_prefix + text])
        vector: Vectors = unit_rows(rows, count=1, dimension=self._signature.dimension)[0]
        return vector

    def encode_documents(self, texts: Sequence[str]) -> list[Encoded]:
        return [Encoded(vector=vector, tokens=None) for vector in self.embed_documents(texts)]

    def encode_query(self, text: str) -> Encoded:
        return Encoded(vector=self.embed_query(text), tokens=None)

    def relate(self, old: str, new: str) -> RelationScores | None:
        return None

    def answer(self, question: str, text: str) -> float | None:
        return None


def unit_rows(rows: "ArrayLike", *, count: int, dimension: int) -> Vectors:
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
