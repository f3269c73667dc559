"""Can an attribute have one value only? "Ada lives in" can, "Ada speaks" cannot.

A guess by classes of verbs and frames (verbs.py). What is not recognised is taken to have many values.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from vestige.cognition.clauses import verb_at
from vestige.cognition.verbs import (
    ADJECTIVE_ENDINGS,
    ADJECTIVES,
    AUXILIARIES,
    BE,
    CHOSEN,
    HAVE,
    LABELS,
    MANY_DONE,
    MANY_WITH,
    OWNERS,
    PAST_EVENTS,
    PLACED,
    PLACES,
    PLACING,
    PLATFORMS,
    POSSIBLE,
    PREPOSITIONS,
    ROLES,
    SETTINGS,
    SINGLE_VALUED,
    SINGLE_WITH,
    TITLES,
)
from vestige.cognition.wording import Word

_BOUNDS = frozenset("than least most over under above below within after exceeding".split())
MEASURES = frozenset("bytes seconds months metres miles grams dollars euros pounds percent".split())
"""Units of quantities that measure something, and do not name it or say when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Where a statement has another value than before: words `start`..`end` of its frame.

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
        """Whether quantities alone differ."""
        return all(word.kind == "quantity" for word in (*self.was, *self.becomes) if word.telling)


def takes_one(slot: Slot) -> bool:
    """Whether the place that changed has one value at a time."""
    if slot.one_of_a_kind:
        return False
    if slot.start == 0:
        return _is_post(slot)
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
        return slot.counted and slot.was[0].unit in MEASURES and not _is_past(slot.frame[0])
    head = slot.frame[: slot.start]
    if (slot.start <= verb and verb != 0) or slot.frame[verb].text in PAST_EVENTS:
        return False
    if any(word.text in POSSIBLE for word in head):
        return False
    return _is_count(slot) or _is_usual(slot) or _is_asked_for(slot)


def _is_post(slot: Slot) -> bool:
    """Whether the value is who holds a post: "Ada leads the data team", "Ada is our contact"."""
    if slot.end >= len(slot.frame) or any(word.kind == "quantity" for word in (*slot.was, *slot.becomes)):
        return False
    verb, following = slot.frame[slot.end], slot.frame[slot.end + 1 : slot.end + 2]
    # "Ada runs the shop" is a post, "the parser runs in a thread" is where something is.
    leads = verb.key in ROLES and not any(word.text in PREPOSITIONS for word in following)
    return leads or slot.post


def _label(slot: Slot) -> Sequence[Word]:
    """The words before a colon and the value: "Log level: INFO"."""
    colon = next((at for at in range(slot.start, 0, -1) if slot.frame[at].mark in (":", "=")), 0)
    return slot.frame[:colon]


def _is_plural(word: Word) -> bool:
    return word.text.endswith("s") and not word.text.endswith(("ss", "us", "is"))


def _is_past(word: Word) -> bool:
    return word.text in PAST_EVENTS or word.text.endswith("ed")


def _is_count(slot: Slot) -> bool:
    """Whether one quantity stands for another of its kind, and neither names a thing ("task 12")."""
    names = slot.was[-1].unit in ("number", "rank") and slot.frame[slot.start - 1].text in LABELS
    if not slot.counted or names:
        return False
    units = {slot.was[-1].unit, slot.becomes[-1].unit}
    return len(units) == 1 or "often" in units


def _is_usual(slot: Slot) -> bool:
    """Whether it is what happens if nothing else is said: there is one default."""
    return any(word.text == "default" for word in slot.frame)


def _is_asked_for(slot: Slot) -> bool:
    """Whether what comes before the value asks for one: a copula, a setting, a verb of one object."""
    head = list(slot.frame[: slot.start])
    if len(head) > 3 and head[-1].text == "of" and head[-3].text not in BE:
        head = head[:-2]  # "the university of Vienna"
    while head and (head[-1].text in PREPOSITIONS | OWNERS | TITLES):
        head = head[:-1]
    if not head:
        return False
    preposition = slot.frame[len(head)].text if len(head) < slot.start else ""
    if head[-1].text in BE:
        return _is_predicate(slot, head, preposition)
    if len(head) > 1 and head[-2].text in AUXILIARIES - HAVE:
        agent = preposition in ("by", "under", "with") and head[-1].text.endswith(("d", "n", "t"))
        return head[-1].key in SETTINGS or (agent and head[-1].key not in MANY_DONE)
    return _is_object(slot, head, preposition)


def _is_predicate(slot: Slot, head: Sequence[Word], preposition: str) -> bool:
    """Whether a value after "is" is the only one. A bare name has many: "Ada is German", "Ada is tired"."""
    first = slot.was[0]
    if first.text.endswith("ing") and first.start == head[-1].end + 1:
        return False  # what somebody does now, among other things
    placed = [run[0].text in PREPOSITIONS for run in (slot.was, slot.becomes)]
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
    return plain and (run[0].text in ADJECTIVES or run[0].text.endswith(ADJECTIVE_ENDINGS))


def _is_object(slot: Slot, head: Sequence[Word], preposition: str) -> bool:
    last = head[-1]
    if any(word.text in HAVE for word in head[-2:]):
        return False  # "has worked at" tells what was done, and one can have done much
    if (last.key, preposition) in SINGLE_WITH:
        return True
    if last.key in PLACED and all(run[0].text in PLACES for run in (slot.was, slot.becomes)):
        return True
    if last.key in SINGLE_VALUED and last.kind == "word":
        several = all(run[0].text in PLATFORMS for run in (slot.was, slot.becomes))
        return not several and (last.key, preposition) not in MANY_WITH
    if any(word.key in PLACING for word in head[-4:-1]) and preposition in ("in", "on", "at", "with", "to"):
        return True
    purpose = any(word.text in ("for", "as", "to") for word in slot.frame[slot.end :])
    return last.key in CHOSEN and purpose
