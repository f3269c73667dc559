"""Since when and until when a text says that it is true: `since March`, `until Friday` (English).

Only one plain statement of what is or will be so has a window, and its end lies after it was said: an end
that was past by then is history, and history stays true. What is missed costs little, because the words
still stand in the text; what is wrongly taken hides a memory. So doubt means no window, and an end takes in
the whole day, month or year it names.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Literal

from vestige.cognition.assertions import assertion
from vestige.cognition.date_periods import WEEKDAY_NUMBERS
from vestige.cognition.dates import Basis, Expression, expressions
from vestige.cognition.periods import Period
from vestige.models import Memory

MAX_CHARS = 300
"""A longer text says more than one thing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """From when on and until when (exclusive) a text says it is true, at least one of them, and its words."""

    valid_from: datetime | None
    valid_until: datetime | None
    words: str

    def by(self, now: datetime) -> "Told | None":
        """What of it may be kept with a memory. A start to come may not: who is told today that the office
        moves on Monday must find it today."""
        if self.valid_from is None or self.valid_from <= now:
            return self
        return replace(self, valid_from=None) if self.valid_until is not None else None


def validity_told(text: str, said_at: datetime) -> Told | None:
    """The window a text gives itself, as understood when it was said; None when it gives none."""
    if len(text) > MAX_CHARS or not _HINT.search(text) or _MACHINE.search(text):
        return None
    plain = _ASIDE.sub(lambda aside: "x" * len(aside[0]), text)
    phrases = _phrases(plain)
    if not phrases or not _are_asserted(plain, phrases):
        return None
    try:
        windows = [_window(phrase, said_at) for phrase in phrases]
    except (ValueError, OverflowError):
        return None
    starts = [start for start, _ in windows if start is not None]
    ends = [end for _, end in windows if end is not None]
    if len(starts) > 1 or len(ends) > 1:
        # Two ends are those of two things.
        return None
    start, end = next(iter(starts), None), next(iter(ends), None)
    if end is not None and (end <= said_at or (start is not None and start >= end)):
        return None
    words = " … ".join(text[phrase.start : phrase.end].rstrip(".") for phrase in phrases)
    return Told(valid_from=start, valid_until=end, words=words)


def reworded(memory: Memory, content: str) -> Memory:
    """The memory with another text. A window that its old words gave goes with them."""
    said = validity_told(memory.content, memory.occurred_at or memory.created_at)
    told = said.by(memory.created_at) if said else None
    if told is None or (told.valid_from, told.valid_until) != (memory.valid_from, memory.valid_until):
        return replace(memory, content=content)
    return replace(memory, content=content, valid_from=None, valid_until=None)


# -- times ---------------------------------------------------------------------------------------

