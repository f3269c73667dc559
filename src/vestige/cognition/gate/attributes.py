"""Changed values: one value that differs between two otherwise equal statements, and whether it can have only
one."""

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import combinations

from vestige.cognition.english import words as english
from vestige.cognition.english.polarity import NEGATORS
from vestige.cognition.english.words import Word, verb_at
from vestige.core.lazy_dataclass import dataclass

# -- Slots: whether an attribute has one value ("Ada is based in") or many ("Ada speaks")

_BOUNDS = frozenset("than least most over under above below within after exceeding".split())
MEASURES = frozenset("bytes seconds months metres miles grams dollars euros pounds percent".split())
"""Units of quantities that measure something, rather than name it or give a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The words `start`..`end` of a statement's frame whose value changed.

    `definite`: the subject is one certain thing, by more than a bare name. `post`: "is the" or "is our"
    follows the value. `one_of_a_kind`: the value says what kind the thing is of.
    """

    frame: Sequence[Word]
    start: int
    end: int
    was: Sequence[Word]
    becomes: Sequence[Word]
    definite: bool
    post: bool
    one_of_a_kind: bool

    @property
    def counted(self) -> bool:
        """Whether only quantities differ."""
        return all(word.kind == "quantity" for word in (*self.was, *self.becomes) if word.is_content)


def takes_one(slot: Slot) -> bool:
    """Whether the changed slot has one value at a time."""
    if slot.one_of_a_kind:
        return False
    if slot.start == 0:
        return _is_post_slot(slot)
    if slot.counted and slot.was[0].unit in MEASURES and slot.frame[slot.start - 1].text in _BOUNDS:
        return True  # "files larger than 10 MB": a bound, wherever it stands
    label = _label(slot)
    if label and len(label) == slot.start and not slot.counted and _is_plural(label[-1]):
        return False  # "Known customers: Acme" is the first of them
    if label:
        return slot.counted or any(word.kind == "word" and not word.mark for word in label)
    verb = verb_at(slot.frame)
    if verb is None:
        # "Requests time out after 30s" has a measure, whatever its verb is; "Ran 5 km" was once.
        past = slot.frame[0].text in english.PAST_EVENTS or slot.frame[0].text.endswith("ed")
        return slot.counted and slot.was[0].unit in MEASURES and not past
    head = slot.frame[: slot.start]
    if (slot.start <= verb and verb != 0) or slot.frame[verb].text in english.PAST_EVENTS:
        return False
    if any(word.text in english.POSSIBLE for word in head):
        return False
    default = any(word.text == "default" for word in slot.frame)  # there is one default
    return default or _is_count(slot) or _is_asked_for(slot)


def _is_post_slot(slot: Slot) -> bool:
    """Whether the value is the holder of a post: "Ada leads the data team", "Ada is our contact"."""
    if slot.end >= len(slot.frame) or any(word.kind == "quantity" for word in (*slot.was, *slot.becomes)):
        return False
    verb, following = slot.frame[slot.end], slot.frame[slot.end + 1 : slot.end + 2]
    # "Ada runs the shop" is a post, "the parser runs in a thread" is where something is.
    leads = verb.key in english.ROLES and not any(word.text in english.PREPOSITIONS for word in following)
    return leads or slot.post


def _label(slot: Slot) -> Sequence[Word]:
    """The words before a colon and the value: "Log level: INFO"."""
    colon = next((at for at in range(slot.start, 0, -1) if slot.frame[at].mark in (":", "=")), 0)
    return slot.frame[:colon]


def _is_plural(word: Word) -> bool:
    return word.text.endswith("s") and not word.text.endswith(("ss", "us", "is"))


def _is_count(slot: Slot) -> bool:
    """Whether one quantity replaces another of its kind, and neither names a thing ("task 12")."""
    names = slot.was[-1].unit in ("number", "rank") and slot.frame[slot.start - 1].text in english.LABELS
    if not slot.counted or names:
        return False
    units = {slot.was[-1].unit, slot.becomes[-1].unit}
    return len(units) == 1 or "often" in units


def _is_asked_for(slot: Slot) -> bool:
    """Whether the words before the value require one: a copula, a setting, a verb of one object."""
    head = list(slot.frame[: slot.start])
    if len(head) > 3 and head[-1].text == "of" and head[-3].text not in english.BE:
        head = head[:-2]  # "the university of Vienna"
    while head and (head[-1].text in english.PREPOSITIONS | english.OWNERS | english.TITLES):
        head = head[:-1]
    if not head:
        return False
    preposition = slot.frame[len(head)].text if len(head) < slot.start else ""
    if head[-1].text in english.BE:
        return _is_predicate(slot, head, preposition)
    if len(head) > 1 and head[-2].text in english.AUXILIARIES - english.HAVE:
        agent = preposition in ("by", "under", "with") and head[-1].text.endswith(("d", "n", "t"))
        return head[-1].key in english.SETTINGS or (agent and head[-1].key not in english.MANY_DONE)
    return _is_object(slot, head, preposition)


