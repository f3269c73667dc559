"""The relevance of each candidate: a sum of signals, weighted by the form of the memory.

Every signal lies in about [0, 1], and a form's weights are divided by their sum, so that a turn, a chunk and
a note of equal worth have equal scores in one store. Weights were found on public conversations, abstracts
and code (docs/concepts/search.md). If a candidate lacks a signal (no vectors yet, a model without token
states), the next best weights are used, never a guess.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from vestige.cognition.query.analyse import Asked, QuestionKind
from vestige.cognition.ranking.maxsim import Matched
from vestige.cognition.text.form import Form
from vestige.core.candidates import CandidatePool, Flags, Floats
from vestige.core.lazy_dataclass import dataclass

SIGNALS = (
    "context",  # MaxSim with the neighbours' words
    "own",  # MaxSim of the memory alone
    "words",  # BM25 with the neighbours' words, as a share of the best
    "own_words",  # BM25 of the memory alone, as a share of the best
    "thread",  # BM25 of the whole thread, as a share of the best
    "dated",  # BM25 of the query's date words alone, as a share of the best
    "cosine",
    "likeness",  # how like the best notes it is, where those are long
    "speaker",  # said by a person the query names
    "present",  # a person the query names speaks in the thread
    "timed",  # states a time, if the query asks when
    "first_person",
    "asks",
    "literal",  # the share of the query's literals it holds
    "form",  # 1: what a form needs to meet the others at equal scores
)

_TALK = {"context": 1.0, "own": 0.05, "thread": 0.085}
_GATHERING = {"thread": 0.0, "speaker": 0.09}
"""Lists and inferences use other words than their topic."""
_SPOKEN = {
    "dated": 0.14,
    "speaker": 0.045,
    "present": 0.1,
    "timed": 0.07,
    "first_person": 0.025,
    "asks": -0.03,
}
_NOTED = {"own": 1.0, "words": 0.15, "cosine": 1.5, "likeness": 1.05, "form": 0.13}
NOTED_WORDS, FEW_TERMS, MANY_TERMS = 0.45, 3, 13
"""The weight of words in a note, for a query of MANY_TERMS terms, and in proportion for a shorter one: the
more words a query has, the more a match says."""
BEST_FEW = 5  # The number of best notes that others are compared with …
STATEMENT_CHARS, TEXT_CHARS = 300, 600
"""… in full if most have TEXT_CHARS characters, not at all if they have STATEMENT_CHARS: similar texts are
about the same things, similar single statements only have similar words."""
_ADDED = frozenset({*_SPOKEN, "likeness", "form"})  # Small corrections that are not part of a perfect match.
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
"""The bonus of holding all literals of the query, in any form: more than all differences between good hits
…"""
CONCRETE_WEIGHT = 1.0  # … and more than anything else if the query is only a literal.


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """Scores with their parts: `signals` and `weights` have a column for each of SIGNALS."""

    scores: Floats
    signals: Floats
    weights: Floats


def relevance(asked: Asked, pool: CandidatePool, matched: Matched | None) -> Relevance:
    """The score of every candidate of a pool; without token states there is no `matched`."""
    values = _signals(asked, pool, matched)
    weights = _weights(asked, pool, matched)
    scores = np.sum(weights * values, axis=1)
    likeness = SIGNALS.index("likeness")
    values[:, likeness] = _likeness(pool, scores)
    scores += weights[:, likeness] * values[:, likeness]
    return Relevance(scores=np.maximum(scores, 0.0), signals=values, weights=weights)


def _signals(asked: Asked, pool: CandidatePool, matched: Matched | None) -> Floats:
    nothing = np.zeros(len(pool.ids))
    words = share_of_best(pool.window)
    columns: Mapping[str, Floats | Flags] = {
        "context": nothing if matched is None else _known(matched.context),
        "own": nothing if matched is None else _known(matched.own),
        "words": words,
        "own_words": share_of_best(pool.own),
        # Outside threads there is no thread to match: the memory is its own.
        "thread": np.where(pool.traits.thread < 0, words, share_of_best(pool.thread)),
        "dated": share_of_best(pool.dated),
        "cosine": _known(pool.cosine),
        "likeness": nothing,  # to what is best by all the others
        "speaker": np.array([name in asked.names for name in pool.traits.speaker.tolist()], dtype=np.bool_),
        "present": pool.present,
        "timed": pool.traits.timed & (asked.kind is QuestionKind.WHEN),
        "first_person": pool.traits.first_person,
        "asks": pool.traits.asks,
        "literal": pool.literals / max(1, len(asked.literals)),
        "form": np.ones(len(pool.ids)),
    }
    values = np.empty((len(pool.ids), len(SIGNALS)))
    for at, name in enumerate(SIGNALS):
        values[:, at] = columns[name]
    return values


def _known(values: Floats) -> Floats:
    """The numbers, with 0 for a missing one."""
    return np.where(np.isnan(values), 0.0, values)


def _likeness(pool: CandidatePool, scores: Floats) -> Floats:
    """The similarity of every candidate to the best notes, relative to their similarity to each other:
    pseudo-relevance feedback (Rocchio 1971). The first of them count most; together they gain nothing."""
    notes = np.flatnonzero((pool.traits.form == Form.NOTE) & ~np.isnan(pool.cosine))
    best = notes[np.argsort(-scores[notes], kind="stable")[:BEST_FEW]]
    length = float(np.median(pool.ends[best] - pool.starts[best])) if len(best) else 0.0
    if length <= STATEMENT_CHARS:
        return np.zeros(len(scores))
    trust = min(1.0, (length - STATEMENT_CHARS) / (TEXT_CHARS - STATEMENT_CHARS))
    shares = 1 / np.log2(np.arange(len(best)) + 2)
    shares /= shares.sum()
    middle = np.einsum("i,ij->j", shares, pool.vectors[best])
    likeness = np.einsum("ij,j->i", pool.vectors, middle)
    return np.asarray(trust * (likeness - shares @ likeness[best]))


def _weights(asked: Asked, pool: CandidatePool, matched: Matched | None) -> Floats:
    """For every candidate the best weights for which it has all signals."""
    has_tokens = np.zeros(len(pool.ids), dtype=np.bool_) if matched is None else ~np.isnan(matched.own)
    has_vectors = ~np.isnan(pool.cosine)
    form = pool.traits.form
    gathering = asked.kind in (QuestionKind.LIST, QuestionKind.INFERENCE)
    by_tokens, by_vectors, by_words = _tables(gathering=gathering)
    weights: Floats = by_tokens[form]
    if not has_tokens.all():
        others = np.where(has_vectors[:, np.newaxis], by_vectors[form], by_words[form])
        weights = np.where(has_tokens[:, np.newaxis], weights, others)
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
    """A row of weights for each form, divided by the difference between a perfect match and none."""
    rows = np.zeros((len(Form), len(SIGNALS)))
    for form, given in weights.items():
        whole = sum(given[name] for name in given if name not in _ADDED)
        used = {**given, **_GATHERING} if gathering and form is Form.TURN else given
        for name, weight in used.items():
            rows[form, SIGNALS.index(name)] = weight / whole
    return rows


def share_of_best(scores: Floats) -> Floats:
    """Scores divided by their maximum, negative ones cut to 0; zeros when none is positive."""
    best = scores.max(initial=0.0)
    if best <= 0:
        return np.zeros_like(scores)
    return np.asarray(np.maximum(scores, 0.0) / best)
