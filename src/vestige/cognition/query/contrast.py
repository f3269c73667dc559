"""Contrast: whether a note is about another thing of the kind that a question names.

"What is room 4 for?" has no answer in a note on room 1, though both texts are nearly the same: the note has
another number, day, code, side or first part of a name where the question has its own, and lacks that one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from vestige.cognition.english.words import (
    AUXILIARIES,
    PRONOUNS,
    Word,
    all_words_of,
    alternatives,
    verb_at,
    words_of,
)
from vestige.cognition.text.analyser import searchable
from vestige.cognition.text.word_lists import sections
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory
from vestige.core.patterns import lazy_pattern

NOTE_CHARS, QUESTION_CHARS = 600, 300
"""A longer text mentions many things, and a longer question asks for more than one note says."""
LEAST_INSIDE = 3  # The least number of letters of a word that is looked for inside of other words.

_ASKS_FOR_ONE = lazy_pattern(
    r"^\W*(?:\w+\s+)?(?:who(?:m|se)?|what|which|where|when|how|why)(?:['’]s|['’]re)?\b", re.IGNORECASE
)
_CODE_PARTS = lazy_pattern(r"\d+|[^\W\d_]+")
_RANGE_BEFORE = lazy_pattern(
    r"(?:[\u2010-\u2015-]|\b(?:before|after|since|until|till|by|from|to|between|through|as\s+of|than|up"
    r"|starting|begins?|began|ends?))\s*(?:the\s+)?$",
    re.IGNORECASE,
)
_RANGE_AFTER = lazy_pattern(
    r"\s*(?:[\u2010-\u2015-]|to\b|until\b|till\b|through\b|onwards?\b)", re.IGNORECASE
)
_YEAR = lazy_pattern(r"(?:19|20)\d\d")
_BEFORE_CHARS = 16

# Words before a noun that say nothing of which thing it is.
_COMMON = frozenset(
    "many much more most few several some any max min maximum minimum new old current own last next latest "
    "exact usual usually normal regular right correct best main whole full total original previous former "
    "present other another different same good great big large small oldest newest youngest earliest "
    "nearest biggest largest smallest highest lowest longest shortest fastest slowest cheapest".split()
)
_NUMBER_SIGNS = frozenset("no nr number".split())
_LABELS = frozenset(("number", "version"))
_CLASSES: Mapping[str, tuple[str, int]] = {
    word: (name, at)
    for name, lines in sections("vestige.cognition.query", "contrasts").items()
    for at, line in enumerate(lines)
    for word in line.split()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """What a question names, and what a note has in its place. It is not `certain` of two common words, which
    may mean the same here: "test coverage", "code coverage"."""

    asked: str
    stated: str
    certain: bool = True


def contrast(question: str, memory: Memory) -> Contrast | None:
    """What a note has in place of what a question names; None if nothing, or if the text is long, or asks
    whether something is so: "Can she come on Friday?" is answered by "She works on Mondays"."""
    text = searchable(memory)
    if len(text) > NOTE_CHARS or len(question) > QUESTION_CHARS or not _asks_for_one(question):
        return None
    place = (memory.scope, memory.source, memory.author, memory.thread)
    named = " ".join((text, *memory.tags, *filter(None, place))).casefold()
    asked = _Text(text=question, words=all_words_of(question))
    stated = _Text(text=text, words=words_of(text))
    ways = (_labels, _members, _codes, _times, _parts_of_names)
    found = [one for way in ways for one in way(asked, stated, named)]
    return max(found, key=lambda one: one.certain, default=None)


def _asks_for_one(question: str) -> bool:
    """Whether it asks for a thing, and not whether something is so; "conversion on tablets?" does too."""
    if _ASKS_FOR_ONE.match(question):
        return True
    words = all_words_of(question)
    bare = question.rstrip().endswith("?") and not any(word.mark for word in words[1:])
    return bare and verb_at(words) is None and not any(word.text in AUXILIARIES | PRONOUNS for word in words)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    text: str
    words: Sequence[Word]

    def has(self, word: Word) -> bool:
        return any(own.says(word) or word.says(own) for own in self.words)

    def neighbours(self) -> Iterator[tuple[Word, Word]]:
        """Content words side by side, without a mark in between."""
        for one, other in pairwise(self.words):
            if one.sentence == other.sentence and not other.mark and one.is_content and other.is_content:
                yield one, other

    def labelled(self) -> Iterator[tuple[Word, Word]]:
        """Nouns with the number behind each: "room 4", "pump no. 6"."""
        for at, label in enumerate(self.words):
            if label.unit not in _LABELS:
                continue
            for noun in reversed(self.words[max(0, at - 2) : at]):
                if noun.kind in ("word", "name"):
                    yield noun, label
                if noun.text not in _NUMBER_SIGNS:
                    break


def _is_absent(word: Word, stated: _Text, named: str) -> bool:
    """Whether a note has neither a word of a question nor a synonym, not even inside of another word."""
    if stated.has(word):
        return False
    if word.unit:
        return re.search(rf"(?<!\d){re.escape(word.text)}(?!\d)", named) is None
    return not any(form in named for form in alternatives(word.text) if len(form) >= LEAST_INSIDE)


def _parts_of_names(asked: _Text, stated: _Text, named: str) -> Iterator[Contrast]:
    """ "The payroll DB" and "the tariff DB": another word before the same noun."""
    for part, noun in asked.neighbours():
        if not _tells_apart(part) or noun.kind == "quantity" or not _is_absent(part, stated, named):
            continue
        for other, same in stated.neighbours():
            alike = same.key == noun.key and other.unit == part.unit and _tells_apart(other)
            if alike and not asked.has(other) and not _is_verb(other, stated):
                yield Contrast(asked=part.text, stated=other.text, certain=part.kind != "word")


def _is_verb(word: Word, text: _Text) -> bool:
    """Whether a word is the verb of its text. One that begins a clause is not: "orders DB: restored"."""
    at = verb_at(text.words)
    return at is not None and at > 0 and word is text.words[at] and not word.mark


def _tells_apart(word: Word) -> bool:
    return word.kind == "quantity" or word.text not in _COMMON


def _labels(asked: _Text, stated: _Text, named: str) -> Iterator[Contrast]:
    """ "Room 4" and "room 1": another number after the same noun. Two versions need no noun."""
    versions = [word for word in stated.words if _is_version(word)]
    for word in asked.words:
        if _is_version(word) and versions and _is_absent(word, stated, named):
            yield Contrast(asked=word.text, stated=versions[0].text)
    for noun, label in asked.labelled():
        if _is_absent(label, stated, named):
            for same, other in stated.labelled():
                if same.key == noun.key and not asked.has(other):
                    yield Contrast(asked=label.text, stated=other.text)


def _is_version(word: Word) -> bool:
    return word.unit == "version" or (word.unit == "number" and word.text.startswith("v"))


_TIMES_OF_SPEECH = frozenset({("right", "now"), ("right", "away"), ("right", "after"), ("right", "before")})


def _members(asked: _Text, stated: _Text, named: str) -> Iterator[Contrast]:
    """ "Staging" and "production": another word of a class of which a thing has one."""
    for word, following in pairwise((*asked.words, None)):
        if word is None or word.text not in _CLASSES or not _is_absent(word, stated, named):
            continue
        if following is not None and (word.text, following.text) in _TIMES_OF_SPEECH:
            continue
        kind, line = _CLASSES[word.text]
        others = [one for one in stated.words if _CLASSES.get(one.text, ("", 0))[0] == kind]
        apart = all(_CLASSES[one.text][1] != line and not asked.has(one) for one in others)
        if others and apart:
            yield Contrast(asked=word.text, stated=others[0].text)


def _codes(asked: _Text, stated: _Text, named: str) -> Iterator[Contrast]:
    """ "Error E17" and "error E24": a code that differs in its numbers only."""
    others = {_shape(word): word.text for word in stated.words if _is_code(word) and not asked.has(word)}
    for word in asked.words:
        if _is_code(word) and _shape(word) in others and _is_absent(word, stated, named):
            yield Contrast(asked=word.text, stated=others[_shape(word)])


def _is_code(word: Word) -> bool:
    signs = word.text
    return word.kind == "name" and any(map(str.isdigit, signs)) and any(map(str.isalpha, signs))


def _shape(word: Word) -> tuple[str, ...]:
    return tuple("0" if part.isdigit() else part for part in _CODE_PARTS.findall(word.text))


_TIMES = ("weekday", "year", "month", "day")


def _times(asked: _Text, stated: _Text, named: str) -> Iterator[Contrast]:
    """Another weekday, day, month or year, not as the end of a longer time."""
    ours, theirs = _facets(asked), _facets(stated)
    if ours is None or theirs is None:
        return
    for name in _TIMES:
        mine, others = ours.get(name, {}), theirs.get(name, {})
        apart = mine.keys().isdisjoint(others) and not any(one in named for one in mine.values())
        if mine and others and apart:
            yield Contrast(asked=next(iter(mine.values())), stated=next(iter(others.values())))


def _facets(text: _Text) -> dict[str, dict[str, str]] | None:
    """The times of a text: what each states, with its words; None if one is the end of a longer time."""
    found: dict[str, dict[str, str]] = {}
    for word in text.words:
        if word.unit not in ("day", "date", "month") and not _is_year(word):
            continue
        before = text.text[max(0, word.start - _BEFORE_CHARS) : word.start]
        if _RANGE_BEFORE.search(before) or _RANGE_AFTER.match(text.text, word.end):
            return None
        for name, value in _stated(word):
            found.setdefault(name, {})[value] = word.text
    return found


def _is_year(word: Word) -> bool:
    return word.unit in ("year", "number") and _YEAR.fullmatch(word.text) is not None


def _stated(word: Word) -> Iterator[tuple[str, str]]:
    if word.unit == "day" or _is_year(word):
        yield ("weekday" if word.unit == "day" else "year"), word.key
        return
    month, *rest = word.key.split("-")
    yield "month", month
    if word.unit == "date" and rest:
        yield "day", f"{month}-{rest[0]}"
        rest = rest[1:]
    if rest and rest[0]:
        yield "year", rest[0]
