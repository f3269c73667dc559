"""The confidence of an answer: the chance that the store holds what was asked for, by how well the best hits
match.

A logistic function of few numbers, fitted on questions about conversations asked of the right and of the
wrong one, with the names replaced in half of the latter. In a small store the best match is lower by chance,
so the same match says more there. Numbers and the trade-off: docs/benchmarks.md.
"""

from collections.abc import Collection, Sequence
from math import exp, log

import numpy as np

from vestige.cognition.query.analyse import Asked
from vestige.cognition.ranking.maxsim import Matched
from vestige.cognition.text.form import Form
from vestige.core.candidates import CandidatePool, Floats

FEW = 5
"""The number of hits among which the best share of the query is looked for."""
LITERAL = 0.95
"""The least confidence in a hit that holds all literals …"""
NO_LITERAL = 0.5
NO_ID = 0.2
NOTHING_CONCRETE = 0.02
"""… and the share left if no hit holds any: half, because a memory may paraphrase a quoted title; less than a
precise search accepts if it is an id, because another id is another thing; almost nothing if the query is
only that. If some literals are held, the confidence lies between in proportion."""
WORTH_A_LOOK = 0.05
"""A little more than any but a precise search needs."""

SIZE_WEIGHT = -0.35
LARGE = log(500)
"""From this size of the store on, its size does not matter."""

# The constant, then the weights of the best context, the share covered and the best cosine.
WITH_TOKENS = (-9.72, 14.10, 3.16, 6.79)
# A note may answer in other words; a conversation mostly shares some with the question.
NOTED = (-5.5, 0.0, 2.0, 16.0)
WITH_VECTORS = (-7.07, 0.0, 6.06, 14.12)
WITH_WORDS = (-1.70, 0.0, 8.35, 0.0)


def confidence(asked: Asked, pool: CandidatePool, matched: Matched | None, best: Sequence[int]) -> float:
    """The chance that the answer is among the best candidates, given best first; 0 without candidates."""
    if not best:
        return 0.0
    context = _highest(matched.context) if matched is not None else None
    cosine = _highest(pool.cosine)
    covered = float(pool.covered[list(best[:FEW])].max())
    if cosine is None:
        weights = WITH_WORDS
    elif pool.traits.form[best[0]] == Form.NOTE:
        weights = NOTED
    else:
        weights = WITH_VECTORS if context is None else WITH_TOKENS
    size = SIZE_WEIGHT * min(log(max(1, pool.memories)), LARGE)
    constant, by_context, by_cover, by_cosine = weights
    level = constant + size + by_context * (context or 0) + by_cover * covered + by_cosine * (cosine or 0)
    sure = 1 / (1 + exp(-level))
    return _literally(asked, pool, best[0], sure) if asked.literals else sure


def _literally(asked: Asked, pool: CandidatePool, first: int, sure: float) -> float:
    """The confidence, adjusted by how many literals the best hit and any other hit hold."""
    here = float(pool.literals[first]) / len(asked.literals)
    most = float(pool.literals.max()) / len(asked.literals)
    if asked.concrete and not most:
        return min(sure, NOTHING_CONCRETE)
    least = NO_ID if asked.identifying else NO_LITERAL
    return max(sure * (least + (1 - least) * most), LITERAL * here)


def doubted(sure: float, asked: Asked, missing: Collection[str]) -> float:
    """The confidence if no memory mentions something the query names: the hits are then about something else.
    A search that accepts anything near still returns them."""
    if not any(one.text in missing for one in asked.particulars):
        return sure
    return max(sure * NO_ID, min(sure, WORTH_A_LOOK))


def _highest(values: Floats) -> float | None:
    there = values[~np.isnan(values)]
    return float(there.max()) if len(there) else None
