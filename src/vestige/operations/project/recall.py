"""What an agent reads about a project: `project_recall` for a task, `project_warm_up` at the start."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from vestige.core.errors import StoreBusy, StoreReadOnly
from vestige.engine.context import Call
from vestige.engine.project.citations import Checked
from vestige.engine.project.freshness import freshness
from vestige.engine.project.package import ESTIMATE, MemoryNote, task_package, tokens_of_call
from vestige.engine.project.place import current_project
from vestige.engine.project.warm_up import warm_up_text
from vestige.operations.project.view import (
    EXAMPLE_PATH,
    FreshnessView,
    ProjectPath,
    freshness_text,
    freshness_view,
)
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import registry

SESSIONS_KEPT = 50
NOTHING = "Nothing found for this task."

Budget = Annotated[
    int, Field(ge=100, le=50_000, description="Most tokens of the text; it is never longer. Default: 2000.")
]


class CitationView(Wire):
    """Code that a memory cites: `fresh`, `moved` or `changed` (`now` is where it is), `gone`, or
    `unverifiable`. `verifiedAt` is when it was saved, or last found unchanged by `project verify`."""

    cited: str
    verdict: Literal["fresh", "moved", "changed", "gone", "unverifiable"]
    now: str | None = None
    symbol: str | None = None
    commit: str | None = None
    verified_at: str | None = None


class PackageMemory(Wire):
    """A memory in the text."""

    id: str
    kind: str
    citations: list[CitationView] = []


class RecallPackage(Wire):
    """The text for a task, in `tokens` of the stated tokenizer, and what it is made of.

    `covered` is the share of the task's words that the code in it has, `best` that of the best section,
    `confidence` that of the memories. `repeated` counts what the session was shown before, `leftOut` what did
    not fit.
    """

    text: str
    tokens: int
    token_budget: int
    tokenizer: str
    found: bool
    memories: list[PackageMemory]
    places: list[str]
    covered: float
    best: float
    confidence: float
    repeated: int
    left_out: int
    freshness: FreshnessView


class WarmUp(Wire):
    """What a project is, in a text that is the same until its files or memories change."""

    project: str
    text: str
    tokens: int
    token_budget: int
    tokenizer: str
    left_out: int
    freshness: FreshnessView


def render_package(package: RecallPackage) -> str:
    facts = f"{package.tokens} of {package.token_budget} tokens; {package.covered:.0%} of the task's words"
    return f"{package.text}\n{facts} found; the index is {freshness_text(package.freshness)}."


def render_warm_up(made: WarmUp) -> str:
    facts = f"{made.tokens} of {made.token_budget} tokens"
    return f"{made.text}\n{facts}; the index is {freshness_text(made.freshness)}."


@registry.operation(
    "project_recall",
    permission="read",
    effect="touch",
    example={"task": "Change the greeting", "path": EXAMPLE_PATH},
    positional=("task",),
    title="Recall for a task",
    command="project recall",
    render=render_package,
)
def project_recall(
    call: Call,
    task: Annotated[
        str,
        Field(min_length=1, max_length=100_000, description="What you are about to do, or an issue's text."),
    ],
    token_budget: Budget = 2000,
    session: Annotated[
        str | None,
        Field(max_length=200, description="A name of your session: nothing is shown twice under it."),
    ] = None,
    path: ProjectPath = None,
) -> RecallPackage:
    """What this project knows about a task, within a token budget: decisions and constraints, files to open
    first with lines, excerpts, tests, recent commits.

    Code that memories cite is checked against the files. `found` is false if there is nothing.
    """
    project = current_project(call, path)
    with call.engine.code_indexes.reading(project.index) as index:
        shown = index.shown(session) if session else frozenset[str]()
        made, keys = task_package(call, project, index, task, budget=token_budget, shown=shown)
        found = freshness(call, project, index)
    if session and keys:
        _remember_shown(call, project.index, session, keys)
    text = made.text or (NOTHING if not made.repeated else "Nothing new for this task in this session.")
    return RecallPackage(
        text=text,
        tokens=made.tokens if made.text else tokens_of_call(call).count(text),
        token_budget=token_budget,
        tokenizer=made.tokenizer,
        found=made.found,
        memories=[_memory(note) for note in made.memories],
        places=list(made.places),
        covered=round(made.covered, 4),
        best=round(made.best, 4),
        confidence=round(made.confidence, 4),
        repeated=made.repeated,
        left_out=made.left_out,
        freshness=freshness_view(found),
    )


@registry.operation(
    "project_warm_up",
    permission="read",
    example={"path": EXAMPLE_PATH},
    positional=(),
    title="Warm up for a project",
    command="project warm-up",
    render=render_warm_up,
)
def project_warm_up(call: Call, token_budget: Budget = 2000, path: ProjectPath = None) -> WarmUp:
    """What this project is, within a token budget: purpose, decisions and constraints, modules with what they
    declare, entry points, tests, dependencies, recent commits.

    The text has no clock: it is the same until files, memories or commits change. Call it once, first.
    """
    project = current_project(call, path)
    with call.engine.code_indexes.reading(project.index) as index:
        text, left_out = warm_up_text(call, project, index, ESTIMATE, budget=token_budget)
        found = freshness(call, project, index)
    return WarmUp(
        project=project.name,
        text=text,
        tokens=ESTIMATE.count(text),
        token_budget=token_budget,
        tokenizer=ESTIMATE.tokenizer,
        left_out=left_out,
        freshness=freshness_view(found),
    )


def _remember_shown(call: Call, file: Path, session: str, keys: list[str]) -> None:
    """Record what a session was shown. Another writer may be busy for long; then it may be shown again."""
    try:
        with call.engine.code_indexes.writing(file, "project recall") as index:
            index.show(session, keys, keep=SESSIONS_KEPT)
    except (StoreBusy, StoreReadOnly):
        return


def _memory(note: MemoryNote) -> PackageMemory:
    memory = note.record.memory
    return PackageMemory(
        id=memory.id, kind=memory.node_type, citations=[citation_view(one) for one in note.citations]
    )


def citation_view(one: Checked) -> CitationView:
    return CitationView(
        cited=one.citation.place,
        verdict=one.verdict.value,
        now=one.now.place if one.now is not None and one.now.place != one.citation.place else None,
        symbol=one.citation.symbol or None,
        commit=one.citation.commit or None,
        verified_at=one.citation.verified_at or None,
    )
