"""The time a query asks about: `last week`, `in March`, `before the release`, relative to `now`.

English. Ambiguous words (`may`, `next to`, `the last of us`, `in 10 minutes`) are ignored: a missed window
costs little, because memories are found by their date words too, while a wrong one hides the answer. Without
a year the latest such time that has begun is meant. Days are those of the zone of `now`; parts of a day are
the whole day.

A question about a time that is over ("Who was the CTO in March?", "before Omar", "originally") asks for what
was valid then; `TimeAsked.past` says which time it means.
"""

import enum
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from math import inf
from typing import Literal

from vestige.cognition.text.analyser import query_terms, terms
from vestige.cognition.time import calendar
from vestige.cognition.time.calendar import EARLIEST, LATEST, SEASONS, Period, zone_in
from vestige.cognition.time.expressions import COUNT, Basis, Expression, counted, expressions, moved
from vestige.cognition.time.validity import in_past_tense, mentioned_validity
from vestige.core.candidates import Floats
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory, utc
from vestige.core.patterns import lazy_pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time asked about, from `start` up to but without `end`, and its characters in the query.

    `after` and `before` leave an end open: it is then LATEST or EARLIEST (time/calendar.py). `named` is the
    start of the time that the words name: what was so until July ended in July or just before it. `basis`
    says how certain it is: `in July` leaves the year open.
    """

    start: datetime
    end: datetime
    named: datetime
    span: tuple[int, int]
    basis: Basis

    def validity(self) -> tuple[float, float]:
        """The seconds in which something must have been valid; without a start, its last moment counts."""
        if self.start == EARLIEST:
            return -inf, self.named.timestamp()
        return self.start.timestamp(), self.end.timestamp()


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A time given by an event, which must be looked up: `before` or `after` `the release`."""

    relation: Literal["before", "after"]
    event: str
    span: tuple[int, int]


class PastKind(enum.StrEnum):
    """A past time that a query asks about: that of its window, the time before something (whose words it
    names), the beginning, or any time that is over."""

    THEN = "then"
    BEFORE = "before"
    FIRST = "first"
    EARLIER = "earlier"


@dataclass(frozen=True, slots=True, kw_only=True)
class PastAsked:
    """The past time that a query asks about, the words that say so, and for `BEFORE` what came next."""

    kind: PastKind
    words: str
    successor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAsked:
    """The time in a query: a window, an anchor, or neither; never both. `latest`: it asks for the newest.
    A question about now, about what is to come, or about time in general has no `past`."""

    window: Window | None = None
    anchor: Anchor | None = None
    latest: bool = False
    past: PastAsked | None = None


NO_TIME = TimeAsked()


_LATEST = lazy_pattern(
    r"\b(?:latest|newest|most recent(?:ly)?|current(?:ly)?|nowadays|these days|right now|as of now)\b",
    re.IGNORECASE,
)


def time_asked(text: str, now: datetime) -> TimeAsked:
    """The time that a query asks about, in UTC. Its days are those of the zone of `now`."""
    window, latest = _window(text, now) or _season(text, now), bool(_LATEST.search(text))
    past = None if latest else _past(text, window, now)
    return TimeAsked(window=window, anchor=None if window else _anchor(text), latest=latest, past=past)


# -- Windows of time in a query

_NEAR_CHARS = 40
_RELATION = lazy_pattern(
    rf"\b(?:(?:{COUNT}|the)\s+(?P<unit>day|week|month|year|\w{{2,6}}day)s?\s+(?=before|after))?"
    r"\b(?P<relation>since|before|prior\s+to|after|until|till|by|up\s+to|through|between|from)\s+"
    r"(?:(?:the|early|mid|late|year)[\s-]+)*$",
    re.IGNORECASE,
)
_LINK = lazy_pattern(
    r"\s*(and|to|until|till|through|[-–])\s*(?:(?:the|early|mid|late)[\s-]+)?", re.IGNORECASE
)
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
            named = phrase.one.read(now, now.date()).start if period.start == EARLIEST else period.start
            return Window(
                start=utc(period.start),
                end=utc(period.end),
                named=utc(named),
                span=phrase.span,
                basis=phrase.basis,
            )
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
        return Period(
            start=calendar.days(moved(period.end.date(), unit, -count), zone_in(period.end)).start,
            end=period.end,
        )
    last = calendar.days(moved(period.start.date(), unit, count), zone_in(period.start))
    return Period(start=period.start, end=last.end)


