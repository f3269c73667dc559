"""Notes about a codebase: the tool `codebase`."""

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
from vestige.operations.registry.arguments import Arguments, Scope, Whole, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import scoped, searched, searched_scope, used
from vestige.operations.shared.memory_view import MemoryView, view_fields
from vestige.operations.shared.secrets import Secrets, cleaned
from vestige.operations.shared.text import count, row_number, short_id, table

MAX_ITEMS = 100


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("it is blank")
    return text


def _plain_name(name: str) -> str:
    if not name or name != " ".join(name.split()):
        raise ValueError("expected a plain name, such as billing-api")
    return name


Text = Annotated[str, AfterValidator(_not_blank), Field(max_length=100_000)]
Line = Annotated[str, AfterValidator(_not_blank), Field(max_length=1000)]
Name = Annotated[str, AfterValidator(_plain_name), Field(max_length=200)]
Part = Literal["patterns", "decisions", "cross_project"]


class NoteArguments(Arguments):
    """Arguments of every note."""

    files: list[Line] = Field([], max_length=MAX_ITEMS, description="Files the note is about.")
    codebase: Name | None = Field(None, description="Name of the codebase. Default: the current one.")
    scope: Scope | None = Field(None, description="Scope of the note. Default: the current scope.")
    secrets: Secrets = None


class PatternArguments(NoteArguments):
    name: Line = Field(description="Name of the pattern.")
    description: Text = Field(description="What is done, and when.")


class DecisionArguments(NoteArguments):
    decision: Text = Field(description="What was decided.")
    rationale: Text = Field(description="Why.")
    alternatives: Annotated[list[Line], Whole()] = Field(
        [], max_length=MAX_ITEMS, description="Other options that were considered."
    )


class AboutArguments(Arguments):
    """Codebase and scope of a query."""

    codebase: Name | None = Field(None, description="Name of the codebase. Default: the current one.")
    scope: Scope | None = Field(
        None,
        description="Only this scope and scopes below it. Default: the current scope and what it inherits; "
        "everything if `codebase` is given.",
    )


class ContextArguments(AboutArguments):
    """Which notes to list, and how many."""

    limit: int = Field(10, ge=1, le=50, description="Maximum number of notes of each kind.")
    include: list[Part] = Field(
        ["patterns", "decisions", "cross_project"],
        min_length=1,
        description="patterns, decisions, cross_project. Default: all.",
    )


class StructureArguments(AboutArguments):
    """How many files to list."""

    limit: int = Field(100, ge=1, le=1000, description="Maximum number of files.")


class Noted(SmartIngested):
    """The decision of the ingest gate about a note."""

    action: str
    codebase: str | None = None


class NoteView(MemoryView):
    """A note about a codebase."""

    title: str
    codebase: str | None = None
    files: list[str]


class SharedView(NoteView):
    """A pattern of other codebases, the codebases that have it, and its similarity to a pattern here."""

    codebases: list[str]
    similarity: float | None = None


class Notes(Wire):
    """A page of notes; `count` is the total."""

    count: int
    items: list[NoteView]


class SharedNotes(Wire):
    """Patterns of other codebases that apply here too."""

    count: int
    items: list[SharedView]


class CodebaseContext(Wire):
    """Patterns and decisions of a codebase."""

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
    parts = [
        f"{title} ({part.count})\n{_note_table(part.items)}"
        for title, part in (("Patterns", context.patterns), ("Decisions", context.decisions))
        if part is not None and part.items
    ]
    shared = context.cross_project.items if context.cross_project else []
    if shared:
        rows = ((one.title, ", ".join(one.codebases), one.similarity, short_id(one.id)) for one in shared)
        parts.append(f"In other codebases\n{table(('pattern', 'codebases', 'similarity', 'id'), rows)}")
    return "\n\n".join(parts) or "No notes."


def _note_table(items: list[NoteView]) -> str:
    rows = ((row_number(one.id), one.title, ", ".join(one.files), short_id(one.id)) for one in items)
    return table(("#", "title", "files", "id"), rows)


def render_structure(structure: Structure) -> str:
    rows = ((one.path, one.patterns, one.decisions) for one in structure.files)
    shown = table(("file", "patterns", "decisions"), rows) if structure.files else "No note names a file."
    return f"{shown}\n\n{len(structure.files)} of {count(structure.total, 'file')}."


