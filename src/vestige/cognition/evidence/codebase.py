"""Notes about a codebase: patterns and decisions as text, and patterns that several codebases share.

A note is an ordinary memory. Its text holds everything, so a note can be edited, and a note that another tool
wrote in the same form is understood.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from vestige.cognition.fsrs.strength import retention_of
from vestige.cognition.text.analyser import fingerprint
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import MOST_SURE, ROOT_SCOPE, Memory, MemoryContext, Record

PATTERN, DECISION = "pattern", "decision"
TAG = "codebase"
TITLE_CHARS = 50
_PATTERN_HEADING, _DECISION_HEADING = "# Code Pattern:", "# Decision:"
_FILES, _AFFECTED = "## Files:", "## Affected Files:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A way of doing things in a codebase."""

    name: str
    description: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CodebaseDecision:
    """A decision, its reason, and the alternatives."""

    decision: str
    rationale: str
    alternatives: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """A pattern of other codebases: its strongest note, where it occurs, and its similarity to one of ours
    (None without one)."""

    record: Record
    codebases: tuple[str, ...]
    similarity: float | None


def text_of(note: Pattern | CodebaseDecision) -> str:
    match note:
        case Pattern():
            parts = [f"{_PATTERN_HEADING} {_line(note.name)}", note.description.strip()]
            return "\n\n".join([*parts, *_list(_FILES, note.files)])
        case CodebaseDecision():
            title = _line(note.decision)[:TITLE_CHARS].rstrip()
            parts = [
                f"{_DECISION_HEADING} {title}",
                f"## Context\n\n{note.rationale.strip()}",
                f"## Decision\n\n{note.decision.strip()}",
                *_list("## Alternatives Considered:", note.alternatives),
            ]
            return "\n\n".join([*parts, *_list(_AFFECTED, note.files)])


def tags_of(note: Pattern | CodebaseDecision, codebase: str | None) -> tuple[str, ...]:
    kind = (PATTERN,) if isinstance(note, Pattern) else (DECISION, "architecture")
    return (*kind, TAG, *((codebase_tag(codebase),) if codebase else ()))


def codebase_tag(codebase: str) -> str:
    """The tag of all notes about one codebase."""
    return f"{TAG}:{codebase}"


def codebase_of(memory: Memory | MemoryContext) -> str | None:
    return next((tag.partition(":")[2] for tag in memory.tags if tag.startswith(f"{TAG}:")), None)


def codebase_at(scope: str) -> str | None:
    """The codebase of a scope: the last part of its path, and None for the root."""
    return scope.rsplit("/", 1)[-1] if scope != ROOT_SCOPE else None


def title_of(memory: Memory) -> str:
    """The title of a note: its first line, without the heading."""
    first = memory.content.strip().split("\n", 1)[0]
    for heading in (_PATTERN_HEADING, _DECISION_HEADING):
        first = first.removeprefix(heading)
    return first.lstrip("# ").strip()


def files_of(memory: Memory | MemoryContext) -> tuple[str, ...]:
    """The files of a note: the list under its last heading of files."""
    lines = [line.strip() for line in memory.content.splitlines()]
    starts = [at for at, line in enumerate(lines) if line in (_FILES, _AFFECTED)]
    return tuple(dict.fromkeys(_items(lines[starts[-1] + 1 :]))) if starts else ()


def strongest(records: Sequence[Record], now: datetime) -> list[Record]:
    """Records by retention, then newest first."""

    def place(record: Record) -> tuple[float, datetime, str]:
        return retention_of(record.strength, now), record.memory.created_at, record.memory.id

    return sorted(records, key=place, reverse=True)


def shared_patterns(
    own: Sequence[Record], others: Sequence[Record], alike: Mapping[str, float], now: datetime
) -> list[Shared]:
    """The patterns of other codebases that are relevant here, each once, most alike first.

    A pattern is relevant if a pattern of ours has its name, if it is `alike` one of ours (by id, with the
    similarity), or if at least two codebases have it.
    """
    names = {_name(record) for record in own}
    by_name: defaultdict[str, list[Record]] = defaultdict(list)
    for record in strongest(others, now):
        by_name[_name(record)].append(record)
    found = []
    for name, notes in by_name.items():
        where = tuple(dict.fromkeys(filter(None, (codebase_of(note.memory) for note in notes))))
        likeness = max((alike[note.memory.id] for note in notes if note.memory.id in alike), default=None)
        if likeness is not None:
            likeness = min(MOST_SURE, likeness)
        similarity = 1.0 if name in names else likeness
        if where and (similarity is not None or len(where) > 1):
            found.append(Shared(record=notes[0], codebases=where, similarity=similarity))
    # Stable: what ties stays in the order of strength.
    return sorted(found, key=lambda one: (-(one.similarity or 0.0), -len(one.codebases)))


def _name(record: Record) -> str:
    return fingerprint(title_of(record.memory))


def _items(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if line and not line.startswith("- "):
            return
        if line:
            yield line.removeprefix("- ").strip()


def _list(heading: str, items: Sequence[str]) -> list[str]:
    return ["\n".join([heading, *(f"- {_line(item)}" for item in items)])] if items else []


def _line(text: str) -> str:
    return " ".join(text.split())
