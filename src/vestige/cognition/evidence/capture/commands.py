"""Fixes and procedures in the commands that were run.

A fix is kept with its error, cause and solution. A test or build that failed and works after an edit of the
code is daily work: the fix is in the code. It counts only if a command solved it, such as an installation.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from vestige.cognition.evidence.capture.turns import (
    MOST_CHARS,
    SENTENCE_CHARS,
    Proposal,
    ProposalKind,
    Speaker,
    Turn,
    sentences,
)
from vestige.core.patterns import lazy_pattern

TIMES = 3
"""How often a procedure must have worked."""
LONGEST_PROCEDURE = 5
COMMAND_CHARS = 200
LOOK_AHEAD = 12
"""How many turns after an error its fix may come."""

_CAUSE = lazy_pattern(
    r"\b(?:because|the (?:cause|reason|problem|issue) (?:is|was)|caused by|due to|since)\b", re.IGNORECASE
)
_SOLUTION = lazy_pattern(
    r"\b(?:fix(?:es|ed)?|solves?|solved|resolves?|so i (?:install|add|set|change|run|use))\b", re.IGNORECASE
)
_PLAN = lazy_pattern(
    r"(?:now,? |ok,? |first,? )?(?:let me|i'll|i will|i need to|i should|let's)\b", re.IGNORECASE
)
_CHECK = lazy_pattern(
    r"\b(?:tests?|lint|build|vet|check|fmt|format|tsc|mypy|ruff|pytest|jest|vitest|eslint|golangci-lint|tox|clippy"
    r"|compile|typecheck|mvn|gradle)\b"
)
_ERROR = lazy_pattern(
    r"error|denied|fail|fatal|not found|no such|cannot|could not|unable|missing|invalid|refused"
    r"|unknown|undefined|unresolved|timed? ?out|conflict|exception",
    re.IGNORECASE,
)
_GENERIC = lazy_pattern(
    r"^\W{0,4}FAIL(?:ED)?\b|task failed|\*\*\*|exit(?:ed)? (?:with )?(?:status|code)"
    r"|^\W{0,20}\d+ (?:\w+ )?(?:failed|errors?)\b"
    r"|^\W{0,4}(?:errors?|failed|failures?)\W{0,4}$|npm ERR! (?:code|A complete log)|^\W{0,4}at \w",
    re.IGNORECASE,
)
_VALUES = lazy_pattern(r"\"[^\"]*\"|'[^']*'|\b\d+\b|\b[0-9a-f]{7,40}\b")
_ASSIGNED = lazy_pattern(r"^(?:\w+=\S+ +)+")
_READING = lazy_pattern(
    r"^(?:git (?:status|diff|log|pull|fetch|show)|ls|cat|cd|pwd|echo|head|tail|grep|rg|find|less)\b"
)


# -- Errors and what solved them


def fixes(turns: Sequence[Turn]) -> Iterator[Proposal]:
    for position, turn in enumerate(turns):
        if turn.command is None or not turn.exit_status:
            continue
        solved, error = _solved(turns, position), _error_line(turn.text)
        if solved is None or error is None:
            continue
        why = _explained(turns[position + 1 : solved], is_check=_CHECK.search(turn.command) is not None)
        if why:
            content = f"`{_shown(turn.command)}` failed: {error} {why}".strip()
            yield Proposal(kind=ProposalKind.FIX, content=content, position=position)


def _shown(command: str) -> str:
    """A command on one line, cut."""
    line = " ".join(command.replace("\\\n", " ").split())
    return line if len(line) <= COMMAND_CHARS else f"{line[:COMMAND_CHARS].rstrip()}…"


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


def _explained(turns: Sequence[Turn], *, is_check: bool) -> str | None:
    """The sentences that name the cause and the solution; None without both."""
    said = [one for turn in turns if turn.role is Speaker.ASSISTANT for one in sentences(turn.text)]
    said = [one for one in said if not one.endswith((":", "?")) and not _PLAN.match(one)]
    causes = {one: None for one in said if _CAUSE.search(one)}  # each once, in their order
    solutions = [one for one in said if _SOLUTION.search(one) and one not in causes]
    worked = [turn.command for turn in turns if turn.command is not None and turn.exit_status == 0]
    ran = [f"`{_shown(one)}`" for one in worked if not (_READING.search(one) or _CHECK.search(one))]
    named = solutions or [one for one in causes if _SOLUTION.search(one)]
    if not causes or not (ran or (named and not is_check)):
        return None
    steps = f" Then worked: {', '.join(ran[-3:])}." if ran else ""
    return " ".join((*list(causes)[:1], *solutions[:1])) + steps


def _error_line(output: str) -> str | None:
    """The last line of an output that names the error; None without one."""
    lines = [line.strip() for line in output[-MOST_CHARS:].splitlines() if line.strip()]
    named = [line for line in lines if _ERROR.search(line) and not _GENERIC.search(line)]
    if not named:
        return None
    line = named[-1][:SENTENCE_CHARS]
    return line if line.endswith(".") else f"{line}."


# -- Procedures


def procedures(turns: Sequence[Turn]) -> Iterator[Proposal]:
    """The longest sequences of commands that worked three times, apart from those that only look."""
    done = [
        (position, turn.command)
        for position, turn in enumerate(turns)
        if turn.command is not None and turn.exit_status == 0 and not _READING.search(turn.command)
    ]
    shapes = [_VALUES.sub("…", _bare(command)) for _, command in done]
    covered: set[tuple[str, ...]] = set()  # with all their parts, so that a long transcript stays quick
    for size in range(LONGEST_PROCEDURE, 1, -1):
        windows = [tuple(shapes[at : at + size]) for at in range(len(shapes) - size + 1)]
        counted = Counter(windows)
        for at, window in enumerate(windows):
            if counted[window] < TIMES or len(set(window)) < size or window in covered:
                continue
            covered.update(_parts(window))
            steps = ", then ".join(f"`{shape}`" for shape in window)
            content = f"Procedure that worked {counted[window]} times: {steps}."
            yield Proposal(kind=ProposalKind.PROCEDURE, content=content, position=done[at][0])


def _parts(window: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The sequences that are part of one, perhaps of two runs of it; itself too."""
    twice, longest = window * 2, len(window)
    for size in range(2, longest + 1):
        yield from (twice[at : at + size] for at in range(longest))
