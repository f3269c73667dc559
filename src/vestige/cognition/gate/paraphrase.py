"""Paraphrase detection: whether a text says the same as another in other words.

Similarity alone is not enough: "Ada manages Bob" and "Bob manages Ada", "before" and "after", a left and a
right lamp are as near to each other as paraphrases are. So nearly every content word must have a counterpart
on the other side, by stem or by the model's token states; names, quantities and negations must be equal; and
no two words may have changed places. In a long text some words may be left over, as long as none replaces
another.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.english.polarity import counterparts, find_denial
from vestige.cognition.english.words import BE, Word, is_document, verb_at, words_of
from vestige.cognition.gate.attributes import ValueChange, find_change, find_swap
from vestige.cognition.gate.change_words import is_later, retracts
from vestige.cognition.text.analyser import compatible
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

# -- Word alignment: by stem, or by the model's token states

Likeness = NDArray[np.float32]
"""The cosine of every word of a new text (rows) with every word of an old one (columns)."""


def word_likeness(
    ours: Sequence[Word],
    our_spans: NDArray[np.int32],
    our_states: NDArray[np.float32],
    theirs: Sequence[Word],
    their_spans: NDArray[np.int32],
    their_states: NDArray[np.float32],
) -> Likeness:
    """How alike the words of two texts are in context, from the states of their tokens."""
    left, right = _states(ours, our_spans, our_states), _states(theirs, their_spans, their_states)
    return np.asarray(left @ right.T, dtype=np.float32)


def _states(
    words: Sequence[Word], spans: NDArray[np.int32], states: NDArray[np.float32]
) -> NDArray[np.float32]:
    """One unit vector per word, the mean of its tokens; zero for a word without a token."""
    if not len(words) or not len(spans):
        return np.zeros((len(words), states.shape[1] if states.ndim == 2 else 1), dtype=np.float32)
    starts, ends = np.array([word.start for word in words]), np.array([word.end for word in words])
    inside = (spans[:, 0] < ends[:, np.newaxis]) & (spans[:, 1] > starts[:, np.newaxis])
    made = inside.astype(np.float32) @ states
    length = np.linalg.norm(made, axis=1, keepdims=True)
    return np.asarray(made / np.maximum(length, 1e-12), dtype=np.float32)


def unmatched(
    words: Sequence[Word], others: Sequence[Word], likeness: Likeness | None
) -> list[tuple[Word, float]]:
    """The content words of a text that the other lacks, each with its best likeness there (0: unknown)."""
    known = {word.key for word in others}
    return [
        (word, float(likeness[at].max()) if likeness is not None and likeness.shape[1] else 0.0)
        for at, word in enumerate(words)
        if word.is_content and word.key not in known
    ]


# -- Paraphrases

SAME = 0.68  # The cosine from which a text can be a paraphrase.
LONGEST = 300  # The limit of words in a paraphrase; comparing word by word takes quadratic time.
LONG = 8  # The number of content words that make a text long.
ALIKE = 0.5  # The likeness from which two words are counterparts …
SYNONYM = 0.8  # … two values of one attribute are the same …
LONE = 0.45  # … the only unmatched word of each text is, wherever it stands …
PREDICATE = 0.85  # … two predicates ("is permitted", "is allowed") are …
SAME_PLACE = 0.7  # … two words that alone differ between the texts are …
UNLIKE = 0.36  # … and up to which two words in the same place say different things …
OTHER_SUBJECT = 0.45
"""… or, at the beginning of a sentence, are about different things: a capital does not mark a name there."""
COVERED = 0.6  # The share of content words that must have a counterpart …
SHORT = 3  # … except that in a text of this few content words all must.

_CONDITIONS = {
    "if": "if", "unless": "if", "only": "only", "except": "except", "still": "still", "yet": "still",
    "also": "also", "too": "also", "another": "also", "additionally": "also", "besides": "also",
}  # fmt: skip
"""Words that limit or widen a statement, with their meaning."""
_SHARES = {
    "all": "all", "every": "all", "each": "all", "always": "all", "everyone": "all", "both": "all",
    "some": "some", "several": "some", "sometimes": "some", "few": "few", "most": "most", "mostly": "most",
}  # fmt: skip
"""Words that say of how many, or how often, something is true."""


def could_restate(new: str, old: str, similarity: float) -> bool:
    """Whether comparing the words' likeness can succeed: nothing visible without it speaks against it."""
    if similarity < SAME or is_document(new) or is_document(old):
        return False
    return not _ruled_out(new, old)


