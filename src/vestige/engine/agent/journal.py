"""Writing to the agent's files: the layout of a new agent, a session log line, a reflection, a fact for
`MEMORY.md`. The file comes first; if the store cannot be written, the line is brought there later."""

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from vestige.core.errors import InvalidInput, StoreError
from vestige.core.lazy_dataclass import dataclass
from vestige.engine.agent.files import (
    AgentFiles,
    append_line,
    exact_text,
    locked,
    read_lines,
    replace_text,
    writing,
)
from vestige.engine.agent.layers import (
    IDENTITY,
    REFLECTION_TYPES,
    SCOPE,
    FilesRead,
    Reflection,
    SessionEntry,
    follow_sections,
    import_one,
    markdown_records,
    reflection,
    reflection_memory,
    session_entry,
    session_memory,
)
from vestige.engine.care.filenames import private
from vestige.engine.context import Call
from vestige.engine.exchange.import_foreign import import_target
from vestige.engine.ingest.inbox import refuse_orders
from vestige.engine.ingest.secrets import screen_fields
from vestige.exchange.importers.records import Brought, BroughtMemory

logger = logging.getLogger(__name__)

SECTIONS = ("About Me", "Boundaries", "Active Projects", "Working Patterns")
"""The sections of `MEMORY.md`."""

_MEMORY = "# Memory\n"
_SETUP = "# Setup\n\nThis machine: services, paths, quirks. The agent reads it when it needs to.\n"
_CREDENTIALS = (
    "# Credentials\n\nHow to get a credential (which command, which vault), never its value. Vestige does "
    "not read this file.\n"
)
_HEADING = re.compile(r"#{1,6}[ \t]")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLine:
    """A line in a file. `stored` says whether the store has it; `why_not` why it comes there later; `known`
    that the file had it already."""

    path: Path
    stored: bool
    known: bool = False
    why_not: str | None = None
    memories: tuple[str, ...] = ()
    """What became of it in the store."""


def create_files(files: AgentFiles, *, on_demand: bool) -> list[Path]:
    """Create the files that are missing; existing ones stay as they are. Returns the new ones."""
    sections = "".join(f"\n## {name}\n" for name in SECTIONS)
    wanted = {files.memory: _MEMORY + sections, files.reflections: ""}
    if on_demand:
        wanted |= {files.setup: _SETUP, files.credentials: _CREDENTIALS}
    made = []
    for folder in (files.folder, files.sessions, files.knowledge):
        if not folder.is_dir():
            with writing(folder):
                folder.mkdir(parents=True)
            made.append(folder)
    for path, text in wanted.items():
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if _created(path, text):
                made.append(path)
    return made


def _created(path: Path, text: str) -> bool:
    try:
        with open(path, "x", encoding="utf-8", opener=private) as file:
            file.write(text)
    except FileExistsError:
        return False
    return True


def log_session(
    call: Call, files: AgentFiles, entry: SessionEntry, *, secrets: Literal["redact"] | None = None
) -> FileLine:
    """Append a line to the log of its day, and bring it into the store."""
    lists = {name: list(getattr(entry, name)) for name in ("decisions", "artifacts", "open_threads")}
    said = {"session": entry.session, "summary": entry.summary, **lists}
    if secrets is None:  # a hook can refuse nothing; the pack leaves such lines out
        refuse_orders(call, said, SCOPE)
    clean = screen_fields(call, said, secrets)
    for name, value in clean.items():
        entry = _with(entry, name, value)
    path = files.sessions / f"{entry.date}.jsonl"
    append_line(path, entry.record())
    again = sum(session_entry(one, path.stem) == entry for _, one in read_lines(path).records)
    target = import_target(call, SCOPE)
    return _stored(call, path, [session_memory(entry, max(1, again), target, call.zone)])


def _with(entry: SessionEntry, name: str, value: object) -> SessionEntry:
    return session_entry({**entry.record(), name: value}, entry.date) or entry


