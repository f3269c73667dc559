"""The layers as memories: identity, session logs, reflections and the knowledge base, read from their files.

Each line, section or note has an id derived from its text, so that reading a file again adds nothing. A
section that was taken out of a Markdown file ends in the store; its text stays in the history.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, tzinfo
from pathlib import Path
from typing import Any

from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, SHARED_SCOPE, Filter, Memory
from vestige.core.origin import Origin
from vestige.engine.agent.files import AgentFiles, LinesRead, read_lines
from vestige.engine.context import Call
from vestige.engine.exchange.import_batches import Tally
from vestige.engine.exchange.import_foreign import ForeignImport, import_reading, import_target
from vestige.engine.revise import revise
from vestige.exchange.importers.memories import memory_of
from vestige.exchange.importers.notes.markdown import Vault, notes, section_memories
from vestige.exchange.importers.records import (
    CONNECTION,
    MEMORY,
    Brought,
    BroughtMemory,
    Reading,
    Target,
    UnreadRecords,
    derived_id,
)
from vestige.exchange.transcripts.clean import storable

SCOPE = SHARED_SCOPE
"""Every project inherits what the agent knows of its user."""
IDENTITY, SESSION, REFLECTION, KNOWLEDGE = "identity", "session-log", "reflection", "knowledge"
LAYERS = (IDENTITY, SESSION, REFLECTION, KNOWLEDGE)
"""The tags of memories that come from these files."""
REFLECTION_TYPES = ("pattern", "reflection", "idea")
MAX_TEXT_CHARS = 20_000
RETIRED = "it is no longer in its file"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEntry:
    """One line of a session log, in the form of the files."""

    date: str
    session: str
    time: str
    summary: str
    decisions: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    open_threads: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        lists = ("decisions", "artifacts", "open_threads")
        texts = {name: getattr(self, name) for name in ("date", "session", "time", "summary")}
        return texts | {name: list(getattr(self, name)) for name in lists}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflection:
    """One line of `reflections.jsonl`. The time is ours; the form of others has none."""

    type: str
    content: str
    at: str | None = None

    def record(self) -> dict[str, Any]:
        return {"type": self.type, "content": self.content} | ({"at": self.at} if self.at else {})


def session_entry(record: Mapping[str, Any], day: str) -> SessionEntry | None:
    """The entry of a line; None for one that says nothing."""
    summary, title = _text(record.get("summary")), _text(record.get("session"))
    if not summary and not title:
        return None
    return SessionEntry(
        date=_text(record.get("date")) or day,
        session=title or "Session",
        time=_text(record.get("time")),
        summary=summary,
        decisions=_texts(record.get("decisions")),
        artifacts=_texts(record.get("artifacts")),
        open_threads=_texts(record.get("open_threads")),
    )


def reflection(record: Mapping[str, Any]) -> Reflection | None:
    content, kind, at = _text(record.get("content")), _text(record.get("type")), _text(record.get("at"))
    return Reflection(type=kind or "reflection", content=content, at=at or None) if content else None


def _text(value: object) -> str:
    return storable(value.strip()[:MAX_TEXT_CHARS]) if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    given = value if isinstance(value, list) else [value]
    return tuple(text for one in given if (text := _text(one)))


# -- Records of the files, as memories


def session_memory(entry: SessionEntry, again: int, target: Target, zone: tzinfo) -> Brought:
    """The memory of an entry; `again` numbers entries that are equal."""
    parts = [
        f"Session {entry.date} {entry.time}".rstrip() + f", {entry.session}: {entry.summary}".rstrip(": ")
    ]
    parts += [f"Decision: {one}" for one in entry.decisions]
    parts += [f"Open: {one}" for one in entry.open_threads]
    parts += [f"Files: {', '.join(entry.artifacts)}"] if entry.artifacts else []
    file = f"{entry.date}.jsonl"
    key = derived_id("agent", SESSION, repr(entry), str(again))
    return _memory(
        {
            "id": key,
            "content": "\n".join(parts),
            "node_type": "event",
            "tags": [SESSION],
            "source": f"sessions/{file}",
            "occurred_at": _moment(entry, zone),
            "created_at": _moment(entry, zone),
        },
        f"sessions/{file}",
        target,
    )


def reflection_memory(one: Reflection, again: int, target: Target) -> Brought:
    known = one.type if one.type in REFLECTION_TYPES else "reflection"
    return _memory(
        {
            "id": derived_id("agent", REFLECTION, one.type, one.content, str(again)),
            "content": one.content,
            "node_type": "note",
            "tags": list(dict.fromkeys([REFLECTION, known])),
            "source": "reflections.jsonl",
            "created_at": one.at,
        },
        "reflections.jsonl",
        target,
    )


def _memory(fields: Mapping[str, object], place: str, target: Target) -> Brought:
    found = memory_of({name: value for name, value in fields.items() if value is not None}, place, target)
    if isinstance(found, BroughtMemory):
        return replace(found, memory=replace(found.memory, origin=Origin.ASSISTANT.value))
    return found


def _moment(entry: SessionEntry, zone: tzinfo) -> str | None:
    """When a session was, in UTC; None if its line has no date that is one."""
    try:
        day = datetime.strptime(entry.date, "%Y-%m-%d").replace(tzinfo=zone)  # the zone is the user's
    except ValueError:
        return None
    try:
        clock = time.fromisoformat(entry.time) if entry.time else time(12)
    except ValueError:
        clock = time(12)
    try:
        return datetime.combine(day.date(), clock.replace(tzinfo=None), zone).astimezone(UTC).isoformat()
    except OverflowError:  # the last evening that there is, west of Greenwich
        return None


@dataclass(slots=True, kw_only=True)
class FilesRead:
    """What reading the files found, while it goes on."""

    broken: dict[str, tuple[int, ...]]
    problems: dict[str, str]
    sections: dict[str, set[str]]
    """The ids of the memories of each Markdown layer, by its tag."""


def records_of(files: AgentFiles, target: Target, zone: tzinfo, found: FilesRead) -> Iterator[Brought]:
    """Every record of the files: identity, sessions, reflections, then the knowledge base with its links."""
    identity = files.memory if files.memory.is_file() else None
    yield from markdown_records(identity, IDENTITY, target, found)
    counts: dict[object, int] = {}
    for path in files.session_files():
        for _, record in _checked(path, f"sessions/{path.name}", found).records:
            entry = session_entry(record, path.stem)
            if entry is not None:
                again = counts[entry] = counts.get(entry, 0) + 1
                yield session_memory(entry, again, target, zone)
    for _, record in _checked(files.reflections, files.reflections.name, found).records:
        one = reflection(record)
        if one is not None:
            plain = replace(one, at=None)
            again = counts[plain] = counts.get(plain, 0) + 1
            yield reflection_memory(one, again, target)
    yield from markdown_records(
        files.knowledge if files.knowledge.is_dir() else None, KNOWLEDGE, target, found
    )


def _checked(path: Path, name: str, found: FilesRead) -> LinesRead:
    lines = read_lines(path)
    if lines.broken:
        found.broken[name] = lines.broken
    if lines.problem is not None:
        found.problems[name] = lines.problem
    return lines


def markdown_records(
    path: Path | None,
    layer: str,
    target: Target,
    found: FilesRead,
    *,
    without: Callable[[str], str] = lambda text: text,
) -> Iterator[Brought]:
    """The sections of a note or a folder of notes, tagged with their layer; then the links between them.
    `without` takes something out of the text of a note."""
    ids = found.sections.setdefault(layer, set())
    if path is None:
        return
    vault = Vault(target=target, inline_tags=layer == KNOWLEDGE)
    for note in notes(path):
        if isinstance(note, UnreadRecords):
            yield note
            continue
        for one in section_memories(note, without(note.body), vault):
            if isinstance(one, BroughtMemory):
                ids.add(one.memory.id)
                one = replace(one, memory=_tagged(one.memory, layer))
            yield one
    yield from vault.edges()


def _tagged(memory: Memory, layer: str) -> Memory:
    tags = tuple(dict.fromkeys([layer, *memory.tags]))
    if layer == IDENTITY:  # the user's own words
        return replace(memory, tags=tags, origin=Origin.USER.value)
    return replace(memory, tags=tags, source=f"{layer}/{memory.source}", thread=f"{layer}/{memory.thread}")


# -- The store beside the files


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesImport:
    """What became of the files in the store. `future` are links to notes that do not exist yet."""

    memories: Tally
    links: int
    retired: int
    revived: int
    broken: Mapping[str, tuple[int, ...]]
    problems: Mapping[str, str]
    future: int
    left: tuple[str, ...]
    embedded: int
    note: str | None


def import_files(call: Call, files: AgentFiles) -> FilesImport:
    """Bring everything in the files into the store; a second run adds nothing."""
    target = import_target(call, SCOPE)
    found = FilesRead(broken={}, problems={}, sections={})
    reading = Reading(records=records_of(files, target, call.zone, found))
    done = import_reading(call, reading, target, name=files.folder.name)
    retired, revived = follow_sections(call, found.sections)
    tallies = done.outcome.tallies
    future = [one for one in done.outcome.left if one.kind == CONNECTION and "not in the folder" in one.what]
    return FilesImport(
        memories=tallies.get(MEMORY, Tally(read=0, imported=0, present=0, left=0)),
        links=tallies[CONNECTION].imported if CONNECTION in tallies else 0,
        retired=retired,
        revived=revived,
        broken=found.broken,
        problems=found.problems,
        future=sum(one.count for one in future),
        left=tuple(f"{one.place}: {one.what}" for one in done.outcome.examples if one.kind == MEMORY),
        embedded=done.embedded,
        note=done.note,
    )


def import_one(call: Call, brought: Sequence[Brought], name: str) -> ForeignImport:
    """Bring the records of a line that was just written into the store."""
    return import_reading(call, Reading(records=iter(brought)), import_target(call, SCOPE), name=name)


def follow_sections(call: Call, sections: Mapping[str, set[str]], *, scope: str = SCOPE) -> tuple[int, int]:
    """End what is no longer in a Markdown file, and begin again what came back into one."""
    retired = revived = 0
    now = call.engine.now()
    for layer, ids in sections.items():
        where = Filter(scope=scope, scope_only=True, tags_all=(layer,), node_types=("note",))
        for batch in call.engine.store.stream(where, access=EVERYTHING):
            for memory in (record.memory for record in batch):
                if not is_from_file(memory, layer):
                    continue
                ended = memory.valid_until is not None and memory.valid_until <= now
                if memory.id not in ids and not ended:
                    revise(call, memory.id, lambda one: replace(one, valid_until=now), reason=RETIRED)
                    retired += 1
                elif memory.id in ids and ended and memory.superseded_by is None:
                    revise(call, memory.id, lambda one: replace(one, valid_until=None), reason="it is back")
                    revived += 1
    return retired, revived


def is_from_file(memory: Memory, layer: str) -> bool:
    """Whether a memory with the tag of a layer is a section of one of its files."""
    source = memory.source or ""
    return source == "MEMORY.md" if layer == IDENTITY else source.startswith(f"{layer}/")
