"""The time a query asks about: `last week`, `in March`, `before the release`, relative to `now`.

English. Ambiguous words (`may`, `next to`, `the last of us`, `in 10 minutes`) are ignored: a missed window
costs little, because memories are found by their date words too, while a wrong one hides the answer. Without
a year the latest such time that has begun is meant. The user's zone is not known, so parts of a day are the
whole day.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Literal

from vestige.cognition.time import calendar
from vestige.cognition.time.calendar import EARLIEST, LATEST, Period
from vestige.cognition.time.expressions import COUNT, Basis, Expression, counted, expressions, moved


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time asked about, from `start` up to but without `end`, and its characters in the query.

    `after` and `before` leave an end open: it is then LATEST or EARLIEST (time/calendar.py). `basis` says how
    certain it is: `in July` leaves the year open.
    """

    start: datetime
    end: datetime
    span: tuple[int, int]
    basis: Basis


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A time given by an event, which must be looked up: `before` or `after` `the release`."""

    relation: Literal["before", "after"]
    event: str
    span: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAsked:
    """The time in a query: a window, an anchor, or neither; never both. `latest`: it asks for the newest."""

    window: Window | None = None
    anchor: Anchor | None = None
    latest: bool = False


_LATEST = re.compile(
    r"\b(?:latest|newest|most recent(?:ly)?|current(?:ly)?|nowadays|these days|right now|as of now)\b",
    re.IGNORECASE,
)


def time_asked(text: str, now: datetime) -> TimeAsked:
    """The time that a query asks about; `now` is in UTC."""
    window = _window(text, now)
    return TimeAsked(
        window=window, anchor=None if window else _anchor(text), latest=bool(_LATEST.search(text))
    )


# -- Windows of time in a query

_NEAR_CHARS = 40
_RELATION = re.compile(
    rf"\b(?:(?:{COUNT}|the)\s+(?P<unit>day|week|month|year|\w{{2,6}}day)s?\s+(?=before|after))?"
    r"\b(?P<relation>since|before|prior\s+to|after|until|till|by|up\s+to|through|between|from)\s+"
    r"(?:(?:the|early|mid|late|year)[\s-]+)*$",
    re.IGNORECASE,
)
_LINK = re.compile(r"\s*(and|to|until|till|through|[-–])\s*(?:(?:the|early|mid|late)[\s-]+)?", re.IGNORECASE)
_POSSESSIVE = ("'s", "’s")
_ANCHORING = frozenset({"since", "before", "prior", "after", "until", "till"})


def _window(text: str, now: datetime) -> Window | None:
    """The window of the first time in the text that the calendar has; one with a year goes first."""
    for phrase in sorted(_phrases(text), key=lambda phrase: phrase.basis is not Basis.CALENDAR):
        try:
            period = _period(phrase, now)
        except (ValueError, OverflowError):
            continue
        if period.start < period.end:
            return Window(start=period.start, end=period.end, span=phrase.span, basis=phrase.basis)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Phrase:
    """An expression with the words before it and, in a range, the one after it."""

    before: re.Match[str] | None
    one: Expression
    last: Expression | None
    span: tuple[int, int]

    @property
    def relation(self) -> str:
        return self.before["relation"].casefold().split()[0] if self.before else ""

    @property
    def basis(self) -> Basis:
        if self.last is None or self.one.basis is Basis.CALENDAR:
            return self.one.basis
        return self.last.basis


def _phrases(text: str) -> Iterator[_Phrase]:
    found = expressions(text)
    taken = 0
    for one, following in zip_longest(found, found[1:]):
        if one.start < taken:
            continue
        near = max(0, one.start - _NEAR_CHARS)
        before = _RELATION.search(text[near : one.start])
        last = following if following is not None and _is_range(text, before, one, following) else None
        if last is None and (one.loose or _describes_event(text, before, one)):
            continue
        taken = (last or one).end
        start = near + before.start() if before else one.start
        yield _Phrase(before=before, one=one, last=last, span=(start, taken))


def _is_range(text: str, before: re.Match[str] | None, one: Expression, following: Expression) -> bool:
    """Whether the two are the ends of a range: `between March and May`, `March to May 2023`."""
    link = _LINK.fullmatch(text[one.end : following.start])
    if link is None or (one.loose and following.loose):
        return False
    return link[1].casefold() != "and" or (before is not None and before["relation"].casefold() == "between")


def _describes_event(text: str, before: re.Match[str] | None, one: Expression) -> bool:
    """Whether it belongs to an anchor, as in `before last week's release`."""
    related = before is not None and before["relation"].casefold().split()[0] in _ANCHORING
    return related and text.startswith(_POSSESSIVE, one.end)


def _period(phrase: _Phrase, now: datetime) -> Period:
    if phrase.last is not None:
        last = phrase.last.read(now, now.date())
        return phrase.one.read(now, min(now, last.start).date()).to(last)
    period = _bounded(phrase.relation, phrase.one.read(now, now.date()), now)
    if phrase.before and phrase.before["unit"]:
        count = counted(phrase.before)[1] if phrase.before["count"] else 1
        return _cut(period, phrase.before["unit"].casefold(), count)
    return period


def _cut(period: Period, unit: str, count: int) -> Period:
    """The part before or after that the words give: `the week before 3 August`."""
    if unit not in ("day", "month", "year"):
        unit = "week"
    if period.start == EARLIEST:
        return Period(start=calendar.days(moved(period.end.date(), unit, -count)).start, end=period.end)
    return Period(start=period.start, end=calendar.days(moved(period.start.date(), unit, count)).end)


def _bounded(relation: str, period: Period, now: datetime) -> Period:
    match relation:
        case "since":
            today = calendar.days(now.date())
            return Period(start=period.start, end=today.end if period.start < today.end else LATEST)
        case "before" | "prior":
            return Period(start=EARLIEST, end=period.start)
        case "after":
            return Period(start=period.end, end=LATEST)
        case "until" | "till" | "by" | "up" | "through":
            return Period(start=EARLIEST, end=period.end)
        case _:
            return period


# -- Anchors

_BEFORE_OR_AFTER = re.compile(r"\b(before|prior\s+to|until|till|after|since)\s+", re.IGNORECASE)
# `look after the dog`, `named after the river`, `take after our father`
_NOT_OF_TIME = re.compile(
    r"\b(?:look|looks|looked|looking|named|take|takes|took|taking|go|goes|going|went|ask|asked)\s+$",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\s.]+(?:\.+[^\s.]+)*")
_EVENT = re.compile(r"[^\s?!,;:()\"]+(?:[ \t]+[^\s?!,;:()\"]+){0,9}")
_DETERMINERS = frozenset("the our my his her their your its this that a an version".split())
_NO_EVENTS = frozenset(
    "all long hours effects fact beginning end start while bit moment few couple same something anything "
    "nothing everything thing things morning evening spring".split()
)
_NEXT_CLAUSE = frozenset(
    "did do does was were is are has have had what who when where why how which and but or so then".split()
)


def _anchor(text: str) -> Anchor | None:
    for match in _BEFORE_OR_AFTER.finditer(text):
        word = match[1].casefold().split()[0]
        if word == "after" and _NOT_OF_TIME.search(text[max(0, match.start() - _NEAR_CHARS) : match.start()]):
            continue
        words, cut = _event_words(text, match.end())
        # What follows `since` may as well be a reason: `since the server is down`.
        if _is_event(words) and not (word == "since" and cut):
            end = words[-1].end()
            return Anchor(
                relation="after" if word in ("after", "since") else "before",
                event=text[match.end() : end],
                span=(match.start(), end),
            )
    return None


def _event_words(text: str, at: int) -> tuple[list[re.Match[str]], bool]:
    """The words of the phrase that begins here, and whether another clause ends it."""
    phrase = _EVENT.match(text, at)
    words: list[re.Match[str]] = []
    for word in _WORD.finditer(text, at, phrase.end()) if phrase else ():
        if words and word[0].casefold() in _NEXT_CLAUSE:
            return words, True
        words.append(word)
        if text[word.end() : word.end() + 1] == ".":
            break
    return words, False


def _is_event(words: Sequence[re.Match[str]]) -> bool:
    """Whether it is a noun phrase. A clause (`before we start`, `before deploying`) may be about how
    something is done."""
    said = [word[0].casefold() for word in words[:3]]
    if len(said) < 2 or _NO_EVENTS.intersection(said[:2]):
        return False
    return said[0] in _DETERMINERS or any(word.endswith(_POSSESSIVE) for word in said)
