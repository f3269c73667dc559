"""Negation: which words of a statement are denied, and whether two statements deny each other."""

from collections.abc import Collection, Iterator, Sequence
from functools import cache, lru_cache
from itertools import product
from typing import Literal

from vestige.cognition.english.words import BE, Word, root
from vestige.cognition.text.analyser import STOP_WORDS
from vestige.cognition.text.word_lists import sections
from vestige.core.lazy_dataclass import dataclass

# -- Antonyms

LEAST_ROOT = 4
"""The least number of letters of a word that can take a negative prefix."""
_PREFIXES = ("un", "dis", "in", "im", "ir", "il", "non", "non-", "mis")


@cache  # made on first use: stemming the list takes longer than a short command
def _table(section: Literal["opposites", "counterparts"]) -> dict[str, frozenset[str]]:
    opposed: dict[str, set[str]] = {}
    for line in sections("vestige.cognition.english", "antonyms")[section]:
        left, right = ([form for word in side.split() for form in _forms(word)] for side in line.split("/"))
        for one, other in product(left, right):
            opposed.setdefault(one, set()).add(other)
            opposed.setdefault(other, set()).add(one)
    return {word: frozenset(others - {word}) for word, others in opposed.items()}


def _forms(word: str) -> set[str]:
    """The roots of a word's forms, because the stemmer separates "add" and "adding"."""
    if word in STOP_WORDS:
        return {word}
    short = word.removesuffix("e")
    return {root(form) for form in (word, f"{word}s", f"{short}ing", f"{short}ed")}


_NONE = frozenset[str]()


def opposites(word: str, others: Collection[str]) -> set[str]:
    """The words among the others that are opposed to a word (or stem): by the table, a negative prefix or an
    ending."""
    return set(_opposed(word).intersection(others))


@lru_cache(maxsize=8192)
def _opposed(word: str) -> frozenset[str]:
    """All words that are opposed to a word."""
    made = set(_table("opposites").get(word, _NONE))
    if len(word) >= LEAST_ROOT:
        made |= {f"{prefix}{word}" for prefix in _PREFIXES}
        made |= {
            word.removeprefix(prefix)
            for prefix in _PREFIXES
            if word.startswith(prefix) and len(word) >= LEAST_ROOT + len(prefix)
        }
        if word.endswith("ful"):
            made.add(f"{word.removesuffix('ful')}less")
        if word.endswith("less"):
            made.add(f"{word.removesuffix('less')}ful")
    return frozenset(made)


def counterparts(one: str) -> frozenset[str]:
    """The stems that name the other member of a pair: left and right, client and server."""
    return _table("counterparts").get(one, _NONE)


# -- Negation

NEGATORS = frozenset(
    "not no never none nobody nothing nowhere neither nor without hardly barely rarely seldom".split()
)
_DENYING = frozenset(
    root(word)
    for word in (
        "avoid refuse forbid prohibit ban lack prevent skip stop quit cease deny decline abandon exclude omit"
    ).split()
)
"""Verbs that deny what follows them: "avoid global state"."""
_CONTRASTS = frozenset({("instead", "of"), ("rather", "than"), ("better", "than")})
_PREFERRING = frozenset(root(word) for word in "prefer choose favor favour".split())
_LEAVING = frozenset("switched migrated moved changed transferred converted".split())
_BOUNDS = frozenset("more less fewer only just exceed".split())


_POSSIBLE = frozenset(root(word) for word in "allow permit possible support accept welcome".split())
"""Words that, when denied, deny their whole clause."""


def _bounds(words: Sequence[Word], at: int) -> bool:
    """Whether "no" or "not" shortly before sets a limit instead of denying: "no later than", "not only"."""
    if at >= len(words):
        return False
    compared = words[at].text.endswith("er") and at + 1 < len(words) and words[at + 1].text == "than"
    return compared or words[at].text in _BOUNDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """How two statements deny each other: a description, and the two opposites if there are any."""

    detail: str
    opposites: tuple[Word, Word] | None = None


def is_negator(words: Sequence[Word], at: int) -> bool:
    """Whether the word at this index denies what follows it in its clause."""
    word = words[at]
    if word.text in ("no", "not") and any(_bounds(words, place) for place in range(at + 1, at + 4)):
        return False
    if word.text == "not" and any(one.text == "unless" for one in words[at:]):
        return False  # "do not merge unless" is "merge only if"
    if word.text == "up":
        return at > 0 and words[at - 1].key == "give"
    return word.text in NEGATORS or word.key in _DENYING


def denied(words: Sequence[Word], by: frozenset[str] | None = None) -> Sequence[bool]:
    """For each word, whether an odd number of negations before it in its clause applies to it. `by` limits
    the negations that count."""
    return _denied(tuple(words), by)


