"""The vectorised scores are those of the formula, worked out one document at a time."""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vestige.cognition.ranking import bm25
from vestige.cognition.ranking.bm25 import Collection, Postings, Scores, score

NOTHING = np.empty(0, dtype=np.int64)
LETTERS = "abcd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A document: its words, and the thread it is in (None outside any)."""

    words: str
    thread: int | None = None


texts = st.lists(
    st.builds(Text, words=st.text(LETTERS, max_size=6), thread=st.none() | st.integers(0, 2)),
    min_size=1,
    max_size=12,
)
queries = st.text(LETTERS + "e", min_size=1, max_size=6)


def whole(members: list[str]) -> str:
    return "".join(members)


def members_of(documents: list[Text]) -> dict[int, list[int]]:
    threads: dict[int, list[int]] = {}
    for row, text in enumerate(documents):
        if text.thread is not None:
            threads.setdefault(text.thread, []).append(row)
    return threads


def collection_of(documents: list[Text]) -> Collection:
    threads = members_of(documents)
    before, after, number = ([-1] * len(documents) for _ in range(3))
    for at, members in enumerate(threads.values()):
        for one, other in pairwise(members):
            after[one], before[other] = other, one
        for row in members:
            number[row] = at
    lengths = [len(text.words) for text in documents]
    thread_lengths = [sum(lengths[row] for row in members) for members in threads.values()]
    sides = [(before[row] >= 0) + (after[row] >= 0) for row in range(len(documents))]
    return Collection(
        lengths=np.array(lengths, dtype=np.int64),
        before=np.array(before, dtype=np.int64),
        after=np.array(after, dtype=np.int64),
        threads=np.array(number, dtype=np.int64),
        thread_lengths=np.array(thread_lengths, dtype=np.int64),
        memories=len(documents),
        total=sum(lengths),
        window_total=sum(length * (1 + side) for length, side in zip(lengths, sides, strict=True)),
        thread_count=len(threads),
        thread_total=sum(thread_lengths),
    )


def postings_of(documents: list[Text], query: str) -> Postings:
    asked = Counter(query)
    entries = [
        (number, row, text.words.count(term))
        for number, term in enumerate(asked)
        for row, text in enumerate(documents)
        if term in text.words
    ]
    terms, rows, counts = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    return Postings(
        terms=terms, rows=rows, counts=counts, weights=np.array(list(asked.values()), dtype=np.float64)
    )


def by_hand(documents: list[str], query: str) -> list[float]:
    """BM25 as it stands in the books."""
    average = sum(map(len, documents)) / len(documents) if documents else 0.0
    scores = []
    for text in documents:
        total = 0.0
        for term in query:
            found = sum(term in other for other in documents)
            idf = max(1e-6, log((len(documents) - found + 0.5) / (found + 0.5)))
            tf = text.count(term)
            if tf:
                total += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(text) / average))
        scores.append(total)
    return scores


def expected(documents: list[Text], query: str) -> dict[int, tuple[float, float, float]]:
    threads = members_of(documents)
    windows = [text.words for text in documents]
    for members in threads.values():
        for at, row in enumerate(members):
            near = members[max(0, at - 1) : at + 2]
            windows[row] = whole([documents[one].words for one in near])
    own = by_hand([text.words for text in documents], query)
    window = by_hand(windows, query)
    thread = dict.fromkeys(range(len(documents)), 0.0)
    levels = by_hand([whole([documents[row].words for row in rows]) for rows in threads.values()], query)
    for rows, level in zip(threads.values(), levels, strict=True):
        thread.update(dict.fromkeys(rows, level))
    return {row: (own[row], window[row], thread[row]) for row in range(len(documents))}


def told(scores: Scores) -> dict[int, tuple[float, float, float]]:
    columns = (scores.own.tolist(), scores.window.tolist(), scores.thread.tolist())
    return dict(zip(scores.rows.tolist(), zip(*columns, strict=True), strict=True))


def assert_same(
    one: dict[int, tuple[float, float, float]], other: dict[int, tuple[float, float, float]]
) -> None:
    assert one.keys() == other.keys()
    for row, levels in one.items():
        assert levels == pytest.approx(other[row], abs=1e-9), row


@given(documents=texts, query=queries)
def test_every_level_is_the_formula_worked_by_hand(documents: list[Text], query: str) -> None:
    everything = np.arange(len(documents))
    scores = score(postings_of(documents, query), collection_of(documents), everything)
    assert_same(told(scores), expected(documents, query))


@given(documents=texts, query=queries)
def test_only_what_has_a_term_or_stands_beside_one_is_scored(documents: list[Text], query: str) -> None:
    scores = score(postings_of(documents, query), collection_of(documents), NOTHING)
    matching = {row: levels for row, levels in expected(documents, query).items() if levels[1] > 0}
    assert_same(told(scores), matching)


@given(documents=texts, query=queries, also=st.sets(st.integers(0, 11)))
def test_asking_for_more_rows_changes_no_score(documents: list[Text], query: str, also: set[int]) -> None:
    postings, collection = postings_of(documents, query), collection_of(documents)
    rows = np.array(sorted(row for row in also if row < len(documents)), dtype=np.int64)
    few, more = told(score(postings, collection, NOTHING)), told(score(postings, collection, rows))
    assert more.keys() == few.keys() | set(rows.tolist())
    assert all(more[row] == few[row] for row in few)


@given(documents=texts, query=queries)
def test_a_table_of_pairs_and_sorting_them_give_the_same(documents: list[Text], query: str) -> None:
    postings, collection = postings_of(documents, query), collection_of(documents)
    by_table = told(score(postings, collection, NOTHING))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bm25, "MOST_CELLS", 0)
        assert told(score(postings, collection, NOTHING)) == by_table


@given(documents=texts, query=queries, times=st.integers(2, 5))
def test_asking_for_everything_several_times_multiplies_the_scores(
    documents: list[Text], query: str, times: int
) -> None:
    postings, collection = postings_of(documents, query), collection_of(documents)
    louder = replace(postings, weights=postings.weights * times)
    once, often = score(postings, collection, NOTHING), score(louder, collection, NOTHING)
    assert often.window == pytest.approx(once.window * times)


@settings(max_examples=50)
@given(documents=texts, query=queries)
def test_a_memory_outside_any_thread_has_no_window_and_no_thread_score(
    documents: list[Text], query: str
) -> None:
    alone = [replace(text, thread=None) for text in documents]
    scores = score(postings_of(alone, query), collection_of(alone), NOTHING)
    assert scores.window.tolist() == scores.own.tolist()
    assert not scores.thread.any()


def test_rows_with_equal_words_around_them_have_exactly_equal_scores() -> None:
    # In one thread the words come before, in the other after: the sums must not differ by rounding.
    forth = [Text(words="ab", thread=0), Text(words="c", thread=0), Text(words="dd", thread=0)]
    back = [Text(words="dd", thread=1), Text(words="c", thread=1), Text(words="ab", thread=1)]
    documents = [*forth, *back, *(Text(words="x") for _ in range(20))]
    scores = told(score(postings_of(documents, "abcd"), collection_of(documents), NOTHING))
    assert scores[1] == scores[4]
    assert scores[0] == scores[5]


def test_no_postings_score_nothing() -> None:
    documents = [Text(words="ab", thread=0), Text(words="", thread=0)]
    scores = score(postings_of(documents, "z"), collection_of(documents), np.array([1]))
    assert told(scores) == {1: (0.0, 0.0, 0.0)}
    assert told(score(postings_of(documents, "z"), collection_of(documents), NOTHING)) == {}
