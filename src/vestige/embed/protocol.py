"""The contract of an embedder: text in, unit vectors out, with a signature that names the space.

Stores never embed; callers do, and pass the vectors with the signature. The module also has the contract of a
reranker: it is optional, needs no vectors, and judges the best candidates of a search once more.
"""

from collections.abc import Sequence
from dataclasses import asdict
from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol

import numpy as np
import orjson
from numpy.typing import NDArray

from vestige.core.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from vestige.core.pair_model import PairModelState, RelationScores

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What makes two vectors comparable. Never our own version: an upgrade must not orphan them."""

    name: str
    revision: str
    dimension: int
    precision: str = "float32"
    pooling: str = "mean"
    document_prefix: str = ""
    query_prefix: str = ""

    @property
    def profile(self) -> str:
        """The id under which vectors of this signature are stored."""
        canonical = orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS)
        return f"{self.name}@{blake2b(canonical, digest_size=8).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenStates:
    """The last hidden state of one text, a unit vector per word piece, without special tokens and without
    pieces the model does not know.

    `ids` are the word pieces, `spans` the (start, end) characters of each in the text.
    """

    ids: NDArray[np.int32]
    spans: NDArray[np.int32]
    states: Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """One text's pooled unit vector with its token states (None when the model has none)."""

    vector: Vectors
    tokens: TokenStates | None


class Embedder(Protocol):
    """Turns text into unit vectors. Thread-safe. Raises EmbedderError, never a library's own error."""

    @property
    def signature(self) -> Signature:
        """The vector space."""

    @property
    def max_tokens(self) -> int:
        """The limit of tokens of a text; the rest is ignored, so callers cut texts first."""

    @property
    def token_states(self) -> bool:
        """Whether texts are encoded with token states."""

    @property
    def pair_model_state(self) -> "PairModelState":
        """Whether there is a pair model behind `relate`. Asking loads nothing."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has, uncut, special tokens not counted."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One L2-normalised row per text, in the order given; (0, dimension) for no texts."""

    def embed_query(self, text: str) -> Vectors:
        """One L2-normalised vector of shape (dimension,), with the query prefix if there is one."""

    def encode_documents(self, texts: Sequence[str]) -> list[Encoded]:
        """Vectors with token states, from one pass of the model."""

    def encode_query(self, text: str) -> Encoded:
        """The query's vector with its token states, from one pass of the model."""

    def relate(self, old: str, new: str) -> "RelationScores | None":
        """How the note `new` relates to the note `old`; None without a pair model, or when it fails.

        The same pair always has the same scores. The order matters. The model is loaded by the first call.
        """

    def answer(self, question: str, text: str) -> float | None:
        """The log odds that a text answers a question; None without a pair model, or when it fails."""


class Reranker(Protocol):
    """Judges how well texts answer a query, reading both together. Thread-safe. Raises EmbedderError only."""

    @property
    def name(self) -> str:
        """The model's name, for people."""

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """One judgement per text, in the order given: 0 to 1, higher is better."""
