"""A statement as a part of a text, and whether two statements are about the same thing."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from vestige.cognition.clauses import speaker, subject, verb_at
from vestige.cognition.polarity import is_negator
from vestige.cognition.wording import TEMPORAL, Word, words_of

NEAR = 0.25
"""The share of telling words in common from which on one statement can be about the other …"""
NAMED = 0.2
"""… and from which on it can where it names the thing itself."""

_MODIFIERS = frozenset("new current latest final whole entire first same".split())
"""What can be said of a thing, or not, without making it another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Some words of a text that stand together."""

    source: str
    words: Sequence[Word]

    @property
    def text(self) -> str:
        """The characters from its first word to its last."""
        return self.source[self.words[0].start : self.words[-1].end] if self.words else ""

    @property
    def keys(self) -> tuple[str, ...]:
        """What its words are compared by."""
        return tuple(word.key for word in self.words)

    @property
    def telling(self) -> set[str]:
        """The keys of the words that carry its content."""
        return {word.key for word in self.words if word.telling}

    def sentences(self) -> "list[Statement]":
        """Its sentences, in order."""
        found: dict[int, list[Word]] = {}
        for word in self.words:
            found.setdefault(word.sentence, []).append(word)
        return [replace(self, words=words) for words in found.values()]

    def clauses(self) -> "list[Statement]":
        """Its first clause, and what follows it: "I looked again: it is on Friday"."""
        first = [word for word in self.words if word.clause == self.words[0].clause]
        rest = self.words[len(first) :]
        return [replace(self, words=first), replace(self, words=rest)] if rest else []


def statement(text: str) -> Statement:
    """A whole text as one statement."""
    return Statement(source=text, words=words_of(text))


def in_common(ours: Statement, theirs: Statement, apart: AbstractSet[str] = frozenset()) -> float:
    """The share of telling words two statements have in common, apart from some, times and negations.

    Chatter shares names and phrases and means nothing by "no" ("long time no see"); a statement that
    contradicts another is about the same things.
    """
    left, right = _content(ours) - apart, _content(theirs) - apart
    return len(left & right) / len(left | right) if left & right else 0.0


def _content(one: Statement) -> set[str]:
    return {
        word.key
        for at, word in enumerate(one.words)
        if word.telling and word.unit not in TEMPORAL and not is_negator(one.words, at)
    }


def is_near(ours: Statement, theirs: Statement) -> bool:
    """Whether two statements share enough to be about one thing: many words, or the thing by its name.

    A person alone is not enough: much is told of one person.
    """
    share = in_common(ours, theirs)
    if share >= NEAR:
        return True
    shared = [word for word in subject(theirs.words) if word.key in ours.keys]
    named = any(word.unit or "-" in word.text or theirs.source[word.start].islower() for word in shared)
    return named and share >= NAMED and 3 * len(shared) >= min(len(ours.telling), len(theirs.telling))


def about_same(ours: Statement, theirs: Statement) -> bool:
    """Whether what each is about occurs in the other; pronouns are about anybody."""
    about_new, about_old = subject(ours.words), subject(theirs.words)
    if any(word.key not in theirs.keys and word.text not in _MODIFIERS for word in about_new):
        return False
    missing = sum(word.key not in ours.keys and word.text not in _MODIFIERS for word in about_old)
    return missing == 0 or (2 * missing <= len(about_old) and verb_at(ours.words) is not None)


def same_subject(ours: Statement, theirs: Statement) -> bool:
    """Whether two statements have the same subject: neither "Ada" and "Bob" nor "I" and "you" are."""
    left, right = ({word.key for word in subject(one.words)} for one in (ours, theirs))
    if left and right and left.isdisjoint(right):
        return False
    # An imperative is about "you".
    if not left and not right and (speaker(ours.words) or "you") != (speaker(theirs.words) or "you"):
        return False
    return about_same(ours, theirs)


def is_indefinite(words: Sequence[Word]) -> bool:
    """Whether a statement is about something or other: what "a man" does says nothing of another."""
    return bool(words) and (words[0].text in ("a", "an", "some", "there") or words[0].unit == "number")
