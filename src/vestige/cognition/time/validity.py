"""Validity stated in a text: `since March`, `until Friday` (English).

Only one plain statement about the present or the future has a window, and its end is after it was said: an
end in the past is history, and history stays true. A missed window costs little, because the words are still
in the text; a wrong one hides a memory. So doubt means no window, and an end includes the whole day, month or
year it names.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Literal

from vestige.cognition.english.words import ARTICLES, BE, OWNERS, PAST_EVENTS, PREPOSITIONS, Word, words_of
from vestige.cognition.text.word_lists import pattern, sections, words
from vestige.cognition.time.calendar import Period
from vestige.cognition.time.expressions import WEEKDAY_NUMBERS, Basis, Expression, expressions
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory, utc
from vestige.core.patterns import lazy_pattern

# -- Assertions


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """What a sentence asserts: the index of its verb (0 without one, as in "On leave") and whether that is in
    the perfect tense ("has lived"), which gives a start but no end."""

    verb_at: int
    perfect: bool


_LISTS = sections("vestige.cognition.time", "validity")
# If it lasts, maybe; Ada says; deadlines and wishes; every year; the first since; not back until.
_NO_ASSERTION = pattern(_LISTS["no_assertion"])
_ASKING = words(_LISTS["asking"])

_SUBJECTS = frozenset("i we you they people".split())
_MODALS = frozenset("will shall can must do does".split())
_LINKS = frozenset("be been being get gets remain remains stay stays keep keeps".split()) | BE
_ADVERBS = frozenset("not also already now still never just currently again both all back".split())
# What a thing does as long as a state lasts; not what happens once.
_STANDING = words(_LISTS["standing"])
_THIRD_PERSON = frozenset({"studies", "teaches", "carries", "goes"} | {f"{verb}s" for verb in _STANDING})
_LASTED = words(_LISTS["lasted"])
_PROLONGED = frozenset({"extended", "prolonged", "renewed"})
_IRREGULAR = PAST_EVENTS - {"read", "hit"} | words(_LISTS["irregular"])
_NO_PAST = words(_LISTS["no_past"])
# What makes a note without a verb a state: "Code freeze until Friday", "Office closed until Monday".
_STATES = words(_LISTS["states"])
_IMPERATIVES = words(_LISTS["imperatives"])
_MAX_NOTE_WORDS = 12


def assertion(sentence: str) -> Assertion | None:
    """The assertion of a sentence without its words of time, or None if it may be anything else."""
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


def in_past_tense(text: str) -> bool:
    """Whether a verb of the text is in the past tense."""
    words = words_of(text)
    return any(_is_past(words, at) for at in range(len(words)))


def _having(words: Sequence[Word], at: int) -> Assertion | None:
    """Possession, or a lasting state: "has a cold", "has lived here", "has been extended"; not "has
    doubled"."""
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
    plural = before.endswith("s") and words[at - 1].is_content and words[at - 1].kind != "quantity"
    return word in _STANDING and (before in _SUBJECTS or plural)


def _is_note(words: Sequence[Word]) -> bool:
    said = [word.text for word in words]
    return len(said) <= _MAX_NOTE_WORDS and said[0] not in _IMPERATIVES and not _STATES.isdisjoint(said)


# -- Validity windows

MAX_CHARS = 300  # A longer text makes several statements.


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedValidity:
    """The start and the end (exclusive) that a text states, at least one of them, and its words."""

    valid_from: datetime | None
    valid_until: datetime | None
    words: str

    def by(self, now: datetime) -> "StatedValidity | None":
        """The part that a memory stores, without a future start: the statement that the office moves on
        Monday must be found today."""
        if self.valid_from is None or self.valid_from <= now:
            return self
        return replace(self, valid_from=None) if self.valid_until is not None else None


def stated_validity(text: str, said_at: datetime) -> StatedValidity | None:
    """The window a text states, in UTC, as understood when it was said, or None. Its days are those of the
    zone of `said_at`."""
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
    return StatedValidity(valid_from=start and utc(start), valid_until=end and utc(end), words=words)


def mentioned_validity(text: str, said_at: datetime) -> tuple[datetime | None, datetime | None]:
    """The start and the end (exclusive) that a text mentions, also of what is over: "We were in Bergen until
    2020". Open where it mentions none or several. It ranks a memory for a question about that time; it is
    too uncertain to be its window."""
    if len(text) > MAX_CHARS or not _HINT.search(text):
        return None, None
    try:
        windows = [_window(phrase, said_at) for phrase in _phrases(text)]
    except (ValueError, OverflowError):
        return None, None
    return windows[0] if len(windows) == 1 else (None, None)


def reworded(memory: Memory, content: str) -> Memory:
    """The memory with another text. A window from its old words is removed."""
    said = stated_validity(memory.content, memory.occurred_at or memory.created_at)
    kept = said.by(memory.created_at) if said else None
    same = kept is not None and (
        _is_near(kept.valid_from, memory.valid_from) and _is_near(kept.valid_until, memory.valid_until)
    )
    if not same:
        return replace(memory, content=content)
    return replace(memory, content=content, valid_from=None, valid_until=None)


