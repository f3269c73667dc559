"""Whether a sentence asserts that something is so, now or from some time on (English).

A guess by word classes, and a cautious one: what happened, is supposed, reported, asked, wanted or usual is
no assertion of that kind, and neither is a sentence with two verbs, of which only one might be meant.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from vestige.cognition.verbs import ARTICLES, BE, OWNERS, PAST_EVENTS, PREPOSITIONS
from vestige.cognition.wording import Word, words_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """What a sentence asserts: where its verb stands (0 where it has none, as in "On leave") and whether that
    is in the perfect tense ("has lived"), which tells since when, but not until when."""

    verb_at: int
    perfect: bool


# If it lasts, maybe; Ada says; deadlines and wishes; every year; the first since; not back until.
_NO_ASSERTION = re.compile(
    r"\b(?:if|unless|whether|suppos\w+|assum\w+|provided|might|may|maybe|perhaps|possibly|probably|presumably|"
    r"likely|would|could|should|hope\w*|thinks?|believes?|guess|wonders?|expect\w*|seems?|apparently|allegedly|"
    r"rumou?rs?|unclear|unsure|not sure|tentativ\w+|for example|e\.g|"
    r"says?|claims?|asks?|tells?|according to|"
    r"deadlines?|due(?! to)|remind\w*|to-?do|finish\w*|submit\w*|deliver\w*|respond\w*|reply|rsvp|wait\w*|"
    r"postpon\w+|delay\w*|defer\w*|moved|resched\w+|adjourn\w*|pushed|goals?|targets?|forecasts?|"
    r"(?:is|are|needs?|has|have|wants?|plans?|planning|tr(?:y|ies)) to|"
    r"every|each|always|usually|normally|typically|generally|often|daily|weekly|monthly|yearly|annual(?:ly)?|"
    r"weekdays|weekends|(?:mon|tues|wednes|thurs|fri|satur|sun)days|"
    r"first|best|worst|the (?:most|least)|highest|lowest|longest|largest|biggest|smallest|"
    r"(?:it|it's) (?:has )?been|at least|at the (?:earliest|latest))\b|"
    r"(?:\b(?:not|never)|n['’]t)\b.*\b(?:start|begin|open|launch|ship|arrive|return|happen|back|come)\b",
    re.IGNORECASE,
)
_ASKING = frozenset(
    "is are am do does did will can has have was were who what when where why how which whose shall "
    "must".split()
)

_SUBJECTS = frozenset("i we you they people".split())
_MODALS = frozenset("will shall can must do does".split())
_LINKS = frozenset("be been being get gets remain remains stay stays keep keeps".split()) | BE
_ADVERBS = frozenset("not also already now still never just currently again both all back".split())
# What a thing does as long as a state lasts; not what happens once.
_STANDING = frozenset(
    "work live run last hold apply stay remain lead manage cover use cost own rent support report study "
    "teach host serve need require belong maintain charge pay earn share head chair reside weigh "
    "contain keep accept allow offer include sit sleep drive take prefer".split()
)
_THIRD_PERSON = frozenset({"studies", "teaches", "carries"} | {f"{verb}s" for verb in _STANDING})
_LASTED = frozenset(
    "been had lived worked used run led owned held stayed known managed studied taught served hosted "
    "supported kept needed required covered rented maintained employed belonged reported driven "
    "preferred".split()
)
_PROLONGED = frozenset({"extended", "prolonged", "renewed"})
_IRREGULAR = PAST_EVENTS - {"read", "hit"} | frozenset(
    "was were did knew thought began became chose forgot held meant rose sang sat sent shot stood stole "
    "stuck swore threw understood woke wore grew drew blew hung hid lay lent rang rode shook shone sank "
    "dealt fought bought sought stayed lived went".split()
)
_NO_PAST = frozenset(
    "need speed hundred indeed exceed proceed breed bleed embed feed seed shed agreed".split()
)
# What makes a note without a verb a state: "Code freeze until Friday", "Office closed until Monday".
_STATES = frozenset(
    "leave vacation holiday holidays sabbatical freeze frozen closed closure open shut valid off away "
    "out on-call oncall maintenance offer sale discount lease contract trial subscription embargo ban "
    "moratorium support supported unavailable available blocked disabled enabled paused suspended "
    "reserved booked rented extended deprecated limited lockdown quarantine probation secondment "
    "internship outage downtime price prices fee rate policy rule busy remote".split()
)
_IMPERATIVES = frozenset(
    "keep leave use hold stay do don't dont avoid let make remember run put set continue stop please "
    "call email send take give work try hide show turn".split()
)
_MAX_NOTE_WORDS = 12


def assertion(sentence: str) -> Assertion | None:
    """What a sentence, freed of the words that tell the time, asserts; None when it may be anything else."""
    words = words_of(sentence)
    if not words or words[-1].sentence or "?" in sentence or _NO_ASSERTION.search(sentence):
        return None
    if words[0].text in _ASKING or any(_is_past(words, at) for at in range(len(words))):
        return None
    verbs = [at for at in range(len(words)) if _is_finite(words, at)]
    if not verbs:
        return Assertion(verb_at=0, perfect=False) if _is_note(words) else None
    if len(verbs) > 1:
        return None
    verb = words[verbs[0]]
    if verb.text not in ("has", "have"):
        return Assertion(verb_at=verb.start, perfect=False)
    return _having(words, verbs[0])


def _having(words: Sequence[Word], at: int) -> Assertion | None:
    """What is had, or has lasted: "has a cold", "has lived here", "has been extended"; not "has doubled"."""
    after = [word.text for word in words[at + 1 : at + 4] if word.text not in _ADVERBS]
    if not after:
        return None
    prolonged = _PROLONGED.intersection(after[:2])
    if prolonged or not (after[0].endswith("ed") or after[0] in _LASTED | _IRREGULAR):
        return Assertion(verb_at=words[at].start, perfect=False)
    return Assertion(verb_at=words[at].start, perfect=True) if after[0] in _LASTED else None


def _is_past(words: Sequence[Word], at: int) -> bool:
    """Whether a word is a verb in the past tense: "worked" is, "is closed" and "the shared hold" are not."""
    word = words[at].text
    if word in ("was", "were", "did", "had"):
        return word != "had" or not at or words[at - 1].text not in ("has", "have")
    if word == "used" and not (at and words[at - 1].text in _LINKS) and _follows(words, at, "to"):
        return True
    regular = word.endswith("ed") and len(word) > 4 and word not in _NO_PAST
    if not (regular or word in _IRREGULAR) or words[at].kind in ("name", "quantity"):
        return False
    if at == 0 or word in _STATES or words[at - 1].text in ARTICLES | OWNERS | PREPOSITIONS:
        return False
    return not any(before.text in _LINKS | {"has", "have"} for before in words[max(0, at - 3) : at])


def _follows(words: Sequence[Word], at: int, text: str) -> bool:
    return at + 1 < len(words) and words[at + 1].text == text


def _is_finite(words: Sequence[Word], at: int) -> bool:
    """Whether a word is the verb of a clause: "is", "will", "works", "we use"."""
    word, before = words[at].text, words[at - 1].text if at else ""
    if word in _MODALS or word in ("is", "are", "am", "has", "have"):
        return before not in _MODALS | {"to", "not"}
    if not at or words[at].kind != "word" or before in ARTICLES | OWNERS | PREPOSITIONS | _MODALS | {"not"}:
        return False
    if word in _THIRD_PERSON:
        return True
    plural = before.endswith("s") and words[at - 1].telling and words[at - 1].kind != "quantity"
    return word in _STANDING and (before in _SUBJECTS or plural)


def _is_note(words: Sequence[Word]) -> bool:
    said = [word.text for word in words]
    return len(said) <= _MAX_NOTE_WORDS and said[0] not in _IMPERATIVES and not _STATES.isdisjoint(said)