_A_YEAR = timedelta(days=365)
_SIX_DAYS = timedelta(days=6)
_COUNTED = re.compile(r"\s+[a-z]+s\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Time:
    """An expression of time, as written, and whether it is one where `until` or the like leads to it: `may`
    and `2000 rows` are not."""

    one: Expression
    written: str
    is_meant: bool

    @property
    def recurs(self) -> bool:
        """Whether it names a day of every week or a month of every year."""
        yearless = self.one.basis is Basis.GUESSED_YEAR and not any(sign.isdecimal() for sign in self.written)
        return yearless or self.is_weekday

    @property
    def is_of(self) -> bool:
        """Whether `the` goes with it: the 5th, the summer of 2023."""
        return self.written[0].isdecimal() or " of " in self.written

    @property
    def is_weekday(self) -> bool:
        return self.written.casefold() in WEEKDAY_NUMBERS

    def past(self, said_at: datetime) -> Period:
        """The latest such time that has begun, where there are several."""
        return self.one.read(said_at, said_at.date())

    def coming(self, said_at: datetime) -> Period:
        """The first such time that is not over, where there are several."""
        if self.is_weekday:
            return self.past(said_at + _SIX_DAYS)
        begun = self.past(said_at)
        if self.one.basis is not Basis.GUESSED_YEAR or begun.end > said_at:
            return begun
        return self.one.read(said_at, (said_at + _A_YEAR).date())

    def nearest(self, said_at: datetime) -> Period:
        """The one of several that begins nearest; of weekdays the coming one."""
        begun, coming = self.past(said_at), self.coming(said_at)
        if self.is_weekday or coming.start - said_at < said_at - begun.start:
            return coming
        return begun


def _times(text: str) -> tuple[_Time, ...]:
    return tuple(
        _Time(
            one=one,
            written=text[one.start : one.end],
            is_meant=not one.loose or _is_meant(text, one),
        )
        for one in expressions(text)
    )


def _is_meant(text: str, one: Expression) -> bool:
    counts = text[one.start : one.end].isdecimal() and _COUNTED.match(text, one.end)
    return not counts and not text[one.start].islower()


# -- phrases -------------------------------------------------------------------------------------

_HINT = re.compile(
    r"\b(?:since|as of|as from|from|between|starting|beginning|effective|until|till?|through|thru)\b",
    re.IGNORECASE,
)
# Code, markup, log lines, several lines.
_MACHINE = re.compile(
    r"[{}<>=|\\]|;\s*$|\(\)|::|\b(?:ERROR|WARN|WARNING|INFO|DEBUG|TRACE|FATAL)\b|"
    r"^\s*(?:[\[$>#*]|//|--|\d{4}-\d\d-\d\d[T ]\d\d:)|\S\s*\n\s*\S"
)
# What others say, code and addresses in a sentence, and what is said by the way.
_ASIDE = re.compile(
    r"`[^`]*`|\"[^\"]*\"|“[^”]*”|«[^»]*»|(?<!\w)'[^']*'(?!\w)|‘[^’]*’(?!\w)|\([^()]*\)|\w+://\S+"
)

_PART = r"(?:(?:the\s+)?(?:very\s+)?(?:start|beginning|middle|end)\s+of\s+|(?:early|mid|late)[\s-]+)?"
_LEAD = re.compile(
    r"\b(?:(?P<until>(?:up\s+)?(?:until|till?)|through|thru|up\s+to\s+and\s+including)|"
    r"(?P<since>since)|(?P<starting>(?:(?:effective|starting|beginning)(?:\s+(?:from|on|in|as\s+of))?|"
    r"as\s+of|as\s+from|with\s+effect\s+from))|"
    rf"(?P<range>from|between))\s+{_PART}(?P<the>the\s+)?$",
    re.IGNORECASE,
)
_NEAR_CHARS = 40
_LINK = re.compile(rf"\s*(?:and|to|until|till?|through|thru|[-–])\s*{_PART}", re.IGNORECASE)
_ONWARDS = re.compile(r"\s+(?:on(?:wards?)?|forwards?)\b(?!\s+(?:the|a|my|our)\b)", re.IGNORECASE)
_END_OF_UNIT = re.compile(
    r"\b(?:until|till?|through|thru)\s+(?:the\s+)?end\s+of\s+the\s+"
    r"(?P<unit>week|month|quarter|year)\b(?!\s+of)",
    re.IGNORECASE,
)
# `from 10 to 20 May` is one expression.
_DAYS = re.compile(r"(?<![\d-])\d{1,2}(?:st|[nr]d|th)?\s*(?:-|–|to|and)\s*\d{1,2}(?![\d-])", re.IGNORECASE)
_VALID = re.compile(r"\b(?:valid|available|binding|in\s+(?:effect|force)|appl(?:y|ies))\s+$", re.IGNORECASE)

Kind = Literal["until", "since", "starting", "range"]
_KINDS: tuple[Kind, ...] = ("until", "since", "starting", "range")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Phrase:
    """The times that lead words of a kind lead to (two in a range), and where all of it stands."""

    kind: Kind
    times: tuple[_Time, ...]
    start: int
    end: int


def _phrases(text: str) -> list[_Phrase]:
    """What begins or ends something, from left to right."""
    found = [
        _Phrase(kind="until", times=_times(f"this {match['unit']}"), start=match.start(), end=match.end())
        for match in _END_OF_UNIT.finditer(text)
    ]
    times = _times(text)
    taken = 0
    for time, following in zip_longest(times, times[1:]):
        if time.one.start < taken or not time.is_meant:
            continue
        near = max(taken, time.one.start - _NEAR_CHARS)
        lead = _LEAD.search(text, near, time.one.start)
        # `Since the March release` is since that release.
        named = lead is not None and lead["the"] and not time.is_of
        phrase = _phrase(text, lead, time, following) if lead and not named else None
        if phrase is not None:
            taken = phrase.end
            found.append(phrase)
    return sorted(found, key=lambda phrase: phrase.start)


def _phrase(text: str, lead: re.Match[str], time: _Time, following: _Time | None) -> _Phrase | None:
    kind = next(kind for kind in _KINDS if lead[kind])
    end = time.one.end
    if kind == "range":
        if following is not None and _LINK.fullmatch(text, end, following.one.start):
            return _Phrase(kind=kind, times=(time, following), start=lead.start(), end=following.one.end)
        if not _DAYS.search(time.written):
            kind = "starting"
    onwards = _ONWARDS.match(text, end)
    # `The notes from March` are of then; `from March on`, `from March we …` and `valid from March` begin.
    if lead["range"] and kind == "starting":
        before = text[: lead.start()]
        if not (onwards or _leads(before) or _VALID.search(before)) or lead["range"].casefold() != "from":
            return None
    return _Phrase(kind=kind, times=(time,), start=lead.start(), end=onwards.end() if onwards else end)


def _leads(before: str) -> bool:
    """Whether nothing but a heading stands before."""
    return not before.strip() or before.rstrip().endswith(":")


# -- what is asserted ----------------------------------------------------------------------------

# `Three weeks until Friday`, `we have until Friday`, `not until Friday`, `at least until Friday`; and `the
# fair is from 5 to 9 May` tells when it is, which stays true.
_NO_END = re.compile(
    r"\b(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|left|is|are|be|have|has|not|least|or)\s+$|"
    r"n['’]t\s+$",
    re.IGNORECASE,
)
# What may follow a time at the end. `Until Friday's release` and `until March break` name events, and what
# comes after `and` or `then` is not over with the rest.
_TAIL = re.compile(
    r"\s*(?:[.!,:–—-]\s*)?"
    r"(?:(?:at|in|on|for|with|due|because of|noon|midnight|morning|afternoon|evening|night|inclusive|only)\b"
    r"(?:(?!\b(?:and|but|then|after|when|while|so|which|who|or|instead|because(?! of))\b).)*)?",
    re.IGNORECASE,
)


def _are_asserted(text: str, phrases: Sequence[_Phrase]) -> bool:
    """Whether the text asserts one thing, and the times are about it."""
    rest = text
    for phrase in phrases:
        rest = f"{rest[: phrase.start]}{' ' * (phrase.end - phrase.start)}{rest[phrase.end :]}"
    asserted = assertion(rest)
    if asserted is None:
        return False
    for phrase in phrases:
        before = text[: phrase.start]
        if not (_leads(before) or phrase.start > asserted.verb_at):
            return False
        if phrase.kind in ("until", "range") and (asserted.perfect or _NO_END.search(before)):
            return False
    final = phrases[-1]
    return _leads(rest[: final.start]) or bool(_TAIL.fullmatch(rest, final.end))


def _window(phrase: _Phrase, said_at: datetime) -> tuple[datetime | None, datetime | None]:
    """The start and the end that a phrase tells; ValueError when there is a doubt."""
    first, last = phrase.times[0], phrase.times[-1]
    match phrase.kind:
        case "until":
            return None, first.coming(said_at).end
        case "starting":
            return first.nearest(said_at).start, None
        case "since":
            start = first.past(said_at).start
            if start > said_at:
                raise ValueError("nothing lasts since a time to come")
            return start, None
        case "range":
            if first.recurs and last.recurs:
                raise ValueError("Monday to Friday and May to September come again")
            end = last.coming(said_at)
            begin = first.coming(said_at) if first.is_weekday else first.one.read(said_at, end.start.date())
            return begin.start, end.end
