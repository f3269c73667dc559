"""More examples from the authors' pairs: pairs that follow from others, and copies with changes of form.

All random choices come from one generator that the caller seeds, so the same pairs give the same examples.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from training.pair_model.pairs import Example, LabelledPair

WRITTEN_WEIGHT = 3
"""How often a pair as its author wrote it counts, against once for a pair that follows from others."""
COPIES = 6
"""Copies of all examples; the first is unchanged."""

_UNRELATED = frozenset(
    {"sibling", "attribute", "news", "environment", "actor", "object", "detail_differs", "related"}
)
"""Kinds of `other` whose second notes also stand beside each other."""
_SYMMETRIC = {
    "other": _UNRELATED | {"opinion", "hypothesis", "action", "unrelated"},
    "corrects": frozenset({"value", "opposite", "negation", "roles"}),
}
"""Kinds that keep their label when the notes are swapped."""

_PREFIXES = (
    "Note: ", "FYI: ", "Remember: ", "[2025-03-04] ", "user said: ", "Memo: ", "- ", "TODO/info: ", "btw ",
    "From the meeting: ", "(chat) ",
)  # fmt: skip
_SUFFIXES = (" Noted in chat.", " Source: meeting.", " (see thread)", " Logged by the agent.", " #notes")
_CONTRACTIONS = (
    ("does not", "doesn't"), ("do not", "don't"), ("is not", "isn't"), ("are not", "aren't"),
    ("was not", "wasn't"), ("cannot", "can't"), ("will not", "won't"), ("it is", "it's"),
)  # fmt: skip
_NUMBER_WORDS = {
    "2": "two", "3": "three", "4": "four", "5": "five", "6": "six", "7": "seven", "8": "eight", "9": "nine",
    "12": "twelve",
}  # fmt: skip
_COUNT = re.compile(r"\b(\d+)\b(?=( [a-z]))(?<![:.\d]\d)")


def augmented(authors: Sequence[Sequence[LabelledPair]], rng: random.Random) -> list[Example]:
    """The examples of all authors: written pairs, pairs that follow from them, and changed copies of both."""
    written = [_example(pair) for pairs in authors for pair in pairs]
    derived = [example for pairs in authors for example in consequences(pairs, rng)]
    examples = written * WRITTEN_WEIGHT + derived
    changed = [
        Example(vary(one.first, rng), vary(one.second, rng), one.label)
        for _ in range(COPIES - 1)
        for one in examples
    ]
    return examples + changed


def consequences(pairs: Sequence[LabelledPair], rng: random.Random) -> Iterator[Example]:
    """Examples that follow from the pairs of one author, group by group."""
    by_group: defaultdict[str, list[LabelledPair]] = defaultdict(list)
    for pair in pairs:
        by_group[pair.group].append(pair)
    groups = list(by_group.values())
    for group in groups:
        yield from _swapped(group)
        yield from _substituted(group)
        yield from _side_by_side(group)
        another = rng.choice(groups)
        if another is not group:
            yield Example(group[0].first, rng.choice(another).second, "other")


def _swapped(group: Sequence[LabelledPair]) -> Iterator[Example]:
    """Pairs whose label is known in the opposite order. A note without its detail is the same, not more."""
    for pair in group:
        if pair.label in ("same", "elaborates"):
            yield Example(pair.second, pair.first, "same")
        elif pair.kind in _SYMMETRIC.get(pair.label, ()):
            yield Example(pair.second, pair.first, pair.label)


def _substituted(group: Sequence[LabelledPair]) -> Iterator[Example]:
    """A note that says what the first note says stands for it in the other pairs of its group."""
    for stand_in in group:
        if stand_in.label in ("same", "elaborates"):
            for pair in group:
                if pair.label in ("corrects", "other", "unclear"):
                    yield Example(stand_in.second, pair.second, pair.label)


def _side_by_side(group: Sequence[LabelledPair]) -> Iterator[Example]:
    """Second notes about other things leave each other standing too."""
    seconds = [pair.second for pair in group if pair.label == "other" and pair.kind in _UNRELATED]
    for at, earlier in enumerate(seconds):
        for later in seconds[at + 1 :]:
            yield Example(earlier, later, "other")


def vary(text: str, rng: random.Random) -> str:
    """The note with small random changes of form that leave its meaning: contractions, number words, a typing
    error, small letters, a missing full stop, a prefix or a suffix.
    """
    text = _contract(text, rng)
    if rng.random() < 0.15:
        text = _COUNT.sub(lambda found: _NUMBER_WORDS.get(found[1], found[1]), text)
    if rng.random() < 0.06:
        text = _mistype(text, rng)
    if rng.random() < 0.12:
        text = text.lower()
    if rng.random() < 0.3:
        text = text.rstrip(".")
    if rng.random() < 0.08:
        text = rng.choice(_PREFIXES) + text
    if rng.random() < 0.05:
        text = (text if text[-1] in ".?!" else text + ".") + rng.choice(_SUFFIXES)
    return text


def _contract(text: str, rng: random.Random) -> str:
    for long, short in _CONTRACTIONS:
        if rng.random() < 0.25:
            text = text.replace(long, short) if rng.random() < 0.5 else text.replace(short, long)
    return text


def _mistype(text: str, rng: random.Random) -> str:
    """One word with two letters swapped, or with a letter missing. Short words and numbers are left alone."""
    words = text.split(" ")
    at = rng.randrange(len(words))
    word = words[at]
    if len(word) > 4 and word.isalpha():
        letter = rng.randrange(1, len(word) - 2)
        rest = word[letter] + word[letter + 2 :] if rng.random() < 0.6 else word[letter + 2 :]
        words[at] = word[:letter] + word[letter + 1] + rest
    return " ".join(words)


def _example(pair: LabelledPair) -> Example:
    return Example(pair.first, pair.second, pair.label)
