"""Markdown notes: a file or a folder of them, a memory for each section.

A section is the text below one heading. It begins with the headings above it, so that it can be understood
alone. Sections of a file follow each other in a thread, so that neighbours are known.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from vestige.cognition.text.form import cut
from vestige.exchange.importers.memories import MEMORY, memory_of
from vestige.exchange.importers.records import Brought, Target, UnreadRecords, derived_id

ENDINGS = (".md", ".markdown", ".mdown")
MAX_FILE_BYTES = 16_000_000
MAX_SECTION_CHARS = 2_000
"""A longer section is split between its paragraphs: one memory should say one thing."""

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"([A-Za-z][\w -]*):[ \t]*(.*)$")
_ITEM = re.compile(r"[ \t]*-[ \t]+(.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkdownSection:
    """The text below some headings, the outermost first."""

    headings: tuple[str, ...]
    text: str


def records(path: Path, target: Target) -> Iterator[Brought]:
    """The memories of a note, or of all notes in a folder and below."""
    root = path if path.is_dir() else path.parent
    for note in _notes(path) if path.is_dir() else [path]:
        yield from _records_of(note, note.relative_to(root).as_posix(), target)


def _notes(folder: Path) -> Iterator[Path]:
    """Every note in a folder, in order; hidden folders and links are not followed."""
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (
            Path(parent, name)
            for name in sorted(files)
            if name.lower().endswith(ENDINGS) and not name.startswith(".")
        )


def _records_of(note: Path, name: str, target: Target) -> Iterator[Brought]:
    text = _text_of(note, name)
    if isinstance(text, UnreadRecords):
        yield text
        return
    front, body = front_matter(text)
    title = front.get("title")
    parts = [
        (section, part)
        for section in sections(body, title if isinstance(title, str) else note.stem)
        for part in split(section.text)
    ]
    if not parts:
        yield UnreadRecords(kind=MEMORY, place=name, reason="the note has no text")
    made = front.get("date") or front.get("created")
    changed = datetime.fromtimestamp(note.stat().st_mtime, UTC).isoformat()
    seen: dict[str, int] = {}
    for number, (section, part) in enumerate(parts, start=1):
        content = " › ".join(section.headings) + "\n\n" + part
        again = seen[content] = seen.get(content, 0) + 1
        fields = {
            "id": derived_id("markdown", target.scope, name, content, str(again)),
            "content": content,
            "created_at": made or changed,
            "tags": front.get("tags", []),
            "node_type": "note",
            "source": name,
            "thread": name,
            "position": number,
        }
        yield memory_of(fields, f"{name} § {number}", target)


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
    if head is None:
        return {}, text
    found: dict[str, str | list[str]] = {}
    name = ""
    for line in head[1].splitlines():
        item, field = _ITEM.match(line), _FIELD.match(line)
        if item is not None and isinstance(listed := found.get(name) or [], list):
            found[name] = [*listed, _bare(item[1])]
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
    path: list[tuple[int, str]] = [(0, title)]
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        heading = None if fence else _HEADING.match(line)
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