@lru_cache(maxsize=64)
def _ruled_out(new: str, old: str) -> bool:
    ours, theirs = words_of(new), words_of(old)
    if max(len(ours), len(theirs)) > LONGEST or retracts(new, old):
        return True
    if is_later(new, old) or is_later(old, new):
        return True
    lengths = sorted((_content_count(ours), _content_count(theirs)))
    if lengths[0] == 0 or lengths[0] < COVERED / 2 * lengths[1]:
        return True
    return _differs(ours, theirs) or _swapped(ours, theirs) or find_swap(ours, theirs) is not None


def restates(new: str, old: str, similarity: float, likeness: Likeness | None) -> bool:
    """Whether a text with this similarity says the same. Without a likeness it takes the same words in
    order."""
    ours, theirs = words_of(new), words_of(old)
    if not could_restate(new, old, similarity):
        return False
    if likeness is None:
        return [word.key for word in ours if word.is_content] == [
            word.key for word in theirs if word.is_content
        ]
    left, right = unmatched(ours, theirs, likeness), unmatched(theirs, ours, likeness.T)
    change = find_change(ours, theirs)
    if change and any(word.kind in ("name", "quantity") for word in (*change.was, *change.becomes)):
        return False
    if change and any(like < _least(change, theirs) for _, like in (*left, *right)):
        return False
    long = _is_long(ours, theirs)
    if not long and any(word.kind == "name" for word, _ in (*left, *right)):
        return False
    if len(left) == len(right) == 1 and max(left[0][1], right[0][1]) < LONE:
        return False
    if _replaced(ours, theirs, left, right):
        return False
    return all(
        _covered(words, {word for word, like in missing if like < ALIKE})
        for missing, words in ((left, ours), (right, theirs))
    )


def _least(change: ValueChange, old: Sequence[Word]) -> float:
    """How alike two words must be that alone differ. Opposites are alike too, and most are predicates."""
    at = old.index(change.was[0])
    predicate = at > 0 and old[at - 1].text in BE and not change.was[0].text.endswith("ing")
    return PREDICATE if predicate else SYNONYM if change.single else SAME_PLACE


def _covered(words: Sequence[Word], missing: set[Word]) -> bool:
    """Whether enough of a text, and at least half of each sentence, has a counterpart."""
    if len(missing) > (1 - COVERED) * _content_count(words) or (missing and _content_count(words) <= SHORT):
        return False
    sentences: dict[int, list[Word]] = {}
    for word in words:
        if word.is_content:
            sentences.setdefault(word.sentence, []).append(word)
    return all(2 * len(missing.intersection(said)) <= len(said) for said in sentences.values())


def _is_long(ours: Sequence[Word], theirs: Sequence[Word]) -> bool:
    return min(_content_count(ours), _content_count(theirs)) >= LONG


def _content_count(words: Sequence[Word]) -> int:
    return sum(word.is_content for word in words)


def _differs(ours: Sequence[Word], theirs: Sequence[Word]) -> bool:
    """Whether the two differ in polarity, side of a pair, conditions or numbers, which no wording changes."""
    if find_denial(ours, theirs):
        return True
    left, right = {word.key for word in ours}, {word.key for word in theirs}
    if any(not counterparts(one).isdisjoint(right - left) for one in left - right):
        return True
    shares = [{_SHARES[word.text] for word in words if word.text in _SHARES} for words in (ours, theirs)]
    if shares[0] and shares[1] and shares[0].isdisjoint(shares[1]):
        return True
    if _is_long(ours, theirs):
        return False
    counted, conditions = ([made(words) for words in (ours, theirs)] for made in (_counted, _conditions))
    return counted[0] != counted[1] or conditions[0] != conditions[1]


