"""What a project remembers: `project.save`, `diary`, `forget`, `citations`, `verify`.

These are the ordinary operations on memories, in the scope of the project: whatever else can be done with a
memory can be done with these.
"""

import re
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from vestige.core.errors import InvalidInput, NotFound
from vestige.core.models import Filter, Memory, Record, covers
from vestige.engine.context import Call
from vestige.engine.memory.delete import file_copies, forget
from vestige.engine.memory.suppress import suppress
from vestige.engine.project.citations import (
    MOST_CITATIONS,
    Checked,
    Citation,
    anchored,
    checked,
    cited_in,
    of_memory,
    to_metadata,
    verified,
)
from vestige.engine.project.place import Project, current_project
from vestige.engine.project.search import FileTexts
from vestige.engine.revise import revise
from vestige.operations.memory.ingest import IngestArguments, SmartIngested, render_ingested, smart_ingest
from vestige.operations.memory.read import EXAMPLE_ID
from vestige.operations.project.recall import CitationView, citation_view
from vestige.operations.project.view import EXAMPLE_PATH, ProjectPath
from vestige.operations.registry.arguments import Arguments, MemoryId, Switch, Tags, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.secrets import Secrets
from vestige.operations.shared.text import clip, short_id, table

DIARY = "diary"
MOST_CHECKED = 1_000
_PLACE = re.compile(r"(?P<path>[^:\n]{1,1000}?)(?::(?P<start>\d{1,7})(?:-(?P<end>\d{1,7}))?)?")

KINDS = ("blocker", "code_insight", "constraint", "decision", "fact", "note", "preference", "pattern")


def _known_kind(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"expected one of {', '.join(KINDS)}")
    return kind


Kind = Annotated[str, AfterValidator(_known_kind)]
ForgetMode = Literal["suppress", "hard"]


class SaveArguments(Arguments):
    """One observation about a project."""

    content: str = Field(min_length=1, description="What to remember.")
    kind: Kind = Field(
        "fact", description="constraint, decision, preference, pattern, blocker, code_insight …"
    )
    tags: Tags = Field([], description="Labels to find it by.")
    source: str | None = Field(None, description="Origin: a URL, file or system.")
    cites: list[Annotated[str, Field(min_length=1, max_length=1000)]] = Field(
        [],
        max_length=MOST_CITATIONS,
        description="Code it is about: path, path:line or path:first-last, from the root of the project. "
        "Paths and `symbols` in the text are cited too.",
    )
    pinned: bool = Field(False, description="Exempt it from all automatic changes.")
    secrets: Secrets = None
    path: ProjectPath = None


class ProjectSaved(SmartIngested):
    """The decision of the ingest gate, and the code that the memory cites."""

    citations: list[CitationView]


class ProjectForgotten(Wire):
    """What was done with a memory. `still_in` are memories that hold its text because of merging, `copies`
    your own backups and exports, which may."""

    id: str
    mode: ForgetMode
    message: str
    still_in: list[str] = []
    copies: list[str] = []


class CitingMemory(Wire):
    """A memory, and what became of the code that it cites."""

    id: str
    kind: str
    preview: str
    citations: list[CitationView]


class CitationsChecked(Wire):
    """All citations of a project's memories, those with changes first. `verified` counts those whose time was
    moved by this check."""

    total: int
    verified: int | None = None
    verdicts: dict[str, int]
    memories: list[CitingMemory]


def render_citations(found: CitationsChecked) -> str:
    rows = (
        (
            one.verdict,
            one.cited,
            one.now or "",
            (one.verified_at or "")[:10],
            clip(memory.preview, 40),
            short_id(memory.id),
        )
        for memory in found.memories
        for one in memory.citations
    )
    if not found.total:
        return "No memory of this project cites code."
    return table(("verdict", "cited", "now", "verified", "memory", "id"), rows)


@registry.operation(
    "project.save",
    permission="write",
    example={
        "content": "Greetings are never longer than a line.",
        "kind": "constraint",
        "path": EXAMPLE_PATH,
    },
    positional=("content",),
    render=render_ingested,
)
def project_save(call: Call, asked: SaveArguments) -> ProjectSaved:
    """Remember something about the project: a decision, a constraint, an insight, with the code it is about.

    It passes the same gate as `smart_ingest`. Cited lines are followed through edits: `project_recall` says
    whether they are still there.
    """
    project = current_project(call, asked.path)
    citations = _citations(call, project, asked)
    done = smart_ingest(
        call,
        IngestArguments(
            content=asked.content,
            tags=asked.tags,
            node_type=asked.kind,
            source=asked.source,
            scope=project.scope,
            pinned=asked.pinned,
            metadata=to_metadata(citations) if citations else {},
            secrets=asked.secrets,
        ),
    )
    views = [
        CitationView(
            cited=one.place,
            verdict="fresh",
            symbol=one.symbol or None,
            commit=one.commit or None,
            verified_at=one.verified_at,
        )
        for one in citations
    ]
    return ProjectSaved(citations=views, **done.model_dump())


@registry.operation(
    "project.diary",
    permission="write",
    example={"summary": "Wrote the first greeting; other languages come next.", "path": EXAMPLE_PATH},
    positional=("summary",),
    render=render_ingested,
)
def project_diary(
    call: Call,
    summary: Annotated[str, Field(min_length=1, description="What was done, what is open: 3 to 6 points.")],
    subject: Annotated[str | None, Field(max_length=200, description="What it was about.")] = None,
    tags: Annotated[Tags, Field(description="Labels to find it by.")] = [],  # noqa: B006 - pydantic copies it
    path: ProjectPath = None,
) -> SmartIngested:
    """Write an entry of the project's diary: the summary of a session, always as a new memory."""
    project = current_project(call, path)
    done = smart_ingest(
        call,
        IngestArguments(
            content=summary,
            tags=[DIARY, *(tag for tag in tags if tag != DIARY)],
            node_type=DIARY,
            source=subject,
            scope=project.scope,
            occurred_at=call.engine.now(),
            force_create=True,
        ),
    )
    return SmartIngested(**done.model_dump())


