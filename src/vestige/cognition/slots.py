"""One changed value in an otherwise equal statement."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from vestige.cognition.attributes import Slot, takes_one
from vestige.cognition.clauses import verb_at
from vestige.cognition.polarity import NEGATORS
from vestige.cognition.verbs import ARTICLES, AUXILIARIES, BE, OWNERS, PLACES, PREPOSITIONS
from vestige.cognition.wording import TEMPORAL, Word

LONGEST = 150
"""Words of one statement; comparing word by word takes time that grows with their square."""
LONGEST_VALUE = 4
"""Telling words of a value; more is another statement."""

_LOOSE = ARTICLES | frozenset(
    "now currently always must should please just really do does did be also".split()
)
_TIMING = frozenset("since from in on by until of at starting".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What was said in one place and is said otherwise now.

    `single`: the attribute has one value at a time, so the new one ends the old one. `of_subject`: what
    differs stands before the verb, so that the two may be about different things.
    """

    was: tuple[Word, ...]
    becomes: tuple[Word, ...]
    single: bool
    of_subject: bool = False

    @property
    def detail(self) -> str:
        """The change for people."""
        return " → ".join(" ".join(word.text for word in run) for run in (self.was, self.becomes))

    @property
    def counted(self) -> bool:
        """Whether one quantity took the place of another."""
        return all(any(word.kind == "quantity" for word in run) for run in (self.was, self.becomes))


def find_change(new: Sequence[Word], old: Sequence[Word]) -> Change | None:
    """The one run of words that differs between two statements, if there is just one."""
    return _change(new, old) or _change(_turned(new), old)


def _turned(words: Sequence[Word]) -> Sequence[Word]:
    """ "Ada is the lead" as "The lead is Ada"; other statements as they are."""
    verb = next((at for at, word in enumerate(words) if word.text in BE), len(words))
    if verb + 1 >= len(words) or words[verb + 1].text not in OWNERS | {"the"}:
        return ()
    return (*words[verb + 1 :], words[verb], *words[:verb])


def _change(new: Sequence[Word], old: Sequence[Word]) -> Change | None:
    if not new or not old or max(len(new), len(old)) > LONGEST:
        return None
    left, right = _frame(old, new), _frame(new, old)
    matcher = SequenceMatcher(None, [w.key for w in left], [w.key for w in right], autojunk=False)
    blocks = [block for block in matcher.get_opcodes() if block[0] != "equal"]
    if not blocks:
        return None
    start, end = blocks[0][1], blocks[-1][2]
    was, becomes = left[start:end], right[blocks[0][3] : blocks[-1][4]]
    equal = [word for block in matcher.get_matching_blocks() for word in left[block.a : block.a + block.size]]
    if any(word.telling and word in equal for word in was) or not any(word.telling for word in equal):
        return None  # two changes with something in between, or nothing in common
    if not _is_value(was) or not _is_value(becomes) or _refines(becomes, was):
        return None
    slot = Slot(
        frame=left,
        start=start,
        end=end,
        was=was,
        becomes=becomes,
        definite=old[0].text not in ("a", "an") and (old[0].text != left[0].text or len(left[:start]) > 2),
        post=_is_post(was, old),
        one_of_a_kind=_is_one_of_a_kind(was, old) or _is_one_of_a_kind(becomes, new),
    )
    several = sum(block[0] == "replace" for block in blocks) > 1 or _is_phrase(was) or _is_phrase(becomes)
    several = several and not all(run[0].text in PLACES for run in (was, becomes))
    single = (slot.counted or not several) and takes_one(slot)
    verb = verb_at(left)
    before_verb = verb is not None and end <= verb
    return Change(was=tuple(was), becomes=tuple(becomes), single=single, of_subject=before_verb)


def _frame(words: Sequence[Word], others: Sequence[Word]) -> list[Word]:
    """The words without articles and fillers, and without a time that only this text tells."""
    kept = [word for word in words if word.text not in _LOOSE]
    if any(word.unit in TEMPORAL for word in others):
        return kept
    return [word for at, word in enumerate(kept) if not _tells_time(kept, at)]


def _tells_time(words: Sequence[Word], at: int) -> bool:
    """Whether a word is a time, or the preposition before one: "since March", "as of June"."""
    following = words[at + 1] if at + 1 < len(words) else None
    if words[at].text == "as" and following is not None:
        return following.text == "of"
    timed = following is not None and following.unit in TEMPORAL and words[at].text in _TIMING
    return words[at].unit in TEMPORAL or timed


def _is_value(run: Sequence[Word]) -> bool:
    if any(word.text in AUXILIARIES | NEGATORS for word in run):
        return False
    return 1 <= sum(word.telling for word in run) <= LONGEST_VALUE and len(run) <= LONGEST_VALUE + 2


def _is_phrase(run: Sequence[Word]) -> bool:
    """Whether a run has a preposition inside: "scared of flying" is no value but another attribute."""
    telling = [at for at, word in enumerate(run) if word.telling]
    return any(word.text in PREPOSITIONS for word in run[telling[0] : telling[-1]])


def _is_post(run: Sequence[Word], words: Sequence[Word]) -> bool:
    """Whether "is the" or "is our" follows a run: who it is, is one."""
    following = words[words.index(run[-1]) + 1 :]
    return len(following) > 1 and following[0].text in BE and following[1].text in OWNERS | {"the"}


def _is_one_of_a_kind(run: Sequence[Word], words: Sequence[Word]) -> bool:
    """Whether a value says what kind a thing is of: "a runner" can be "a vegetarian" too."""
    at = words.index(run[0])
    return at > 0 and words[at - 1].text in ("a", "an") and all(word.kind != "name" for word in run)


def _refines(becomes: Sequence[Word], was: Sequence[Word]) -> bool:
    """Whether the new value is the old one, said more exactly: "December", "December 2026"."""
    return all(any(one.says(other) for one in becomes) for other in was if other.telling)