def _bounded(relation: str, period: Period, now: datetime) -> Period:
    match relation:
        case "since":
            today = calendar.days(now.date(), zone_in(now))
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

_BEFORE_OR_AFTER = lazy_pattern(r"\b(before|prior\s+to|until|till|after|since)\s+", re.IGNORECASE)
# `look after the dog`, `named after the river`, `take after our father`
_NOT_OF_TIME = lazy_pattern(
    r"\b(?:look|looks|looked|looking|named|take|takes|took|taking|go|goes|going|went|ask|asked)\s+$",
    re.IGNORECASE,
)
_WORD = lazy_pattern(r"[^\s.]+(?:\.+[^\s.]+)*")
_EVENT = lazy_pattern(r"[^\s?!,;:()\"]+(?:[ \t]+[^\s?!,;:()\"]+){0,9}")
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


# -- The past: what was valid then

_PRESENT = lazy_pattern(
    r"\b(?:is|are|am|do|does|will|shall|should|must|can|may|has|have)(?:n['’]t)?\b|"
    r"\b(?:who|what|where|when|how|which|it|that)['’]s\b|['’](?:re|ll|ve)\b",
    re.IGNORECASE,
)
_PAST = lazy_pattern(r"\b(?:was|were|did|had)(?:n['’]t)?\b", re.IGNORECASE)
# `The tool used to deploy` is in use; `we used to deploy` is over.
_FORMER = lazy_pattern(
    r"\b(?:formerly|former|ex-[a-z]+|previously|back\s+then|in\s+those\s+days|in\s+the\s+old\s+days|"
    r"in\s+the\s+past(?=\s*(?:[?.!,]|$))|did\b.{1,60}?\buse\s+to|"
    r"(?:i|we|you|they|he|she|it|there|who|what|which\s+\w+)\s+used\s+to)\b|"
    r"\b(?-i:[A-Z])\w+\s+used\s+to\b",
    re.IGNORECASE,
)
_FIRST = lazy_pattern(
    r"\b(?:originally|initially|at\s+first|in\s+the\s+beginning|original|initial)\b", re.IGNORECASE
)
_MAYBE_FORMER = lazy_pattern(
    r"\b(?:previous|earlier|when\b.{1,40}?\bstill|at\s+th(?:e|at)\s+time|before\s+(?:that|then)|before(?=\s*+(?:[?.!]\s*+)?$))",
    re.IGNORECASE,
)
_BEFORE = lazy_pattern(
    r"\b(?:before|prior\s+to|until|till)\s+(?!(?:wh\w+|how|that|then|now|recently)\b)(?P<what>[^?!,;:()]+)",
    re.IGNORECASE,
)
_IN_SEASON = lazy_pattern(rf"\b(?i:in|during)\s+(?:the\s+)?(?P<season>{'|'.join(SEASONS)})\b")


def _past(text: str, window: Window | None, now: datetime) -> PastAsked | None:
    """The past time that a query asks about. The tense decides where the words leave it open: "What must be
    done before a release?" asks about now."""
    if window is not None:
        # A month without a year may as well be the next one: "who is away in March", "tea in July".
        told = _in_past_tense(text)
        certain = window.basis is not Basis.GUESSED_YEAR and not _PRESENT.search(text)
        if window.end > now or not (told or certain):
            return None
        return PastAsked(kind=PastKind.THEN, words=text[slice(*window.span)])
    before = _BEFORE.search(text)
    if before is not None and _in_past_tense(f"{text[: before.start()]} {text[before.end() :]}"):
        what = before["what"].strip()
        return PastAsked(kind=PastKind.BEFORE, words=before[0].strip(), successor=what)
    for kind, said, certain in (
        (PastKind.EARLIER, _FORMER.search(text), True),
        (PastKind.FIRST, _FIRST.search(text), False),
        (PastKind.EARLIER, _MAYBE_FORMER.search(text), False),
    ):
        if said is not None and (certain or _in_past_tense(text)):
            return PastAsked(kind=kind, words=said[0])
    return None