@registry.operation(
    "project.forget",
    permission="write",
    effect="delete",
    example={"id": EXAMPLE_ID, "confirm": True, "path": EXAMPLE_PATH},
    title="Forget a memory of the project",
)
def project_forget(
    call: Call,
    id: MemoryId,
    mode: Annotated[
        ForgetMode,
        Field(description="suppress: hide it, which can be reversed; hard: erase it from every file."),
    ] = "suppress",
    confirm: Annotated[Switch, Field(description="Must be true for hard: it cannot be undone.")] = False,
    path: ProjectPath = None,
) -> ProjectForgotten:
    """Forget one memory of the project, by its id; never by a query.

    `hard` erases it from every file of the store, with its words, vectors and revisions.
    """
    project = current_project(call, path)
    found = call.engine.store.get_many([id], access=call.access)
    if not found or not covers(project.scope, found[0].memory.scope):
        raise NotFound(
            f"There is no memory {id} in this project.",
            hint="`project_recall` and `memory` with the action `list` show ids.",
            details={"id": id},
        )
    if mode == "suppress":
        suppress(call, id)
        return ProjectForgotten(
            id=id, mode=mode, message="Hidden; `vestige suppress ID --reverse` undoes it."
        )
    if not confirm:
        raise InvalidInput(
            "This erases a memory for good and cannot be undone.",
            hint="Pass `confirm: true` to proceed; the mode `suppress` only hides it.",
            details={"argument": "confirm"},
        )
    done = forget(call, id, even_pinned=False)
    return ProjectForgotten(
        id=id,
        mode=mode,
        message="Erased from every file of the store.",
        still_in=list(done.still_in),
        copies=file_copies(call),
    )


@registry.operation(
    "project.citations",
    permission="read",
    example={"path": EXAMPLE_PATH},
    positional=(),
    render=render_citations,
)
def project_citations(call: Call, path: ProjectPath = None) -> CitationsChecked:
    """Compare all code that memories of the project cite with the files: fresh, moved, changed, gone, or
    unverifiable.

    It changes nothing, and no memory is deleted because its code is gone. `project verify` records the time.
    """
    return _citations_view(_checks(call, current_project(call, path)))


@registry.operation(
    "project.verify",
    permission="write",
    example={"path": EXAMPLE_PATH},
    positional=(),
    render=render_citations,
)
def project_verify(call: Call, path: ProjectPath = None) -> CitationsChecked:
    """Check all code that memories of the project cite, and record when it was found unchanged.

    Only this moves `verifiedAt`, and only of citations that are fresh or moved; recalling never does.
    """
    at = call.engine.now().isoformat()
    found = []
    for memory, checks in _checks(call, current_project(call, path)):
        call.check()

        def change(memory: Memory, checks: list[Checked] = checks) -> Memory:
            return verified(memory, checks, at)

        found.append((revise(call, memory.id, change, reason="citations verified")[0].memory, checks))
    # What is shown is what is stored now.
    done = [
        (memory, [replace(one, citation=kept) for one, kept in zip(checks, of_memory(memory), strict=True)])
        for memory, checks in found
        if len(checks) == len(of_memory(memory))
    ]
    moved = sum(one.citation.verified_at == at for _, checks in done for one in checks)
    return _citations_view(done).model_copy(update={"verified": moved})


def _checks(call: Call, project: Project) -> list[tuple[Memory, list[Checked]]]:
    texts = FileTexts(project=project)
    found = []
    with call.engine.code_indexes.reading(project.index) as index:
        for record in _citing(call, project):
            call.check()
            checks = [checked(one, project, texts, index) for one in of_memory(record.memory)]
            found.append((record.memory, checks))
    return found


def _citations_view(found: list[tuple[Memory, list[Checked]]]) -> CitationsChecked:
    memories = [
        CitingMemory(
            id=memory.id,
            kind=memory.node_type,
            preview=clip(memory.content, 80),
            citations=[citation_view(one) for one in checks],
        )
        for memory, checks in found
    ]
    verdicts = [one.verdict for memory in memories for one in memory.citations]
    memories.sort(key=lambda memory: all(one.verdict == "fresh" for one in memory.citations))
    return CitationsChecked(
        total=len(verdicts),
        verdicts={verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))},
        memories=memories,
    )


def _citing(call: Call, project: Project) -> list[Record]:
    where = Filter(scope=project.scope, valid_at=call.engine.now(), include_suppressed=False)
    found = call.engine.store.find(where, access=call.access, limit=MOST_CHECKED)
    return [record for record in found if of_memory(record.memory)]


def _citations(call: Call, project: Project, asked: SaveArguments) -> list[Citation]:
    texts = FileTexts(project=project)
    with call.engine.code_indexes.reading(project.index) as index:
        found = [anchored(texts, index, *_place(one)) for one in asked.cites]
        found += cited_in(asked.content, texts, index)
    at = call.engine.now().isoformat()
    made = {one.place: replace(one, verified_at=at) for one in found}
    return list(made.values())[:MOST_CITATIONS]


def _place(text: str) -> tuple[str, int, int]:
    match = _PLACE.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(
            f"{clip(text, 60)!r} is no place in the code.",
            hint="Give path, path:line or path:first-last, such as src/app.py:10-20.",
            details={"argument": "cites"},
        )
    return match["path"], int(match["start"] or 0), int(match["end"] or 0)
