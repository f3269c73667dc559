"""Markdown notes: a file or a folder of them, a memory for each section.

A section is the text below one heading. It begins with the headings above it, so that it can be understood
alone. Sections of a file follow each other in a thread, so that neighbours are known. A link to another note
links the section to the beginning of that note.
"""

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from vestige.cognition.text.form import cut
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import MAX_TAGS, Edge
from vestige.exchange.importers.fields import local_time
from vestige.exchange.importers.memories import memory_of
from vestige.exchange.importers.records import (
    CONNECTION,
    MEMORY,
    Brought,
    BroughtEdge,
    BroughtMemory,
    Reading,
    Target,
    UnreadRecords,
    derived_id,
)

ENDINGS = (".md", ".markdown", ".mdown")
MAX_FILE_BYTES = 16_000_000
MAX_HEADING_CHARS = 500
"""A longer line is text: the headings are repeated in each section below them."""
MAX_FRONT_CHARS = 16_000
"""A longer head is text, too: its fields are repeated in each section."""
MAX_SECTION_CHARS = 2_000
"""A longer section is split between its paragraphs: one memory should say one thing."""

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"([A-Za-z][\w -]*):[ \t]*(.*)$")
_WIKILINK = re.compile(r"\[\[([^\[\]|#^\n]+)(?:[#^][^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]")
_LINK = re.compile(r"\]\(<?([^()<>#?\n]+\.(?:md|markdown|mdown))(?:#[^()<>\n]*)?>?\)", re.IGNORECASE)
_TAG = re.compile(r"(?<!\S)#([^\W\d][\w/-]*|\d[\w/-]*[^\W\d][\w/-]*)")
_FILE_ENDING = re.compile(r"\.(?=[0-9]*[a-z])[a-z0-9]{1,5}$", re.IGNORECASE)
LINKED = "user_defined"
FILE = "file"
READ_FIELDS = ("title", "date", "created", "updated", "modified", "tags", "author")
"""Fields of the front matter that have a place here."""
_ITEM = re.compile(r"[ \t]*-[ \t]+(.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkdownSection:
    """The text below some headings, the outermost first."""

    headings: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note that was read: its name below the folder, the fields at its head, and its text."""

    name: str
    front: Mapping[str, str | list[str]]
    body: str
    changed: datetime

    @property
    def title(self) -> str:
        title = self.front.get("title")
        found = title if isinstance(title, str) and title else PurePosixPath(self.name).stem
        return found[:MAX_HEADING_CHARS]

    @property
    def names(self) -> Iterator[str]:
        """What a link may call it, in the order of precedence."""
        path = PurePosixPath(self.name)
        aliases = self.front.get("aliases") or self.front.get("alias") or []
        permalink = self.front.get("permalink")
        yield from (self.name, path.with_suffix("").as_posix(), path.name, path.stem, self.title)
        yield from (permalink,) if isinstance(permalink, str) else ()
        yield from aliases if isinstance(aliases, list) else (aliases,)


@dataclass(slots=True, kw_only=True)
class Vault:
    """The notes read so far: the first memory of each by its names, and the links, which may lead to notes
    that are read later."""

    target: Target
    inline_tags: bool = False
    first: dict[str, str] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    """The notes whose first memory is known."""
    links: dict[tuple[str, str], str] = field(default_factory=dict)
    """The place of each link, by the memory that it is in and the name that it leads to."""

    def begin(self, note: Note, memory_id: str) -> None:
        """Remember the first memory of a note."""
        if note.name not in self.begun:
            self.begun.add(note.name)
            for name in note.names:
                self.first.setdefault(name.casefold(), memory_id)

    def connect(self, note: Note, text: str, memory_id: str, place: str) -> None:
        """Remember the links of a text."""
        for name in linked_names(text, note.name):
            self.links.setdefault((memory_id, name), place)

    def edges(self) -> Iterator[Brought]:
        """The links between the notes, at the end."""
        made: set[tuple[str, str]] = set()
        for (begin, name), place in self.links.items():
            end = self.first.get(name.casefold())
            if end is None:
                other = "it shows a file that is not a note"
                reason = other if _is_other_file(name) else "the note it leads to is not in the folder"
                yield UnreadRecords(kind=CONNECTION, place=f"{place} → {name}", reason=reason)
            elif end != begin and (begin, end) not in made:
                made.add((begin, end))
                edge = Edge(source_id=begin, target_id=end, kind=LINKED, created_at=self.target.now)
                yield BroughtEdge(place=place, edge=edge)


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    yield Reading(records=records(path, Vault(target=target)))


def records(path: Path, vault: Vault) -> Iterator[Brought]:
    """The memories of a note, or of all notes in a folder and below, then the links between them."""
    for note in notes(path):
        if isinstance(note, UnreadRecords):
            yield note
        else:
            yield from section_memories(note, note.body, vault)
    yield from vault.edges()
    if path.is_dir():
        yield from other_files(path)


def notes(path: Path) -> Iterator[Note | UnreadRecords]:
    """The note, or every note of a folder in order; a reason for those that cannot be read."""
    root = path if path.is_dir() else path.parent
    found = (
        (file for file in _files(path) if file.name.lower().endswith(ENDINGS)) if path.is_dir() else [path]
    )
    for file in found:
        name = file.relative_to(root).as_posix()
        text = _text_of(file, name)
        if isinstance(text, UnreadRecords):
            yield text
        else:
            front, body = front_matter(text)
            changed = datetime.fromtimestamp(file.stat().st_mtime, UTC)
            yield Note(name=name, front=front, body=body, changed=changed)


def other_files(folder: Path) -> Iterator[UnreadRecords]:
    """The files of a folder that are not notes, counted by their ending."""
    found: Counter[str] = Counter()
    first: dict[str, str] = {}
    for file in _files(folder):
        ending = file.suffix.lower()
        if ending not in ENDINGS:
            found[ending] += 1
            first.setdefault(ending, file.relative_to(folder).as_posix())
    for ending, count in found.most_common():
        reason = f"not a note: {ending or 'without an ending'}"
        yield UnreadRecords(kind=FILE, place=first[ending], reason=reason, count=count)


def _files(folder: Path) -> Iterator[Path]:
    """Every file in a folder, in order; what is hidden is left out, and links are not followed."""
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(parent, name) for name in sorted(files) if not name.startswith("."))


def section_memories(note: Note, body: str, vault: Vault) -> Iterator[Brought]:
    """A memory for each section of a note."""
    target = vault.target
    parts = [(section, part) for section in sections(body, note.title) for part in split(section.text)]
    if not parts:
        yield UnreadRecords(kind=MEMORY, place=note.name, reason="the note has no text")
    seen: dict[str, int] = {}
    shared = shared_fields(note)
    for number, (section, part) in enumerate(parts, start=1):
        content = " › ".join(section.headings) + "\n\n" + part
        again = seen[content] = seen.get(content, 0) + 1
        place = f"{note.name} § {number}"
        fields = {
            **shared,
            "id": derived_id("markdown", target.scope, note.name, content, str(again)),
            "content": content,
            "position": number,
        }
        if vault.inline_tags:
            fields["tags"] = _joined(fields["tags"], inline_tags(part))
        found = memory_of(fields, place, target)
        if isinstance(found, BroughtMemory):
            vault.begin(note, found.memory.id)
            vault.connect(note, part, found.memory.id, place)
        yield found


def shared_fields(note: Note) -> dict[str, object]:
    """The fields that all memories of a note share; what has no place goes into the metadata."""
    front = note.front
    rest = {name: value for name, value in front.items() if name not in READ_FIELDS and value}
    tags = front.get("tags", [])
    return {
        "created_at": local_time(front.get("date") or front.get("created") or note.changed.isoformat()),
        "updated_at": local_time(front.get("updated") or front.get("modified")),
        "tags": tags[: MAX_TAGS + 1] if isinstance(tags, list) else tags,  # one too many is noted
        "author": front.get("author") if isinstance(front.get("author"), str) else None,
        "node_type": "note",
        "source": note.name,
        "thread": note.name,
        "metadata": {"front_matter": rest} if rest else {},
    }


def _joined(tags: object, more: Sequence[str]) -> object:
    """The tags at the head of a note, and those in its text."""
    given = (
        tags if isinstance(tags, list) else [one.strip() for one in str(tags or "").split(",") if one.strip()]
    )
    return [*given, *more]


def inline_tags(text: str) -> list[str]:
    """The tags in a text, such as `#garden/roses`; code is left out."""
    fence, found = "", list[str]()
    for line in text.split("\n"):
        fence, before = _fence(line, fence), fence
        if not fence and not before:
            found += (tag.rstrip("/-") for tag in _TAG.findall(re.sub(r"`[^`]*`", " ", line)))
    return list(dict.fromkeys(found))


def linked_names(text: str, name: str) -> list[str]:
    """The notes that a text links to: by their names, or by a path from the note `name`."""
    here = PurePosixPath(name).parent
    found = [one.strip() for one in _WIKILINK.findall(text)]
    found += [_from_here(here, unquote(one)) for one in _LINK.findall(text) if "://" not in one]
    return [one for one in dict.fromkeys(found) if one]


def _is_other_file(name: str) -> bool:
    """Whether a name is one of a picture or another file."""
    return _FILE_ENDING.search(name) is not None


def _from_here(folder: PurePosixPath, path: str) -> str:
    """A relative path as a name below the root."""
    parts: list[str] = []
    for part in (folder / path).parts:
        if part == "..":
            del parts[-1:]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _text_of(note: Path, name: str) -> str | UnreadRecords:
    try:
        reason = _unfit(note.lstat())
        if reason is not None:
            return UnreadRecords(kind=MEMORY, place=name, reason=reason)
        return note.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return UnreadRecords(kind=MEMORY, place=name, reason="the note is not UTF-8")
    except OSError as exc:
        return UnreadRecords(kind=MEMORY, place=name, reason=f"the note cannot be read: {exc.strerror}")


def _unfit(about: os.stat_result) -> str | None:
    """Why such a file is not opened, or None."""
    if stat.S_ISLNK(about.st_mode):
        return "the note is a link to another file"
    if not stat.S_ISREG(about.st_mode):  # opening a pipe could wait for ever, and so could reading a device
        return "it is not a plain file"
    return f"the note is larger than {MAX_FILE_BYTES:,} bytes" if about.st_size > MAX_FILE_BYTES else None


def front_matter(text: str) -> tuple[Mapping[str, str | list[str]], str]:
    """The fields at the head of a note, and the note without them.

    Only the YAML that notes use: `name: value`, `[a, b]`, and a list of `- a` below a name.
    """
    head = _FRONT.match(text)
    if head is None or len(head[1]) > MAX_FRONT_CHARS:
        return {}, text
    found: dict[str, str | list[str]] = {}
    name = ""
    for line in head[1].splitlines():
        item, field = _ITEM.match(line), _FIELD.match(line)
        if item is not None and isinstance(listed := found.get(name) or [], list):
            found[name] = listed
            listed.append(_bare(item[1]))
        elif field is not None:
            name = field[1].strip().lower()
            found[name] = _value(field[2].strip())
    return found, text[head.end() :]


def _value(text: str) -> str | list[str]:
    if text.startswith("[") and text.endswith("]"):
        return [bare for part in text[1:-1].split(",") if (bare := _bare(part))]
    return _bare(text)


def _bare(text: str) -> str:
    return text.strip().strip("\"'").lstrip("#").strip()


def sections(text: str, title: str) -> list[MarkdownSection]:
    """The sections of a note that have a text, in order. A first heading that repeats the title is left
    out."""
    found: list[MarkdownSection] = []
    path: list[tuple[int, str]] = [(0, title[:MAX_HEADING_CHARS])]
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        heading = None if fence or len(line) > MAX_HEADING_CHARS else _HEADING.match(line)
        fence = _fence(line, fence)
        if heading is None:
            lines.append(line)
            continue
        _close(found, path, lines)
        level = len(heading[1])
        path = [one for one in path if one[0] < level] + [
            (level, heading[2].rstrip(" \t").rstrip("#").rstrip(" \t"))
        ]
        lines = []
    _close(found, path, lines)
    return found


def _fence(line: str, fence: str) -> str:
    """The fence of the code block that a line is in, if any."""
    mark = _FENCE.match(line)
    if mark is None:
        return fence
    if not fence:
        return mark[1]
    return "" if mark[1].startswith(fence) and not line[mark.end() :].strip() else fence


def _close(found: list[MarkdownSection], path: Sequence[tuple[int, str]], lines: Sequence[str]) -> None:
    text = "\n".join(lines).strip()
    names = [name for _, name in path if name]
    if len(names) > 1 and names[0].casefold() == names[1].casefold():
        del names[0]
    if text:
        found.append(MarkdownSection(headings=tuple(names), text=text))


def split(text: str) -> list[str]:
    """A section in parts of a sensible size: whole paragraphs, and of a long paragraph whole sentences if
    there are any."""
    if len(text) <= MAX_SECTION_CHARS:
        return [text]
    parts: list[str] = []
    room = 0
    for paragraph in _paragraphs(text):
        if parts and len(paragraph) + 2 <= room:
            parts[-1] = f"{parts[-1]}\n\n{paragraph}"
        else:
            parts.append(paragraph)
        room = MAX_SECTION_CHARS - len(parts[-1])
    return parts


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n[ \t]*\n", text):
        if len(paragraph) <= MAX_SECTION_CHARS:
            yield from ([paragraph.strip("\n")] if paragraph.strip() else [])
            continue
        yield from (paragraph[start:end] for start, end in cut(paragraph, overlap=0))
