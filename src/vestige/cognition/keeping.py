"""How well a memory as a whole keeps what it knows: the strength of all its records in a few numbers.

It is judged by the chance of recall, which is 1 for what is new and 0.9 when the first review is due. The
average retention would be no measure of it: most of its storage share is earned over years of use.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BUCKETS = ("0-20%", "20-40%", "40-60%", "60-80%", "80-100%")
EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
WEAK, HALF = 0.3, 0.5

ADVICE = (
    (0.8, "Well kept: go on using it as you do."),
    (0.6, "Mostly well kept. Review what is due now and then."),
    (0.4, "Fading. Review what is due, and promote what still helps."),
    (0.0, "Most of it is nearly forgotten. Review what matters, and let the rest go."),
)
"""What to do, from this average chance of recall on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """Average retention and how it is spread over the buckets; the average chance of recall; what would help.

    Of nothing there is no chance of recall.
    """

    average: float
    recall: float | None
    distribution: dict[str, int]
    below_weak: int
    below_half: int
    advice: str


def keeping(retentions: Sequence[float], retrievals: Sequence[float]) -> Keeping:
    """The summary of one retention and one chance of recall per memory."""
    values = np.asarray(retentions, dtype=np.float64)
    recall = float(np.mean(retrievals)) if values.size else None
    counts, _ = np.histogram(np.clip(values, 0.0, 1.0), bins=EDGES)
    return Keeping(
        average=float(values.mean()) if values.size else 0.0,
        recall=recall,
        distribution=dict(zip(BUCKETS, counts.tolist(), strict=True)),
        below_weak=int((values < WEAK).sum()),
        below_half=int((values < HALF).sum()),
        advice="Nothing is remembered yet." if recall is None else _advice(recall),
    )


def _advice(recall: float) -> str:
    return next(text for least, text in ADVICE if recall >= least)
