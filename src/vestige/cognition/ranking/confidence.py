"""Confidence: the chance that the store holds what was asked for, and the chance of each hit to answer."""

from collections.abc import Collection, Sequence
from math import exp, log

import numpy as np

from vestige.cognition.query.analyse import Asked
from vestige.cognition.ranking.maxsim import Matched
from vestige.cognition.text.form import Form
from vestige.core.candidates import CandidatePool, Floats
from vestige.core.lazy_dataclass import dataclass

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

    `odds` are the log odds of the pair model, None if it has not read the hit. `share` is its final score as
    a share of the best, `match` the same before the stages, which add what time and context say. `cosine`
    and `context` (MaxSim) are 0 without a model. `near` is its `nearness`, None without token states;
    `has_vector` says whether any model has seen it. `covered` is the share of the query's words it has.
    `kin` is its cosine with the best hit. `holds_literal`: it has a literal of the query. `lacks`: the query
    names something that the hit does not mention, or asks for something that it cannot hold (a person, a
    reason, an amount), or for another thing. `holds_all`: it has every term of the query.
    """

    form: int
    odds: float | None
    share: float
    match: float
    cosine: float
    context: float
    near: float | None
    has_vector: bool
    covered: float
    kin: float
    holds_literal: bool
    lacks: bool
    holds_all: bool


HOLDS_ALL = 0.9  # The chance of a hit that has every term of the query.
ALMOST_ALL = 0.999  # The share of the query in such a hit, up to rounding.
CERTAIN = 2.0  # The log odds of a note that almost certainly answers.

# The constant, then the weights of the log odds, of the share, and of what the hit lacks.
_READ = (-11.65, 0.45, 11.39, -1.19)
# The constant, then the weights of the cosine, of the share, and of what the hit lacks.
_NOTE_MATCHED = (-13.61, 4.25, 11.34, -1.5)
# The constant, then the weights of the context, of the share, and of what the hit lacks.
_TALK_MATCHED = (-14.43, 4.71, 11.33, -1.51)
# Of the whole answer: the constant, then the weights of the best log odds and of what that hit lacks.
_ANSWER_READ = (0.23, 0.44, -1.59)
# The share of the best score that such a hit needs: of 1,309 right answers with the best odds none has less.
LEAST_READ_MATCH = 0.7


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
    """The chance that one of the hits answers the query; None if the pair model has read none of them. One
    that matches far less than the best is about something else, whatever the model says of it."""
    constant, by_odds, by_lack = _ANSWER_READ
    read = [hit for hit in hits if hit.odds is not None]
    if not read:
        return None
    read = [hit for hit in read if hit.match >= LEAST_READ_MATCH] or read
    sure = _logistic(max(constant + by_odds * (hit.odds or 0) + by_lack * hit.lacks for hit in read))
    return max(sure, HOLDS_ALL) if any(hit.holds_all for hit in hits) else sure


# -- Hits that have nothing to do with the query: fitted on notes and the questions of other authors

# The constant of nearness, then the weights of the cosine and of MaxSim. It is 0 where a hit is as often the
# answer to a question as a note that some other author's question found.
_NEAR = (-6.35, 13.73, 10.38)

# The least of half the nearness and the log odds together that an answer needs at a confidence of .28 …
_ABOUT = (1.70, -0.944)
LACK_IN_ODDS = 3.6  # … and what a lacking name or number takes from the log odds.
NEAR_KEYWORDS, NEAR_UNREAD = 0.8, -0.5
"""The nearness that key words need, and a question whose hits the pair model did not read …"""
COVERED_BY_ONE = 0.3  # … or the share of its words in one hit, whatever they mean, …
COVERED_BY_WORDS = 0.15  # … which is all that counts without a model.
_LEAST_SURE = -3.48  # The log odds of .03, with which a balanced search is content.
BY_WORDS = 10.0  # The weight of the words covered, beside nearness.

LEAST_NEAR = -1.5  # The nearness that a hit needs besides the best …
SHARE_OF_NEAREST = 0.3  # … and the share of the nearest one's, if one of them certainly answers.
ONE_WORD, FEW_WORDS = 0.7, 0.1
"""The share of the query that makes a hit worth showing: most of one word of average rarity, FEW_WORDS at
most."""
KIN = 0.38  # The cosine with the best hit from which another note belongs to it.
TALK_SHARE, TALK_MATCH = 0.6, 0.4
"""The share of the best score, and the MaxSim, one of which a part of a conversation needs."""


def nearness(cosine: float, own: float) -> float:
    """How near a note is to a query in meaning, given its cosine and its MaxSim: log odds against a note on
    something else."""
    constant, by_cosine, by_own = _NEAR
    return constant + by_cosine * cosine + by_own * own


def capped_confidence(sure: float, hits: Sequence[HitEvidence], *, question: bool) -> float:
    """The confidence, at most what an answer about something else deserves. Questions read by the pair model
    are judged by what it says and by nearness together, all others by nearness or words in common."""
    if not hits or any(hit.holds_all or hit.holds_literal for hit in hits):
        return sure
    if any(hit.form != Form.NOTE for hit in hits[:1]):
        return sure  # the estimate for conversations knows those of others already
    if question and (read := [hit for hit in hits if hit.odds is not None]):
        least, level = _ABOUT
        about = max((hit.near or 0) / 2 + (hit.odds or 0) - LACK_IN_ODDS * hit.lacks for hit in read)
        return min(sure, _logistic(level + least + about))
    if any(hit.has_vector and hit.near is None for hit in hits):
        return sure  # the scale of another model's cosines is unknown
    least = NEAR_UNREAD if question else NEAR_KEYWORDS
    levels = [
        BY_WORDS * (hit.covered - COVERED_BY_WORDS)
        if hit.near is None
        else max(hit.near - least, BY_WORDS * (hit.covered - COVERED_BY_ONE))
        for hit in hits
    ]
    return min(sure, _logistic(_LEAST_SURE + max(levels)))


def related(hits: Sequence[HitEvidence], terms: int) -> list[bool]:
    """Which hits, given best first, have to do with a query of this number of terms. The best always has: a
    hit that is not good enough is a matter of confidence. Another one needs a literal or a rare word of the
    query, a near meaning, or likeness to the best."""
    nearest = max((hit.near for hit in hits if hit.near is not None), default=0.0)
    certain = any(hit.odds is not None and hit.odds >= CERTAIN for hit in hits)
    floor = max(LEAST_NEAR, SHARE_OF_NEAREST * nearest) if certain else LEAST_NEAR
    words = min(FEW_WORDS, ONE_WORD / max(1, terms))
    return [at == 0 or _is_related(hit, floor, words) for at, hit in enumerate(hits)]


def _is_related(hit: HitEvidence, floor: float, words: float) -> bool:
    if hit.holds_literal or hit.covered >= words or (hit.odds or 0) > 0:
        return True
    if hit.near is None:
        return hit.has_vector
    if hit.form != Form.NOTE:
        return hit.share >= TALK_SHARE or hit.context >= TALK_MATCH
    return hit.near >= floor or hit.kin >= KIN


def _logistic(level: float) -> float:
    return 1 / (1 + exp(-level))