def _is_predicate(slot: Slot, head: Sequence[Word], preposition: str) -> bool:
    """Whether a value after "is" is the only one. A bare name has many: "Ada is German", "Ada is tired"."""
    first = slot.was[0]
    if first.text.endswith("ing") and first.start == head[-1].end + 1:
        return False  # a present activity, one among others
    placed = [run[0].text in english.PREPOSITIONS for run in (slot.was, slot.becomes)]
    named = all(any(word.kind == "name" for word in run) for run in (slot.was, slot.becomes))
    counts = _has_quantity(slot.was) == _has_quantity(slot.becomes)
    if placed[0] != placed[1] or not (counts or named):
        return False  # where something is and what it is are two attributes
    if placed[0] or preposition or _has_quantity(slot.was):
        return True
    return slot.definite and not (_describes(slot.was) and _describes(slot.becomes))


def _has_quantity(run: Sequence[Word]) -> bool:
    return any(word.kind == "quantity" for word in run)


def _describes(run: Sequence[Word]) -> bool:
    """Whether a run is a plain adjective, of which a thing can have many: "slow", "expensive"."""
    plain = len(run) == 1 and run[0].kind == "word"
    return plain and (run[0].text in english.ADJECTIVES or run[0].text.endswith(english.ADJECTIVE_ENDINGS))


def _is_object(slot: Slot, head: Sequence[Word], preposition: str) -> bool:
    last = head[-1]
    if any(word.text in english.HAVE for word in head[-2:]):
        return False  # "has worked at" reports the past, of which there is much
    if (last.key, preposition) in english.SINGLE_WITH:
        return True
    if last.key in english.PLACED and all(run[0].text in english.PLACES for run in (slot.was, slot.becomes)):
        return True
    if last.key in english.SINGLE_VALUED and last.kind == "word":
        several = all(run[0].text in english.PLATFORMS for run in (slot.was, slot.becomes))
        return not several and (last.key, preposition) not in english.MANY_WITH
    placing = any(word.key in english.PLACING for word in head[-4:-1])
    if placing and preposition in ("in", "on", "at", "with", "to"):
        return True
    purpose = any(word.text in ("for", "as", "to") for word in slot.frame[slot.end :])
    return last.key in english.CHOSEN and purpose


# -- Swapped values: "A is the primary and B the replica", "B is the primary and A the replica"

_SPEAKERS = {"i": "i", "me": "i", "we": "we", "us": "we"}
_AND = frozenset("and while whereas".split())
MOST_PARTS = 6  # The limit of parts of a statement that is compared; a longer one is a list.


def find_swap(new: Sequence[Word], old: Sequence[Word]) -> tuple[str, str] | None:
    """Two words of one part of the old text that are in two parts of the new one, and so are two words of
    another part: the two parts have exchanged what they say. A word that occurs twice shows nothing."""
    ours, theirs = _parts(new), _parts(old)
    if not (1 < len(ours) <= MOST_PARTS and 1 < len(theirs) <= MOST_PARTS):
        return None
    now, was = _places(ours), _places(theirs)
    moves: dict[
        int, dict[int, str]
    ] = {}  # by part of the old text: the parts of the new one, each with a word
    for key in (one for one in now if one in was):
        moves.setdefault(was[key], {}).setdefault(now[key], ours[now[key]][key])
    for one, other in combinations(sorted(moves), 2):
        both = sorted(moves[one].keys() & moves[other].keys())
        if len(both) > 1:
            return moves[one][both[0]], moves[one][both[1]]
    return None


def _places(parts: Sequence[Mapping[str, str]]) -> dict[str, int]:
    """The part of each word that only one part has."""
    count = Counter(key for part in parts for key in part)
    return {key: at for at, part in enumerate(parts) for key in part if count[key] == 1}


def _parts(words: Sequence[Word]) -> list[dict[str, str]]:
    """The content words and speakers of each clause, and of what stands before and after "and": their normal
    forms with their texts."""
    parts: dict[tuple[int, int, int], dict[str, str]] = {}
    after = 0
    for word in words:
        after += word.text in _AND
        key = _SPEAKERS.get(word.text, word.key if word.is_content else "")
        if key:
            parts.setdefault((word.sentence, word.clause, after), {}).setdefault(key, word.text)
    return list(parts.values())