# A text is compared with several others, by several rules.
@lru_cache(maxsize=256)
def _denied(words: tuple[Word, ...], by: frozenset[str] | None) -> Sequence[bool]:
    flags: list[bool] = []
    clause, odd = -1, False
    for at, word in enumerate(words):
        if word.clause != clause:
            clause, odd = word.clause, False
        flags.append(odd)
        if is_negator(words, at) and (by is None or word.text in by):
            odd = not odd
            if by is None and _forbids(words, at):
                for place in range(at):
                    flags[place] ^= words[place].clause == clause
    return tuple(flags)


def _forbids(words: Sequence[Word], at: int) -> bool:
    """Whether a denial applies to all words before it: "swimming here is forbidden", "is not allowed"."""
    if words[at].key in _DENYING:
        return at > 0 and words[at - 1].text in BE
    return any(word.key in _POSSIBLE for word in words[at + 1 : at + 2])


def contrasted(words: Sequence[Word]) -> frozenset[int]:
    """The indices of content words that something else is set against: "instead of X", "prefer Y over X"."""
    return _contrasted(tuple(words))


@lru_cache(maxsize=256)
def _contrasted(words: tuple[Word, ...]) -> frozenset[int]:
    places: set[int] = set()
    for at, word in enumerate(words):
        pair = (words[at - 1].text, word.text) if at else ("", "")
        if pair in _CONTRASTS or (word.text == "from" and at and words[at - 1].text in _LEAVING):
            places |= _following(words, at)
        if word.text == "over" and any(one.key in _PREFERRING for one in words[:at]):
            places |= _following(words, at)
    return frozenset(places)


def _following(words: Sequence[Word], at: int) -> set[int]:
    """The content words after an index, up to a preposition or the end of the clause."""
    found: set[int] = set()
    for place in range(at + 1, len(words)):
        word = words[place]
        if word.clause != words[at].clause or (found and word.text in ("to", "for", "in", "on", "because")):
            break
        if word.is_content:
            found.add(place)
    return found


def find_denial(new: Sequence[Word], old: Sequence[Word]) -> Denial | None:
    """How one statement denies the other, if it does: an opposite, or a shared word denied in only one."""
    return _find_denial(tuple(new), tuple(old))


# Conflict and paraphrase both ask for it.
@lru_cache(maxsize=64)
def _find_denial(new: tuple[Word, ...], old: tuple[Word, ...]) -> Denial | None:
    new_flags, old_flags = _turned_down(new), _turned_down(old)
    turned = False
    for one, other in _opposites(new, old):
        if new_flags[one] == old_flags[other]:
            detail = f"{old[other].text} → {new[one].text}"
            return Denial(detail=detail, opposites=(new[one], old[other]))
        turned = True  # "not disabled" is "enabled"
    if turned:
        return None
    ours = {word.key: flag for word, flag in zip(new, new_flags, strict=True) if word.is_content}
    theirs = {word.key: flag for word, flag in zip(old, old_flags, strict=True) if word.is_content}
    shared = ours.keys() & theirs.keys()
    more, less = (_negations(tuple(words)) + bool(contrasted(words)) for words in (new, old))
    newly = any(ours[key] and not theirs[key] for key in shared)
    formerly = any(theirs[key] and not ours[key] for key in shared)
    # With as many negations on both sides it takes a swap: a scope is only a guess.
    if not (newly and formerly if more == less else newly or formerly):
        return None
    denying = new if sum(new_flags) > sum(old_flags) else old
    words = (word.text for at, word in enumerate(denying) if is_negator(denying, at))
    return Denial(detail=f"“{next(words, 'not')}” in only one of them")


@lru_cache(maxsize=256)
def _negations(words: tuple[Word, ...]) -> int:
    return sum(is_negator(words, at) for at in range(len(words)))


def _turned_down(words: Sequence[Word]) -> list[bool]:
    """For each word, whether it is denied or contrasted."""
    against = contrasted(words)
    return [flag or at in against for at, flag in enumerate(denied(words))]


def _opposites(new: Sequence[Word], old: Sequence[Word]) -> Iterator[tuple[int, int]]:
    shared = {word.key for word in new} & {word.key for word in old}
    theirs = {
        form: at for at, word in enumerate(old) if word.key not in shared for form in (word.key, word.text)
    }
    for one, word in enumerate(new):
        if word.key in shared:
            continue
        # The stemmer treats "willing" and "unwilling" unlike, so the words are looked at too.
        places = {theirs[form] for own in (word.key, word.text) for form in opposites(own, theirs)}
        for other in sorted(places):
            # "What's up" and "go down" oppose nothing: particles must stand in the same place.
            if (word.is_content and old[other].is_content) or _beside(new, one) & _beside(old, other):
                yield one, other


def _beside(words: Sequence[Word], at: int) -> set[str]:
    return {word.key for word in (*words[max(0, at - 1) : at], *words[at + 1 : at + 2])}
