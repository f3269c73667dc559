"""Which texts are worth comparing: those with the most words in common, without looking at all pairs."""

import random
import tracemalloc
from collections import Counter

import pytest

from vestige.cognition.text import likeness
from vestige.cognition.text.analyser import is_alike, overlap, terms
from vestige.cognition.text.likeness import (
    CHECKED,
    MOST_OF_FIRST,
    NEIGHBOURS,
    POSTINGS,
    Words,
    alike_pairs,
    grouped,
)


def words(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def pairs_of(texts: list[frozenset[str]]) -> set[tuple[int, int]]:
    found = [pair for some in alike_pairs(texts) for pair in some]
    assert len(found) == len(set(found))
    return set(found)


def one_by_one(texts: list[Words]) -> list[list[tuple[int, int]]]:
    """What `alike_pairs` does with arrays, text by text and word by word."""
    uses = Counter(word for text in texts for word in text)
    seen: set[tuple[int, int]] = set()
    answers = []
    for at, text in enumerate(texts):
        met: Counter[int] = Counter()
        left = POSTINGS
        for word in sorted(text, key=lambda one: (uses[one], one)):
            if met and uses[word] > left:
                break
            met.update([other for other, words in enumerate(texts) if word in words][-MOST_OF_FIRST:])
            left -= uses[word]
        most = sorted(met, key=met.__getitem__, reverse=True)[: CHECKED + 1]
        alike = [other for other in most if other != at and is_alike(text, texts[other])]
        nearest = sorted(alike, key=lambda other: (-overlap(text, texts[other]), other))[:NEIGHBOURS]
        pairs = {(min(at, other), max(at, other)) for other in nearest}
        answers.append(sorted(pairs - seen))
        seen |= pairs
    return answers


@pytest.mark.parametrize("cells", [1, 900, likeness.CELLS])
@pytest.mark.parametrize("seed", range(4))
def test_arrays_find_what_comparing_one_by_one_finds(
    seed: int, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    vocabulary = [f"w{at}" for at in range((3, 12, 60, 400)[seed])]
    texts = [frozenset(rng.choices(vocabulary, k=rng.randrange(9))) for _ in range(400)]
    monkeypatch.setattr(likeness, "CELLS", cells)

    assert list(alike_pairs(texts)) == one_by_one(texts)


SAME = [words("The deploy of the harbour waits for two approvals.")] * 1500
LONG = [frozenset(f"w{(at * step) % 2503}" for at in range(2000)) for step in range(1, 151)]


@pytest.mark.parametrize("texts", [SAME, LONG], ids=["many equal texts", "long texts with the same words"])
def test_memory_does_not_grow_with_the_words_in_common(texts: list[Words]) -> None:
    tracemalloc.start()
    assert sum(map(len, alike_pairs(texts))) > 0
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 90_000_000


def test_texts_about_the_same_thing_are_paired_and_others_are_not() -> None:
    texts = [
        words("Harbour runs on PostgreSQL 14."),
        words("Ada likes tea with milk."),
        words("Harbour now runs on PostgreSQL 16."),
        words("The office plants need water."),
    ]

    assert pairs_of(texts) == {(0, 2)}


def test_a_text_without_words_is_like_nothing() -> None:
    assert pairs_of([frozenset(), frozenset(), words("tea")]) == set()
    assert overlap(frozenset(), frozenset()) == 0.0


def test_every_pair_is_found_that_comparing_all_would_find_first() -> None:
    rng = random.Random(5)
    vocabulary = [f"w{n}" for n in range(300)]
    texts = [frozenset(rng.sample(vocabulary, 6)) for _ in range(400)]
    twins = [frozenset([*sorted(text)[:5], f"new{at}"]) for at, text in enumerate(texts[:100])]

    found = pairs_of([*texts, *twins])

    assert {(at, 400 + at) for at in range(100)} <= found
    assert all(is_alike([*texts, *twins][one], [*texts, *twins][other]) for one, other in found)


def test_the_work_does_not_grow_with_the_square_of_the_texts() -> None:
    texts = [words(f"Task {n} of the harbour project is done by Ada") for n in range(2_000)]

    assert len(pairs_of(texts)) <= NEIGHBOURS * len(texts)


def test_pairs_with_common_texts_come_one_after_another() -> None:
    pairs = [(0, 90), (1, 91), (2, 92), (50, 90), (51, 91), (3, 50)]

    assert grouped(pairs) == [(0, 90), (3, 50), (50, 90), (1, 91), (51, 91), (2, 92)]
    assert grouped([]) == []
