"""Proposals from a transcript, by rules: decisions with their reason, fixes, preferences, corrections, and
procedures that worked three times.

A rule proposes rather too little: what it proposes is read by a person.
"""

import enum
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern


class Speaker(enum.StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ProposalKind(enum.StrEnum):
    DECISION = "decision"
    FIX = "fix"
    PREFERENCE = "preference"
    CORRECTION = "correction"
    PROCEDURE = "procedure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of a transcript. A command of a tool has an exit status once it has ended; its `text` is the
    output."""

    role: Speaker
    text: str
    command: str | None = None
    exit_status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A text that may be worth keeping, from the turn at `position`."""

    kind: ProposalKind
    content: str
    position: int


MOST_CHARS = 4_000
"""Longer turns are pasted text, which a user or agent did not say."""
SENTENCE_CHARS = 400
LEAST_WORDS = 3
TIMES = 3
"""How often a procedure must have worked."""
LONGEST_PROCEDURE = 5
LOOK_AHEAD = 12
"""How many turns after an error its fix may come."""

_SENTENCE = lazy_pattern(r"(?<=[.!?])\s+|\n+")
_PREFERENCE = lazy_pattern(
    r"\b(?:i (?:really |strongly |always )?prefer|i (?:do not|don't|never) want|i (?:hate|dislike)"
    r"|i(?:'d| would) (?:rather|prefer)|from now on|please always|please never"
    r"|(?:always|never) (?:use|run|write|add|put|commit|push|keep|start|ask|include|format|call|mock)"
    r"|(?:everywhere|in every file), always|keep (?:your )?(?:answers|replies|commits|comments) \w+)\b",
    re.IGNORECASE,
)
_ONCE = lazy_pattern(
    r"\b(?:this time|just (?:this|for now|once)|for (?:this|now)\b|today only|temporarily)", re.IGNORECASE
)
_NEVER_MIND = lazy_pattern(r"\bnever mind\b", re.IGNORECASE)
_WHY = r"\b(?:because|since|so that|as it|due to)\b"
_DECISION = lazy_pattern(
    rf"(?:^decision: .*{_WHY}"
    r"|\b(?:let's|let us|we(?:'ll| will)?|i(?:'ve| have)?|i) (?:go with|use|choose|chose|take|stick with|keep"
    rf"|decided (?:to|on|for|against))\b.*{_WHY})",
    re.IGNORECASE,
)
_BY_USER_ONLY = lazy_pattern(r"\b(?:decided|decision|chose)\b", re.IGNORECASE)
_CORRECTION = lazy_pattern(
    r"^(?:no[,.:]|nope[,.:]|wrong[,.:]|that(?:'s| is) (?:wrong|not (?:right|correct|true))"
    r"|actually\b(?!,? (?:can|could|please|let))|you (?:got (?:that|it) wrong|misunderstood|are wrong)"
    r"|not quite[,.:])[ ,:;.]*(?P<rest>.+)",
    re.IGNORECASE,
)
_STATES = lazy_pattern(r"\b(?:are|were|have|go|use|report|listen|run|need|must|should|\w+s)\b")
_REFUSAL = lazy_pattern(
    r"^(?:thanks?|thank you|stop|leave|not (?:now|needed)|skip|wait|don't|do not)\b", re.IGNORECASE
)
_CAUSE = lazy_pattern(
    r"\b(?:because|the (?:cause|reason|problem|issue) (?:is|was)|caused by|due to|since)\b", re.IGNORECASE
)
_SOLUTION = lazy_pattern(
    r"\b(?:fix(?:es|ed)?|solves?|solved|resolves?|so i (?:install|add|set|change|run|use))\b", re.IGNORECASE
)
_VALUES = lazy_pattern(r"\"[^\"]*\"|'[^']*'|\b\d+\b|\b[0-9a-f]{7,40}\b")
_ASSIGNED = lazy_pattern(r"^(?:\w+=\S+ +)+")
_READING = lazy_pattern(
    r"^(?:git (?:status|diff|log|pull|fetch|show)|ls|cat|cd|pwd|echo|head|tail|grep|rg|find|less)\b"
)


def propose(turns: Sequence[Turn]) -> list[Proposal]:
    """What of a transcript may be worth keeping, in its order; each text once."""
    found = [*_said(turns), *_fixes(turns), *_procedures(turns)]
    found.sort(key=lambda one: one.position)
    return list({one.content: one for one in reversed(found)}.values())[::-1]


def _said(turns: Sequence[Turn]) -> Iterator[Proposal]:
    """Decisions, preferences and corrections in what was said."""
    for position, turn in enumerate(turns):
        if turn.role is Speaker.TOOL or len(turn.text) > MOST_CHARS:
            continue
        answered = position > 0 and turns[position - 1].role is Speaker.ASSISTANT
        for number, sentence in enumerate(_sentences(turn.text)):
            kind = _kind(sentence, turn.role, first=answered and number == 0)
            if kind is not None:
                yield Proposal(kind=kind, content=_stated(kind, sentence), position=position)


def _sentences(text: str) -> list[str]:
    parts = (part.strip() for part in _SENTENCE.split(text))
    return [part for part in parts if part and len(part) <= SENTENCE_CHARS]


def _kind(sentence: str, role: Speaker, *, first: bool) -> ProposalKind | None:
    if sentence.endswith("?") or len(sentence.split()) < LEAST_WORDS or _NEVER_MIND.search(sentence):
        return None
    if role is Speaker.ASSISTANT:
        decided = _DECISION.search(sentence) and _BY_USER_ONLY.search(sentence)
        return ProposalKind.DECISION if decided else None
    if first and _is_correction(sentence):
        return ProposalKind.CORRECTION
    if _DECISION.search(sentence):
        return ProposalKind.DECISION
    if _PREFERENCE.search(sentence) and not _ONCE.search(sentence):
        return ProposalKind.PREFERENCE
    return None


def _is_correction(sentence: str) -> bool:
    found = _CORRECTION.search(sentence)
    if found is None or _REFUSAL.search(found["rest"]):
        return False
    return len(found["rest"].split()) >= LEAST_WORDS and _STATES.search(found["rest"]) is not None


def _stated(kind: ProposalKind, sentence: str) -> str:
    if kind is ProposalKind.CORRECTION:
        found = _CORRECTION.search(sentence)
        rest = found["rest"].strip() if found else sentence
        return f"Correction by the user: {rest[0].upper()}{rest[1:]}"
    return sentence


# -- Errors and what solved them


def _fixes(turns: Sequence[Turn]) -> Iterator[Proposal]:
    for position, turn in enumerate(turns):
        if turn.command is None or not turn.exit_status:
            continue
        solved = _solved(turns, position)
        if solved is not None:
            cause = _explained(turns[position + 1 : solved])
            if cause:
                error = _error_line(turn.text)
                content = f"`{turn.command}` failed: {error} {cause}".strip()
                yield Proposal(kind=ProposalKind.FIX, content=content, position=position)


def _solved(turns: Sequence[Turn], failed: int) -> int | None:
    """Where the command that failed works; None if it does not, or fails again before that."""
    wanted = _bare(turns[failed].command or "")
    for position in range(failed + 1, min(len(turns), failed + 1 + LOOK_AHEAD)):
        turn = turns[position]
        if turn.command is not None and _bare(turn.command) == wanted:
            return position if turn.exit_status == 0 else None
    return None


def _bare(command: str) -> str:
    """A command without the variables set before it."""
    return " ".join(_ASSIGNED.sub("", command).split())


def _explained(turns: Sequence[Turn]) -> str | None:
    """The sentences that name the cause and the solution; None without a cause."""
    said = [one for turn in turns if turn.role is Speaker.ASSISTANT for one in _sentences(turn.text)]
    causes = [one for one in said if _CAUSE.search(one)]
    solutions = [one for one in said if _SOLUTION.search(one) and one not in causes]
    ran = [f"`{turn.command}`" for turn in turns if turn.command is not None and turn.exit_status == 0]
    if not causes:
        return None
    steps = f" Then worked: {', '.join(ran[-3:])}." if ran else ""
    return " ".join((*causes[:1], *solutions[:1])) + steps


def _error_line(output: str) -> str:
    """The last line of an output that names the error."""
    lines = [line.strip() for line in output[-MOST_CHARS:].splitlines() if line.strip()]
    named = [line for line in lines if "rror" in line or "denied" in line or "fail" in line.casefold()]
    line = (named or lines or ["no output"])[-1][:SENTENCE_CHARS]
    return line if line.endswith(".") else f"{line}."


# -- Procedures


def _procedures(turns: Sequence[Turn]) -> Iterator[Proposal]:
    """The longest sequences of commands that worked three times, apart from those that only look."""
    done = [
        (position, turn.command)
        for position, turn in enumerate(turns)
        if turn.command is not None and turn.exit_status == 0 and not _READING.search(turn.command)
    ]
    shapes = [_VALUES.sub("…", _bare(command)) for _, command in done]
    covered: set[tuple[str, ...]] = set()
    for size in range(LONGEST_PROCEDURE, 1, -1):
        windows = [tuple(shapes[at : at + size]) for at in range(len(shapes) - size + 1)]
        counted = Counter(windows)
        for at, window in enumerate(windows):
            if counted[window] < TIMES or len(set(window)) < size or _is_part(window, covered):
                continue
            covered.add(window)
            steps = ", then ".join(f"`{shape}`" for shape in window)
            content = f"Procedure that worked {counted[window]} times: {steps}."
            yield Proposal(kind=ProposalKind.PROCEDURE, content=content, position=done[at][0])


def _is_part(window: tuple[str, ...], covered: set[tuple[str, ...]]) -> bool:
    """Whether a sequence is part of a known one, perhaps of two runs of it."""
    size = len(window)
    return any((longer * 2)[at : at + size] == window for longer in covered for at in range(len(longer)))
