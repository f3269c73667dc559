"""The text form of a shared memory: a few fields between two lines of `---`, then its words.

It is written to be read and merged by people: a field a line, one item of a list a line, in a fixed order.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any

from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory, utc

SHARED = "shared"
"""The name under which a memory's metadata says which file it came from."""
RULE = "---"
MOST_BYTES = 64 * 1024
MOST_ITEMS = 100
_FIELD = re.compile(r"(?P<name>[a-z_]{1,40}):[ \t]*(?P<value>.*)")
_ITEM = re.compile(r"[ \t]*-[ \t]+(?P<value>.*)")
_CONFLICT = re.compile(r"^(<{7}|={7}|>{7})( |$)", re.MULTILINE)
_WORD = re.compile(r"[a-z0-9]+")
_ID = re.compile(r"[0-9A-Za-z_-]{8,64}")
_CITE = re.compile(
    r"(?P<path>[^\n]{1,1000}?)(?::(?P<start>\d{1,7})-(?P<end>\d{1,7}))?(?: symbol=(?P<symbol>\S{1,200}))?"
    r"(?: commit=(?P<commit>[0-9a-f]{7,64}))?(?: lines=(?P<lines>[0-9a-f]{8}))?"
)
_KIND = re.compile(r"[a-z_]{1,40}")
_LISTS = ("tags", "cites")
_MOMENTS = ("occurred_at", "valid_from", "valid_until")
_FIELDS = ("id", "kind", *_LISTS, "source", *_MOMENTS)
_PLAIN_ITEM = re.compile(r"""(?![\s"'\[\]{}&*!|>%@`#?-]).{0,999}(?<!\s)""")
SLUG_WORDS = 6
SHORT_ID = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCitation:
    """A place that a shared memory cites. `lines` is a digest of their hashes, by which a reader finds out
    whether it has the same lines."""

    path: str
    start: int = 0
    end: int = 0
    symbol: str = ""
    commit: str = ""
    lines: str = ""

    @property
    def text(self) -> str:
        place = f"{self.path}:{self.start}-{self.end}" if self.start else self.path
        named = (("symbol", self.symbol), ("commit", self.commit), ("lines", self.lines))
        return " ".join([place, *(f"{name}={value}" for name, value in named if value)])


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedMemory:
    """What a file of a shared memory says."""

    id: str
    content: str
    kind: str = "note"
    tags: tuple[str, ...] = ()
    source: str | None = None
    occurred_at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    cites: tuple[SharedCitation, ...] = ()

    @property
    def digest(self) -> str:
        """Equal for files that say the same."""
        return blake2b(encoded(self).encode(), digest_size=8).hexdigest()


def shared_note(memory: Memory) -> dict[str, Any]:
    """What a memory says about the file that it came from; empty for others."""
    noted = memory.metadata.get(SHARED)
    return dict(noted) if isinstance(noted, Mapping) else {}


def shared_by(memory: Memory) -> str:
    """A phrase that names who shared a memory, for texts that agents read; empty for other memories."""
    noted = shared_note(memory)
    by = " ".join(str(noted.get("by") or "an unknown author").split())
    return f" (shared by {by})" if noted else ""


def lines_digest(lines: Sequence[str]) -> str:
    return blake2b("".join(lines).encode(), digest_size=4).hexdigest()


def file_name(memory_id: str, content: str) -> str:
    """A name for a new file: the first words, and the end of the id, by which it is found again."""
    words = _WORD.findall(content.lower())[:SLUG_WORDS]
    return f"{'-'.join(words)[:60].strip('-') or 'memory'}{name_end(memory_id)}"


def name_end(memory_id: str) -> str:
    short = re.sub(r"[^0-9a-z]", "", memory_id.lower())[-SHORT_ID:]
    return f"-{short}.md"


def encoded(memory: SharedMemory) -> str:
    lines = [RULE, f"id: {memory.id}", f"kind: {_scalar(memory.kind)}"]
    for name, items in (("tags", memory.tags), ("cites", [one.text for one in memory.cites])):
        if items:
            lines += [f"{name}:", *(f"  - {_scalar(one)}" for one in items)]
    if memory.source:
        lines.append(f"source: {_scalar(memory.source)}")
    for name in _MOMENTS:
        moment = getattr(memory, name)
        if moment is not None:
            lines.append(f"{name}: {moment.isoformat()}")
    return "\n".join([*lines, RULE, memory.content.strip("\n"), ""])


def decoded(text: str) -> SharedMemory:
    """What a file says; InvalidInput with the reason if it is not one."""
    if _CONFLICT.search(text):
        raise InvalidInput("it has the marks of a merge conflict")
    lines = text.split("\n")
    if lines[0].rstrip() != RULE:
        raise InvalidInput(f"it does not begin with {RULE}")
    end = next((at for at, line in enumerate(lines[1:], start=1) if line.rstrip() == RULE), None)
    if end is None:
        raise InvalidInput(f"the fields do not end with {RULE}")
    fields, listed = _fields(lines[1:end])
    content = "\n".join(lines[end + 1 :]).strip("\n")
    if not content.strip():
        raise InvalidInput("it has no text")
    if not _ID.fullmatch(fields.get("id", "")):
        raise InvalidInput("it has no valid id")
    return SharedMemory(
        id=fields["id"],
        content=content,
        kind=kind if _KIND.fullmatch(kind := fields.get("kind", "")) else "note",
        tags=tuple(dict.fromkeys(one for one in listed["tags"] if one.strip())),
        source=fields.get("source") or None,
        cites=tuple(_cite(one) for one in listed["cites"]),
        **{name: _moment(name, fields[name]) for name in _MOMENTS if fields.get(name)},
    )


def _fields(lines: Sequence[str]) -> tuple[dict[str, str], dict[str, list[str]]]:
    fields: dict[str, str] = {}
    listed: dict[str, list[str]] = {name: [] for name in _LISTS}
    name = ""
    for line in lines:
        if not line.strip():
            continue
        item, field = _ITEM.fullmatch(line), _FIELD.fullmatch(line.rstrip())
        if item is not None and name in _LISTS:
            if len(listed[name]) >= MOST_ITEMS:
                raise InvalidInput(f"`{name}` has more than {MOST_ITEMS} items")
            listed[name].append(_value(item["value"].strip()))
        elif field is not None and field["name"] in _FIELDS:
            name = field["name"]
            if name not in _LISTS:
                fields[name] = _value(field["value"])
            elif field["value"]:
                raise InvalidInput(f"`{name}` is a list: write each item in a line of its own, after `-`")
        else:
            raise InvalidInput(f"the line {line[:40]!r} is not a field")
    return fields, listed


def _scalar(text: str) -> str:
    return text if _PLAIN_ITEM.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _value(text: str) -> str:
    if not text.startswith('"'):
        return text
    try:
        found = str(json.loads(text))
        found.encode()  # an escape can be half of a character
    except ValueError as exc:
        raise InvalidInput(f"{text[:40]} is not a text in quotes") from exc
    return found


def _moment(name: str, text: str) -> datetime:
    try:
        return utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError) as exc:
        raise InvalidInput(f"`{name}` is not a time") from exc


def _cite(text: str) -> SharedCitation:
    match = _CITE.fullmatch(text)
    if match is None:
        raise InvalidInput(f"{text[:40]!r} is no place in the code")
    found = match.groupdict(default="")
    return SharedCitation(
        path=found["path"],
        start=int(found["start"] or 0),
        end=int(found["end"] or 0),
        symbol=found["symbol"],
        commit=found["commit"],
        lines=found["lines"],
    )
