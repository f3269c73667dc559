"""Corrections and later states: wording that announces a correction, reports a change, or rejects
something."""

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

from vestige.cognition.english.polarity import NEGATORS, contrasted, denied
from vestige.cognition.english.words import Word, opening, root
from vestige.cognition.text.word_lists import sections
from vestige.core.patterns import lazy_pattern

_LISTS = sections("vestige.cognition.gate", "corrections")
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"


def _any_of(lines: Iterable[str]) -> str:
    """A pattern for any of the phrases, which semicolons separate."""
    return "|".join(phrase.strip() for line in lines for phrase in line.split(";"))


# -- Corrections

_RETRACTED = _any_of(_LISTS["retracted"])
_EXCLAIMED = _any_of(_LISTS["exclaimed"])
_RETRACTIONS = lazy_pattern(
    rf"\b(?:{_RETRACTED})\b|^(?:{_EXCLAIMED})\b\s*[,:;.!–—-]|\bs/[^/\s]+/[^/\s]+/", re.IGNORECASE
)

# A change may also be the plain content of a statement.
_CHANGED = _any_of(_LISTS["changed"]).replace("MONTHS", _MONTHS).replace("DAYS", _DAYS)
# "Update:" announces news about something, not that what is known of anything like it was wrong.
_CHANGES = lazy_pattern(rf"\b(?:{_CHANGED})\b|^updated?\b\s*[,:;.!–—-]", re.IGNORECASE)

_ANNOUNCEMENT = _any_of(_LISTS["announcement"])
_PREAMBLE = lazy_pattern(rf"\s*(?:{_ANNOUNCEMENT})\b\s*[,:;.!–—-]*\s*", re.IGNORECASE)
_FIRST_CLAUSE = lazy_pattern(
    r"(.+?)(?:(?<![:;,.–—])[:;,.–—]++\s++|(?<!\s)\s++and\s++)(\S++\s++\S++\s++\S.*)", re.DOTALL
)
_ATTRIBUTION = lazy_pattern(
    r"^(?:\S+\s+){1,3}(?:says|said|told me|confirms|confirmed|mentioned|wrote|explained)(?:\s+that)?\s+",
    re.IGNORECASE,
)
_ADJUNCT = lazy_pattern(
    r"^(?:since|after|following|as of|starting(?: from| in| on)?)\s+(?:(?:the|our|this|last|next|my) )?[\w-]+"
    r"(?: (?:in|of|on) [\w-]+)?(?:,\s+|\s+(?=(?:the|our|my|we|i|he|she|they|it|[A-Z]\w*)\b))",
    re.IGNORECASE,
)
"""A phrase of time before the statement itself: "Since the reorg Ada leads the team"."""


def retracts(new: str, old: str) -> bool:
    """Whether a text says that an earlier statement was wrong or is over."""
    return not _retractions(opening(new)) <= _retractions(opening(old))


def reports_change(new: str, old: str) -> bool:
    """Whether a text reports a change and the old one did not."""
    return _changes(opening(new)) and not _changes(opening(old))


# What was, in a text that says nothing of now. "Klarna is where PayPal used to be" says what is there now.
_FORMER = lazy_pattern(
    r"\b(?:formerly|previously|used to|originally|historically|initially|back (?:in|when|then)|in those days"
    r"|years ago|in the past|at the time)\b|^(?:until|before) ",
    re.IGNORECASE,
)
_PRESENT = lazy_pattern(
    r"\b(?:now|today|tonight|nowadays|currently|instead|no longer|not|any ?more|these days|since|from|where"
    r"|new|went|switched|moved|replaced|changed)\b|n['’]t\b",
    re.IGNORECASE,
)


def states_past(text: str) -> bool:
    """Whether a text says only what was: "was formerly burned to DVD", "until 2023 we used Jenkins"."""
    said = opening(text)
    return _FORMER.search(said) is not None and _PRESENT.search(said) is None


def announces(text: str) -> bool:
    """Whether a text announces a correction of any kind."""
    return bool(_retractions(opening(text)))


