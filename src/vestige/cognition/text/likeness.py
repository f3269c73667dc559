"""Word overlap: pairs of texts that are likely about the same thing, without comparing all pairs.

Two statements that contradict each other share most of their words, so words find them as well as any model
does. The work grows with the number of texts, not with its square: each text follows the postings of its
rarest words only.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest

from vestige.cognition.text.analyser import LEAST_COMMON, shares_enough

Words = frozenset[str]

NEIGHBOURS = 5  # The number of most similar texts that each text is paired with.
POSTINGS = 300  # The limit of occurrences of its words that each text follows, from the rarest word on …
MOST_OF_FIRST = 2_000  # … and of the first word, the latest ones, however common it is.
CHECKED = 50  # The number of candidates found that way that are compared word by word.


def alike_pairs(texts: Sequence[Words]) -> Iterator[list[tuple[int, int]]]:
    """For each text in turn, its pairs with the most similar texts of all, (earlier, later) by index. No pair
    comes twice. It yields one text at a time, so that the caller can report progress."""
    postings: defaultdict[str, list[int]] = defaultdict(list)
    for at, words in enumerate(texts):
        for word in words:
            postings[word].append(at)
    seen: set[tuple[int, int]] = set()
    for at, words in enumerate(texts):
        met = _met(words, postings)
        theirs = [texts[other] for other in met]
        common = map(len, map(words.__and__, theirs))
        likeness = [
            (-shared / (len(words) + len(one) - shared), other)
            for other, one, shared in zip(met, theirs, common, strict=True)
            if shared >= LEAST_COMMON and other != at and shares_enough(shared, len(words), len(one))
        ]
        pairs = {(min(at, other), max(at, other)) for _, other in nsmallest(NEIGHBOURS, likeness)}
        yield sorted(pairs - seen)
        seen |= pairs


def grouped(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The pairs, those that are connected by common texts one after another: with a small cache of texts that
    were read, each text is read once, however far apart the texts of a pair are."""
    pairs = list(pairs)
    leaders: dict[int, int] = {}

    def leader(at: int) -> int:
        while (above := leaders.setdefault(at, at)) != at:
            leaders[at] = leaders[above]
            at = above
        return at

    for one, other in pairs:
        first, second = sorted((leader(one), leader(other)))
        leaders[second] = first
    return sorted(pairs, key=lambda pair: (leader(pair[0]), pair))


def _met(words: Words, postings: dict[str, list[int]]) -> list[int]:
    """The texts that share the rarest words, those with most of them first."""
    met: Counter[int] = Counter()
    left = POSTINGS
    for word in sorted(words, key=lambda one: (len(postings[one]), one)):
        found = postings[word]
        if met and len(found) > left:
            break
        met.update(found[-MOST_OF_FIRST:])
        left -= len(found)
    if len(met) <= CHECKED + 1:
        return list(met)
    return sorted(met, key=met.__getitem__, reverse=True)[: CHECKED + 1]
