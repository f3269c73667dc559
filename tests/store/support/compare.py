"""What it means that two stores give the same answer."""

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import datetime
from math import isclose

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.store.support.generators import T0
from vestige.core.candidates import CandidatePool, LexicalScores, Traits
from vestige.core.models import Access, LogEvent, Record, Strength
from vestige.store.contract.answers import Levels, Scored
from vestige.store.contract.store import MemoryStore

STRENGTH_TOLERANCE = 1e-9
SCORE_TOLERANCE = 1e-6

BLANK = Strength(
    stability=1.0, difficulty=1.0, decay_from=T0, due_at=T0, last_accessed=T0, retention=1.0, retention_at=T0
)


def assert_same_strength(one: Strength, other: Strength) -> None:
    """Numbers within a tolerance; times and counts exactly."""
    for field in fields(Strength):
        first, second = getattr(one, field.name), getattr(other, field.name)
        if isinstance(first, float):
            assert isclose(first, second, rel_tol=0, abs_tol=STRENGTH_TOLERANCE), field.name
        else:
            assert first == second, field.name


def assert_same_records(one: Sequence[Record], other: Sequence[Record]) -> None:
    """The same memories in the same order, with the same strength."""
    assert [replace(record, strength=BLANK) for record in one] == [
        replace(record, strength=BLANK) for record in other
    ]
    for first, second in zip(one, other, strict=True):
        assert_same_strength(first.strength, second.strength)


def assert_same_log(one: Sequence[LogEvent], other: Sequence[LogEvent]) -> None:
    """The same events; each store has its own node and its own positions."""
    assert [replace(event, node="", position=0) for event in one] == [
        replace(event, node="", position=0) for event in other
    ]


def assert_same_stats(one: MemoryStore, other: MemoryStore, access: Access, now: datetime) -> None:
    """The same counts, and levels within a tolerance."""
    assert one.stats(access=access, now=now) == other.stats(access=access, now=now)
    mine, theirs = one.levels(access=access, now=now), other.levels(access=access, now=now)
    for field in fields(Levels):
        held, expected = (np.sort(getattr(levels, field.name)) for levels in (mine, theirs))
        assert held == pytest.approx(expected, abs=STRENGTH_TOLERANCE)


def assert_same_words(one: Sequence[LexicalScores], other: Sequence[LexicalScores]) -> None:
    """The same scores in order; memories may only trade places within the tolerance."""
    for level in ("window", "own", "thread"):
        by_id = {hit.memory_id: getattr(hit, level) for hit in other}
        for hit in one:
            if hit.memory_id in by_id:
                assert getattr(hit, level) == pytest.approx(by_id[hit.memory_id], abs=SCORE_TOLERANCE)
    assert_same_ranking([_by_window(hit) for hit in one], [_by_window(hit) for hit in other])


def _by_window(hit: LexicalScores) -> Scored:
    return Scored(memory_id=hit.memory_id, score=hit.window)


def assert_same_pool(one: CandidatePool, other: CandidatePool) -> None:
    """The same candidates, found by the same arms, with the same signals, traits and tokens."""
    assert one.ids == other.ids
    for name in ("own", "window", "thread", "cosine", "vectors", "covered", "dated"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=SCORE_TOLERANCE, nan_ok=True), (
            name
        )
    for name in ("starts", "ends", "literals", "present", "by_words", "by_meaning", "by_literal"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name
    assert (one.frequencies, one.memories) == (other.frequencies, other.memories)
    for field in fields(Traits):
        mine, theirs = getattr(one.traits, field.name), getattr(other.traits, field.name)
        if field.name == "thread":
            mine, theirs = _partition(mine), _partition(theirs)
        assert mine == pytest.approx(theirs, abs=SCORE_TOLERANCE, nan_ok=True), field.name
    assert sketched(one) == sketched(other)


def _partition(threads: NDArray[np.int64]) -> NDArray[np.int64]:
    """Threads by where they first occur: their numbers are each store's own."""
    first = [threads.tolist().index(thread) for thread in threads.tolist()]
    return np.where(threads < 0, -1, np.array(first, dtype=np.int64))


def sketched(pool: CandidatePool) -> list[list[tuple[list[list[int]], list[bool]] | None]]:
    """The tokens of every candidate and of its neighbours, whatever owners they are kept under."""
    sketch = pool.sketch
    if sketch is None:
        return []
    starts, lengths = sketch.starts.tolist(), sketch.lengths.tolist()
    # an owner follows the other: matching is done over runs
    assert starts == [sum(lengths[:at]) for at in range(len(lengths))]
    assert len(sketch.bits) == len(sketch.asked) == sum(lengths)
    tokens = [
        (sketch.bits[start : start + length].tolist(), sketch.asked[start : start + length].tolist())
        for start, length in zip(starts, lengths, strict=True)
    ]
    return [[None if owner < 0 else tokens[owner] for owner in row] for row in sketch.around.tolist()]


def assert_same_ranking(one: Sequence[Scored], other: Sequence[Scored]) -> None:
    """The same scores in order; memories may only trade places within the tolerance."""
    assert [hit.score for hit in one] == pytest.approx([hit.score for hit in other], abs=SCORE_TOLERANCE)
    expected = {hit.memory_id: hit for hit in other}
    last = other[-1].score if other else 0.0
    for hit in one:
        if hit.memory_id in expected:
            assert hit.score == pytest.approx(expected[hit.memory_id].score, abs=SCORE_TOLERANCE)
        else:  # tied with the last one that got in
            assert hit.score == pytest.approx(last, abs=SCORE_TOLERANCE)
