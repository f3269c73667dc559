"""What two memories are to each other."""

from datetime import UTC, datetime, timedelta
from itertools import count
from string import ascii_lowercase
from typing import Any

import pytest

from testbed.failures import each
from vestige.cognition.gate.relation import (
    COMPARED,
    JUDGED,
    LONG_CHARS,
    clash_between,
    contradictions_among,
    statement_words,
    supports,
)
from vestige.core.models import Memory

AT = datetime(2026, 3, 1, tzinfo=UTC)
_numbers = count(1)


def told(content: str, **facts: Any) -> Memory:
    return Memory(id=f"m{next(_numbers):03}", content=content, created_at=AT, updated_at=AT, **facts)


def against(*memories: Memory) -> list[tuple[int, int]]:
    clashes = contradictions_among(memories, [statement_words(one) for one in memories])
    return [(min(one.newer, one.older), max(one.newer, one.older)) for one in clashes]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Harbour deploys on Tuesday.", "All Harbour deploys happen on Tuesday."),
        ("Deploys of Harbour happen on Tuesday.", "Harbour deploys happen each Tuesday."),
        ("Harbour runs on PostgreSQL 16.", "Harbour runs on PostgreSQL 16 with 3 replicas in Oslo."),
    ],
)
def test_who_says_the_same_or_more_of_it_supports(one: str, other: str) -> None:
    assert supports(told(one), told(other))
    assert supports(told(other), told(one))


@each(
    ("one", "other"),
    [
        ("Harbour now runs on PostgreSQL 16.", "Harbour was named after a pub."),
        ("Harbour now runs on PostgreSQL 16.", "The release of Harbour 2.0 happened on 2026-03-12."),
        ("The API limit is 30 requests.", "The API limit is 60 requests."),
        ("The switch is enabled.", "The switch is not enabled."),
        ("Ada manages Bob.", "Bob manages Ada."),
        ("Harbour runs on PostgreSQL 16.", "Lighthouse runs on PostgreSQL 16."),
        ("Harbour deploys on Tuesday.", "Does Harbour deploy on Tuesday?"),
        ("Harbour", "Harbour is old."),
    ],
)
def test_being_about_the_same_is_no_support(one: str, other: str) -> None:
    assert not supports(told(one), told(other))
    assert not supports(told(other), told(one))


def test_what_two_people_say_of_themselves_supports_nothing() -> None:
    said = "I like green tea with milk."

    assert supports(told(said, author="Ada"), told(said, author="Ada"))
    assert not supports(told(said, author="Ada"), told(said, author="Bob"))


def test_hits_that_cannot_both_hold_are_found_and_others_are_not() -> None:
    assert against(
        told("The API limit is 30 requests per minute."),
        told("Harbour was named after a pub."),
        told("The API limit is 60 requests per minute."),
        told("The API limit is documented."),
    ) == [(0, 2)]


def test_what_was_true_at_different_times_is_no_contradiction() -> None:
    old = told("The API limit is 30 requests.", valid_until=AT + timedelta(days=1))
    new = told("The API limit is 60 requests.", valid_from=AT + timedelta(days=1))

    assert against(old, new) == []
    assert against(old, told("The API limit is 60 requests.")) == [(0, 1)]


def test_long_texts_and_what_ranks_low_are_not_compared_by_their_words() -> None:
    low, high = "The API limit is 30 requests.", "The API limit is 60 requests."
    filler = "so it was said and written down " * (LONG_CHARS // 30)
    others = [told(f"Some{letter} other thing{letter}.") for letter in ascii_lowercase[: COMPARED - 1]]

    assert against(told(low, thread="t"), told(high, thread="t")) == [(0, 1)]
    assert against(told(f"{low} {filler}"), told(f"{high} {filler}")) == []
    assert against(told(low), *others, told(high)) == []


def test_what_is_marked_contradicts_whatever_its_words_and_rank() -> None:
    memories = [told(f"Note {letter}.") for letter in ascii_lowercase]
    words = [statement_words(one) for one in memories]

    [clash] = contradictions_among(memories, words, {frozenset((3, 25))})

    assert (clash.newer, clash.older, clash.marked, clash.kind) == (25, 3, True, "marked")
    assert clash.detail == "marked as contradicting"
    assert not clash.takes_over


def test_a_marked_correction_in_words_takes_over() -> None:
    older = told("Deploys of the harbour happen each Tuesday at noon.")
    newer = told("Correction: deploys of the harbour moved to Thursday morning, said Bo.")
    pair = [older, newer]

    clash = clash_between(pair, [statement_words(one) for one in pair], 0, 1, marked=True)

    assert clash is not None
    assert (clash.contradicts, clash.takes_over) == (True, True)


def test_so_many_pairs_are_judged_at_most() -> None:
    limits = [told(f"The API limit is {number} requests.") for number in range(COMPARED)]

    assert len(against(*limits)) == JUDGED
