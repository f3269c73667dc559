"""Names of domains without a language model: class TF-IDF (Grootendorst 2022) over the words of the analyser.

All texts of a domain are one class. A word weighs its frequency there, times ln(1 + A / its frequency
anywhere), with A the mean number of words of a class. Only words of several members count, so that a name
says what a group has in common and quotes no one memory.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import field
from math import log

import numpy as np

from vestige.cognition.graph.domains.assignment import Vectors, centroid
from vestige.cognition.text.analyser import query_words, stem
from vestige.cognition.text.word_lists import sections, words
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

TOP_TERMS, LABEL_TERMS, EXEMPLARS = 10, 2, 3
LEAST_MEMBERS = 3
"""The members of a domain in which a term must occur."""
TOO_COMMON, CONCENTRATED = 0.3, 0.6
"""A word in a larger share of all texts names no domain, unless this share of them are in one."""
PHRASE_SHARE = 0.6
"""A pair of words replaces its head word if it covers this share of it."""
TAG_COVER, TAG_INSIDE = 0.4, 0.6
"""A tag names a domain if this share of the members has it, and this share of what has it are members."""
ALIKE = 0.85
"""An exemplar more similar than this to an earlier one is left out."""
MOST_CHARS = 4_000
"""The beginning of a text that is read for names."""
VAGUE = frozenset(
    stem(word)
    for lines in sections("vestige.cognition.graph.domains", "vague").values()
    for word in words(lines)
)
"""Numbers, times, units and verbs that occur on every topic: they name a group where nothing else does."""
_SLUG = lazy_pattern(r"[^a-z0-9]+")
_Key = tuple[str, ...]
Said = Sequence[tuple[str, str] | None]
"""The words of a text, each as its term and as it is written; None stands for words that name nothing."""


@dataclass(slots=True)
class _Words:
    """The occurrences of words and pairs of words in a group of texts, and in how many texts they occur."""

    total: int = 0
    uses: Counter[_Key] = field(default_factory=Counter)
    texts: Counter[_Key] = field(default_factory=Counter)
    spellings: dict[_Key, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))


def top_terms(
    groups: Sequence[Sequence[str]], others: Sequence[str] = (), count: int = TOP_TERMS
) -> list[list[str]]:
    """The terms of each group of texts, the best first. `others` are texts in no group."""
    return terms_of_groups(
        [[said_in(text) for text in texts] for texts in groups], [said_in(text) for text in others], count
    )


def said_in(text: str) -> Said:
    """The words of a text that can name a topic."""
    said: list[tuple[str, str] | None] = []
    for word in query_words(text[:MOST_CHARS]):
        shown = text[word.start : word.end]
        names = not word.stop and word.terms and _can_name(shown)
        said.append((word.terms[0], shown) if names else None)
    return said


def terms_of_groups(
    groups: Sequence[Sequence[Said]], others: Sequence[Said] = (), count: int = TOP_TERMS
) -> list[list[str]]:
    """`top_terms` of texts that were read before."""
    counted = [_counted(texts) for texts in groups]
    rest = _counted(others)
    everywhere: Counter[_Key] = Counter(rest.uses)
    texts_with: Counter[_Key] = Counter(rest.texts)
    for group in counted:
        everywhere.update(group.uses)
        texts_with.update(group.texts)
    size = len(others) + sum(map(len, groups))
    most = max(LEAST_MEMBERS, TOO_COMMON * size)
    mean = (rest.total + sum(group.total for group in counted)) / max(1, len(groups) + bool(others))
    return [_best(group, everywhere, texts_with, mean, most, count) for group in counted]


def _counted(texts: Sequence[Said]) -> _Words:
    words = _Words()
    for text in texts:
        seen: set[_Key] = set()
        before: tuple[str, str] | None = None
        for word in text:
            if word is not None:
                key, shown = word
                words.total += 1
                _note(words, seen, (key,), shown)
                if before is not None:
                    _note(words, seen, (before[0], key), f"{before[1]} {shown}")
            before = word
        words.texts.update(seen)
    return words


def _can_name(word: str) -> bool:
    """Whether a word can name a topic: two characters at least, not only digits."""
    return 2 <= len(word) <= 40 and any(one.isalpha() for one in word)


def _note(words: _Words, seen: set[_Key], key: _Key, shown: str) -> None:
    words.uses[key] += 1
    words.spellings[key][shown] += 1
    seen.add(key)


def _best(
    group: _Words, everywhere: Counter[_Key], texts_with: Counter[_Key], mean: float, most: float, count: int
) -> list[str]:
    def common_enough(key: _Key) -> bool:
        inside, anywhere = group.texts[key], texts_with[key]
        return inside >= LEAST_MEMBERS and (anywhere <= most or inside >= CONCENTRATED * anywhere)

    weighed = [
        (VAGUE.issuperset(key), -uses * log(1 + mean / everywhere[key]), key)
        for key, uses in group.uses.items()
        if common_enough(key) and all(common_enough((part,)) for part in key)
    ]
    phrases = {
        head: key
        for *_, key in sorted(weighed, reverse=True)
        if len(key) == 2
        for head in key
        if group.uses[key] > PHRASE_SHARE * group.uses[(head,)]
    }
    chosen: list[_Key] = []
    used: set[str] = set()
    for *_, key in sorted(weighed):
        if len(key) == 1:
            key = phrases.get(key[0], key)
        elif not all(phrases.get(head) == key for head in key[:1]):
            continue
        if used.isdisjoint(key):
            chosen.append(key)
            used.update(key)
        if len(chosen) == count:
            break
    return [_shown(group.spellings[key]) for key in chosen]


def _shown(spellings: Counter[str]) -> str:
    """The most frequent spelling; the first one by the alphabet in a tie."""
    return min(spellings, key=lambda text: (-spellings[text], text))


def with_tags(
    terms: Sequence[str],
    tags: Sequence[Sequence[str]],
    everywhere: Counter[str],
    hidden: frozenset[str] = frozenset(),
) -> list[str]:
    """The terms, after the tags that name the domain: `tags` of each member, and how often each tag occurs in
    the store."""
    inside = Counter(tag for own in tags for tag in set(own))
    naming = [
        tag
        for tag, count in inside.items()
        if count >= max(LEAST_MEMBERS, TAG_COVER * len(tags))
        and count >= TAG_INSIDE * everywhere[tag]
        and tag not in hidden
    ]
    first = sorted(naming, key=lambda tag: (-inside[tag], tag))
    known = {tag.casefold() for tag in first}
    return [*first, *(term for term in terms if term.casefold() not in known)]


def label_of(terms: Sequence[str]) -> str:
    """The first terms that are not vague; the first ones if all are."""
    telling = [term for term in terms if not VAGUE.issuperset(map(stem, term.casefold().split()))]
    return ", ".join((telling or terms)[:LABEL_TERMS])


def slug(label: str) -> str:
    """The label as an id: lower case, words joined with hyphens."""
    return _SLUG.sub("-", label.casefold()).strip("-")[:60].strip("-")


def exemplars(vectors: Vectors, count: int = EXEMPLARS) -> list[int]:
    """The rows nearest to the centroid that are different from each other."""
    if not len(vectors):
        return []
    order = np.argsort(-(vectors @ centroid(vectors)), kind="stable").tolist()
    chosen: list[int] = []
    for row in order:
        if all(float(vectors[row] @ vectors[held]) < ALIKE for held in chosen):
            chosen.append(row)
        if len(chosen) == count:
            break
    return chosen
