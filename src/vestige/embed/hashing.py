"""A deterministic embedder for tests: no model, no download, and yet similar texts are close.

Words and their character trigrams are hashed into signed buckets (feature hashing, Weinberger et
al. 2009), so what two texts share in words or word parts is what their cosine measures. It knows
nothing of meaning: "car" and "automobile" are strangers to it. Never use it for real memories.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from vestige.core.pair_model import PairModelState, RelationScores
from vestige.embed.protocol import Encoded, Signature, TokenStates, Vectors

_WORD = re.compile(r"\w+")
_TRIGRAM_WEIGHT = 0.5
_ID_BITS = 31  # an id is a non-negative int32


class HashingEmbedder:
    """Embeds by hashing words and character trigrams."""

    def __init__(self, dimension: int = 64) -> None:
        self._signature = Signature(name="hashing", revision="1", dimension=dimension, pooling="sum")

    @property
    def signature(self) -> Signature:
        return self._signature

    @property
    def max_tokens(self) -> int:
        """The limit of the default model, so that tests cut texts where it would."""
        return 256

    @property
    def token_states(self) -> bool:
        return True

    @property
    def pair_model_state(self) -> PairModelState:
        return PairModelState.UNSUPPORTED

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(_WORD.findall(text)) for text in texts]

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        rows = [encoded.vector for encoded in self.encode_documents(texts)]
        return np.array(rows, dtype=np.float32).reshape(len(rows), self._signature.dimension)

    def embed_query(self, text: str) -> Vectors:
        return self._encode(text).vector

    def encode_documents(self, texts: Sequence[str]) -> list[Encoded]:
        return [self._encode(text) for text in texts]

    def encode_query(self, text: str) -> Encoded:
        return self._encode(text)

    def relate(self, old: str, new: str) -> RelationScores | None:
        return None

    def answer(self, question: str, text: str) -> float | None:
        return None

    def _encode(self, text: str) -> Encoded:
        dimension = self._signature.dimension
        matches = list(_WORD.finditer(text))[: self.max_tokens]
        words = [match.group().casefold() for match in matches]
        states = np.array([_word_state(word, dimension) for word in words], dtype=np.float32)
        tokens = TokenStates(
            ids=np.array([_hash(word) >> (64 - _ID_BITS) for word in words], dtype=np.int32),
            spans=np.array([match.span() for match in matches], dtype=np.int32).reshape(-1, 2),
            states=states.reshape(-1, dimension),
        )
        return Encoded(vector=_unit(tokens.states.sum(axis=0)), tokens=tokens)


@lru_cache(maxsize=20_000)
def _word_state(word: str, dimension: int) -> Vectors:
    state = np.zeros(dimension, dtype=np.float32)
    padded = f"<{word}>"
    trigrams = [padded[start : start + 3] for start in range(len(word))]
    for feature, weight in [(word, 1.0), *((trigram, _TRIGRAM_WEIGHT) for trigram in trigrams)]:
        hashed = _hash(feature)
        state[(hashed >> 1) % dimension] += weight if hashed & 1 else -weight
    unit = _unit(state)
    unit.flags.writeable = False  # it is shared by every text with this word
    return unit


def _hash(feature: str) -> int:
    encoded = feature.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(encoded, digest_size=8).digest(), "big")


def _unit(vector: Vectors) -> Vectors:
    """The vector at length one; a fixed direction for a zero vector."""
    norm = float(np.linalg.norm(vector))
    if norm < 1e-9:
        fixed = np.zeros_like(vector)
        fixed[0] = 1.0
        return fixed
    scaled: Vectors = (vector / norm).astype(np.float32)
    return scaled
