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
    likes tea", "Task 12 is done"), but the two do not say the same.
    """

    kind: ConflictKind
    detail: str
    corrects: bool


_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|v?\d+(?:[.:,/-]\d+)*%?", re.UNICODE)
_NUMBER = re.compile(r"^v?(\d+(?:[.:,/-]\d+)*%?)$")
_DATE = re.compile(r"^\d{4}(?:[-/]\d{1,2}){1,2}$|^(?:19|20)\d\d$|^\d{1,2}[:]\d{2}$")

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
    "sprint lesson exercise test case user player order invoice building floor gate flight".split()
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
            kind, detail = found
            return Conflict(kind=kind, detail=detail, corrects=corrects)
    return None


def announces_correction(text: str) -> bool:
    """Whether a text says of itself that it changes something said before."""
    return bool(_CORRECTIONS.search(text))


def _words(text: str) -> list[str]:
    return [word.lower().replace("’", "'") for word in _WORD.findall(text)]


def _polarity(new: list[str], old: list[str]) -> tuple[ConflictKind, str] | None:
    new_set, old_set = set(new), set(old)
    only_new, only_old = new_set - old_set, old_set - new_set
    for left in sorted(only_new):
        for right in sorted(only_old):
            opposites = frozenset((left, right))
            if opposites in _ANTONYMS and _agree_otherwise(new_set, old_set, opposites):
                return "polarity", f"{right} → {left}"
    negated_new, negated_old = new_set & _NEGATIONS, old_set & _NEGATIONS
    if bool(negated_new) != bool(negated_old) and _agree_otherwise(new_set, old_set, _NEGATIONS):
        word = min(negated_new or negated_old)
        return "polarity", f"“{word}” in only one of them"
    return None


def _agree_otherwise(new: set[str], old: set[str], apart_from: frozenset[str]) -> bool:
    """Whether two statements are about the same thing but for some words.

    Chatter shares names and phrases and means nothing by "no" ("long time no see"), so most content
    words have to be the same.
    """
    left, right = _content(new - apart_from), _content(old - apart_from)
    return bool(left & right) and len(left & right) >= SAME_SUBJECT * len(left | right)


def _content(words: set[str]) -> set[str]:
    return {stem(word) for word in words if word not in STOP_WORDS and word not in _FILLERS}


def shares_subject(new: str, old: str) -> bool:
    """Whether two texts have enough content words in common for one to correct the other."""
    left, right = _content(set(_words(new))), _content(set(_words(old)))
    return bool(left & right) and len(left & right) >= CORRECTABLE_SUBJECT * len(left | right)


def _values(new: list[str], old: list[str]) -> tuple[ConflictKind, str] | None:
    left, right = _numbers(new), _numbers(old)
    if not left or not right or left <= right or right <= left:
        return None
    if not _agree_otherwise(
        set(new), set(old), frozenset(word for word in (*new, *old) if _NUMBER.match(word))
    ):
        return None
    changed_new, changed_old = sorted(left - right), sorted(right - left)
    return "value", f"{', '.join(changed_old)} → {', '.join(changed_new)}"


def _numbers(words: list[str]) -> set[str]:
    found = set()
    for before, word in zip(["", *words], words, strict=False):
        match = _NUMBER.match(word)
        if match and before not in _LABELS and not _DATE.match(word):
            found.add(match.group(1))
    return found


def _slot(new: list[str], old: list[str]) -> tuple[ConflictKind, str] | None:
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
    return "slot", f"{' '.join(was)} → {' '.join(becomes)}"
