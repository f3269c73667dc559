"""Parsing an intention: what to do, and when, from one English sentence.

`Remind me to rotate the keys every monday at 10:00` is a task and a rule. Only words at the edge of a
sentence are read as a time, and they must be understood completely; `when the tests pass` needs a `remind
me`, because most sentences with a `when` are about something else. `When I open *.sql, run the migrations`
does not: it begins with a context and goes on with a task. The caller gets what was understood, in words.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from vestige.cognition.intentions import triggers
from vestige.cognition.intentions.intention import Priority
from vestige.cognition.intentions.leftover_time import begins_with_time, ends_in_time, time_like
from vestige.cognition.intentions.parse_context import context_in
from vestige.cognition.intentions.parse_time import clock_in, deadline_in, moment_in, rule_in
from vestige.cognition.time.expressions import COUNTS, WEEKDAY_NUMBERS
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

READ_CHARS = 500  # A longer text is not a sentence.
CLAUSE_CHARS = 300  # A longer clause is not a condition.


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """The task and its trigger; `words` are the words of time, `unread` those that look like one and were not
    understood."""

    description: str
    trigger: triggers.Trigger
    deadline: datetime | None = None
    priority: Priority | None = None
    words: str | None = None
    unread: str | None = None


_ASKING = (
    r"(?:please )?(?:(?:remind|ping|nudge|notify|alert) me|don['’]?t (?:let me )?forget|remember|make sure|"
    r"(?:set |add |create )?(?:me )?(?:an? reminder|reminder(?=:)))(?: (?:to|that|about|of|for)\b| ?[:,])?"
)
_ASKED = lazy_pattern(rf"{_ASKING} ", re.IGNORECASE)
_RESOLVED = lazy_pattern(r"i (?:should|must|need to|have to|want to|ought to) ", re.IGNORECASE)
# The colon of a clock time joins nothing; after a clock time or `tomorrow` a space is enough.
_JOINT = lazy_pattern(
    rf" ?(?:,|:(?!(?<=[0-9]:)[0-9]{{2}})) ?(?:{_ASKING} )?| (?:{_ASKING}|to(?! (?:{'|'.join(COUNTS)}) )) |"
    r"(?:(?<=[0-9]:[0-9]{2})|(?<=[0-9][ap]m)|(?<= [ap]m)|(?<=noon)|(?<=utc)|(?<=tomorrow)|"
    r"(?<=tonight)|(?<=morning)|(?<=afternoon)|"
    r"(?<=evening)) ",
    re.IGNORECASE,
)
_STARTS = lazy_pattern(
    r"(?<![\w:./-])(?:in|at|on|over|by|before|until|within|deadline|(?:(?:is|are) )?due|not? later|after|"
    r"later|eod|(?:the )?end of|day after|weekdays|weekends|"
    r"from|every|each|hourly|daily|weekly|monthly|yearly|"
    r"annually|today|tonight|tomorrow|this|next|the (?:day|next|[0-9])|noon|midnight|when|whenever|if|once|"
    rf"while|as soon|[0-9]|(?:half|{'|'.join(COUNTS)}) |(?:mon|tues|wednes|thurs|fri|satur|sun)days?|"
    r"(?:mon|tues?|wed|thu(?:rs)?|fri|sat|sun)\b|"
    r"jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
    re.IGNORECASE,
)
_WHEN = r"(?:when(?:ever)?|if|once|while|as soon as|(?:the )?next time) "
_CONDITION = rf"{_WHEN}(?P<clause>.+)"
_ON_CONDITION = lazy_pattern(_CONDITION, re.IGNORECASE)
_TIME_ON_CONDITION = lazy_pattern(rf"(?P<time>.+?),? {_CONDITION}", re.IGNORECASE)
_OWN_ACT = lazy_pattern(rf"{_WHEN}(?:i|we)\b", re.IGNORECASE)
_FILE_PATTERN = lazy_pattern(r" \S*\*\.\w+(?: files?)?$")
_SUBJECT = lazy_pattern(
    r"(?:it|i|we|you|they|he|she|there|this|that|these|those|the|an?|nothing|everything|my|our|your)\b",
    re.IGNORECASE,
)
_TYPED = lazy_pattern(r"\b(?:tmrw|tmr|tomm?orr?ow)\b", re.IGNORECASE)
"""Ways to type `tomorrow`."""
_LINK = lazy_pattern(r"^(?:to|about|of|that(?= (?:the|an?|i|we|it|my|our|you|your|there)\b)) ", re.IGNORECASE)
_EDGE = " \t\n,;:.!-–"
_WHOLE_DAY = 0
"""The minute at which a day begins if another condition must hold too."""


def understand(text: str, now: datetime) -> Understood:
    """The meaning of a sentence; without words of time, or with words that are not understood, its trigger is
    manual."""
    priority, plain = _urgency(_TYPED.sub("tomorrow", " ".join(text.split())))
    if len(plain) > READ_CHARS:
        return Understood(description=text.strip(), trigger=triggers.Manual(), priority=priority)
    asked = _ASKED.match(plain)
    lead = asked or _RESOLVED.match(plain)
    body = plain[lead.end() :] if lead else plain
    begged = asked is not None or re.search(_ASKING, body, re.IGNORECASE) is not None
    reader = _Reader(now=now, conditions=begged, contexts=begged or lead is not None)
    read = reader.read(body, whole=begged)
    description = "" if read is None else _task(read, body) or (plain if read.words == body else "")
    if read is not None and description:
        return Understood(
            description=description,
            trigger=read.timing.trigger,
            deadline=read.timing.deadline,
            priority=priority,
            words=read.words,
        )
    description = _to_do(body) if asked else text.strip() if priority is None else plain
    unread = time_like(body)
    return Understood(
        description=description or text.strip(), trigger=triggers.Manual(), priority=priority, unread=unread
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timing:
    """The trigger and the deadline that words of time give."""

    trigger: triggers.Trigger
    deadline: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """Words of time, their meaning, and the rest of the sentence."""

    words: str
    timing: _Timing
    rest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Reads a sentence at a moment. Conditions and contexts are looked for only where they are meant."""

    now: datetime
    conditions: bool
    contexts: bool

    def read(self, body: str, *, whole: bool) -> _Read | None:
        """The words of time at the edges of a sentence, unless more of them would be left."""
        torn = False
        for words, rest, at_end in _splits(body, whole=whole):
            if at_end and _goes_on_in_the_past(rest, words):
                return None
            reader = replace(self, contexts=self.contexts or _names_context(words, rest, at_end=at_end))
            timing = None if torn and at_end else reader.when(words)
            if timing is None or (not _to_do(rest) and words != body):
                continue
            more = ends_in_time(rest.rstrip(_EDGE)) if at_end else begins_with_time(rest)
            if more:
                torn = torn or at_end  # what is shorter leaves even more
                continue
            other = self._also(rest)
            if other is None:
                return _Read(words=words, timing=timing, rest=rest)
            both = self._both(words, timing, other)
            if both is not None and self._also(other.rest) is None:
                return _Read(words=f"{other.words} {words}", timing=both, rest=other.rest)
        return None

    def when(self, words: str) -> _Timing | None:
        """The trigger and the deadline of some words."""
        time = rule_in(words, self.now) or moment_in(words, self.now)
        if time is not None:
            return _Timing(trigger=time)
        deadline = deadline_in(words, self.now)
        if deadline is not None:
            return _Timing(trigger=triggers.Manual(), deadline=deadline)
        trigger = self._condition(words) if self.contexts else None
        return None if trigger is None else _Timing(trigger=trigger)

    def _also(self, rest: str) -> _Read | None:
        """The words of time in the rest of a sentence."""
        for words, left, _ in _splits(rest, whole=False):
            timing = self.when(words) if _to_do(left) else None
            if timing is not None:
                return _Read(words=words, timing=timing, rest=left)
        return None

    def _both(self, words: str, timing: _Timing, other: _Read) -> _Timing | None:
        """The words of time at both ends of a sentence: one time, or a time and a deadline."""
        at_once = self.when(f"{other.words} {words}") or self.when(f"{words} {other.words}")
        if at_once is not None:
            return at_once
        for one, by in ((timing, other.timing), (other.timing, timing)):
            if one.deadline is None and by.deadline is not None and not triggers.repeats(one.trigger):
                return _Timing(trigger=one.trigger, deadline=by.deadline)
        return None

    def _condition(self, words: str) -> triggers.Trigger | None:
        """A context or an event, or a time and a context: `tomorrow when I open *.py`."""
        dated = _TIME_ON_CONDITION.fullmatch(words)
        if dated is not None:
            together = self._together(dated["time"], dated["clause"])
            if together is not None:
                return together
        condition = _ON_CONDITION.fullmatch(words)
        clause = condition["clause"].strip(_EDGE) if condition else ""
        if not clause or len(clause) > CLAUSE_CHARS:
            return None
        for start in _STARTS.finditer(clause):
            together = self._together(clause[start.start() :], clause[: start.start()])
            if together is not None:
                return together
        if ends_in_time(clause):
            return None
        reported = self.conditions and triggers.words_of(clause)
        return context_in(clause) or (triggers.EventTrigger(condition=clause) if reported else None)

    def _together(self, time: str, clause: str) -> triggers.Compound | None:
        context = context_in(clause)
        if context is None or len(clause) > CLAUSE_CHARS or ends_in_time(clause.strip(_EDGE)):
            return None
        timing: triggers.Recurring | triggers.Time | None = rule_in(time, self.now, usual=_WHOLE_DAY)
        timing = timing or moment_in(time, self.now, usual=_WHOLE_DAY)
        return None if timing is None else triggers.Compound(mode="all", parts=(timing, context))


