"""Memories that clients keep themselves, brought into the store, and rules of the store written for clients.

Claude Code and Codex keep folders of Markdown, projects have `AGENTS.md` or `CLAUDE.md`, Serena has its own
notes. Their sections become memories, once; what leaves a file ends. Rules go the other way, into a fenced
block of a file, in which nothing else is touched.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory
from vestige.engine.agent.fence import as_line
from vestige.engine.agent.files import exact_text, replace_text
from vestige.engine.agent.layers import (
    IDENTITY,
    KNOWLEDGE,
    SCOPE,
    FilesRead,
    follow_sections,
    is_from_file,
    markdown_records,
)
from vestige.engine.context import Call
from vestige.engine.exchange.import_batches import Tally
from vestige.engine.exchange.import_foreign import import_reading, import_target
from vestige.exchange.importers.records import MEMORY, Brought, Reading, Target
from vestige.exchange.transcripts.folders import is_inside

CLAUDE_MEMORY, CODEX_MEMORY, GUIDANCE, SERENA = "claude-memory", "codex-memory", "guidance", "serena-memory"
VENDORS = (CLAUDE_MEMORY, CODEX_MEMORY, GUIDANCE, SERENA)
FOLLOWED = (IDENTITY, KNOWLEDGE, *VENDORS)
"""Tags of memories that end when they leave their file, which is looked for in one scope."""
GUIDANCE_FILES = ("AGENTS.md", "CLAUDE.md")
SLUG_CHARS = 200
"""Claude Code cuts the name of a project's folder there and adds a hash."""
BEGIN, END = "<!-- vestige:rules -->", "<!-- /vestige:rules -->"
NOTE = "Rules from Vestige (`vestige agent rules`); changes in this block are overwritten."
MAX_RULES_CHARS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorFile:
    """A file or folder of a vendor, and the scope that its memories belong to."""

    vendor: str
    path: Path
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorImport:
    """What became of the files of a vendor."""

    vendor: str
    paths: tuple[Path, ...]
    memories: Tally
    retired: int


def vendor_files(home: Path, project: Path | None, scope: str) -> Iterator[VendorFile]:
    """The files of vendors that exist: those of the user, and of the project around a folder."""
    yield from _existing(CODEX_MEMORY, SCOPE, home / ".codex" / "memories" / "MEMORY.md")
    yield from _existing(GUIDANCE, SCOPE, home / ".claude" / "CLAUDE.md", home / ".codex" / "AGENTS.md")
    if project is not None:
        yield from _existing(CLAUDE_MEMORY, scope, *_claude_folders(home, project))
        serena = project / ".serena" / "memories"
        yield from _existing(GUIDANCE, scope, *(project / name for name in GUIDANCE_FILES))
        if is_inside(serena, project.resolve()):  # a cloned project may have links to the user's own files
            yield from _existing(SERENA, scope, serena)


def _existing(vendor: str, scope: str, *paths: Path) -> Iterator[VendorFile]:
    for path in paths:
        if path.is_file() or path.is_dir():
            yield VendorFile(vendor=vendor, path=path, scope=scope)


def _claude_folders(home: Path, project: Path) -> list[Path]:
    """The memory of a project in Claude Code, whose folder is named after its path."""
    slug = re.sub(r"[^A-Za-z0-9]", "-", str(project))
    folders = home / ".claude" / "projects"
    if len(slug) <= SLUG_CHARS:
        return [folders / slug / "memory"]
    try:
        return sorted(one / "memory" for one in folders.iterdir() if one.name.startswith(slug[:SLUG_CHARS]))
    except OSError:
        return []


def import_vendors(call: Call, found: Sequence[VendorFile]) -> list[VendorImport]:
    """Bring the files into the store; a second run adds nothing."""
    groups: dict[tuple[str, str], list[Path]] = {}
    for one in found:
        groups.setdefault((one.vendor, one.scope), []).append(one.path)
    done = []
    for (vendor, scope), paths in groups.items():
        target, read = import_target(call, scope), FilesRead(broken={}, problems={}, sections={})
        reading = Reading(records=_records(paths, vendor, target, read))
        outcome = import_reading(call, reading, target, name=vendor).outcome
        retired, _ = follow_sections(call, read.sections, scope=scope)
        tally = outcome.tallies.get(MEMORY, Tally(read=0, imported=0, present=0, left=0))
        done.append(VendorImport(vendor=vendor, paths=tuple(paths), memories=tally, retired=retired))
    return done


def is_followed(memory: Memory) -> bool:
    """Whether a memory is a section of a file, so that a change of the file changes it."""
    return any(layer in memory.tags and is_from_file(memory, layer) for layer in FOLLOWED)


def _records(paths: Sequence[Path], vendor: str, target: Target, read: FilesRead) -> Iterator[Brought]:
    for path in paths:
        yield from markdown_records(path, vendor, target, read, without=without_rules)


# -- Rules for clients


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesChange:
    """The change of a file by a block of rules; `after` is its new text."""

    path: Path
    before: str
    after: str

    @property
    def diff(self) -> str:
        lines = difflib.unified_diff(
            self.before.splitlines(), self.after.splitlines(), str(self.path), str(self.path), lineterm=""
        )
        return "\n".join(lines)

    def apply(self) -> None:
        replace_text(self.path, self.after, shared=True)


def rules_change(path: Path, rules: Sequence[Memory]) -> RulesChange:
    """The change that writes these memories into the block of a file; without any it removes the block."""
    before = exact_text(path) or ""
    if before.count(BEGIN) > 1 or before.count(END) != before.count(BEGIN):
        raise InvalidInput(
            f"{path} has a damaged block of rules. Nothing was changed.",
            hint=f"There must be one line `{BEGIN}` and after it one line `{END}`; or remove both.",
        )
    block = _block(rules) if rules else ""
    if BEGIN in before:
        start, end = before.index(BEGIN), before.index(END) + len(END)
        head, tail = before[:start], before[end:]
        after = f"{head}{block}{tail}" if block else f"{head.rstrip()}\n{tail.lstrip()}".lstrip("\n")
    elif block:
        gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
        after = f"{before}{gap}{block}\n"
    else:
        after = before
    return RulesChange(path=path, before=before, after=after)


def _block(rules: Sequence[Memory]) -> str:
    lines, room = [BEGIN, NOTE], MAX_RULES_CHARS
    for one in rules:
        line = "- " + as_line(one.content.replace("<!--", "").replace("-->", ""), 400)
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join([*lines, END])


def without_rules(text: str) -> str:
    """The text of a file without the block that Vestige wrote: it must not come back as a memory."""
    start, end = text.find(BEGIN), text.find(END)
    return text if start < 0 or end < start else text[:start] + text[end + len(END) :]
