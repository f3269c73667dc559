"""A briefing: one line for each memory, most important first, within a token budget."""

from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo

from vestige.cognition.evidence.injection.unseen import visible
from vestige.cognition.text.form import estimate_tokens
from vestige.core.events import preview
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ROOT_SCOPE, Memory
from vestige.core.origin import Origin
from vestige.core.patterns import lazy_pattern
from vestige.core.timezone import local

GIST_CHARS = 150
LABEL_CHARS = 40
SHORTEST_SENTENCE = 12
"""A sentence that ends sooner is an abbreviation or a greeting: "Dr.", "No."."""

_OWN = (None, Origin.USER, Origin.ASSISTANT)
_BLANK_LINE = lazy_pattern(r"\n\s*\n")
_MARKS = lazy_pattern(r"^(?:[#>*-]+\s+)+")
_SENTENCE_END = lazy_pattern(r"[.!?][\"')\]]*(?=\s|$)|[。！？]")


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefingSection:
    """Memories under a heading, most important first, or plain lines. Memories of another scope than `home`
    show their scope."""

    heading: str
    memories: tuple[Memory, ...] = ()
    lines: tuple[str, ...] = ()
    home: str = ROOT_SCOPE
    zone: tzinfo = UTC

    def entries(self) -> Iterator[tuple[str | None, str]]:
        """Every line, with the id of its memory."""
        yield from ((None, line) for line in self.lines)
        yield from ((memory.id, line_of(memory, self.home, self.zone)) for memory in self.memories)


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """A text within its budget, the memories it shows, and those that did not fit."""

    text: str
    tokens: int
    shown: tuple[str, ...]
    left_out: tuple[str, ...]


def compose(head: Sequence[str], sections: Sequence[BriefingSection], token_budget: int) -> Briefing:
    """The head, then section by section every line that still fits; each memory is shown once.

    The first line of the head is always included. Tokens are counted line by line, which is never less than
    the count of the whole.
    """
    lines = [head[0]]
    room = token_budget - estimate_tokens(head[0])
    for line in head[1:]:
        if (tokens := estimate_tokens(line)) <= room:
            lines.append(line)
            room -= tokens
    seen: dict[str, bool] = {}
    for section in sections:
        heading: tuple[str, ...] = ("", section.heading)
        for memory_id, line in section.entries():
            if memory_id in seen:
                continue
            entry = (*heading, line)
            tokens = sum(map(estimate_tokens, entry))
            if memory_id is not None:
                seen[memory_id] = tokens <= room
            if tokens <= room:
                lines.extend(entry)
                room -= tokens
                heading = ()
    text = "\n".join(lines)
    return Briefing(
        text=text,
        tokens=estimate_tokens(text),
        shown=tuple(name for name, fits in seen.items() if fits),
        left_out=tuple(name for name, fits in seen.items() if not fits),
    )


def line_of(memory: Memory, home: str = ROOT_SCOPE, zone: tzinfo = UTC) -> str:
    """A memory on one line with its provenance: date in the zone, text, origin (unless it is the user or an
    agent), author, source, scope and id."""
    scope = memory.scope if memory.scope != home else None
    at = local(memory.occurred_at or memory.created_at, zone)
    kind = f"from {memory.origin}" if memory.origin not in _OWN else None
    labels = (kind, memory.author, memory.source, scope)
    origin = ", ".join(preview(visible(name), LABEL_CHARS) for name in labels if name)
    shown = f"{gist(memory.content)} ({origin})" if origin else gist(memory.content)
    return f"- ({at:%b %d, %Y}) {shown} [{memory.id}]"


def gist(text: str, limit: int = GIST_CHARS) -> str:
    """The first sentence of a text, or its heading, on one line of at most `limit` characters."""
    text = text.strip()
    # A heading ends with its line, a paragraph with a blank one.
    first = text.split("\n", 1)[0] if text.startswith("#") else _BLANK_LINE.split(text, maxsplit=1)[0]
    line = " ".join(_MARKS.sub("", first).split())
    end = next((m.end() for m in _SENTENCE_END.finditer(line) if m.end() >= SHORTEST_SENTENCE), len(line))
    return preview(visible(line[:end]), limit)
