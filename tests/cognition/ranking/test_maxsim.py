"""Late interaction over sign bits: against the definition, and what neighbours and questions add."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from vestige.cognition.ranking.bm25 import idf
from vestige.cognition.ranking.maxsim import ASKED, REACH, STOP_SHARE, UNKNOWN_SHARE, match, weigh
from vestige.cognition.text.analyser import query_words
from vestige.core.candidates import OFFSETS, Sketch

DIMENSION = 16
States = NDArray[np.float32]


def random_states(count: int, seed: int) -> States:
    rows = np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)
    unit: States = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def sketch_of(owners: list[States], around: list[list[int]], asked: list[list[bool]] | None = None) -> Sketch:
    lengths = np.array([len(one) for one in owners], dtype=np.int64)
    flags = asked or [[False] * len(one) for one in owners]
    return Sketch(
        bits=np.packbits(np.concatenate(owners) > 0, axis=1),
        asked=np.concatenate([np.array(one, dtype=np.bool_) for one in flags]),
        starts=np.cumsum(lengths) - lengths,
        lengths=lengths,
        around=np.array(around, dtype=np.int64),
    )


def estimated(query: States, tokens: States) -> NDArray[np.float64]:
    """The definition: sqrt(π/2)/sqrt(D) Σ q·sign(t)."""
    signs = np.where(tokens > 0, 1.0, -1.0)
    found: NDArray[np.float64] = query.astype(np.float64) @ signs.T
    return float(np.sqrt(np.pi / 2 / DIMENSION)) * found


ALONE = [0, -1, -1, -1, -1]


@given(st.integers(1, 40), st.integers(1, 6), st.integers(0, 10_000))
def test_own_is_the_weighted_sum_of_each_query_tokens_best_counterpart(
    tokens: int, asked_for: int, seed: int
) -> None:
    query, memory = random_states(asked_for, seed), random_states(tokens, seed + 1)
    weights = np.full(asked_for, 1 / asked_for)

    [matched] = match(query, [weights], sketch_of([memory], [ALONE]))

    expected = float(weights @ estimated(query, memory).max(axis=1))
    assert matched.own == pytest.approx([expected], abs=1e-5)
    assert matched.context == pytest.approx([expected], abs=1e-5)


def test_more_tokens_than_one_chunk_are_all_seen() -> None:
    query, memory = random_states(3, 1), random_states(1_000, 2)
    weights = np.array([0.5, 0.3, 0.2])

    [matched] = match(query, [weights], sketch_of([memory], [ALONE]))

    assert matched.own == pytest.approx([float(weights @ estimated(query, memory).max(axis=1))], abs=1e-5)


@pytest.mark.parametrize("offset", OFFSETS[1:])
def test_a_counterpart_in_a_neighbour_is_worth_less_the_farther_it_is(offset: int) -> None:
    query = random_states(1, 3)
    same, other = query.copy(), -query
    around = [0, -1, -1, -1, -1]
    around[OFFSETS.index(offset)] = 1

    [matched] = match(query, [np.array([1.0])], sketch_of([other, same], [around]))

    assert matched.context[0] == pytest.approx(REACH[offset] * float(estimated(query, same)[0, 0]), abs=1e-5)
    assert matched.own[0] < 0


def test_a_question_counts_less_by_itself_and_fully_for_what_follows_it() -> None:
    query = random_states(1, 4)
    question, answer = query.copy(), -query
    sketch = sketch_of([question, answer], [ALONE, [1, 0, -1, -1, -1]], asked=[[True], [False]])

    [matched] = match(query, [np.array([1.0])], sketch)

    full = float(estimated(query, question)[0, 0])
    assert matched.own[0] == pytest.approx(ASKED * full, abs=1e-5)
    assert matched.context[1] == pytest.approx(full, abs=1e-5)
    assert matched.context[1] > matched.context[0]


def test_a_candidate_without_tokens_has_no_number_instead_of_a_bad_one() -> None:
    query = random_states(2, 5)

    [matched] = match(query, [np.array([0.5, 0.5])], sketch_of([query], [[0, -1, -1, -1, -1], [-1] * 5]))

    assert not np.isnan(matched.own[0])
    assert np.isnan(matched.own[1])
    assert np.isnan(matched.context[1])


def spans_of(text: str) -> NDArray[np.int32]:
    """A token per word, as a model without word pieces would cut it."""
    found, at = [], 0
    for word in text.split():
        start = text.index(word, at)
        at = start + len(word)
        found.append((start, at))
    return np.array(found, dtype=np.int32)


def test_rare_words_weigh_more_than_common_ones_and_stop_words_least() -> None:
    text = "which zebra runs"
    weights = weigh(spans_of(text), query_words(text), {"zebra": 1, "run": 400}, 1_000)

    which, zebra, runs = weights
    assert zebra > runs > 0
    assert weights.sum() == pytest.approx(1)
    assert which / zebra == pytest.approx(STOP_SHARE * idf(0, 1_000) / idf(1, 1_000))


def test_a_word_no_memory_has_weighs_less_than_one_that_is_merely_rare() -> None:
    text = "zebra quagga"
    zebra, quagga = weigh(spans_of(text), query_words(text), {"zebra": 1, "quagga": 0}, 100)

    assert quagga / zebra == pytest.approx(UNKNOWN_SHARE * idf(0, 100) / idf(1, 100))


def test_all_pieces_of_a_word_share_its_weight() -> None:
    text = "zebracorn runs"
    pieces = np.array([[0, 5], [5, 9], [10, 14]], dtype=np.int32)

    first, second, other = weigh(pieces, query_words(text), {"zebracorn": 1, "run": 50}, 100)

    assert first == second > other


def test_signs_only_still_give_weights_that_add_up() -> None:
    text = "??? !!!"
    assert weigh(spans_of(text), query_words(text), {}, 10).sum() == pytest.approx(1)
