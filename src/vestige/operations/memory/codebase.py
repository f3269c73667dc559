"""What is known about a codebase: the tool `codebase`."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from vestige.cognition.evidence.codebase import (
    DECISION,
    PATTERN,
    CodebaseDecision,
    Pattern,
    Shared,
    codebase_at,
    codebase_of,
    files_of,
    tags_of,
    text_of,
    title_of,
)
from vestige.core.models import Filter, Record
from vestige.engine.context import Call
from vestige.engine.memory.codebase import cross_project, notes, structure
from vestige.operations.memory.ingest import IngestArguments, SmartIngested, render_ingested, smart_ingest
from vestige.operations.registry.arguments import Arguments, Scope, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import scoped, used
from vestige.operations.shared.memory_view import MemoryView, view_fields
from vestige.operations.shared.secrets import Secrets, cleaned
from vestige.operations.shared.text import count, table

MAX_ITEMS = 100


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("it is blank")
    return text


def _plain_name(name: str) -> str:
    if not name or name != " ".join(name.split()):
        raise ValueError("expected a plain name, such as billing-api")
    return name


Told = Annotated[str, AfterValidator(_not_blank), Field(max_length=100_000)]
Line = Annotated[str, AfterValidator(_not_blank), Field(max_length=1000)]
Name = Annotated[str, AfterValidator(_plain_name), Field(max_length=200)]
Part = Literal["patterns", "decisions", "cross_project"]


class NoteArguments(Arguments):
    """What every note says of itself."""

    files: Annotated[list[Line], Field(max_length=MAX_ITEMS, description="Files it is about.")] = []
    codebase: Annotated[
        Name | None, Field(description="Name of the codebase; default is the caller's own.")
    ] = None
    scope: Annotated[
        Scope | None, Field(description="Where it belongs; default is the caller's own scope.")
    ] = None
    secrets: Secrets = None


class PatternArguments(NoteArguments):
    """A pattern to remember."""

    name: Annotated[Line, Field(description="What the pattern is called.")]
    description: Annotated[Told, Field(description="What is done, and when.")]


class DecisionArguments(NoteArguments):
    """A decision to remember."""

    decision: Annotated[Told, Field(description="What was decided.")]
    rationale: Annotated[Told, Field(description="Why.")]
    alternatives: Annotated[
        list[Line], Field(max_length=MAX_ITEMS, description="What else was considered.")
    ] = []


class AboutArguments(Arguments):
    """Which codebase, and where to look."""

    codebase: Annotated[
        Name | None, Field(description="Name of the codebase; default is the caller's own.")
    ] = None
    scope: Annotated[
        Scope | None,
        Field(description="Where to look; default is the caller's own scope and what it inherits."),
    ] = None


class ContextArguments(AboutArguments):
    """How much of what is known."""

    limit: Annotated[int, Field(ge=1, le=50, description="Most notes of each kind.")] = 10
    include: Annotated[
        list[Part], Field(min_length=1, description="patterns, decisions, cross_project; default all.")
    ] = ["patterns", "decisions", "cross_project"]


class StructureArguments(AboutArguments):
    """How many files."""

    limit: Annotated[int, Field(ge=1, le=1000, description="Most files to return.")] = 100


class Noted(SmartIngested):
    """What became of a note."""

    action: str
    codebase: str | None = None


class NoteView(MemoryView):
    """A note about a codebase."""

    title: str
    codebase: str | None = None
    files: list[str]


class SharedView(NoteView):
    """A pattern of other codebases: where it occurs, and how like one of this codebase it is."""

    codebases: list[str]
    similarity: float | None = None


class Notes(Wire):
    """Some of the notes; `count` is of all there are."""

    count: int
    items: list[NoteView]


class SharedNotes(Wire):
    """Patterns of other codebases that matter here too."""

    count: int
    items: list[SharedView]


class CodebaseContext(Wire):
    """What is known about a codebase."""

    action: str = "get_context"
    codebase: str | None = None
    scope: str
    patterns: Notes | None = None
    decisions: Notes | None = None
    cross_project: SharedNotes | None = None


class FileView(Wire):
    """A file that notes name."""

    path: str
    patterns: int
    decisions: int


class Structure(Wire):
    """The files that notes about a codebase name."""

    action: str = "structure"
    codebase: str | None = None
    scope: str
    total: int
    files: list[FileView]


def render_context(context: CodebaseContext) -> str:
    """What is known about a codebase, for a person."""
    parts = [
        f"{title} ({part.count})\n{_note_table(part.items)}"
        for title, part in (("Patterns", context.patterns), ("Decisions", context.decisions))
        if part is not None and part.items
    ]
    shared = context.cross_project.items if context.cross_project else []
    if shared:
        rows = ((one.title, ", ".join(one.codebases), one.similarity, one.id) for one in shared)
        parts.append(f"In other codebases\n{table(('pattern', 'codebases', 'like ours', 'id'), rows)}")
    return "\n\n".join(parts) or "Nothing is noted."


def _note_table(items: list[NoteView]) -> str:
    return table(("title", "files", "id"), ((one.title, ", ".join(one.files), one.id) for one in items))


def render_structure(structure: Structure) -> str:
    """The files for a person."""
    rows = ((one.path, one.patterns, one.decisions) for one in structure.files)
    shown = table(("file", "patterns", "decisions"), rows) if structure.files else "No note names a file."
    return f"{shown}\n\n{len(structure.files)} of {count(structure.total, 'file')}."


@registry.operation(
    "codebase.remember_pattern",
    permission="write",
    effect="write",
    example={
        "name": "Thin handlers",
        "description": "HTTP handlers only parse and call a service.",
        "files": ["src/handlers.py"],
        "codebase": "shop",
    },
    positional=("name", "description"),
    render=render_ingested,
)
def remember_pattern(call: Call, told: PatternArguments) -> Noted:
    """Remember a way things are done in a codebase.

    It passes the same gate as with `smart_ingest`: told again it is strengthened, corrected it is superseded.
    """
    told = cleaned(call, told, _TEXTS, told.secrets)
    note = Pattern(name=told.name, description=told.description, files=tuple(told.files))
    return _remember(call, note, told)


@registry.operation(
    "codebase.remember_decision",
    permission="write",
    effect="write",
    example={
        "decision": "Use SQLite for the local store.",
        "rationale": "One file, nothing to install.",
        "alternatives": ["PostgreSQL"],
        "codebase": "shop",
    },
    positional=("decision", "rationale"),
    render=render_ingested,
)
def remember_decision(call: Call, told: DecisionArguments) -> Noted:
    """Remember a decision about a codebase, why it was taken, and what else was considered.

    It passes the same gate as with `smart_ingest`: told again it is strengthened, corrected it is superseded.
    """
    told = cleaned(call, told, _TEXTS, told.secrets)
    note = CodebaseDecision(
        decision=told.decision,
        rationale=told.rationale,
        alternatives=tuple(told.alternatives),
        files=tuple(told.files),
    )
    return _remember(call, note, told)


@registry.operation(
    "codebase.get_context",
    permission="read",
    effect="none",
    example={"limit": 5},
    positional=("codebase",),
    render=render_context,
)
def get_context(call: Call, asked: ContextArguments) -> CodebaseContext:
    """Show the patterns and decisions of a codebase that hold now, the best kept first.

    `crossProject` shows patterns of other codebases that matter here too, each with the codebases it occurs
    in: those like one of this codebase, and those that at least two others have. Outside a project, and with
    no codebase given, the notes of all codebases are shown.
    """
    name, within = _name(call, asked), scoped(call, Filter(), asked.scope)
    wanted = set(asked.include)
    patterns = notes(call, PATTERN, name, within) if {"patterns", "cross_project"} & wanted else []
    decisions = notes(call, DECISION, name, within) if "decisions" in wanted else []
    shared = cross_project(call, name, patterns) if "cross_project" in wanted else []
    return CodebaseContext(
        codebase=name,
        scope=used(call, asked.scope),
        patterns=_notes(call, patterns, asked.limit) if "patterns" in wanted else None,
        decisions=_notes(call, decisions, asked.limit) if "decisions" in wanted else None,
        cross_project=_shared(call, shared, asked.limit) if "cross_project" in wanted else None,
    )


@registry.operation(
    "codebase.structure",
    permission="read",
    effect="none",
    example={},
    positional=("codebase",),
    render=render_structure,
)
def codebase_structure(call: Call, asked: StructureArguments) -> Structure:
    """Show which files the patterns and decisions of a codebase name, those named most often first."""
    name = _name(call, asked)
    files = structure(call, name, scoped(call, Filter(), asked.scope))
    return Structure(
        codebase=name,
        scope=used(call, asked.scope),
        total=len(files),
        files=[
            FileView(path=one.path, patterns=one.patterns, decisions=one.decisions)
            for one in files[: asked.limit]
        ],
    )


_TEXTS = ("files", "codebase", "scope", "name", "description", "decision", "rationale", "alternatives")


def _name(call: Call, asked: NoteArguments | AboutArguments) -> str | None:
    return asked.codebase or codebase_at(used(call, asked.scope))


def _remember(call: Call, note: Pattern | CodebaseDecision, told: NoteArguments) -> Noted:
    name = _name(call, told)
    kind = PATTERN if isinstance(note, Pattern) else DECISION
    done = smart_ingest(
        call,
        IngestArguments(
            content=text_of(note),
            tags=list(tags_of(note, name)),
            node_type=kind,
            source=name,
            scope=used(call, told.scope),
            secrets=told.secrets,
        ),
    )
    return Noted(action=f"remember_{kind}", codebase=name, **done.model_dump())


def _notes(call: Call, records: list[Record], limit: int) -> Notes:
    return Notes(
        count=len(records), items=[NoteView(**_note_fields(call, record)) for record in records[:limit]]
    )


def _shared(call: Call, shared: list[Shared], limit: int) -> SharedNotes:
    items = [
        SharedView(
            codebases=list(one.codebases),
            similarity=None if one.similarity is None else round(one.similarity, 4),
            **_note_fields(call, one.record),
        )
        for one in shared[:limit]
    ]
    return SharedNotes(count=len(shared), items=items)


def _note_fields(call: Call, record: Record) -> dict[str, object]:
    memory = record.memory
    shown = view_fields(record, call.engine.now(), "summary")
    named = {"title": title_of(memory), "codebase": codebase_of(memory), "files": list(files_of(memory))}
    return {**shown, **named}