def _in_past_tense(text: str) -> bool:
    """Whether a question is in the past tense. "What is the file called?" is not."""
    return bool(_PAST.search(text)) or (not _PRESENT.search(text) and in_past_tense(text))


def _season(text: str, now: datetime) -> Window | None:
    """The latest season that has begun, for a question about the past: "where were we in spring"."""
    said = _IN_SEASON.search(text)
    if said is None or not _in_past_tense(text):
        return None
    try:
        seasons = [calendar.season(said["season"], now.year - years, zone_in(now)) for years in (0, 1)]
    except (ValueError, OverflowError):
        return None
    begun = next(one for one in seasons if one.start <= now)
    start, end = utc(begun.start), utc(begun.end)
    return Window(start=start, end=end, named=start, span=said.span(), basis=Basis.GUESSED_YEAR)


# -- Memories that were valid at a past time

KNOWN_THEN = 0.5  # How well a memory that is valid now as well fits a time after it was stored.
NAMED = 0.5  # The share of the words after `before` that a memory must contain to be what came next.


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """When a memory was valid, in seconds; infinite where that is open.

    `stated`: it is only said in its text. `told` is when it happened or was stored (None for a turn of a
    thread), `lasts` whether it is a state rather than an event.
    """

    terms: frozenset[str]
    begin: float
    end: float
    stated: bool
    told: float | None
    lasts: bool

    def fit(self, begin: float, end: float, now: float) -> float:
        """How well it fits the time asked about, -1 to 1. If that has no start, its last moment counts."""
        if self.begin >= end or self.end <= begin:
            return -KNOWN_THEN if self.stated else -1.0
        if begin == -inf and self.end < end:
            return 0.0
        if self.end <= now:
            return 1.0
        known = self.begin > -inf or (self.lasts and self.told is not None and self.told < end)
        return KNOWN_THEN if known else 0.0


def stretch(memory: Memory) -> Stretch:
    """When a memory was valid: in its window, or as its text says."""
    begin, end = memory.valid_from, memory.valid_until
    told = memory.occurred_at or memory.created_at
    stated = memory.thread is None and begin is None and end is None
    if stated:
        begin, end = mentioned_validity(memory.content, told)
    return Stretch(
        terms=frozenset(terms(memory.content)),
        begin=begin.timestamp() if begin else -inf,
        end=end.timestamp() if end else inf,
        stated=stated,
        told=told.timestamp() if memory.thread is None else None,
        lasts=memory.occurred_at is None,
    )


def successor(past: PastAsked, stretches: Mapping[int, Stretch], replacing: Collection[int]) -> int | None:
    """The memory that has most of the words after `before`; of several one that replaced another, and the
    earliest of those: a later one may name the one that it follows."""
    wanted = frozenset(query_terms(past.successor))
    shares = {
        at: len(wanted & one.terms) / len(wanted)
        for at, one in stretches.items()
        if wanted and one.told is not None
    }
    found = max(shares, key=lambda at: (shares[at], at in replacing, -stretches[at].begin), default=None)
    return found if found is not None and shares[found] >= NAMED else None


def fits(
    window: tuple[float, float] | None, now: float, stretches: Mapping[int, Stretch], following: int | None
) -> dict[int, float]:
    """How well each memory fits the past time asked about, -1 to 1; `following` is what came next."""
    if following is not None:
        after = stretches[following]
        window = (-inf, after.told if after.begin == -inf and after.told is not None else after.begin)
    if window is None:
        return {at: float(one.end <= now) for at, one in stretches.items()}
    return {at: -1.0 if at == following else one.fit(*window, now) for at, one in stretches.items()}


def last_valid(past: PastAsked, chain: Mapping[int, Stretch], then: Floats) -> int:
    """Of a chain of replacements the memory that fits best: the last of several, or the first as asked."""
    sign = -1 if past.kind is PastKind.FIRST else 1
    return max(chain, key=lambda at: (then[at], sign * chain[at].end, -at))
