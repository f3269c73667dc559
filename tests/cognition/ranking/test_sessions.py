"""Ranking of sessions: talk before work, length, laws of BM25."""

from dataclasses import dataclass

import numpy as np

from vestige.cognition.ranking.sessions import Lengths, RankedSession, SessionWeights, rank_sessions


@dataclass(frozen=True)
class Rows:
    """Postings from rows of passage, session, field and count."""

    rows: tuple[tuple[int, int, int, int], ...]

    def _column(self, number: int) -> np.ndarray:
        return np.array([row[number] for row in self.rows], dtype=np.int64)

    passages = property(lambda self: self._column(0))
    sessions = property(lambda self: self._column(1))
    fields = property(lambda self: self._column(2))
    counts = property(lambda self: self._column(3))


def ranked(*terms: Rows, long: dict[int, int] | None = None) -> list[RankedSession]:
    sizes = {number: ((long or {}).get(number, 100), 10, 100) for number in range(1, 50)}
    return rank_sessions(
        terms,
        Lengths(by_key=sizes, mean=(100.0, 10.0, 100.0), total=50),
        Lengths(by_key=sizes, mean=(100.0, 10.0, 100.0), total=20),
    )


def test_what_was_said_beats_what_was_printed() -> None:
    found = ranked(Rows(((1, 1, 1, 1), (2, 2, 3, 9))))
    assert [one.session for one in found] == [1, 2]


def test_a_term_that_nobody_said_is_found_in_the_work() -> None:
    (one,) = ranked(Rows(((3, 2, 2, 1),)))
    assert (one.session, one.passages) == (2, (3,))


def test_a_prompt_counts_more_than_an_answer() -> None:
    found = ranked(Rows(((1, 1, 1, 1), (2, 2, 0, 1))))
    assert [one.session for one in found] == [2, 1]


def test_a_longer_session_with_the_same_words_ranks_lower() -> None:
    found = ranked(Rows(((1, 1, 1, 1), (2, 2, 1, 1))), long={1: 5_000})
    assert [one.session for one in found] == [2, 1]


def test_a_session_is_shown_with_its_best_passages_first() -> None:
    (one,) = ranked(Rows(((1, 7, 1, 1), (2, 7, 1, 5))), Rows(((2, 7, 1, 1),)))
    assert one.passages == (2, 1)


def test_a_term_in_the_title_counts_and_finds_a_session_by_itself() -> None:
    sizes = dict.fromkeys(range(1, 10), (100, 10, 100))
    lengths = Lengths(by_key=sizes, mean=(100.0, 10.0, 100.0), total=50)
    said = Rows(((1, 1, 1, 1), (2, 2, 1, 1)))
    titled = rank_sessions((said,), lengths, lengths, titles=({1: 1, 3: 1},))
    assert [one.session for one in titled] == [1, 2, 3]
    assert titled[-1].passages == ()
    assert [one.session for one in rank_sessions((said,), lengths, lengths)] == [2, 1]


def test_no_postings_rank_nothing() -> None:
    assert ranked(Rows(())) == []
    assert ranked() == []


def test_a_session_that_returns_to_a_subject_beats_one_that_names_it_once() -> None:
    once, often = ((1, 1, 1, 2),), ((3, 2, 1, 1), (4, 2, 1, 1))
    assert [one.session for one in ranked(Rows((*once, *often)))] == [2, 1]


def test_the_second_best_passage_counts_its_share_and_a_third_does_not() -> None:
    weights = SessionWeights(session=0.0, prompts=0.0, second=0.5)
    sizes = dict.fromkeys(range(1, 10), (100, 10, 100))
    lengths = Lengths(by_key=sizes, mean=(100.0, 10.0, 100.0), total=50)

    def score(*passages: int) -> float:
        rows = Rows(tuple((number, 1, 1, count) for number, count in enumerate(passages, 1)))
        return rank_sessions((rows,), lengths, lengths, weights=weights)[0].score

    assert score(1, 1, 1) < score(1, 1)  # the term is commoner; no third share makes up for it
    assert score(1, 1) / score(1) > 1.2  # less than 1.5, for the same reason