def _splits(body: str, *, whole: bool) -> Iterator[tuple[str, str, bool]]:
    """The ways to split words of time from the end (then True) or the beginning of a sentence, longest first;
    last, where that is allowed, all of it."""
    end = body.rstrip(_EDGE)
    for start in _STARTS.finditer(end):
        if start.start():
            yield end[start.start() :], end[: start.start()], True
    if _STARTS.match(body):
        for joint in reversed(list(_JOINT.finditer(body))):
            yield body[: joint.start()], body[joint.end() :], False
        yield from _openings(body)
        if whole:
            yield body, "", True


_FINITE = r"(?:is|are|was|were|has|have|had|will|would|must|should|can(?:not)?|may|might|needs?)\b"
_STATES = lazy_pattern(_FINITE, re.IGNORECASE)
_STATES_SOON = lazy_pattern(rf"(?:\S{{1,40}} ){{0,2}}{_FINITE}", re.IGNORECASE)
_LED = lazy_pattern(r"(?:in|at|on|by|before|after|every|each) ", re.IGNORECASE)
_ADJECTIVE = lazy_pattern(
    r"hourly|daily|weekly|monthly|yearly|annually|noon|midnight|this|at one|[0-9:]+", re.IGNORECASE
)
_IN_CONDITION = lazy_pattern(rf"\b{_WHEN}", re.IGNORECASE)
_OPENING_WORDS = 10  # The longest time at the beginning of a sentence without a comma.


