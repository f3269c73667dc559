"""The local model, asked once for each text: the arms of a simulation tell the same stories."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from vestige.app.app import system_clock
from vestige.core.pair_model import PairModelState, RelationScores
from vestige.embed.protocol import Embedder, Encoded, Signature, Vectors
from vestige.embed.providers import embedder_source
from vestige.settings.settings import load_settings

T = TypeVar("T")
MODEL_SECONDS = 60.0


class Remembering:
    """An embedder that answers a text it has seen from memory."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._documents: dict[str, Encoded] = {}
        self._queries: dict[str, Encoded] = {}
        self._counts: dict[str, int] = {}
        self._relations: dict[tuple[str, str], RelationScores | None] = {}
        self._answers: dict[tuple[str, str], float | None] = {}

    @property
    def signature(self) -> Signature:
        """The model's own."""
        return self._inner.signature

    @property
    def max_tokens(self) -> int:
        """The model's own."""
        return self._inner.max_tokens

    @property
    def token_states(self) -> bool:
        """The model's own."""
        return self._inner.token_states

    @property
    def pair_model_state(self) -> PairModelState:
        """The model's own."""
        return self._inner.pair_model_state

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has."""
        return _through(self._counts, texts, self._inner.count_tokens)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row per text."""
        rows = [one.vector for one in self.encode_documents(texts)]
        return np.array(rows, dtype=np.float32).reshape(-1, self.signature.dimension)

    def embed_query(self, text: str) -> Vectors:
        """The query's vector."""
        return self.encode_query(text).vector

    def encode_documents(self, texts: Sequence[str]) -> list[Encoded]:
        """Vectors with token states."""
        return _through(self._documents, texts, self._inner.encode_documents)

    def relate(self, old: str, new: str) -> RelationScores | None:
        """The scores of a pair of notes."""
        if (old, new) not in self._relations:
            self._relations[old, new] = self._inner.relate(old, new)
        return self._relations[old, new]

    def answer(self, question: str, text: str) -> float | None:
        """The log odds that a text answers a question."""
        if (question, text) not in self._answers:
            self._answers[question, text] = self._inner.answer(question, text)
        return self._answers[question, text]

    def encode_query(self, text: str) -> Encoded:
        """The query's vector with its token states."""
        if text not in self._queries:
            self._queries[text] = self._inner.encode_query(text)
        return self._queries[text]


def local_model() -> Remembering:
    """The installed model."""
    clock = system_clock()
    source = embedder_source(
        load_settings({}), monotonic=clock.monotonic, sleep=clock.sleep, allow_install=False
    )
    inner = source.get(MODEL_SECONDS)
    if inner is None:
        raise SystemExit("There is no embedding model. Run `vestige model install` first.")
    return Remembering(inner)


def _through(known: dict[str, T], texts: Sequence[str], ask: Callable[[Sequence[str]], list[T]]) -> list[T]:
    unseen = list(dict.fromkeys(text for text in texts if text not in known))
    if unseen:
        known.update(zip(unseen, ask(unseen), strict=True))
    return [known[text] for text in texts]
