"""A learned judgement whether a text gives orders to the agent that reads it, beside the rules.

A linear model reads the vector of each piece of a text, which a memory has anyway, and the words of its
passages. It was fitted on texts of several authors (training/orders); the weights are package data. It knows
the vectors of one embedding model only.
"""

import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.evidence.injection.find import plain
from vestige.core.lazy_dataclass import dataclass
from vestige.core.origin import Origin
from vestige.core.patterns import lazy_pattern

EMBEDDER = "all-MiniLM-L6-v2"
"""The embedding model whose vectors the weights are for."""
SURE, LIKELY = 1.0, 0.25
"""The log odds from which a text counts: that of an agent, and that of a source which is trusted less."""
TURN_MARGIN = 1.5
"""How much surer the model must be of a turn of a conversation: people who talk ask each other for things.
What an agent stores as part of a thread is not judged: of a talk every turn is kept."""
BUCKETS = 4096
"""The entries of the table of word weights; a word has the entry of its checksum."""
WORD_SCALE = 3.0
"""The weight of the words beside the vector, whose length is 1."""
PASSAGE_CHARS = 240
"""A longer piece is also read in passages of this length: an order may hide among harmless sentences."""
WEIGHTS = Path(__file__).parent / "data" / "order_model.npz"

_WORD = lazy_pattern(r"[^\W\d_]+(?:'[a-z]+)?|https?://|[@/<>{}\[\]`$#!]|\d+")
_FIRST = lazy_pattern(r"(?:^|[.!?:;\n]\s|\bplease )(?:please )?([a-z']+)")
_SENTENCE = lazy_pattern(r"[^.!?\n]*(?:[.!?\n]+['\")\]]*\s?|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderModel:
    """The weights: one for each dimension of a vector, one for each entry of the table of words."""

    meaning: NDArray[np.float32]
    words: NDArray[np.float32]
    intercept: float

    def log_odds(self, pieces: Sequence[tuple[str, NDArray[np.float32]]]) -> float:
        """The log odds that a text of these pieces, each with its vector, gives orders to an agent: those of
        its worst passage."""
        return max((self._worst(text, vector) for text, vector in pieces), default=-np.inf)

    def _worst(self, text: str, vector: NDArray[np.float32]) -> float:
        said = max(self._said(one) for one in passages(plain(text)))
        return float(self.meaning @ vector) + said + self.intercept

    def _said(self, passage: str) -> float:
        found = word_entries(passage)
        return WORD_SCALE * float(self.words[found].sum()) / word_norm(found)


@cache
def order_model() -> OrderModel:
    with np.load(WEIGHTS, allow_pickle=False) as file:
        return OrderModel(
            meaning=file["meaning"].astype(np.float32),
            words=file["words"].astype(np.float32),
            intercept=float(file["intercept"]),
        )


def gives_orders(
    pieces: Sequence[tuple[str, NDArray[np.float32]]],
    origin: str | None,
    *,
    turn: bool = False,
    threaded: bool = False,
) -> bool:
    """Whether a text of this origin, in pieces with their vectors, is taken for an order to an agent: never
    the user's own, nor a `threaded` one that an agent stores. Of other texts of an agent, and of a `turn` of
    a conversation, the model must be surer."""
    own = origin in (None, Origin.ASSISTANT)
    if origin == Origin.USER or not pieces or (own and threaded):
        return False
    least = (SURE if own else LIKELY) + (TURN_MARGIN if turn else 0)
    return order_model().log_odds(pieces) >= least


def word_entries(words: str) -> NDArray[np.intp]:
    """The entries of the words of a passage (in the form of `plain`) in the table, each once. A word at the
    beginning of a sentence, which may be a command, also has an entry as such."""
    found = {"0" if word.isdigit() else word for word in _WORD.findall(words.replace("’", "'"))}
    found.update(f"^{word}" for word in _FIRST.findall(words))
    entries = {zlib.crc32(word.encode("utf-8", "replace")) % BUCKETS for word in found}
    return np.array(sorted(entries), dtype=np.intp)


def word_norm(entries: NDArray[np.intp]) -> float:
    """What a sum over entries is divided by, so that long passages do not count more than short ones."""
    return float(np.sqrt(max(4, len(entries))))


def passages(text: str) -> Iterator[str]:
    """A text, and if it is long also its sentences, as many at once as a passage holds."""
    yield text
    if len(text) <= PASSAGE_CHARS:
        return
    start = end = 0
    for sentence in _SENTENCE.finditer(text):
        if sentence.end() - start > PASSAGE_CHARS and end > start:
            yield text[start:end]
            start = end
        end = sentence.end()
    yield text[start:end]
