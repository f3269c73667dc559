"""Word overlap: pairs of texts that are likely about the same thing, without comparing all pairs.

Two statements that contradict each other share most of their words, so words find them as well as any model
does. The work grows with the number of texts, not with its square: each text follows the postings of its
rarest words only.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.text.analyser import LEAST_COMMON, LEAST_SHARE
from vestige.core.lazy_dataclass import dataclass

Words = frozenset[str]
Numbers = NDArray[np.int64]

NEIGHBOURS = 5  # The number of most similar texts that each text is paired with.
POSTINGS = 300  # The limit of occurrences of its words that each text follows, from the rarest word on …
MOST_OF_FIRST = 2_000  # … and of the first word, the latest ones, however common it is.
CHECKED = 50  # The number of candidates found that way that are compared word by word.
CELLS = 1_000_000  # The most entries of an array that is made to compare the texts of one step.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Index:
    """Texts and words by number; word 0 is the rarest. `words` has the words of each text in turn, the rarest
    first, `texts` the texts of each word in turn. The starts and sizes say which part of it is whose."""

    words: Numbers
    text_starts: Numbers
    text_sizes: Numbers
    texts: Numbers
    word_starts: Numbers
    word_sizes: Numbers


def alike_pairs(texts: Sequence[Words]) -> Iterator[list[tuple[int, int]]]:
    """For each text in turn, its pairs with the most similar texts of all, (earlier, later) by index. No pair
    comes twice. It yields one text at a time, so that the caller can report progress."""
    index = _index(texts)
    step = max(1, CELLS // max(len(index.word_sizes), POSTINGS + MOST_OF_FIRST))
    seen: set[tuple[int, int]] = set()
    for first in range(0, len(texts), step):
        asking = np.arange(first, min(first + step, len(texts)))
        for at, nearest in zip(asking.tolist(), _nearest(index, asking), strict=True):
            pairs = {(min(at, other), max(at, other)) for other in nearest}
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


def _index(texts: Sequence[Words]) -> _Index:
    uses = Counter(chain.from_iterable(texts))
    numbers = {word: at for at, word in enumerate(sorted(uses, key=lambda word: (uses[word], word)))}
    sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    words = np.fromiter((numbers[word] for text in texts for word in text), dtype=np.int64)
    owners = np.repeat(np.arange(len(texts)), sizes)
    word_sizes = np.bincount(words, minlength=len(numbers))
    return _Index(
        words=words[np.lexsort((words, owners))],
        text_starts=np.cumsum(sizes) - sizes,
        text_sizes=sizes,
        texts=owners[np.argsort(words, kind="stable")],
        word_starts=np.cumsum(word_sizes) - word_sizes,
        word_sizes=word_sizes,
    )


def _nearest(index: _Index, asking: Numbers) -> Iterator[list[int]]:
    """The texts that are most like each of these."""
    one, other = _candidates(index, asking)
    sizes, theirs = index.text_sizes[asking], index.text_sizes[other]
    own = np.zeros((len(asking), len(index.word_sizes)), dtype=np.bool_)
    own[np.repeat(np.arange(len(asking)), sizes), index.words[_spans(index.text_starts[asking], sizes)]] = (
        True
    )
    parts = np.split(np.arange(len(other)), np.flatnonzero(np.diff(np.cumsum(theirs) // CELLS)) + 1)
    common = np.concatenate([_common(index, own, one[part], other[part]) for part in parts])
    smaller = np.minimum(sizes[one], theirs)
    alike = (common >= LEAST_COMMON) & (common >= LEAST_SHARE * smaller) & (other != asking[one])
    likeness = (common / (sizes[one] + theirs - common))[alike]
    one, other = one[alike], other[alike]
    order = _first_of_each(np.lexsort((other, -likeness, one)), one, NEIGHBOURS)
    found = np.split(other[order], np.cumsum(np.bincount(one[order], minlength=len(asking)))[:-1])
    return (some.tolist() for some in found)


def _common(index: _Index, own: NDArray[np.bool_], one: Numbers, other: Numbers) -> Numbers:
    """The number of common words of each pair; `own` says which words the first texts have."""
    sizes = index.text_sizes[other]
    shared = own[np.repeat(one, sizes), index.words[_spans(index.text_starts[other], sizes)]]
    counts = np.concatenate(([0], np.cumsum(shared)))
    ends = np.cumsum(sizes)
    return np.asarray(counts[ends] - counts[ends - sizes])


def _candidates(index: _Index, asking: Numbers) -> tuple[Numbers, Numbers]:
    """Pairs of a text, by its place among these, and another one that shares its rarest words: those that
    share most of them, and among equals those that were met first."""
    sizes = index.text_sizes[asking]
    one = np.repeat(np.arange(len(asking)), sizes)
    words = index.words[_spans(index.text_starts[asking], sizes)]
    uses = index.word_sizes[words]
    followed = np.concatenate(([0], np.cumsum(uses)))
    in_text = followed[1:] - np.repeat(followed[np.cumsum(sizes) - sizes], sizes)
    taken = (in_text <= POSTINGS) | (in_text == uses)  # the rarest word always
    uses = np.minimum(uses[taken], MOST_OF_FIRST)
    ends = index.word_starts[words[taken]] + index.word_sizes[words[taken]]
    met = np.repeat(one[taken], uses) * len(index.text_sizes) + index.texts[_spans(ends - uses, uses)]
    pairs, first_met, times = np.unique(met, return_index=True, return_counts=True)
    one, other = np.divmod(pairs, len(index.text_sizes))
    order = _first_of_each(np.lexsort((first_met, -times, one)), one, CHECKED + 1)
    return one[order], other[order]


def _first_of_each(order: Numbers, groups: Numbers, most: int) -> Numbers:
    """The first `most` of each group in this order, in which each group is together."""
    sizes = np.bincount(groups)
    places = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return order[places < most]


def _spans(starts: Numbers, sizes: Numbers) -> Numbers:
    """The numbers from each start on, as many as each size says."""
    return np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