def without_preamble(text: str) -> str:
    """The text without the words at its beginning that only announce a correction."""
    at = 0
    while (found := _PREAMBLE.match(text, at)) and at < found.end() < len(text):
        at = found.end()
    text = text[at:]
    clause = _FIRST_CLAUSE.match(text)
    if clause and _RETRACTIONS.search(clause[1]):
        text = clause[2]
    if _RETRACTIONS.search(text):
        text = _ATTRIBUTION.sub("", text, count=1)
    return _ADJUNCT.sub("", text, count=1)


# A text is compared with several others.
@lru_cache(maxsize=256)
def _retractions(text: str) -> frozenset[str]:
    return frozenset(found.lower() for found in _RETRACTIONS.findall(text))


@lru_cache(maxsize=256)
def _changes(text: str) -> bool:
    return bool(_CHANGES.search(text))


def rejected(words: Sequence[Word]) -> frozenset[int]:
    """The indices of content words said not to be so: "not X but Y", "instead of X", "switched from X"."""
    return _rejected(tuple(words))


# A text is compared with several others.
@lru_cache(maxsize=256)
def _rejected(words: tuple[Word, ...]) -> frozenset[int]:
    flags = denied(words, NEGATORS)
    return contrasted(words) | {at for at, word in enumerate(words) if word.is_content and flags[at]}


# -- Later states: a plan is done, an open matter is closed, a resident has left

# Under way, or still to come.
_UNDER_WAY = (
    r"(?:is|are|am|was|were|i'm|we're|they're|he's|she's|it's)(?: (?:currently|still|now|busy))? "
    r"(?!during|nothing|something|anything|everything|morning|evening|spring|string)\w{2,}ing"
)
_TO_COME = _any_of(_LISTS["to_come"])
# "Interviewing candidates" and "…, arriving Thursday" leave out who or what does.
_ELIDED = r"^\w{3,}ing|, (?:arriving|coming|starting|ending|closing)"
_OPEN = lazy_pattern(rf"\b(?:{_UNDER_WAY}|{_TO_COME}|{_ELIDED})\b", re.IGNORECASE)

# Over, or done.
_OVER = _any_of(_LISTS["over"])
_DONE = lazy_pattern(rf"\b(?:{_OVER})\b", re.IGNORECASE)


StateSteps = tuple[frozenset[str], frozenset[str]]
"""States, and the steps that end or begin them."""


def _steps(lines: Iterable[str]) -> tuple[StateSteps, ...]:
    """States and their steps, a line each."""
    sides = ([frozenset(map(root, side.split())) for side in line.split(" > ")] for line in lines)
    return tuple((states, steps) for states, steps in sides)


@cache  # made on first use: stemming the lists takes longer than a short command
def _endings() -> tuple[StateSteps, ...]:
    """Steps that end a state by themselves."""
    return _steps(_LISTS["endings"])


@cache
def _state_changes() -> tuple[StateSteps, ...]:
    """Steps that may be about something else, unless the statements share more than their subject."""
    return _steps(_LISTS["state_changes"])


@cache
def _states() -> frozenset[str]:
    return frozenset[str]().union(*(states for states, _ in (*_endings(), *_state_changes())))


def is_later(new: str, old: str) -> bool:
    """Whether a text reports the outcome of something that is open in the other, by their wording alone."""
    new, old = opening(new), opening(old)
    return bool(_opened(old) - _opened(new)) and bool(_over(new) - _over(old))


# A text is compared with several others.
@lru_cache(maxsize=256)
def _opened(text: str) -> frozenset[str]:
    return frozenset(found.lower() for found in _OPEN.findall(text))


@lru_cache(maxsize=256)
def _over(text: str) -> frozenset[str]:
    return frozenset(found.lower() for found in _DONE.findall(text))


def ends_state(new: Sequence[Word], old: Sequence[Word], *, near: bool) -> bool:
    """Whether a text reports a step that ends the state in the other: "is based in", "moved to". `near`: the
    two share more than their subject."""
    if any(denied(old)):
        return False  # what is not so cannot end
    ours, theirs = {word.key for word in new}, {word.key for word in old}
    if _states().isdisjoint(theirs):
        return False
    return any(
        theirs & states and (ours - theirs) & steps and not theirs & (steps - states)
        for states, steps in (*_endings(), *(_state_changes() if near else ()))
    )
