"""What memories name, and which of it is rare enough among them to tell what they are about."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from vestige.cognition.text.analyser import STOP_WORDS, terms
from vestige.cognition.text.form import speaker_and_words
from vestige.core.models import Memory

READ_CHARS = 2_000
"""Of a longer text the beginning says what it is about."""
RARE_SHARE = 0.02
"""The share of the others that may name it, too: what everybody says is no topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The terms that each memory names, and how many memories name each."""

    named: Mapping[str, frozenset[str]]
    counts: Mapping[str, int]

    def share(self, one: str, other: str) -> bool:
        """Whether two memories name something that few others do."""
        others = len(self.named) - 2
        return any(is_rare(self.counts[term] - 2, others) for term in self.named[one] & self.named[other])


def vocabulary_of(named: Mapping[str, frozenset[str]]) -> Vocabulary:
    """The vocabulary of memories, given what each of them names."""
    return Vocabulary(named=named, counts=Counter(term for some in named.values() for term in some))


def opening(memory: Memory) -> str:
    """The beginning of what is said in a memory, without who says it."""
    return speaker_and_words(memory)[1][:READ_CHARS]


def is_rare(count: int, others: int) -> bool:
    """Whether so many of the others naming a term is few; one may always."""
    return count <= max(1, RARE_SHARE * others)


def named_in(memory: Memory) -> frozenset[str]:
    """The telling terms of a memory, and its tags."""
    said = (term for term in terms(opening(memory)) if not term.isdigit())
    return frozenset((*said, *(tag.casefold() for tag in memory.tags))) - STOP_WORDS