def _is_near(said: datetime | None, stored: datetime | None) -> bool:
    """Whether the two are the same end of a window: the words were read in another zone, maybe."""
    if said is None or stored is None:
        return said is stored
    return abs(said - stored) <= _A_DAY


# -- Times in a phrase

_A_DAY = timedelta(days=1)
_A_YEAR = timedelta(days=365)
_SIX_DAYS = timedelta(days=6)
_COUNTED = lazy_pattern(r"\s+[a-z]+s\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Time:
    """An expression of time, as written, and whether it is one only after `until` or the like: `may` and
    `2000 rows` are not."""

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
        _Time(one=one, written=text[one.start : one.end], is_meant=not one.loose or _is_meant(text, one))
        for one in expressions(text)
    )


def _is_meant(text: str, one: Expression) -> bool:
    counts = text[one.start : one.end].isdecimal() and _COUNTED.match(text, one.end)
    return not counts and not text[one.start].islower()


# -- Phrases that limit a validity

_HINT = lazy_pattern(
    r"\b(?:since|as of|as from|from|between|starting|beginning|effective|until|till?|through|thru|"
    r"for the (?:next|rest|remainder))\b",
    re.IGNORECASE,
)
# Code, markup, log lines, several lines.
_MACHINE = lazy_pattern(
    r"[{}<>=|\\]|;\s*$|\(\)|::|\b(?:ERROR|WARN|WARNING|INFO|DEBUG|TRACE|FATAL)\b|"
    r"^\s*(?:[\[$>#*]|//|--|\d{4}-\d\d-\d\d[T ]\d\d:)|\S\s*\n\s*\S"
)
# What others say, code and addresses in a sentence, and what is said by the way.
_ASIDE = lazy_pattern(
    r"`[^`]*`|\"[^\"]*\"|“[^“”]*”|«[^«»]*»|(?<!\w)'[^']*'(?!\w)|‘[^‘’]*’(?!\w)|\([^()]*\)|(?<!\w)\w++://\S+"
)

_PART = (
    r"(?:(?:the\s+)?(?:very\s+)?(?P<edge>start|beginning|middle|end)\s+of\s+|(?P<part>early|mid|late)[\s-]+)?"
)
_PARTS = {"early": 0, "start": 0, "beginning": 0, "mid": 1, "middle": 1, "late": 2, "end": 2}
_LEAD = lazy_pattern(
    r"\b(?:(?P<until>(?:up\s+)?(?:until|till?)|through|thru|up\s+to\s+and\s+including)|"
    r"(?P<since>since)|(?P<starting>(?:(?:effective|starting|beginning)(?:\s+(?:from|on|in|as\s+of))?|"
    r"as\s+of|as\s+from|with\s+effect\s+from))|"
    rf"(?P<range>from|between))\s+{_PART}(?P<the>the\s+)?$",
    re.IGNORECASE,
)
# `For the next two weeks`: the time says itself that it begins now.
_FOR = lazy_pattern(r"\bfor\s+$", re.IGNORECASE)
_NEXT = lazy_pattern(r"(?:the\s+)?next\s+\S+\s", re.IGNORECASE)
_NEAR_CHARS = 40
_LINK = lazy_pattern(rf"\s*(?:and|to|until|till?|through|thru|[-–])\s*{_PART}", re.IGNORECASE)
_ONWARDS = lazy_pattern(r"\s+(?:on(?:wards?)?|forwards?)\b(?!\s+(?:the|a|my|our)\b)", re.IGNORECASE)
_END_OF_UNIT = lazy_pattern(
    r"\b(?:(?:until|till?|through|thru)\s+(?:the\s+)?end\s+of\s+the|"
    r"for\s+the\s+(?:rest|remainder)\s+of\s+th(?:e|is))\s+"
    r"(?P<unit>week|month|quarter|year)\b(?!\s+of)",
    re.IGNORECASE,
)
# `from 10 to 20 May` is one expression.
_DAYS = lazy_pattern(r"(?<![\d-])\d{1,2}(?:st|[nr]d|th)?\s*(?:-|–|to|and)\s*\d{1,2}(?![\d-])", re.IGNORECASE)
_VALID = lazy_pattern(r"\b(?:valid|available|binding|in\s+(?:effect|force)|appl(?:y|ies))\s+$", re.IGNORECASE)

Kind = Literal["until", "since", "starting", "range", "planned"]
_KINDS: tuple[Kind, ...] = ("until", "since", "starting", "range")


@dataclass(frozen=True, slots=True, kw_only=True)
class _LeadPhrase:
    """The times after lead words of a kind (two in a range), the third of each that is meant, their span."""

    kind: Kind
    times: tuple[_Time, ...]
    parts: tuple[int | None, ...]
    start: int
    end: int

    def of(self, at: int, period: Period) -> Period:
        """The part of a period that the words name: the last third of it for `late` and `the end of`."""
        part = self.parts[at]
        return period if part is None else period.third(part)