@registry.operation(
    "codebase.remember_pattern",
    permission="write",
    example={
        "name": "Thin handlers",
        "description": "HTTP handlers only parse and call a service.",
        "files": ["src/handlers.py"],
        "codebase": "shop",
    },
    render=render_ingested,
)
def remember_pattern(call: Call, arguments: PatternArguments) -> Noted:
    """Remember a pattern: how something is done in a codebase.

    It passes the same gate as `smart_ingest`: a repeated pattern is strengthened, a corrected one superseded.
    """
    arguments = cleaned(call, arguments, _TEXTS, arguments.secrets)
    note = Pattern(name=arguments.name, description=arguments.description, files=tuple(arguments.files))
    return _remember(call, note, arguments)


@registry.operation(
    "codebase.remember_decision",
    permission="write",
    example={
        "decision": "Use SQLite for the local store.",
        "rationale": "One file, nothing to install.",
        "alternatives": ["PostgreSQL"],
        "codebase": "shop",
    },
    render=render_ingested,
)
def remember_decision(call: Call, arguments: DecisionArguments) -> Noted:
    """Remember a decision about a codebase, with its reason and the alternatives considered.

    It passes the same gate as `smart_ingest`: a repeated decision is strengthened, a corrected one
    superseded.
    """
    arguments = cleaned(call, arguments, _TEXTS, arguments.secrets)
    note = CodebaseDecision(
        decision=arguments.decision,
        rationale=arguments.rationale,
        alternatives=tuple(arguments.alternatives),
        files=tuple(arguments.files),
    )
    return _remember(call, note, arguments)


@registry.operation(
    "codebase.get_context",
    permission="read",
    example={"limit": 5},
    positional=("codebase",),
    render=render_context,
)
def get_context(call: Call, asked: ContextArguments) -> CodebaseContext:
    """List the current patterns and decisions of a codebase, strongest first.

    `crossProject` lists patterns of other codebases that apply here too, with the codebases that have them:
    patterns similar to one of this codebase, and patterns that at least two others share. Outside a project,
    and without `codebase`, it lists the notes of all codebases.
    """
    name, within, scope = _name(call, asked), *_within(call, asked)
    wanted = set(asked.include)
    patterns = notes(call, PATTERN, name, within) if {"patterns", "cross_project"} & wanted else []
    decisions = notes(call, DECISION, name, within) if "decisions" in wanted else []
    shared = cross_project(call, name, patterns) if "cross_project" in wanted else []
    return CodebaseContext(
        codebase=name,
        scope=scope,
        patterns=_notes(call, patterns, asked.limit) if "patterns" in wanted else None,
        decisions=_notes(call, decisions, asked.limit) if "decisions" in wanted else None,
        cross_project=_shared(call, shared, asked.limit) if "cross_project" in wanted else None,
    )


@registry.operation(
    "codebase.structure", permission="read", example={}, positional=("codebase",), render=render_structure
)
def codebase_structure(call: Call, asked: StructureArguments) -> Structure:
    """List the files named by the patterns and decisions of a codebase, most named first."""
    name, within, scope = _name(call, asked), *_within(call, asked)
    files = structure(call, name, within)
    return Structure(
        codebase=name, scope=scope, total=len(files), files=[FileView.of(one) for one in files[: asked.limit]]
    )


_TEXTS = ("files", "codebase", "scope", "name", "description", "decision", "rationale", "alternatives")


def _name(call: Call, asked: NoteArguments | AboutArguments) -> str | None:
    return asked.codebase or codebase_at(used(call, asked.scope))


def _within(call: Call, asked: AboutArguments) -> tuple[Filter, str]:
    """Where to look, and its name: a codebase that is named may belong to any scope."""
    if asked.codebase is not None:
        return searched(call, Filter(), asked.scope), searched_scope(call, asked.scope)
    return scoped(call, Filter(), asked.scope), used(call, asked.scope)


def _remember(call: Call, note: Pattern | CodebaseDecision, arguments: NoteArguments) -> Noted:
    name = _name(call, arguments)
    kind = PATTERN if isinstance(note, Pattern) else DECISION
    done = smart_ingest(
        call,
        IngestArguments(
            content=text_of(note),
            tags=list(tags_of(note, name)),
            node_type=kind,
            source=name,
            scope=arguments.scope,
            secrets=arguments.secrets,
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
