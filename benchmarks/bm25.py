"""BM25 as everybody knows it, the baseline that a memory has to beat. It shares no code with Vestige.

Lucene's formula with k1 = 1.5 and b = 0.75; words in lower case, cut at underscores, without stop words,
Porter-stemmed by `snowballstemmer`. A word counts as often as the query says it. Ties go by position.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache

import numpy as np
import snowballstemmer
from numpy.typing import NDArray

K1 = 1.5
B = 0.75

STOP_WORDS = frozenset(
    """a about an and are as at be been but by can could did do does for from had has have he her him his
    how i if in into is it its me my no not of on or our she should so such than that the their them then
    there these they this to was we were what when where which who whom whose why will with would you
    your""".split()
)

_WORD = re.compile(r"[^\W_]+")
_stemmer = snowballstemmer.stemmer("porter")


class Bm25:
    """An index over texts, named by their places."""

    def __init__(self, texts: Sequence[str]) -> None:
        counted = [Counter(words(text)) for text in texts]
        lengths = np.array([count.total() for count in counted], dtype=np.float64)
        mean = lengths.mean() if lengths.any() else 1.0
        self._norms = K1 * (1 - B + B * lengths / mean)
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for place, count in enumerate(counted):
            for word, times in count.items():
                found[word].append((place, times))
        self._postings = {word: np.array(pairs, dtype=np.int64).T for word, pairs in found.items()}

    def scores(self, query: str) -> NDArray[np.float64]:
        """The score of every text; 0 where no word matches."""
        scores = np.zeros(len(self._norms))
        for word, repeated in Counter(words(query)).items():
            if word not in self._postings:
                continue
            places, times = self._postings[word]
            held = len(places)
            idf = np.log1p((len(scores) - held + 0.5) / (held + 0.5))
            scores[places] += repeated * idf * times / (times + self._norms[places])
        return scores

    def top(self, query: str, limit: int) -> list[int]:
        """Places of the best texts that match at all."""
        scores = self.scores(query)
        best = np.argsort(-scores, kind="stable")[:limit]
        return [int(place) for place in best if scores[place] > 0]


def words(text: str) -> list[str]:
    """The stems of a text's words, in order, without stop words."""
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in STOP_WORDS]


@cache
def _stem(word: str) -> str:
    return str(_stemmer.stemWord(word))
