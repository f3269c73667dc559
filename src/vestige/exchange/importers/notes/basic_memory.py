"""basic-memory: a folder of notes with observations, `- [category] text #tag (context)`, and relations,
`- kind [[Note]] (context)`.

The prose of a note is imported as that of any note. An observation becomes a memory that names its note, a
relation a sentence that is linked to both notes.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from vestige.core.lazy_dataclass import dataclass
from vestige.exchange.importers.memories import memory_of
from vestige.exchange.importers.notes.markdown import (
    Note,
    Vault,
    inline_tags,
    notes,
    other_files,
    section_memories,
    sections,
    shared_fields,
)
from vestige.exchange.importers.records import (
    Brought,
    BroughtMemory,
    Reading,
    Target,
    UnreadRecords,
    derived_id,
)

TOOL = "basic-memory"
TRIED = 50
"""The notes that are looked at to recognise such a folder."""
_OBSERVATION = re.compile(r"[ \t]*[-*+][ \t]+\[([^\[\]()\n]+)\][ \t]+(?!\()(.+)$")
_RELATION = re.compile(r"[ \t]*+[-*+][ \t]++([^\[\]\n]*+)\[\[([^\[\]\n]+)\]\][ \t]*+(?:\((.*)\)[ \t]*+)?$")
_CONTEXT = re.compile(r"^(.*\S)[ \t]*\(([^()]*)\)[ \t]*$")
_BOXES = frozenset({"", "x", "X", "-", "/", ">", "?", "!"})
"""What stands in the brackets of a task."""
_EMPTY = re.compile(r"^#{1,6}[ \t]+(?:observations|relations)[ \t]*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Observation:
    category: str
    text: str
    context: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _NoteRelation:
    kind: str
    end: str
    context: str | None


def is_note(front: Mapping[str, object]) -> bool:
    """Whether a note of that program begins so."""
    return bool(front.get("permalink")) and bool(front.get("type"))


def is_folder(folder: Path) -> bool:
    tried = islice((one for one in notes(folder) if isinstance(one, Note)), TRIED)
    return any(is_note(one.front) for one in tried)


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    yield Reading(records=_records(path, Vault(target=target)))


def _records(path: Path, vault: Vault) -> Iterator[Brought]:
    for note in notes(path):
        if isinstance(note, UnreadRecords):
            yield note
        else:
            yield from _note(note, vault)
    yield from vault.edges()
    if path.is_dir():
        yield from other_files(path)


def _note(note: Note, vault: Vault) -> Iterator[Brought]:
    prose, statements = _parted(note.body)
    if sections(prose, note.title):
        yield from section_memories(note, prose, vault)
    elif not statements:
        yield UnreadRecords(kind="memory", place=note.name, reason="the note has no text")
    for number, statement in enumerate(statements, start=1):
        place = f"{note.name}, statement {number}"
        found = memory_of(_fields(note, statement, number, vault), place, vault.target)
        if isinstance(found, BroughtMemory):
            vault.begin(note, found.memory.id)
            if isinstance(statement, _NoteRelation):
                vault.links.setdefault((found.memory.id, note.name), place)
                vault.links.setdefault((found.memory.id, statement.end), place)
        yield found


def _parted(body: str) -> tuple[str, list[_Observation | _NoteRelation]]:
    """The prose of a note, and its observations and relations; headings that are then empty are left out."""
    prose: list[str] = []
    statements: list[_Observation | _NoteRelation] = []
    for line in body.split("\n"):
        found = _statement(line)
        if found is not None:
            statements.append(found)
        elif not _EMPTY.match(line):
            prose.append(line)
    return "\n".join(prose), statements


def _statement(line: str) -> _Observation | _NoteRelation | None:
    relation = _RELATION.match(line)
    if relation is not None:
        kind = relation[1].strip().strip("\"'") or "relates to"
        return _NoteRelation(kind=kind, end=relation[2].partition("|")[0].strip(), context=relation[3])
    observation = _OBSERVATION.match(line)
    if observation is None or observation[1].strip() in _BOXES:
        return None
    said = _CONTEXT.match(observation[2])
    text, context = (said[1], said[2]) if said else (observation[2], None)
    return _Observation(category=observation[1].strip(), text=text.strip(), context=context)


def _fields(
    note: Note, statement: _Observation | _NoteRelation, number: int, vault: Vault
) -> dict[str, object]:
    shared, scope = shared_fields(note), vault.target.scope
    own = note.front.get("permalink")
    key = own if isinstance(own, str) else note.name
    match statement:
        case _Observation():
            known_by = ("observation", statement.category, statement.text)
            content = f"{note.title}: {statement.text}"
            tags = [statement.category, *inline_tags(statement.text)]
        case _NoteRelation():
            known_by = ("relation", statement.kind, statement.end)
            content = f"{note.title} {statement.kind.replace('_', ' ')} {statement.end}"
            tags = ["relation", note.title, statement.end]
    given = shared["tags"] if isinstance(shared["tags"], list) else [shared["tags"]]
    return {
        **shared,
        "id": derived_id(TOOL, scope, key, *known_by),
        "content": content,
        "tags": [*given, *tags],
        "node_type": "fact",
        "position": 10_000 + number,
        "context": statement.context,
    }