# -- Value changes

LONGEST = 150  # The limit of words in a statement; comparing word by word takes quadratic time.
LONGEST_VALUE = 4  # The limit of content words in a value; more is another statement.

_LOOSE = english.ARTICLES | frozenset(
    "now currently always must should please just really do does did be also".split()
)
_TIMING = frozenset("since from in on by until of at starting".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueChange:
    """The old and the new value in one slot.

    `single`: the attribute has one value at a time, so the new one ends the old one. `of_subject`: the
    difference is before the verb, so the two may be about different things.
    """

    was: tuple[Word, ...]
    becomes: tuple[Word, ...]
    single: bool
    of_subject: bool = False

    @property
    def detail(self) -> str:
        """The change as text."""
        return " → ".join(" ".join(word.text for word in run) for run in (self.was, self.becomes))

    @property
    def counted(self) -> bool:
        """Whether one quantity replaced another."""
        return all(any(word.kind == "quantity" for word in run) for run in (self.was, self.becomes))


def find_change(new: Sequence[Word], old: Sequence[Word]) -> ValueChange | None:
    """The one run of words that differs between two statements, if there is exactly one."""
    return _change(new, old) or _change(_turned(new), old)


def _turned(words: Sequence[Word]) -> Sequence[Word]:
    """ "Ada is the lead" as "The lead is Ada"; other statements unchanged."""
    verb = next((at for at, word in enumerate(words) if word.text in english.BE), len(words))
    if verb + 1 >= len(words) or words[verb + 1].text not in english.OWNERS | {"the"}:
        return ()
    return (*words[verb + 1 :], words[verb], *words[:verb])


def _change(new: Sequence[Word], old: Sequence[Word]) -> ValueChange | None:
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
    if any(word.is_content and word in equal for word in was) or not any(word.is_content for word in equal):
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
    several = several and not all(run[0].text in english.PLACES for run in (was, becomes))
    single = (slot.counted or not several) and takes_one(slot)
    verb = verb_at(left)
    before_verb = verb is not None and end <= verb
    return ValueChange(was=tuple(was), becomes=tuple(becomes), single=single, of_subject=before_verb)


def _frame(words: Sequence[Word], others: Sequence[Word]) -> list[Word]:
    """The words without articles and fillers, and without a time that only this text has."""
    kept = [word for word in words if word.text not in _LOOSE]
    if any(word.unit in english.TEMPORAL for word in others):
        return kept
    return [word for at, word in enumerate(kept) if not _is_time(kept, at)]


def _is_time(words: Sequence[Word], at: int) -> bool:
    """Whether a word is a time, or the preposition before one: "since March", "as of June"."""
    following = words[at + 1] if at + 1 < len(words) else None
    if words[at].text == "as" and following is not None:
        return following.text == "of"
    timed = following is not None and following.unit in english.TEMPORAL and words[at].text in _TIMING
    return words[at].unit in english.TEMPORAL or timed


def _is_value(run: Sequence[Word]) -> bool:
    if any(word.text in english.AUXILIARIES | NEGATORS for word in run):
        return False
    return 1 <= sum(word.is_content for word in run) <= LONGEST_VALUE and len(run) <= LONGEST_VALUE + 2


def _is_phrase(run: Sequence[Word]) -> bool:
    """Whether a run has a preposition inside: "scared of flying" is another attribute, not a value."""
    content = [at for at, word in enumerate(run) if word.is_content]
    return any(word.text in english.PREPOSITIONS for word in run[content[0] : content[-1]])


def _is_post(run: Sequence[Word], words: Sequence[Word]) -> bool:
    """Whether "is the" or "is our" follows a run: a post has one holder."""
    following = [word.text for word in words[words.index(run[-1]) + 1 :]]
    return len(following) > 1 and following[0] in english.BE and following[1] in english.OWNERS | {"the"}


def _is_one_of_a_kind(run: Sequence[Word], words: Sequence[Word]) -> bool:
    """Whether a value gives the kind of a thing: "a runner" can be "a vegetarian" too."""
    at = words.index(run[0])
    return at > 0 and words[at - 1].text in ("a", "an") and all(word.kind != "name" for word in run)


def _refines(becomes: Sequence[Word], was: Sequence[Word]) -> bool:
    """Whether the new value is the old one, said more exactly: "December", "December 2026"."""
    return all(any(one.says(other) for one in becomes) for other in was if other.is_content)
