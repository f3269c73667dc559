"""The relevance of each candidate: a sum of signals, weighted by the form of the memory.

Every signal lies in about [0, 1], and a form's weights are divided by their sum, so that a turn, a chunk and
a note of equal worth have equal scores in one store. Weights were found on public conversations, abstracts
and code (docs/concepts/search.md). If a candidate lacks a signal (no vectors yet, a model without token
states), the next best weights are used, never a guess.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log

import numpy as np

from vestige.cognition.query.analyse import Asked, QuestionKind
from vestige.cognition.ranking.maxsim import Matched
from vestige.cognition.text.form import Form
from vestige.core.candidates import CandidatePool, Flags, Floats

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


# -- Confidence of an answer: the chance that the store holds what was asked for

FEW = 5  # The number of hits among which the best share of the query is looked for.
LITERAL = 0.95  # The least confidence in a hit that holds all literals …
NO_LITERAL = 0.5
NO_ID = 0.2
NOTHING_CONCRETE = 0.02
"""… and the share left if no hit holds any: half, because a memory may paraphrase a quoted title; less than a
precise search accepts if it is an id, because another id is another thing; almost nothing if the query is
only that. If some literals are held, the confidence lies between in proportion."""
WORTH_A_LOOK = 0.05  # A little more than any but a precise search needs.

SIZE_WEIGHT = -0.35
LARGE = log(500)
"""From this size of the store on, its size does not matter."""

# The constant, then the weights of the best context, the share covered and the best cosine.
SURE_WITH_TOKENS = (-9.72, 14.10, 3.16, 6.79)
# A note may answer in other words; a conversation mostly shares some with the question.
NOTED = (-5.5, 0.0, 2.0, 16.0)
SURE_WITH_VECTORS = (-7.07, 0.0, 6.06, 14.12)
SURE_WITH_WORDS = (-1.70, 0.0, 8.35, 0.0)


def confidence(asked: Asked, pool: CandidatePool, matched: Matched | None, best: Sequence[int]) -> float:
    """The chance that the answer is among the best candidates, given best first; 0 without candidates."""
    if not best:
        return 0.0
    context = _highest(matched.context) if matched is not None else None
    cosine = _highest(pool.cosine)
    covered = float(pool.covered[list(best[:FEW])].max())
    if cosine is None:
        weights = SURE_WITH_WORDS
    elif pool.traits.form[best[0]] == Form.NOTE:
        weights = NOTED
    else:
        weights = SURE_WITH_VECTORS if context is None else SURE_WITH_TOKENS
    size = SIZE_WEIGHT * min(log(max(1, pool.memories)), LARGE)
    constant, by_context, by_cover, by_cosine = weights
    level = constant + size + by_context * (context or 0) + by_cover * covered + by_cosine * (cosine or 0)
    return _literally(asked, pool, best[0], _logistic(level))


def _literally(asked: Asked, pool: CandidatePool, first: int, sure: float) -> float:
    """The confidence, raised by the literals that the best hit holds."""
    if not asked.literals:
        return sure
    here = float(pool.literals[first]) / len(asked.literals)
    return max(without_literals(asked, pool, sure), LITERAL * here)


def without_literals(asked: Asked, pool: CandidatePool, sure: float) -> float:
    """The confidence, lowered by the literals that no hit holds."""
    if not asked.literals:
        return sure
    most = float(pool.literals.max()) / len(asked.literals)
    if asked.concrete and not most:
        return min(sure, NOTHING_CONCRETE)
    least = NO_ID if asked.identifying else NO_LITERAL
    return sure * (least + (1 - least) * most)


def lowered_confidence(sure: float, asked: Asked, missing: Collection[str]) -> float:
    """The confidence if no memory mentions something the query names: the hits are then about something else.
    A search that accepts anything near still returns them."""
    if not any(one.text in missing for one in asked.particulars):
        return sure
    return max(sure * NO_ID, min(sure, WORTH_A_LOOK))


def _highest(values: Floats) -> float | None:
    there = values[~np.isnan(values)]
    return float(there.max()) if len(there) else None


# -- The chance of a hit to answer: calibrated on notebooks and talks (docs/concepts/abstention.md)


@dataclass(frozen=True, slots=True, kw_only=True)
class HitEvidence:
    """What is known of a hit as an answer.

    `odds` are the log odds of the pair model, None if it has not read the hit. `share` is its relevance as a
    share of the best. `cosine` and `context` (MaxSim) are 0 without a model. `lacks`: the query names
    something that the hit does not mention. `holds_all`: it has every term of the query.
    """

    form: int
    odds: float | None
    share: float
    cosine: float
    context: float
    lacks: bool
    holds_all: bool


HOLDS_ALL = 0.9  # The chance of a hit that has every term of the query.
ALMOST_ALL = 0.999  # The share of the query in such a hit, up to rounding.

# The constant, then the weights of the log odds, of the share, and of what the hit lacks.
_READ = (-11.65, 0.45, 11.39, -1.19)
# The constant, then the weights of the cosine, of the share, and of what the hit lacks.
_NOTE_MATCHED = (-13.61, 4.25, 11.34, -1.5)
# The constant, then the weights of the context, of the share, and of what the hit lacks.
_TALK_MATCHED = (-14.43, 4.71, 11.33, -1.51)
# Of the whole answer: the constant, then the weights of the best log odds and of what that hit lacks.
_ANSWER_READ = (0.23, 0.44, -1.59)


def holds_all(asked: Asked, pool: CandidatePool, at: int) -> bool:
    """Whether a candidate has every term of the query, or is what the query names and nothing else."""
    named = asked.concrete and int(pool.literals[at]) == len(asked.literals)
    return named or (len(asked.terms) > 1 and float(pool.covered[at]) > ALMOST_ALL)


def chance_to_answer(hit: HitEvidence) -> float:
    """The chance that a hit answers the query."""
    if hit.odds is not None:
        weights, signal = _READ, hit.odds
    elif hit.form == Form.NOTE:
        weights, signal = _NOTE_MATCHED, hit.cosine
    else:
        weights, signal = _TALK_MATCHED, hit.context
    constant, by_signal, by_share, by_lack = weights
    chance = _logistic(constant + by_signal * signal + by_share * hit.share + by_lack * hit.lacks)
    return max(chance, HOLDS_ALL) if hit.holds_all else chance


def confidence_when_read(hits: Sequence[HitEvidence]) -> float | None:
    """The chance that one of the hits answers the query; None if the pair model has read none of them."""
    constant, by_odds, by_lack = _ANSWER_READ
    read = [hit for hit in hits if hit.odds is not None]
    if not read:
        return None
    sure = _logistic(max(constant + by_odds * (hit.odds or 0) + by_lack * hit.lacks for hit in read))
    return max(sure, HOLDS_ALL) if any(hit.holds_all for hit in hits) else sure


def _logistic(level: float) -> float:
    return 1 / (1 + exp(-level))