def add_reflection(call: Call, files: AgentFiles, kind: str, content: str) -> FileLine:
    if kind not in REFLECTION_TYPES:
        raise InvalidInput(
            f"{kind!r} is not a type of reflection.",
            hint=f"One of: {', '.join(REFLECTION_TYPES)}.",
            details={"argument": "type"},
        )
    refuse_orders(call, content, SCOPE)
    clean = screen_fields(call, {"content": content})
    at = call.engine.now().isoformat(timespec="seconds")
    one = Reflection(type=kind, content=clean.get("content", content).strip(), at=at)
    append_line(files.reflections, one.record())
    there = (reflection(record) for _, record in read_lines(files.reflections).records)
    again = sum(found is not None and replace(found, at=None) == replace(one, at=None) for found in there)
    target = import_target(call, SCOPE)
    return _stored(call, files.reflections, [reflection_memory(one, max(1, again), target)])


def add_fact(call: Call, files: AgentFiles, text: str, section: str) -> FileLine:
    """Add a line to a section of `MEMORY.md`, which is created if it is missing; the rest of the file stays
    as it is, and so does all of it if the section has this line."""
    refuse_orders(call, [text, section], SCOPE)
    said = {"text": text, "section": section} | screen_fields(call, {"text": text, "section": section})
    line, heading = f"- {_one_line(said['text'])}", _one_line(said["section"]).strip("# ")
    if not heading:
        raise InvalidInput("The section has no name.", details={"argument": "section"})
    with locked(files.memory):
        before = exact_text(files.memory)
        known = before is not None and has_line(before, heading, line)
        if not known:
            replace_text(files.memory, with_line(_MEMORY if before is None else before, heading, line))
    target, found = import_target(call, SCOPE), FilesRead(broken={}, problems={}, sections={})
    brought = list(markdown_records(files.memory, IDENTITY, target, found))
    done = _stored(call, files.memory, brought)
    if done.stored:
        follow_sections(call, found.sections)  # the section without the line is no longer in the file
    return replace(done, known=known)


def _one_line(text: str) -> str:
    """A text in one line: another would be read as a heading, a rule or another fact."""
    return " ".join(text.split())


def with_line(text: str, section: str, line: str) -> str:
    """The text with a line at the end of a section, or of a new section at its end."""
    lines = text.split("\n")
    found = _section(lines, section)
    if found is None:
        return f"{text.rstrip()}\n\n## {section}\n\n{line}\n"
    start, end = found
    while end > start + 1 and not lines[end - 1].strip():
        end -= 1
    gap = [""] if end == start + 1 else []
    return "\n".join([*lines[:end], *gap, line, *lines[end:]]).rstrip("\n") + "\n"


def has_line(text: str, section: str, line: str) -> bool:
    """Whether a section has this line."""
    lines = text.split("\n")
    start, end = _section(lines, section) or (0, 0)
    return line in (one.strip() for one in lines[start + 1 : end])


def _section(lines: Sequence[str], section: str) -> tuple[int, int] | None:
    """The numbers of the line with the heading of a section, and of the first line after the section."""
    start = next((at for at, one in enumerate(lines) if _is_heading(one, section)), None)
    if start is None:
        return None
    return start, next((at for at in range(start + 1, len(lines)) if _HEADING.match(lines[at])), len(lines))


def _is_heading(line: str, section: str) -> bool:
    found = _HEADING.match(line)
    return found is not None and line[found.end() :].rstrip(" \t#").strip().casefold() == section.casefold()


def _stored(call: Call, path: Path, brought: Sequence[Brought]) -> FileLine:
    try:
        import_one(call, brought, path.name)
    except StoreError as exc:
        logger.warning("A line of %s is not in the store yet: %s", path.name, exc.code)
        return FileLine(path=path, stored=False, why_not=exc.message)
    ids = tuple(one.memory.id for one in brought if isinstance(one, BroughtMemory))
    return FileLine(path=path, stored=True, memories=ids)
