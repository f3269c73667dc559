"""Which candidates are about the same thing and were told later: of two states of it the last one counts.

The gate ends what a new text corrects. Where it was not sure, both stand, and a search shows them side by
side; the one told last goes first, because what was said last is more often what holds.

Using a memory makes its rivals harder to recall (retrieval-induced forgetting, Anderson, Bjork & Bjork 1994):
what contradicts a memory that is said to be right fades faster.
"""

from datetime import datetime, timedelta

import numpy as np

from vestige.cognition.form import Form
from vestige.pool import Floats, Integers, Pool

LOOKED_AT = 20
"""So many of the best candidates are compared."""
ALIKE = 0.65
"""Short notes of this cosine are about the same thing."""
STATEMENT_CHARS = 200
"""A longer text says more than one thing, and its likeness says little about any of them."""
NEARLY = 0.8
"""What share of the older one's score the newer one needs: it answers the question too."""

INHIBITION = 0.15
"""What a memory loses of its stability when one that it contradicts is promoted …"""
INHIBITED_EVERY = timedelta(days=1)
INHIBITED_AT_MOST = 10
"""… so often at most, by one and the same rival, and so many times in all."""


def newer_rivals(pool: Pool, scores: Floats) -> Integers:
    """For each candidate the index of its best rival that was told later, or -1."""
    newer = np.full(len(scores), -1, dtype=np.int64)
    short = (pool.ends > 0) & (pool.ends - pool.starts <= STATEMENT_CHARS) & ~np.isnan(pool.cosine)
    # What happened at a time is an event: another day's is another event, not a later state.
    short &= np.isnan(pool.traits.happened)
    notes = np.flatnonzero(short & (pool.traits.form == Form.NOTE) & (pool.traits.thread < 0))
    best = notes[np.argsort(-scores[notes], kind="stable")[:LOOKED_AT]]
    if len(best) < 2:
        return newer
    told = pool.traits.created[best]
    vectors = pool.vectors[best]
    rivals = np.einsum("ik,jk->ij", vectors, vectors) >= ALIKE
    rivals &= told[np.newaxis, :] > told[:, np.newaxis]
    rivals &= scores[best][np.newaxis, :] >= NEARLY * scores[best][:, np.newaxis]
    # The best are in order: the first rival is the best one.
    has = np.flatnonzero(rivals.any(axis=1))
    newer[best[has]] = best[rivals[has].argmax(axis=1)]
    return newer


def is_statement(content: str) -> bool:
    """Whether a text can be a state of something: two functions that look alike are two things."""
    return "\n" not in content.strip()


def is_inhibited(times: int, last: datetime | None, now: datetime) -> bool:
    """Whether a memory is inhibited once more by a rival that did so before, `last` at that time."""
    return times < INHIBITED_AT_MOST and (last is None or now - last >= INHIBITED_EVERY)
