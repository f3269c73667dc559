"""The stable pack: the context at the start of a session, within a limit of characters.

It is made once for a session and then kept, byte for byte, so that the prompt caches of clients stay valid.
It has no clock time and no counts. A clear or a compaction makes a new one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from vestige.cognition.evidence.briefing import gist
from vestige.cognition.evidence.codebase import DECISION, PATTERN, codebase_at
from vestige.cognition.intentions.triggers import TriggerSituation
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import PROJECTS_SCOPE, Filter, Memory, Record, covers
from vestige.core.origin import Origin
from vestige.engine.agent.fence import CONTEXT, Fence, as_data, as_line
from vestige.engine.agent.files import AgentFiles, read_lines, read_text
from vestige.engine.agent.layers import LAYERS, Reflection, SessionEntry, reflection, session_entry
from vestige.engine.agent.session_state import SessionWork
from vestige.engine.context import Call
from vestige.engine.ingest.inbox import flags_in
from vestige.engine.ingest.orders import found_without_orders, without_orders
from vestige.engine.intentions import relevant
from vestige.engine.memory.codebase import notes

DAYS, REFLECTIONS, INTENTIONS, PROJECT = 3, 30, 5, 12
"""The most days with sessions, reflections, due intentions and memories of the project."""
LINE_CHARS = 400
SHARES = {"identity": 0.3, "work": 0.2, "due": 0.07, "sessions": 0.17, "reflections": 0.15, "project": 0.11}
"""The part of the limit that a section may take while others need theirs; what one leaves, the next has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackSection:
    """Lines under a heading, the most important first."""

    name: str
    heading: str
    lines: tuple[str, ...]
    more: str = ""
    """What to say if not all of them fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """A context in its fence, and the memories of the store in it."""

    id: str
    text: str
    memories: tuple[str, ...]


def build_pack(call: Call, files: AgentFiles, *, pack_id: str, work: SessionWork | None = None) -> Pack:
    """The pack of a session; `work` is what a compaction would lose. Empty if there is nothing to say."""
    project, shown = _project(call), call.engine.settings.shown_path
    sections = [
        *_identity(files, shown),
        *_work(work),
        *_due(call),
        *_sessions(files, shown),
        *_reflections(files),
        *_project_lines(call.scope, project),
    ]
    fence = Fence(tag=CONTEXT, id=pack_id)
    body = composed(sections, fence.room(call.engine.settings.agent.pack_chars))
    if not body:
        return Pack(id=pack_id, text="", memories=())
    listed = tuple(one.memory.id for one in project if one.memory.id in body)
    return Pack(id=pack_id, text=fence.around(body), memories=listed)


def composed(sections: Sequence[PackSection], limit: int) -> str:
    """The sections in order, within a limit. A section has its share, and what earlier ones left of theirs;
    the last ones have what is left."""
    full = {one.name: len(_block(one, len(one.lines))) for one in sections}
    needed = sum(full.values()) + 2 * len(sections)
    counts: dict[str, int] = {}
    room = limit
    for at, one in enumerate(sections):
        later = sum(min(full[two.name] + 2, int(SHARES[two.name] * limit)) for two in sections[at + 1 :])
        allowed = room if needed <= limit else max(min(room, int(SHARES[one.name] * limit)), room - later)
        counts[one.name] = _fitting(one, allowed - 2)
        if counts[one.name]:
            room -= len(_block(one, counts[one.name])) + 2
    blocks = (_block(one, counts[one.name]) for one in sections)
    return "\n\n".join(block for block in blocks if block)


def _fitting(section: PackSection, room: int) -> int:
    """How many of its lines fit."""
    low, high = 0, len(section.lines)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(_block(section, middle)) <= room else (low, middle - 1)
    return low


def _block(section: PackSection, count: int) -> str:
    if not count:
        return ""
    more = [section.more] if section.more and count < len(section.lines) else []
    return "\n".join([section.heading, *section.lines[:count], *more])


# -- Sections


def _identity(files: AgentFiles, shown: Callable[[Path], str]) -> Iterator[PackSection]:
    text = read_text(files.memory)
    lines = _without_blanks(as_data(text or "").strip().split("\n"))
    # A file that says no more than the template does is left out.
    if any(not line.startswith("#") for line in lines):
        cut = tuple(line[:LINE_CHARS] for line in lines)
        yield PackSection(
            name="identity", heading="## MEMORY.md", lines=cut, more=f"… (more in {shown(files.memory)})"
        )


def _without_blanks(lines: Iterable[str]) -> list[str]:
    """The lines without blank ones and without headings that have nothing below them."""
    shown = [line.rstrip() for line in lines if line.strip()]
    follows = [*shown[1:], "#"]
    return [line for line, after in zip(shown, follows, strict=False) if not _is_empty(line, after)]


def _is_empty(line: str, after: str) -> bool:
    return line.startswith("##") and after.startswith("#") and len(after) - len(after.lstrip("#")) <= 2


def _work(work: SessionWork | None) -> Iterator[PackSection]:
    if work is None:
        return
    asked = (work.last_prompt,) if work.last_prompt else ()
    named = {"asked last": asked, "open": work.open_threads or (), "decided": work.decisions[::-1]}
    lines = [
        f"- {name}: {as_line(one, LINE_CHARS if name == 'asked last' else 200)}"
        for name, texts in named.items()
        for one in texts
        if not flags_in({"content": one}, Origin.ASSISTANT)
    ]
    lines += [f"- file: {as_line(one, 200)}" for one in reversed(work.files)]
    lines += [f"- command: {as_line(one, 200)}" for one in reversed(work.commands)]
    if lines:
        yield PackSection(name="work", heading="## This session before the compaction", lines=tuple(lines))


def _due(call: Call) -> Iterator[PackSection]:
    home = Filter(scope=call.scope, inherited=True)
    now = call.engine.now()
    situation = TriggerSituation(now=now, codebase=codebase_at(call.scope), file=None, topics=(), events=())
    found = relevant(call, situation, home)[:INTENTIONS]
    lines = tuple(
        f"- {as_line(gist(one.after.description), LINE_CHARS)}"
        f"{' (overdue)' if one.after.overdue(now) else ''} [intention {one.after.id}]"
        for one in found
    )
    if lines:
        yield PackSection(name="due", heading="## Due reminders", lines=lines)


def _sessions(files: AgentFiles, shown: Callable[[Path], str]) -> Iterator[PackSection]:
    """The sessions of the last days that have any, the latest first."""
    lines = []
    for path in reversed(files.session_files()[-DAYS:]):
        entries = (session_entry(record, path.stem) for _, record in read_lines(path).records)
        kept = [one for one in entries if one is not None and not gives_orders(one)]
        lines += [_session_line(one) for one in reversed(kept)]
    if lines:
        yield PackSection(
            name="sessions",
            heading="## Recent sessions",
            lines=tuple(lines),
            more=f"… (more in {shown(files.sessions)})",
        )


def _session_line(entry: SessionEntry) -> str:
    parts = [f"{entry.session}: {entry.summary}"]
    parts += [f"Decided: {one}" for one in entry.decisions]
    parts += [f"Open: {one}" for one in entry.open_threads]
    return f"- {entry.date} {entry.time}".rstrip() + f" {as_line(' | '.join(parts), LINE_CHARS)}"


def _reflections(files: AgentFiles) -> Iterator[PackSection]:
    last = read_lines(files.reflections).records[-REFLECTIONS:]
    read = [one for _, record in reversed(last) if (one := reflection(record)) is not None]
    found = [one for one in read if not gives_orders(one)]
    lines = tuple(f"- {as_line(one.type, 20)}: {as_line(one.content, LINE_CHARS)}" for one in found)
    if lines:
        yield PackSection(name="reflections", heading="## Reflections", lines=lines)


def _project(call: Call) -> list[Record]:
    """Memories of the current project: pinned ones, decisions, patterns, then the newest."""
    if not covers(PROJECTS_SCOPE, call.scope):
        return []
    home = Filter(scope=call.scope, valid_at=call.engine.now(), include_suppressed=False)
    codebase = codebase_at(call.scope)
    found = found_without_orders(call, replace(home, pinned=True), limit=PROJECT)
    for kind in (DECISION, PATTERN) if codebase else ():
        found += notes(call, kind, codebase, home)[: PROJECT // 3]
    found += found_without_orders(call, home, limit=PROJECT)
    unique = {one.memory.id: one for one in found if not set(LAYERS) & set(one.memory.tags)}
    return without_orders(call, list(unique.values()))[:PROJECT]


def gives_orders(line: SessionEntry | Reflection) -> bool:
    """Whether a line of the agent's files gives orders to the agent: what a tool printed may have come there
    by the agent's words. MEMORY.md is the user's."""
    return bool(flags_in(line.record(), Origin.ASSISTANT))


def _project_lines(scope: str, found: Sequence[Record]) -> Iterator[PackSection]:
    lines = tuple(memory_line(one.memory) for one in found)
    if lines:
        yield PackSection(name="project", heading=f"## Project {as_line(scope, 200)}", lines=lines)


def memory_line(memory: Memory, limit: int = LINE_CHARS, *, passage: str = "") -> str:
    """A memory as data on one line: day, text or a passage of it, where it comes from, id."""
    at = memory.occurred_at or memory.created_at
    known = (memory.node_type, memory.origin, memory.author, memory.source)
    origin = ", ".join(as_line(name, 60) for name in known if name)
    tail = f" ({origin}) [{memory.id}]"
    text = as_line(passage or memory.content, max(60, limit - len(tail) - 15))
    return f"- {at:%Y-%m-%d} {text}{tail}"
