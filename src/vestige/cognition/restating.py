"""Does a text say the same as another in other words?

Similarity alone cannot vouch for it: "Ada manages Bob" and "Bob manages Ada", "before" and "after", a left
and a right lamp are as near to each other as paraphrases are. So nearly every telling word must have a
counterpart on the other side, by stem or by the model's token states; names, quantities and negations must
be the same; and nobody may have changed places. In a long text some words may be left over, as long as none
takes the place of another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

from vestige.cognition.alignment import Likeness, unmatched
from vestige.cognition.antonyms import counterpart
from vestige.cognition.clauses import verb_at
from vestige.cognition.corrections import retracts
from vestige.cognition.polarity import find_denial
from vestige.cognition.slots import Change, find_change
from vestige.cognition.states import is_later
from vestige.cognition.verbs import BE
from vestige.cognition.wording import Word, words_of

SAME = 0.68
"""The cosine from which on a text can say the same."""
LONGEST = 300
"""Words of a text that can; comparing word by word takes time that grows with their square."""
LONG = 8
"""Telling words that make a text long."""
ALIKE = 0.5
"""The likeness from which on two words are counterparts …"""
SYNONYM = 0.8
"""… two values of one attribute are the same …"""
LONE = 0.45
"""… a word of each that alone has no equal in the other text is, wherever it stands …"""
PREDICATE = 0.85
"""… two words of which one is said to be ("is permitted", "is allowed") are …"""
SAME_PLACE = 0.7
"""… two words that alone differ between the texts are …"""
UNLIKE = 0.36
"""… and up to which they say different things when one stands in the place of the other …"""
OTHER_SUBJECT = 0.45
"""… or, at the beginning of a sentence, are about different things: there nobody can tell a name."""
COVERED = 0.6
"""The share of telling words that must have a counterpart …"""
SHORT = 3
"""… but for texts of so few telling words, of which all must."""

_CONDITIONS = {
    "if": "if", "unless": "if", "only": "only", "except": "except", "still": "still", "yet": "still",
    "also": "also", "too": "also", "another": "also", "additionally": "also", "besides": "also",
}  # fmt: skip
"""Words that limit or widen what is said, with what each comes to."""
_SHARES = {
    "all": "all", "every": "all", "each": "all", "always": "all", "everyone": "all", "both": "all",
    "some": "some", "several": "some", "sometimes": "some", "few": "few", "most": "most", "mostly": "most",
}  # fmt: skip
"""Words that say of how many or how often something is true."""


def could_restate(new: str, old: str, similarity: float) -> bool:
    """Whether it is worth comparing the words' likeness: nothing seen without speaks against it."""
    return similarity >= SAME and not _ruled_out(new, old)


@lru_cache(maxsize=64)
def _ruled_out(new: str, old: str) -> bool:
    ours, theirs = words_of(new), words_of(old)
    if (
        max(len(ours), len(theirs)) > LONGEST
        or retracts(new, old)
        or is_later(new, old)
        or is_later(old, new)
    ):
        return True
    lengths = sorted((_telling(ours), _telling(theirs)))
    if lengths[0] == 0 or lengths[0] < COVERED / 2 * lengths[1]:
        return True
    return _differs(ours, theirs) or _swapped(ours, theirs)


def restates(new: str, old: str, similarity: float, likeness: Likeness | None) -> bool:
    """Whether a text this similar says the same. Without a likeness it takes the same words in order."""
    ours, theirs = words_of(new), words_of(old)
    if not could_restate(new, old, similarity):
        return False
    if likeness is None:
        return [word.key for word in ours if word.telling] == [word.key for word in theirs if word.telling]
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


def _least(change: Change, old: Sequence[Word]) -> float:
    """How alike two words must be that alone differ. Opposites are alike too, and most are predicates."""
    at = old.index(change.was[0])
    predicate = at > 0 and old[at - 1].text in BE and not change.was[0].text.endswith("ing")
    return PREDICATE if predicate else SYNONYM if change.single else SAME_PLACE


def _covered(words: Sequence[Word], missing: set[Word]) -> bool:
    """Whether enough of a text has a counterpart, and of each of its sentences at least half."""
    if len(missing) > (1 - COVERED) * _telling(words) or (missing and _telling(words) <= SHORT):
        return False
    sentences: dict[int, list[Word]] = {}
    for word in words:
        if word.telling:
            sentences.setdefault(word.sentence, []).append(word)
    return all(2 * len(missing.intersection(said)) <= len(said) for said in sentences.values())


def _is_long(ours: Sequence[Word], theirs: Sequence[Word]) -> bool:
    return min(_telling(ours), _telling(theirs)) >= LONG


def _telling(words: Sequence[Word]) -> int:
    return sum(word.telling for word in words)


def _differs(ours: Sequence[Word], theirs: Sequence[Word]) -> bool:
    """Whether the two differ in what no wording changes: polarity, side of a pair, conditions, numbers."""
    if find_denial(ours, theirs):
        return True
    left, right = {word.key for word in ours}, {word.key for word in theirs}
    if any(counterpart(one, other) for one in left - right for other in right - left):
        return True
    shares = [{_SHARES[word.text] for word in words if word.text in _SHARES} for words in (ours, theirs)]
    if shares[0] and shares[1] and shares[0].isdisjoint(shares[1]):
        return True
    if _is_long(ours, theirs):
        return False
    counted, conditions = ([made(words) for words in (ours, theirs)] for made in (_counted, _conditions))
    return counted[0] != counted[1] or conditions[0] != conditions[1]


def _counted(words: Sequence[Word]) -> set[str]:
    """Its quantities; "one" is often no more than an article."""
    return {word.key for word in words if word.kind == "quantity" and word.text != "one"}


def _conditions(words: Sequence[Word]) -> set[str]:
    found = {_CONDITIONS[word.text] for word in words if word.text in _CONDITIONS}
    as_well = any((one.text, two.text) == ("as", "well") for one, two in pairwise(words))
    return found | {"also"} if as_well else found


def _swapped(ours: Sequence[Word], theirs: Sequence[Word]) -> bool:
    """Whether two have changed places: "Ada manages Bob", "Bob manages Ada".

    In the passive they have not ("Bob is managed by Ada"), nor around a bare "is".
    """
    left, right = _roles(ours), _roles(theirs)
    if left is None or right is None or (left.verb, left.passive) != (right.verb, right.passive):
        return False
    return (
        bool(left.before & right.after) and bool(right.before & left.after) and not left.before & right.before
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Roles:
    """What stands before the verb of a statement and what behind it."""

    verb: str
    passive: bool
    before: set[str]
    after: set[str]


def _roles(words: Sequence[Word]) -> _Roles | None:
    at = verb_at(words)
    if at is None:
        return None
    place = next((place for place in range(at, len(words)) if words[place].telling), None)
    if place is None:
        return None
    before, after = ({word.key for word in part if word.telling} for part in (words[:at], words[place + 1 :]))
    by = any(word.text == "by" for word in words[place + 1 : place + 2])
    done = place > at and (by or (words[at].text in BE and words[place].text.endswith(("ed", "en", "t"))))
    return _Roles(verb=words[place].key, passive=done, before=before, after=after)


def _replaced(
    ours: Sequence[Word],
    theirs: Sequence[Word],
    left: Sequence[tuple[Word, float]],
    right: Sequence[tuple[Word, float]],
) -> bool:
    """Whether in some place one says a thing and the other another: a name, a number, an unlike word."""
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
    first = next(one for one in words if one.sentence == word.sentence and one.telling)
    return like < (OTHER_SUBJECT if word is first else UNLIKE)
