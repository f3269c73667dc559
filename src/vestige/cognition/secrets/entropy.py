"""Randomness of strings: whether a string looks machine-made and unguessable."""

from collections import Counter
from math import log2

from vestige.core.patterns import lazy_pattern

LEAST = 16  # The least number of characters for a string to be called random by itself.
WORDY = 0.55
"""The share of readable words from which a string is a name. Random base62 has about .15, lower case with
digits .3, an identifier of several words .8 and more."""
STEPS = 6  # The number of neighbours in a row (abcdef, 654321) that makes a sequence.
_RUN = lazy_pattern(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}")
_VOWEL = lazy_pattern(r"[aeiouyAEIOUY]")
_CLUSTER = lazy_pattern(r"[^aeiouyAEIOUY]{4}")
_CAMEL = lazy_pattern(r"[A-Za-z][a-z]+(?:[A-Z][a-z]+)+")
_REPEATED = lazy_pattern(r"(.)\1{4,}")


def entropy(text: str) -> float:
    """Shannon's entropy of the characters, in bits per character."""
    total = len(text)
    return -sum(n / total * log2(n / total) for n in Counter(text).values()) if total else 0.0


def wordiness(text: str) -> float:
    """The share of the characters in something that reads like a word."""
    runs = (found.group() for found in _RUN.finditer(text))
    words = sum(len(run) for run in runs if len(run) > 3 and _VOWEL.search(run) and not _CLUSTER.search(run))
    return words / len(text) if text else 0.0


def classes(text: str) -> int:
    """The number of character classes among lower case, upper case and digits."""
    return any(map(str.islower, text)) + any(map(str.isupper, text)) + any(map(str.isdigit, text))


def irregular(text: str) -> str:
    """The text without repetitions of one character and sequences, which made-up examples have."""
    kept, run = [], ""
    for one in _REPEATED.sub("", text):
        if _goes_on(run, one):
            run += one
            continue
        kept.append(run if len(run) < STEPS else "")
        run = one
    return "".join([*kept, run if len(run) < STEPS else ""])


def looks_random(text: str, least: int = LEAST) -> bool:
    """Whether a string is long, mixed and unreadable enough to be a key."""
    if len(text) < least or _CAMEL.fullmatch(text):
        return False
    drawn = irregular(text)
    if len(drawn) < least or classes(drawn) < 2:
        return False
    # A random string of n characters has nearly log2(n) bits per character while n is small.
    return entropy(drawn) >= min(3.0, 0.72 * log2(len(drawn))) and wordiness(drawn) < WORDY


def is_drawn(text: str, least: int = 10) -> bool:
    """Whether a string could be random at all, which is enough if its prefix marks it as a key. A sequence
    (abcdef…) may be made up; a key in its full shape counts in any case."""
    drawn = _REPEATED.sub("", text)
    return len(drawn) >= least and entropy(drawn) >= 2.5 and wordiness(drawn) < 0.8


def _goes_on(run: str, one: str) -> bool:
    step = ord(one) - ord(run[-1]) if run else 0
    return abs(step) == 1 and (len(run) == 1 or step == ord(run[-1]) - ord(run[-2]))