def _counted(words: Sequence[Word]) -> set[str]:
    """Its quantities, without "one", which is often only an article."""
    return {word.key for word in words if word.kind == "quantity" and word.text != "one"}


def _conditions(words: Sequence[Word]) -> set[str]:
    found = {_CONDITIONS[word.text] for word in words if word.text in _CONDITIONS}
    as_well = any((one.text, two.text) == ("as", "well") for one, two in pairwise(words))
    return found | {"also"} if as_well else found


def limits(words: Sequence[Word]) -> set[str]:
    """What limits or widens a statement: conditions, and words that say of how many it is true."""
    return _conditions(words) | {_SHARES[word.text] for word in words if word.text in _SHARES}


def says_all(words: Sequence[Word], others: Sequence[Word], likeness: Likeness) -> bool:
    """Whether every content word of a text has a counterpart in the other."""
    return all(like >= ALIKE for _, like in unmatched(words, others, likeness))


def _swapped(ours: Sequence[Word], theirs: Sequence[Word]) -> bool:
    """Whether two words have changed places: "Ada manages Bob", "Bob manages Ada". In the passive they have
    not ("Bob is managed by Ada"), nor around a bare "is"."""
    left, right = _roles(ours), _roles(theirs)
    if left is None or right is None or (left.verb, left.passive) != (right.verb, right.passive):
        return False
    return (
        bool(left.before & right.after) and bool(right.before & left.after) and not left.before & right.before
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Roles:
    """The words before and after the verb of a statement."""

    verb: str
    passive: bool
    before: set[str]
    after: set[str]


def _roles(words: Sequence[Word]) -> _Roles | None:
    at = verb_at(words)
    if at is None:
        return None
    place = next((place for place in range(at, len(words)) if words[place].is_content), None)
    if place is None:
        return None
    before, after = (
        {word.key for word in part if word.is_content} for part in (words[:at], words[place + 1 :])
    )
    by = any(word.text == "by" for word in words[place + 1 : place + 2])
    done = place > at and (by or (words[at].text in BE and words[place].text.endswith(("ed", "en", "t"))))
    return _Roles(verb=words[place].key, passive=done, before=before, after=after)


def _replaced(
    ours: Sequence[Word],
    theirs: Sequence[Word],
    left: Sequence[tuple[Word, float]],
    right: Sequence[tuple[Word, float]],
) -> bool:
    """Whether in some place the texts differ in a name, a number or an unlike word."""
    least = ALIKE if _is_long(ours, theirs) else 1.0
    new_gone = {word for word, like in left if _irreplaceable(word, ours, like, least)}
    old_gone = {word for word, like in right if _irreplaceable(word, theirs, like, least)}
    matcher = SequenceMatcher(None, [w.key for w in theirs], [w.key for w in ours], autojunk=False)
    return any(
        kind == "replace"
        and not old_gone.isdisjoint(theirs[old_start:old_end])
        and not new_gone.isdisjoint(ours[start:end])
        for kind, old_start, old_end, start, end in matcher.get_opcodes()
    )


def _irreplaceable(word: Word, words: Sequence[Word], like: float, least_name: float) -> bool:
    if word.kind == "quantity":
        return True
    if word.kind == "name":
        return like < least_name
    first = next(one for one in words if one.sentence == word.sentence and one.is_content)
    return like < (OTHER_SUBJECT if word is first else UNLIKE)


# -- Texts without typography

_ALIKE = str.maketrans(
    {**dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"), "’": "'", "‘": "'", "ʼ": "'"}
)
_MARKER = lazy_pattern(r"^[ \t]*(?:[-*+•‣][ \t]+|#{1,6}[ \t]+|>[ \t]+)+", re.MULTILINE)
_EMPHASIS = (lazy_pattern(r"(`{1,3})([^`]+)\1"), lazy_pattern(r"(\*{1,3})(?=\S)([^*\n]+)(?<=\S)\1"))
_UNDERSCORES = lazy_pattern(r"(?P<opens>(?<!\w))?_++(?P<closes>(?!\w))?")
_THOUSANDS = lazy_pattern(r"(?<=\d),(?=\d{3}(?!\d))")
_HYPHEN = lazy_pattern(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_OPENING = "\"'“”„«»「『([{"
_CLOSING = "\"'“”„«»」』,;:!…、。"
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_BEFORE_FULL_STOP = frozenset(("%", *_CLOSING, *_BRACKETS))


def same_words(left: str, right: str) -> bool:
    """Whether two texts differ in typography only."""
    found = bare(left)
    return bool(found) and found == bare(right)


@lru_cache(maxsize=64)
def bare(text: str) -> str:
    """The words of a text, one space between them."""
    plain = _MARKER.sub("", text.casefold() if text.isascii() else _ascii_signs(text))
    for emphasis in _EMPHASIS:
        plain = emphasis.sub(r"\2", plain)
    if "_" in plain:
        plain = "\n".join(map(_without_underscores, plain.split("\n")))
    words = (_word(written) for written in _HYPHEN.sub(" ", plain).split())
    return " ".join(word for word in words if word)


def _ascii_signs(text: str) -> str:
    """The text in its compatibility form, with plain dashes and apostrophes and nothing invisible."""
    plain = compatible(text).casefold().translate(_ALIKE)
    return "".join(sign for sign in plain if unicodedata.category(sign) != "Cf")


def _without_underscores(line: str) -> str:
    """A line without the underscores of `_one_`, `__two__` and `___three___`. The ends of emphasis are found
    first: a pattern for the whole would look for one up to the end of the line from each beginning."""
    runs = [run for run in _UNDERSCORES.finditer(line)]  # noqa: C416 - other threads may run in between
    ends = {size: [run.end() for run in runs if _ends_emphasis(line, run, size)] for size in (3, 2, 1)}
    kept, at = [], 0
    for run in runs:
        if run["opens"] is None or run.start() < at:
            continue
        for size in range(min(3, run.end() - run.start()), 0, -1):
            inside = run.start() + size
            nearest = bisect_left(ends[size], inside + 1 + size)
            if nearest < len(ends[size]) and not line[inside].isspace():
                kept += [line[at : run.start()], line[inside : ends[size][nearest] - size]]
                at = ends[size][nearest]
                break
    return "".join([*kept, line[at:]])


def _ends_emphasis(line: str, run: re.Match[str], size: int) -> bool:
    """Whether the last underscores of a run, as many as the size, can end emphasis."""
    start = run.end() - size
    return run["closes"] is not None and start >= max(run.start(), 1) and not line[start - 1].isspace()


def _word(written: str) -> str:
    """One word without surrounding punctuation; empty if nothing else is left. A bracket goes if it closes
    what does not open in the word, and so does a full stop; the dots of `cd ..` and `src/.` are words."""
    # Nearly all words are plain ones, with a mark behind them or not.
    if written.isalnum():
        return written
    if written[-1] in ".,;:!" and written[:-1].isalnum():
        return written[:-1]
    if set(written) <= {"-", ":", ";", ","}:
        return ""
    word = written.lstrip(_OPENING)
    opened = {closing: word.find(opening) for closing, opening in _BRACKETS.items()}
    end = len(word)
    while end:
        last = word[end - 1]
        loose = last in _BRACKETS and not 0 <= opened[last] < end
        if last == ".":
            before = _before_dots(word, end)
            if not (word[before - 1 : before].isalnum() or word[before - 1 : before] in _BEFORE_FULL_STOP):
                break
            end = before
        elif last in _CLOSING or loose:
            end -= 1
        else:
            break
    return _THOUSANDS.sub("", word[:end])


def _before_dots(word: str, end: int) -> int:
    while end and word[end - 1] == ".":
        end -= 1
    return end
