"""How well each candidate answers the query: a sum of signals, weighted by the form of the memory.

Every signal lies in about [0, 1], and a form's weights are divided by what they add up to, so that a turn, a
chunk and a note of equal worth meet at equal scores in one store. Weights were found on public conversations,
abstracts and code (docs/concepts/search.md). A signal that a candidate lacks (no vectors yet, a model
without token states) is replaced by the next best weights, never by a guess.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from vestige.cognition.form import Form
from vestige.cognition.maxsim import Matched
from vestige.cognition.query import Asked
from vestige.cognition.questions import Kind
from vestige.pool import Floats, Pool

SIGNALS = (
    "context",  # MaxSim with the neighbours' words
    "own",  # MaxSim of the memory alone
    "words",  # BM25 with the neighbours' words, as a share of the best
    "own_words",  # BM25 of the memory alone, as a share of the best
    "thread",  # BM25 of the whole thread, as a share of the best
    "dated",  # BM25 of the query's date words alone, as a share of the best
    "cosine",
    "speaker",  # said by somebody the query names
    "present",  # somebody the query names speaks in the thread
    "timed",  # tells a time, where the query asks when
    "first_person",
    "asks",
    "literal",  # the share of the query's literals it holds
    "form",  # 1: what a form needs to meet the others at equal scores
)

_TALK = {"context": 1.0, "own": 0.05, "thread": 0.085}
_GATHERING = {"thread": 0.0, "speaker": 0.09}
"""Lists and inferences use other words than what they are about."""
_SPOKEN = {
    "dated": 0.14,
    "speaker": 0.045,
    "present": 0.1,
    "timed": 0.07,
    "first_person": 0.025,
    "asks": -0.03,
}
_NOTED = {"own": 1.0, "words": 0.15, "cosine": 1.5, "form": 0.13}
NOTED_WORDS, FEW_TERMS, MANY_TERMS = 0.45, 3, 13
"""What words weigh in a note for a query of so many terms, in proportion for a shorter one: the more words
are asked for, the more it says that they are there."""
_ADDED = frozenset({*_SPOKEN, "form"})
"""Small corrections that are no part of a perfect match."""
_TALK_BY_WORDS = {"words": 1.0, "own_words": 0.5, "thread": 0.4}
_TALK_BY_VECTORS = _TALK_BY_WORDS | {"cosine": 1.0}

WITH_TOKENS: Mapping[Form, Mapping[str, float]] = {
    Form.TURN: _TALK | _SPOKEN,
    Form.CHUNK: _TALK,
    Form.NOTE: _NOTED,
}
"""The weights when the model shows token states."""
WITH_VECTORS: Mapping[Form, Mapping[str, float]] = {
    Form.TURN: _TALK_BY_VECTORS,
    Form.CHUNK: _TALK_BY_VECTORS,
    Form.NOTE: {"words": 0.15, "cosine": 1.0},
}
"""The weights with vectors only."""
WITH_WORDS: Mapping[Form, Mapping[str, float]] = {
    Form.TURN: _TALK_BY_WORDS,
    Form.CHUNK: _TALK_BY_WORDS,
    Form.NOTE: {"words": 1.0},
}
"""The weights without any vector."""

LITERAL_WEIGHT = 0.5
"""What holding all literals of the query adds to any form: more than all that sets good hits apart …"""
CONCRETE_WEIGHT = 1.0
"""… and more than anything else, where the query is nothing but one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """Scores with what they are made of: `signals` and `weights` have a column for each of SIGNALS."""

    scores: Floats
    signals: Floats
    weights: Floats


def relevance(asked: Asked, pool: Pool, matched: Matched | None) -> Relevance:
    """The score of every candidate of a pool; `matched` is None when there are no token states."""
    values = _signals(asked, pool, matched)
    weights = _weights(asked, pool, matched)
    scores = np.sum(weights * values, axis=1)
    return Relevance(scores=np.maximum(scores, 0.0), signals=values, weights=weights)


def _signals(asked: Asked, pool: Pool, matched: Matched | None) -> Floats:
    nothing = np.zeros(len(pool.ids))
    names = np.array(sorted(asked.names), dtype=np.int64)
    speaking = np.isin(pool.traits.speaker, names)
    columns: dict[str, Floats] = {
        "context": nothing if matched is None else np.nan_to_num(matched.context),
        "own": nothing if matched is None else np.nan_to_num(matched.own),
        "words": share_of_best(pool.window),
        "own_words": share_of_best(pool.own),
        "thread": share_of_best(pool.thread),
        "dated": share_of_best(pool.dated),
        "cosine": np.nan_to_num(pool.cosine),
        "speaker": speaking.astype(np.float64),
        "present": pool.present.astype(np.float64),
        "timed": (pool.traits.timed & (asked.kind is Kind.WHEN)).astype(np.float64),
        "first_person": pool.traits.first_person.astype(np.float64),
        "asks": pool.traits.asks.astype(np.float64),
        "literal": pool.literals / max(1, len(asked.literals)),
        "form": np.ones(len(pool.ids)),
    }
    # Outside threads there is no thread to match: the memory is its own.
    columns["thread"] = np.where(pool.traits.thread < 0, columns["words"], columns["thread"])
    return np.stack([columns[name] for name in SIGNALS], axis=1)


def _weights(asked: Asked, pool: Pool, matched: Matched | None) -> Floats:
    """For every candidate the best weights for which it has all signals."""
    has_tokens = np.zeros(len(pool.ids), dtype=np.bool_) if matched is None else ~np.isnan(matched.own)
    has_vectors = ~np.isnan(pool.cosine)
    form = pool.traits.form
    gathering = asked.kind in (Kind.LIST, Kind.INFERENCE)
    best = _tables(gathering=gathering)[0][form]
    _, by_vectors, by_words = _tables(gathering=False)
    weights = np.where(has_vectors[:, np.newaxis], by_vectors[form], by_words[form])
    weights = np.where(has_tokens[:, np.newaxis], best, weights)
    words = SIGNALS.index("words")
    by_length = NOTED_WORDS * min(max(len(asked.terms), FEW_TERMS), MANY_TERMS) / MANY_TERMS
    weights[has_tokens & (form == Form.NOTE), words] *= by_length / _NOTED["words"]
    if asked.literals:
        weights[:, SIGNALS.index("literal")] = CONCRETE_WEIGHT if asked.concrete else LITERAL_WEIGHT
        weights /= 1 + weights[:, [SIGNALS.index("literal")]]
    return weights


@lru_cache(maxsize=2)
def _tables(*, gathering: bool) -> tuple[Floats, Floats, Floats]:
    """The weights with tokens, with vectors and with words only."""
    return _table(WITH_TOKENS, gathering=gathering), _table(WITH_VECTORS), _table(WITH_WORDS)


def _table(weights: Mapping[Form, Mapping[str, float]], *, gathering: bool = False) -> Floats:
    """A row of weights for each form. What is divided by is what lies between a perfect and no match."""
    rows = np.zeros((len(Form), len(SIGNALS)))
    for form, given in weights.items():
        whole = sum(given[name] for name in given if name not in _ADDED)
        used = {**given, **_GATHERING} if gathering and form is Form.TURN else given
        for name, weight in used.items():
            rows[form, SIGNALS.index(name)] = weight / whole
    return rows


def share_of_best(scores: Floats) -> Floats:
    """Scores divided by their maximum, negative ones cut to 0; zeros when none is positive."""
    if scores.size == 0 or scores.max() <= 0:
        return np.zeros_like(scores)
    return np.asarray(np.clip(scores, 0, None) / scores.max())
