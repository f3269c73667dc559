"""Leave-one-repository-out: a repository is scored with the weights that are best on the others."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace

import numpy as np

from vestige.cognition.code.ranking import WEIGHTS, RankingWeights

FACTORS = (0.0, 0.5, 0.75, 1.5, 2.0)
Scores = Mapping[str, float]
"""The measure of each repository."""


def tried_weights(count: int, seed: int = 1) -> list[RankingWeights]:
    """The weights in use, each alone changed by a factor, then random combinations, up to a count."""
    names = [field.name for field in fields(RankingWeights)]
    tried = [WEIGHTS]
    tried += [
        replace(WEIGHTS, **{name: getattr(WEIGHTS, name) * factor}) for name in names for factor in FACTORS
    ]
    chance = random.Random(seed)
    while len(tried) < count:
        factors = {name: chance.choice((0.5, 0.75, 1.0, 1.0, 1.5, 2.0)) for name in names}
        tried.append(replace(WEIGHTS, **{name: getattr(WEIGHTS, name) * factors[name] for name in names}))
    return tried[:count]


def left_out(
    tried: Sequence[RankingWeights], scored: Callable[[RankingWeights], Scores]
) -> tuple[Scores, RankingWeights, float]:
    """The measure of each repository with the weights chosen on the others; the best weights on all, and
    their measure."""
    results = [scored(weights) for weights in tried]
    names = list(results[0])
    table = np.array([[result[name] for name in names] for result in results])
    held = {}
    for place, name in enumerate(names):
        others = np.delete(table, place, axis=1).sum(axis=1)
        held[name] = float(table[int(np.argmax(others)), place])
    best = int(np.argmax(table.mean(axis=1)))
    return held, tried[best], float(table[best].mean())
