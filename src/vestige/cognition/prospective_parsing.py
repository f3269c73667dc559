"""What somebody means to do, and when, in one sentence of English.

`Remind me to rotate the keys every monday at 10:00` is something to do and a rule. Only words at the edge of
a sentence are read so, and they must be understood whole; `when the tests pass` needs somebody to say
`remind me`, because most sentences with a `when` are about something else. What was understood is told back.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from vestige.cognition.prospective_escalation import Priority
from vestige.cognition.prospective_places import context_in
from vestige.cognition.prospective_times import deadline_in, moment_in, rule_in
from vestige.cognition.prospective_triggers import Event, Manual, Trigger, words_of

READ_CHARS = 500
"""What is longer is no sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """What to do and what brings it up; `words` are those that say when."""

    description: str
    trigger: Trigger
    deadline: datetime | None = None
    priority: Priority | None = None
    words: str | None = None


_ASKING = (
    r"(?:please\s+)?(?:remind\s+me|don['’]?t\s+(?:let\s+me\s+)?forget|remember|make\s+sure)"
    r"(?:\s+(?:to|that|about)\b|\s*[:,])?"
)
_ASKED = re.compile(rf"{_ASKING}\s+", re.IGNORECASE)
_RESOLVED = re.compile(r"i\s+(?:should|must|need\s+to|have\s+to|want\s+to|ought\s+to)\s+", re.IGNORECASE)
_JOINT = re.compile(rf"\s*[,:]\s*(?:{_ASKING}\s+)?|\s+(?:{_ASKING}|to)\s+", re.IGNORECASE)
_STARTS = re.compile(
    r"\b(?:in|at|on|by|before|until|due|after|every|each|hourly|daily|weekly|monthly|today|tonight|tomorrow|"
    r"this|next|the\s+day|the\s+next|noon|midnight|when|whenever|if|once|while|as\s+soon|[0-9]|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
    re.IGNORECASE,
)
_ON_CONDITION = re.compile(
    r"(?:when(?:ever)?|if|once|while|as\s+soon\s+as|(?:the\s+)?next\s+time)\s+(?P<clause>.+)", re.IGNORECASE
)
_EDGE = " \t\n,;:.!-–"


def understand(text: str, now: datetime) -> Understood:
    """What a sentence means; without words for when, or with words that are not understood, nothing brings
    it up but whoever looks."""
    priority, plain = _urgency(" ".join(text.split()))
    if len(plain) > READ_CHARS:
        return Understood(description=text.strip(), trigger=Manual(), priority=priority)
    asked = _ASKED.match(plain)
    lead = asked or _RESOLVED.match(plain)
    body = plain[lead.end() :] if lead else plain
    begged = asked is not None or _asks(body)
    for words, rest in _splits(body, whole=begged):
        told = _when(words, now, conditions=begged, contexts=begged or lead is not None)
        description = _to_do(rest) or (plain if words == body else "")
        if told is not None and description:
            trigger, deadline = told
            return Understood(
                description=description, trigger=trigger, deadline=deadline, priority=priority, words=words
            )
    description = _to_do(body) if asked else text.strip() if priority is None else plain
    return Understood(description=description or text.strip(), trigger=Manual(), priority=priority)


def _splits(body: str, *, whole: bool) -> Iterator[tuple[str, str]]:
    """The ways to take words for when from the end or the beginning of a sentence, the longest first; last,
    where that may be, all of it."""
    end = body.rstrip(_EDGE)
    for start in _STARTS.finditer(end):
        if start.start():
            yield end[start.start() :], end[: start.start()]
    if _STARTS.match(body):
        for joint in reversed(list(_JOINT.finditer(body))):
            yield body[: joint.start()], body[joint.end() :]
        if whole:
            yield body, ""


def _when(
    words: str, now: datetime, *, conditions: bool, contexts: bool
) -> tuple[Trigger, datetime | None] | None:
    """The trigger, and the deadline, that some words tell."""
    told = rule_in(words, now) or moment_in(words, now)
    if told is not None:
        return told, None
    deadline = deadline_in(words, now)
    if deadline is not None:
        return Manual(), deadline
    condition = _ON_CONDITION.fullmatch(words)
    if condition is None or not contexts:
        return None
    clause = condition["clause"].strip(_EDGE)
    context = context_in(clause)
    if context is not None:
        return context, None
    return (Event(condition=clause), None) if conditions and words_of(clause) else None


def _asks(body: str) -> bool:
    return re.search(_ASKING, body, re.IGNORECASE) is not None


def _to_do(words: str) -> str:
    plain = _ASKED.sub("", words.strip(_EDGE), count=1)
    return re.sub(r"^to\s+", "", plain, flags=re.IGNORECASE).strip(_EDGE)


# -- urgency -------------------------------------------------------------------------------------

_LABELS = {
    Priority.LOW: r"low[\s-]priority|no\s+rush|not\s+urgent",
    Priority.CRITICAL: r"critical(?:ly)?|critical\s+priority",
    Priority.HIGH: r"urgent(?:ly)?|important|high[\s-]priority|a\.?s\.?a\.?p",
}


def _urgency(text: str) -> tuple[Priority | None, str]:
    """The priority that a label tells, and the text without it: `URGENT: …`, `… (critical)`, `… asap`."""
    for priority, label in _LABELS.items():
        found = re.search(
            rf"^[(\[]?(?:{label})[)\]]?\s*[:!,–-]\s*|\s*[,;–-]?\s*[(\[](?:{label})[)\]]|"
            rf"[\s,;–-]+(?:(?:it|this)(?:['’]s|\s+is)\s+)?(?:{label})[.!]*$",
            text,
            re.IGNORECASE,
        )
        rest = "" if found is None else " ".join(f"{text[: found.start()]} {text[found.end() :]}".split())
        if rest:
            return priority, rest
    return None, text
