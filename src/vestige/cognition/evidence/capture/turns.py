"""Turns of a transcript, and what rules propose from them."""

import enum
from collections.abc import Iterator

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

_SENTENCE = lazy_pattern(
    r"(?<=[.!?])(?<!\bvs\.)(?<!e\.g\.)(?<!i\.e\.)(?<!\betc\.)(?:\s+|[\"')*]{1,3}\s+(?=[A-Z]))|\n+"
)
_FENCE = lazy_pattern(r"^ {0,8}(?:```|~~~)")
_NOT_SAID = lazy_pattern(r"^\s{0,8}(?:[>|#+]|\d{1,6}→|@@)")
_ITEM = lazy_pattern(r"^\s{0,8}(?:[-*•]|\d{1,2}[.)])\s{1,4}")


def sentences(text: str) -> list[str]:
    """The sentences that a user or an agent said: without code, quotations, tables and headings."""
    parts = (part.strip() for line in _said_lines(text) for part in _SENTENCE.split(line))
    return [part for part in parts if part and len(part) <= SENTENCE_CHARS]


def _said_lines(text: str) -> Iterator[str]:
    in_code = False
    for line in text.split("\n"):
        if _FENCE.match(line):
            in_code = not in_code
        elif not in_code and not _NOT_SAID.match(line):
            yield _ITEM.sub("", line)
