"""Does a new statement contradict an old one? The second signal beside similarity.

Opposites are neighbours in embedding space ("Always X" / "Never X": cosine .965; "PostgreSQL 16" /
"PostgreSQL 14": .94), so no threshold on similarity can tell a restatement from a correction. This
looks at the words: polarity, antonyms, changed numbers and versions, one changed value in an otherwise
equal sentence, and wording that announces a correction.
"""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from vestige.cognition.porter import stem
from vestige.cognition.text import STOP_WORDS

ConflictKind = Literal["polarity", "value", "slot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """How two statements differ in what they claim. `corrects`: the new one says so itself.

    A different `polarity` or `value` cannot hold beside the old one; one different `slot` may ("Ada
    likes tea", "Task 12 is done"), but the two do not say the same. `exact`: nothing else differs.
    """

    kind: ConflictKind
    detail: str
    corrects: bool
    exact: bool


# Words, numbers with their unit, identifiers such as LH400 whole, and signs outside ASCII (emoji).
_WORD = re.compile(r"[^\W_]+(?:[.:,/'’-][^\W_]+)*%?|[^\x00-\x7f\w\s]")
_NUMBER = re.compile(r"^v?(\d+(?:[.:,/-]\d+)*(?:%|[a-z]{1,2})?)$")
_DATE = re.compile(r"^\d{4}(?:[-/]\d{1,2}){1,2}$|^(?:19|20)\d\d$|^\d{1,2}:\d{2}$")
_NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
}

_CONTRACTIONS = (
    "don't doesn't didn't isn't aren't wasn't weren't won't can't couldn't shouldn't wouldn't hasn't haven't "
    "hadn't mustn't"
).split()
_NEGATIONS = frozenset(
    "not no never none neither nor cannot without avoid avoids stop stops stopped refuse refuses forbid "
    "forbidden deprecated wrong incorrect false disable disabled disables disallow disallowed "
    "unsupported".split()
) | frozenset(form for word in _CONTRACTIONS for form in (word, word.replace("'", "")))
_FILLERS = frozenset("a an the do does did always must should please just really now".split())
_AUXILIARIES = frozenset("is are was were be been being am has have had will would".split())
_VERBS = frozenset(
    "is are was were be has have had will can must should may needs need uses use runs run takes took costs "
    "cost holds hold lives live works work requires require supports support listens listen gets get".split()
)

SAME_SUBJECT = 0.6
"""The share of content words two statements must have in common to contradict each other …"""
CORRECTABLE_SUBJECT = 0.4
"""… and for one that announces a correction to be about the other."""

_ANTONYMS = frozenset(
    frozenset(pair.split())
    for pair in (
        "always never",
        "enable disable",
        "enabled disabled",
        "allow deny",
        "allow forbid",
        "allowed forbidden",
        "true false",
        "on off",
        "yes no",
        "like dislike",
        "likes dislikes",
        "like hate",
        "likes hates",
        "love hate",
        "loves hates",
        "prefer avoid",
        "prefers avoids",
        "use avoid",
        "increase decrease",
        "increased decreased",
        "start stop",
        "started stopped",
        "open closed",
        "passes fails",
        "passed failed",
        "works fails",
        "safe unsafe",
        "required optional",
        "public private",
        "synchronous asynchronous",
        "sync async",
        "cheap expensive",
        "right wrong",
        "correct incorrect",
        "valid invalid",
        "include exclude",
        "single married",
    )
)

_OPPOSITES = {
    word: frozenset(other for pair in _ANTONYMS if word in pair for other in pair if other != word)
    for pair in _ANTONYMS
    for word in pair
}

# A number behind one of these names a thing; it is not a value that changed.
_LABELS = frozenset(
    "issue task ticket pr bug step chapter section part room day week question item line page id phase "
    "number no nr topic sprint lesson exercise test case user player order invoice building floor gate "
    "flight".split()
)

# What says outright that something said before was wrong or is over …
_RETRACTIONS = re.compile(
    r"\b(?:actually|correction|corrected|was wrong|were wrong|no longer|anymore|as of now|"
    r"from now on|turns out)\b|^(?:update|correction|fix|edit)\s*:",
    re.IGNORECASE,
)
# … and what tells of a change, which may also be the plain content of a statement.
_CHANGES = re.compile(
    r"\b(?:(?:changed|switched|migrated|moved) (?:to|from)|now uses?|now prefers?|instead of|rather than|"
    r"replaced (?:by|with)|superseded|updated? to|upgraded to|used to)\b",
    re.IGNORECASE,
)


_STOP_STEMS = frozenset(stem(word) for word in STOP_WORDS)
_PREAMBLE = re.compile(r"^\s*(?:actually|correction|update|fix|edit)\b\s*[,:–—-]?\s*", re.IGNORECASE)


def find_conflict(new: str, old: str) -> Conflict | None:
    """The first conflict found between a new and an old statement, or None."""
    new_words, old_words = _words(_PREAMBLE.sub("", new)), _words(old)
    for look in (_polarity, _values, _slot):
        found = look(new_words, old_words)
        if found:
            kind, detail, exact = found
            # One other value may stand beside the old one unless the old one is taken back.
            corrects = retracts(new, old) if kind == "slot" else announces_correction(new, old)
            return Conflict(kind=kind, detail=detail, corrects=corrects, exact=exact)
    return None


def announces_correction(new: str, old: str) -> bool:
    """Whether a text says of itself that it changes something; what the old one says too is no news."""
    return retracts(new, old) or _news(_CHANGES, new, old)


def retracts(new: str, old: str) -> bool:
    """Whether a text says outright that something said before was wrong or is over."""
    return _news(_RETRACTIONS, new, old)


def _news(markers: re.Pattern[str], new: str, old: str) -> bool:
    said = {found.lower() for found in markers.findall(old)}
    return any(found.lower() not in said for found in markers.findall(new))


def _words(text: str) -> list[str]:
    words = (word.lower().replace("’", "'") for word in _WORD.findall(text))
    return [_NUMBER_WORDS.get(word, word) for word in words]


_Found = tuple[ConflictKind, str, bool]


def _polarity(new: list[str], old: list[str]) -> _Found | None:
    new_set, old_set = set(new), set(old)
    for left in sorted((new_set - old_set) & _OPPOSITES.keys()):
        for right in sorted((old_set - new_set) & _OPPOSITES[left]):
            opposites = frozenset((left, right))
            if _in_common(new_set, old_set, opposites) >= SAME_SUBJECT:
                return "polarity", f"{right} → {left}", _same_but_for(new, old, opposites)
    negated_new, negated_old = new_set & _NEGATIONS, old_set & _NEGATIONS
    if bool(negated_new) != bool(negated_old):
        common = _in_common(new_set, old_set, _NEGATIONS)
        if common >= SAME_SUBJECT:
            word = min(negated_new or negated_old)
            exact = _same_but_for(new, old, _NEGATIONS)
            return "polarity", f"“{word}” in only one of them", exact
    return None


def _in_common(new: set[str], old: set[str], apart_from: frozenset[str]) -> float:
    """The share of content words that two statements have in common, apart from some.

    Chatter shares names and phrases and means nothing by "no" ("long time no see"); a statement that
    contradicts another is about the same things.
    """
    left, right = _content(new - apart_from), _content(old - apart_from)
    return len(left & right) / len(left | right) if left & right else 0.0


def _content(words: set[str]) -> set[str]:
    stems = {stem(word) for word in words if word not in STOP_WORDS and word not in _FILLERS}
    return stems - _STOP_STEMS


def _same_but_for(new: list[str], old: list[str], apart_from: frozenset[str]) -> bool:
    """Whether two statements are the same, word for word, but for some words and for articles."""
    return _skeleton(new, apart_from) == _skeleton(old, apart_from)


def _skeleton(words: list[str], apart_from: frozenset[str]) -> list[str]:
    return [stem(word) for word in words if word not in apart_from and word not in _FILLERS]


def _values(new: list[str], old: list[str]) -> _Found | None:
    """One changed number in otherwise the same statement. Another name, date or numbered thing makes it
    a statement about something else: "Server alpha has 16 GB", "Server beta has 32 GB"."""
    left, right = _value_places(new), _value_places(old)
    changed = [(new[a], old[b]) for a, b in zip(left, right, strict=False) if new[a] != old[b]]
    if len(left) != len(right) or len(changed) != 1:
        return None
    if not _same_but_for(_masked(new, left), _masked(old, right), frozenset()):
        return None
    becomes, was = changed[0]
    return "value", f"{was} → {becomes}", True


def _masked(words: list[str], places: list[int]) -> list[str]:
    return ["#" if at in places else word for at, word in enumerate(words)]


def restates(new: str, old: str) -> bool:
    """Whether a text this similar is another wording: the same words in the same order, but for articles,
    auxiliaries, fillers and inflection.

    More than that similarity cannot vouch for: "Ada manages Bob" and "Bob manages Ada", "before" and
    "after", a left and a right lamp are as near to each other as paraphrases are.
    """
    left, right = _words(new), _words(old)
    return bool(left) and _skeleton(left, _AUXILIARIES) == _skeleton(right, _AUXILIARIES)


def content_words(text: str) -> set[str]:
    """The stems of a text's words that carry its content."""
    return _content(set(_words(text)))


def shares_subject(new: str, old: str) -> bool:
    """Whether two texts have enough content words in common for one to correct the other."""
    left, right = content_words(new), content_words(old)
    return bool(left & right) and len(left & right) >= CORRECTABLE_SUBJECT * len(left | right)


def _value_places(words: list[str]) -> list[int]:
    """Where the numbers that are values stand: not dates, not numbers that name a thing, be it by the
    word before them ("task 12") or as part of the subject ("Server 1 has …")."""
    verb = next((at for at, word in enumerate(words) if word in _VERBS), 0)
    return [
        at
        for at, word in enumerate(words)
        if _NUMBER.match(word)
        and at >= verb
        and (at == 0 or words[at - 1] not in _LABELS)
        and not _DATE.match(word)
    ]


def _slot(new: list[str], old: list[str]) -> _Found | None:
    """One short replaced run in otherwise equal sentences: "X is A" / "X is B"."""
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changed = [block for block in blocks if block[0] != "equal"]
    kept = sum(block[2] - block[1] for block in blocks if block[0] == "equal")
    if len(changed) != 1 or changed[0][0] != "replace" or kept < 3:
        return None
    _, old_start, old_end, new_start, new_end = changed[0]
    was, becomes = old[old_start:old_end], new[new_start:new_end]
    if len(was) > 3 or len(becomes) > 3 or [stem(w) for w in was] == [stem(w) for w in becomes]:
        return None
    return "slot", f"{' '.join(was)} → {' '.join(becomes)}", True