def _openings(body: str) -> Iterator[tuple[str, str, bool]]:
    """The ways to split a time from the task that follows it directly: `in 2 hours check the oven`. A word
    that may describe the next one is not split off (`daily backups`), nor a day that a statement is about
    (`Friday deploys are forbidden`)."""
    words = body.split(" ")
    for size in range(min(_OPENING_WORDS, len(words) - 1), 0, -1):
        time, task = " ".join(words[:size]), " ".join(words[size:])
        states = _STATES if _LED.match(time) else _STATES_SOON
        if not (_ADJECTIVE.fullmatch(time) or _IN_CONDITION.search(f"{time} ") or states.match(task)):
            yield time, task, False


_PAST = lazy_pattern(
    rf"(?:yesterday|last (?:night|week|{'|'.join(WEEKDAY_NUMBERS)}))"
    r"(?: morning| afternoon| evening| night)?$",
    re.IGNORECASE,
)


def _goes_on_in_the_past(rest: str, words: str) -> bool:
    """Whether a clock time belongs to a day that is over: `yesterday at 9`."""
    return clock_in(words) is not None and _PAST.search(rest.rstrip(_EDGE)) is not None


def _names_context(words: str, rest: str, *, at_end: bool) -> bool:
    """Whether words name a context even without `remind me`: what I do, and then a task (`when I open *.sql,
    run the migrations`, not `it fails`), or at the end a file pattern."""
    if _OWN_ACT.match(words) is None:
        return False
    return bool(_FILE_PATTERN.search(words)) if at_end else _SUBJECT.match(rest.strip(_EDGE)) is None


def _task(read: _Read, body: str) -> str:
    """What is left without the words of time; all of a statement about them: `tomorrow is a holiday`."""
    return _to_do(body if body.endswith(read.rest) and _STATES.match(read.rest) else read.rest)


def _to_do(words: str) -> str:
    plain = _ASKED.sub("", words.strip(_EDGE), count=1)
    return _LINK.sub("", plain, count=1).strip(_EDGE)


# -- Urgency

_LABELS = {
    Priority.LOW: "low[ -]priority|no rush|not urgent",
    Priority.CRITICAL: "critical(?:ly)?|critical priority",
    Priority.HIGH: r"urgent(?:ly)?|important|high[ -]priority|a\.?s\.?a\.?p",
}
_LABELLED = {
    priority: lazy_pattern(
        rf"^[(\[]?(?:{label})[)\]]? ?[:!,–-] ?| ?[,;–-]? ?[(\[](?:{label})[)\]]|"
        # A run of dashes is tried at its beginning only.
        rf"(?<![ ,;–-])[ ,;–-]++(?:(?:it|this)(?:['’]s| is) )?(?:{label})[.!]*$",
        re.IGNORECASE,
    )
    for priority, label in _LABELS.items()
}


def _urgency(text: str) -> tuple[Priority | None, str]:
    """The priority of a label, and the text without it: `URGENT: …`, `… (critical)`, `… asap`."""
    for priority, labelled in _LABELLED.items():
        found = labelled.search(text)
        rest = "" if found is None else " ".join(f"{text[: found.start()]} {text[found.end() :]}".split())
        if rest:
            return priority, rest
    return None, text
