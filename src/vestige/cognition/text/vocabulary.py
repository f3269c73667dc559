"""Vocabulary: the terms of memories, and which are rare enough to be a topic."""

from collections import Counter
from collections.abc import Mapping

from vestige.cognition.text.analyser import STOP_WORDS, terms
from vestige.cognition.text.form import speaker_and_words
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory

READ_CHARS = 2_000  # Only the beginning of a longer text is read.
RARE_SHARE = 0.02  # The share of the other memories that may contain a rare term.


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The terms of each memory, and the number of memories with each term."""

    named: Mapping[str, frozenset[str]]
    counts: Mapping[str, int]

    def share(self, one: str, other: str) -> bool:
        """Whether two memories share a rare term."""
        others = len(self.named) - 2
        return any(is_rare(self.counts[term] - 2, others) for term in self.named[one] & self.named[other])


def vocabulary_of(named: Mapping[str, frozenset[str]]) -> Vocabulary:
    """The vocabulary of memories, given the terms of each."""
    return Vocabulary(named=named, counts=Counter(term for some in named.values() for term in some))


def opening(memory: Memory) -> str:
    """The beginning of what is said in a memory, without its speaker."""
    return speaker_and_words(memory)[1][:READ_CHARS]


def is_rare(count: int, others: int) -> bool:
    """Whether this number of other memories with a term is small; one always is."""
    return count <= max(1, RARE_SHARE * others)


def named_in(memory: Memory) -> frozenset[str]:
    """The content terms of a memory, and its tags."""
    said = (term for term in terms(opening(memory)) if not term.isdigit())
    return frozenset((*said, *(tag.casefold() for tag in memory.tags))) - STOP_WORDS