def _phrases(text: str) -> list[_LeadPhrase]:
    """The phrases of a start or an end, from left to right."""
    found = [
        _LeadPhrase(
            kind="until",
            times=_times(f"this {match['unit']}"),
            parts=(None,),
            start=match.start(),
            end=match.end(),
        )
        for match in _END_OF_UNIT.finditer(text)
    ]
    times = _times(text)
    taken = 0
    for time, following in zip_longest(times, times[1:]):
        if time.one.start < taken or not time.is_meant:
            continue
        near = max(taken, time.one.start - _NEAR_CHARS)
        if (span := _FOR.search(text, near, time.one.start)) and _NEXT.match(time.written):
            taken = time.one.end
            found.append(
                _LeadPhrase(kind="until", times=(time,), parts=(None,), start=span.start(), end=taken)
            )
            continue
        lead = _LEAD.search(text, near, time.one.start)
        # `Since the March release` is since that release.
        named = lead is not None and lead["the"] and not time.is_of
        phrase = _phrase(text, lead, time, following) if lead and not named else None
        if phrase is not None:
            taken = phrase.end
            found.append(phrase)
    return sorted(found, key=lambda phrase: phrase.start)


def _phrase(text: str, lead: re.Match[str], time: _Time, following: _Time | None) -> _LeadPhrase | None:
    kind = next(kind for kind in _KINDS if lead[kind])
    end = time.one.end
    if kind == "range":
        if following is not None and (link := _LINK.fullmatch(text, end, following.one.start)):
            return _LeadPhrase(
                kind=kind,
                times=(time, following),
                parts=(_third(lead), _third(link)),
                start=lead.start(),
                end=following.one.end,
            )
        if not _DAYS.search(time.written):
            kind = "starting"
    onwards = _ONWARDS.match(text, end)
    # `The notes from March` are of then; `from March on`, `from March we …` and `valid from March` begin, and
    # so does what is `from May 2027` before that.
    if lead["range"] and kind == "starting":
        before = text[: lead.start()]
        if lead["range"].casefold() != "from":
            return None
        if not (onwards or _leads(before) or _VALID.search(before)):
            if time.one.basis is not Basis.CALENDAR:
                return None
            kind = "planned"
    return _LeadPhrase(
        kind=kind,
        times=(time,),
        parts=(_third(lead),),
        start=lead.start(),
        end=onwards.end() if onwards else end,
    )


def _third(lead: re.Match[str]) -> int | None:
    """The third that the words before a time name: 0 for `early`, 1 for `mid`, 2 for `late`."""
    return _PARTS.get((lead["edge"] or lead["part"] or "").casefold())


def _leads(before: str) -> bool:
    """Whether nothing but a heading comes before."""
    return not before.strip() or before.rstrip().endswith(":")


# -- Asserted phrases, and their windows

# `Three weeks until Friday`, `we have until Friday`, `not until Friday`, `at least until Friday`; and `the
# fair is from 5 to 9 May` is a date, which stays true.
_NO_END = lazy_pattern(
    r"\b(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|left|is|are|be|have|has|not|least|or)\s+$|"
    r"n['’]t\s+$",
    re.IGNORECASE,
)
# What may follow a time at the end. `Until Friday's release` and `until March break` name events, and what
# comes after `and` or `then` is not over with the rest.
_TAIL = lazy_pattern(
    r"\s*(?:[.!,:–—-]\s*)?"
    r"(?:(?:at|in|on|for|with|due|because of|noon|midnight|morning|afternoon|evening|night|inclusive|only)\b"
    r"(?:(?!\b(?:and|but|then|after|when|while|so|which|who|or|instead|because(?! of))\b).)*)?",
    re.IGNORECASE,
)


def _are_asserted(text: str, phrases: Sequence[_LeadPhrase]) -> bool:
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


def _window(phrase: _LeadPhrase, said_at: datetime) -> tuple[datetime | None, datetime | None]:
    """The start and the end of a phrase; ValueError in doubt."""
    first, last = phrase.times[0], phrase.times[-1]
    match phrase.kind:
        case "until":
            return None, phrase.of(0, first.coming(said_at)).end
        case "starting":
            return phrase.of(0, first.nearest(said_at)).start, None
        case "planned":
            start = phrase.of(0, first.past(said_at)).start
            if start <= said_at:
                raise ValueError("`from` with a past time says where something comes from")
            return start, None
        case "since":
            start = phrase.of(0, first.past(said_at)).start
            if start > said_at:
                raise ValueError("`since` needs a past time")
            return start, None
        case "range":
            if first.recurs and last.recurs and phrase.parts == (None, None):
                raise ValueError("a recurring range is not a validity window")
            end = last.coming(said_at)
            begin = first.coming(said_at) if first.is_weekday else first.one.read(said_at, end.start.date())
            return phrase.of(0, begin).start, phrase.of(-1, end).end
