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
_FILLERS = frozenset("always must should please just really now".split())

SAME_SUBJECT = 0.6
"""The share of content words two statements must have in common to contradict each other …"""
SHARED_WORDS = 0.5
"""The share of the shorter one's content words that another wording of it keeps."""
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

# A number behind one of these names a thing; it is not a value that changed.
_LABELS = frozenset(
    "issue task ticket pr bug step chapter section part room day week question item line page id phase "
    "number no nr topic sprint lesson exercise test case user player order invoice building floor gate "
    "flight".split()
)

_CORRECTIONS = re.compile(
    r"\b(?:actually|correction|corrected|was wrong|were wrong|no longer|anymore|changed (?:to|from)|"
    r"switched (?:to|from)|migrated (?:to|from)|moved (?:to|from)|now uses?|now prefers?|instead of|"
    r"rather than|replaced (?:by|with)|superseded|updated? to|upgraded to|as of now|from now on|"
    r"used to|turns out)\b|^(?:update|correction|fix|edit)\s*:",
    re.IGNORECASE,
)


_PREAMBLE = re.compile(r"^\s*(?:actually|correction|update|fix|edit)\b\s*[,:–—-]?\s*", re.IGNORECASE)


def find_conflict(new: str, old: str) -> Conflict | None:
    """The first conflict found between a new and an old statement, or None."""
    new_words, old_words = _words(_PREAMBLE.sub("", new)), _words(old)
    corrects = announces_correction(new)
    for look in (_polarity, _values, _slot):
        found = look(new_words, old_words)
        if found:
            kind, detail, exact = found
            return Conflict(kind=kind, detail=detail, corrects=corrects, exact=exact)
    return None


def announces_correction(text: str) -> bool:
    """Whether a text says of itself that it changes something said before."""
    return bool(_CORRECTIONS.search(text))


def _words(text: str) -> list[str]:
    words = (word.lower().replace("’", "'") for word in _WORD.findall(text))
    return [_NUMBER_WORDS.get(word, word) for word in words]


_Found = tuple[ConflictKind, str, bool]


def _polarity(new: list[str], old: list[str]) -> _Found | None:
    new_set, old_set = set(new), set(old)
    for left in sorted(new_set - old_set):
        for right in sorted(old_set - new_set):
            opposites = frozenset((left, right))
            common = _in_common(new_set, old_set, opposites) if opposites in _ANTONYMS else 0.0
            if common >= SAME_SUBJECT:
                return "polarity", f"{right} → {left}", common == 1
    negated_new, negated_old = new_set & _NEGATIONS, old_set & _NEGATIONS
    if bool(negated_new) != bool(negated_old):
        common = _in_common(new_set, old_set, _NEGATIONS)
        if common >= SAME_SUBJECT:
            word = min(negated_new or negated_old)
            return "polarity", f"“{word}” in only one of them", common == 1
    return None


def _in_common(new: set[str], old: set[str], apart_from: frozenset[str]) -> float:
    """The share of content words that two statements have in common, apart from some.

    Chatter shares names and phrases and means nothing by "no" ("long time no see"); a statement that
    contradicts another is about the same things.
    """
    left, right = _content(new - apart_from), _content(old - apart_from)
    return len(left & right) / len(left | right) if left & right else 0.0


def _content(words: set[str]) -> set[str]:
    return {stem(word) for word in words if word not in STOP_WORDS and word not in _FILLERS}


def _values(new: list[str], old: list[str]) -> _Found | None:
    """One changed number in otherwise the same statement. Another name, date or numbered thing makes it
    a statement about something else: "Server alpha has 16 GB", "Server beta has 32 GB"."""
    left, right = _numbers(new), _numbers(old)
    changed = [(a, b) for a, b in zip(left, right, strict=False) if a != b]
    if len(left) != len(right) or len(changed) != 1:
        return None
    if _content(set(new) - set(left)) != _content(set(old) - set(right)):
        return None
    becomes, was = changed[0]
    return "value", f"{was} → {becomes}", True


def restates(new: str, old: str) -> bool:
    """Whether a text this similar can be another wording: the same numbers and dates, the same polarity,
    and the words both have in the same order ("Ada manages Bob" is not "Bob manages Ada")."""
    left, right = _words(new), _words(old)
    if _all_numbers(left) != _all_numbers(right):
        return False
    if bool(_NEGATIONS & set(left)) != bool(_NEGATIONS & set(right)):
        return False
    mine, theirs = _content(set(left)), _content(set(right))
    common = mine & theirs
    if len(common) < SHARED_WORDS * min(len(mine), len(theirs)) or not common:
        # A model gives texts in a script it does not know all the same vector.
        return False
    return _order(left, common) == _order(right, common)


def _all_numbers(words: list[str]) -> list[str]:
    return [word for word in words if _NUMBER.match(word)]


def _order(words: list[str], among: set[str]) -> list[str]:
    """The first occurrences of some stems, in order."""
    return list(dict.fromkeys(stem(word) for word in words if stem(word) in among))


def content_words(text: str) -> set[str]:
    """The stems of a text's words that carry its content."""
    return _content(set(_words(text)))


def shares_subject(new: str, old: str) -> bool:
    """Whether two texts have enough content words in common for one to correct the other."""
    left, right = content_words(new), content_words(old)
    return bool(left & right) and len(left & right) >= CORRECTABLE_SUBJECT * len(left | right)


def _numbers(words: list[str]) -> list[str]:
    """The numbers that are values, in order: not dates, not those that name a thing."""
    return [
        word
        for before, word in zip(["", *words], words, strict=False)
        if _NUMBER.match(word) and before not in _LABELS and not _DATE.match(word)
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
