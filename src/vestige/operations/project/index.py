"""The code index of a project: `project.init`, `status`, `refresh`, `rebuild`, `doctor`."""

from collections import Counter
from typing import Literal

from vestige.core.errors import StoreCorrupt
from vestige.core.models import Filter
from vestige.engine.context import Call
from vestige.engine.project.files.walk import EXAMPLES
from vestige.engine.project.freshness import Freshness, FreshWord, freshness
from vestige.engine.project.memory.team_reader import SharedReading, read_shared
from vestige.engine.project.place import Project, current_project, new_project, rebuilt_project
from vestige.engine.project.refresh import Refreshed, refresh
from vestige.operations.project.view import (
    EXAMPLE_PATH,
    FreshnessView,
    ProjectPath,
    freshness_text,
    freshness_view,
)
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import advice, count, fields, size, table, warning
from vestige.store.contract.code_index import CodeIndex, IndexCounts, IndexState


class SharedFiles(Wire):
    """What reading the memories of `.vestige-shared/` did: `added`, `changed`, `ended` (their file is gone),
    `returned`, `waiting` for a review. `own` are memories of this store, `left` files that cannot be read."""

    files: int
    added: int
    changed: int
    ended: int
    returned: int
    waiting: int
    own: int
    redacted: int
    left: dict[str, str]


class ProjectIndexed(Wire):
    """What a pass over a project did, in files, and what the index has now.

    `skipped` counts files and folders that are not indexed, by reason; `project status` names some of them.
    `redacted` counts secrets that were removed before anything was stored.
    """

    project: str
    root: str | None = None
    scope: str
    branch: str | None = None
    commit: str | None = None
    added: int
    changed: int
    removed: int
    renamed: int
    files: int
    sections: int
    skipped: dict[str, int]
    redacted: int
    shared: SharedFiles | None = None
    freshness: FreshnessView
    message: str


class ProjectStatus(Wire):
    """What the index of a project has, and how it compares with the files now."""

    project: str
    root: str | None = None
    scope: str
    branch: str | None = None
    commit: str | None = None
    indexed_at: str | None = None
    complete: bool
    files: int
    sections: int
    definitions: int
    references: int
    redacted: int
    memories: int
    size_bytes: int
    skipped: dict[str, int]
    skipped_examples: dict[str, list[str]]
    freshness: FreshnessView


class ProjectFinding(Wire):
    """Something about a project's index that is worth knowing, with what to do about it."""

    severity: Literal["warning", "broken"]
    message: str
    remedy: str


class ProjectExamined(Wire):
    """The result of a check of a project's index."""

    project: str
    status: Literal["ok", "warnings", "broken"]
    findings: list[ProjectFinding]
    freshness: FreshnessView | None = None
    message: str

    @property
    def exit_code(self) -> int:
        """1 if something is broken, for scripts."""
        return 1 if self.status == "broken" else 0


def render_indexed(done: ProjectIndexed) -> str:
    lines = [done.message]
    if done.skipped:
        reasons = ", ".join(f"{number} {why}" for why, number in done.skipped.items())
        lines.append(f"Not indexed: {reasons}.")
    if done.redacted:
        lines.append(warning(f"{count(done.redacted, 'secret')} left out of the index."))
    if done.shared is not None:
        lines += _shared_lines(done.shared)
    return "\n".join([*lines, f"The index is {freshness_text(done.freshness)}."])


def _shared_lines(shared: SharedFiles) -> list[str]:
    numbers = ((name, getattr(shared, name)) for name in ("added", "changed", "ended", "returned"))
    what = ", ".join(f"{number} {name}" for name, number in numbers if number) or "nothing new"
    lines = [f"Shared memories: {count(shared.files, 'file')}, {what}."]
    if shared.waiting:
        waiting = count(shared.waiting, "shared text")
        lines.append(warning(f"{waiting} may give orders to an agent: see `vestige review list`."))
    lines += [warning(f"Not read: {name}: {why}.") for name, why in shared.left.items()]
    return lines


def render_status(status: ProjectStatus) -> str:
    text = fields(
        (
            ("project", status.project),
            ("folder", status.root),
            ("scope", status.scope),
            ("index", freshness_text(status.freshness)),
            ("indexed", status.indexed_at),
            ("branch", status.branch),
            ("files", f"{status.files:,}"),
            ("sections", f"{status.sections:,}"),
            ("memories", f"{status.memories:,}"),
            ("size", size(status.size_bytes)),
        )
    )
    parts = [text]
    if status.skipped:
        rows = (
            (why, number, ", ".join(status.skipped_examples.get(why, [])[:3]))
            for why, number in status.skipped.items()
        )
        parts.append(table(("not indexed", "count", "such as"), rows))
    if not status.complete:
        parts.append(advice("The last pass was stopped. Run `vestige project refresh` to finish it."))
    return "\n\n".join(parts)


def render_examined(result: ProjectExamined) -> str:
    lines = [f"{one.severity}: {one.message} {advice(one.remedy)}" for one in result.findings]
    return "\n".join([*lines, result.message])


@registry.operation(
    "project.init",
    permission="admin",
    example={"path": EXAMPLE_PATH},
    positional=("path",),
    long=True,
    render=render_indexed,
)
def project_init(call: Call, path: ProjectPath = None) -> ProjectIndexed:
    """Index the code of a project, in `.vestige/` beside it. Without this nothing is ever indexed.

    The walk follows no links, obeys every ignore file of git and `.vestigeignore`, and leaves out binaries,
    generated and vendored files, lock files, secrets, and files over 10 MiB. An interrupted run is resumed.
    """
    project = new_project(call, path)
    done = refresh(call, project)
    return _indexed(call, project, done, "Indexed", read_shared(call, project))


@registry.operation(
    "project.refresh",
    permission="write",
    example={"path": EXAMPLE_PATH},
    positional=("path",),
    long=True,
    render=render_indexed,
)
def project_refresh(call: Call, path: ProjectPath = None) -> ProjectIndexed:
    """Bring the code index of a project up to date: reads only files that changed.

    Memories that others share in `.vestige-shared/` are read too, with their git author and less trust.
    """
    project = current_project(call, path)
    done = refresh(call, project)
    return _indexed(call, project, done, "Refreshed", read_shared(call, project))


@registry.operation(
    "project.rebuild",
    permission="admin",
    example={"path": EXAMPLE_PATH},
    positional=("path",),
    long=True,
    render=render_indexed,
)
def project_rebuild(call: Call, path: ProjectPath = None) -> ProjectIndexed:
    """Read every file of a project again. Memories are elsewhere, and are not touched.

    A damaged index is replaced, and one that was not made here by this installation is deleted unread.
    Searches go on meanwhile.
    """
    project = rebuilt_project(call, path)
    try:
        done = refresh(call, project, anew=True)
    except StoreCorrupt:
        call.engine.code_indexes.erase(project.index)
        done = refresh(call, project, anew=True)
    call.engine.code_indexes.erase_others(project.directory)
    return _indexed(call, project, done, "Rebuilt")


@registry.operation(
    "project.status",
    permission="read",
    example={"path": EXAMPLE_PATH},
    positional=("path",),
    render=render_status,
)
def project_status(call: Call, path: ProjectPath = None) -> ProjectStatus:
    """What the code index of a project has, what was left out and why, and whether it is up to date."""
    project = current_project(call, path)
    with call.engine.code_indexes.reading(project.index) as index:
        state, counts = index.state(), index.counts()
        found = freshness(call, project, index)
        examples = _examples(state, counts, index)
    return ProjectStatus(
        project=project.name,
        root=_root(call, project),
        scope=project.scope,
        branch=state.branch or None,
        commit=state.commit or None,
        indexed_at=state.indexed_at or None,
        complete=state.complete,
        files=counts.files - sum(counts.skips.values()),
        sections=counts.sections,
        definitions=counts.definitions,
        references=counts.references,
        redacted=counts.redacted,
        memories=_memories(call, project),
        size_bytes=counts.size_bytes,
        skipped=_skipped(state, counts),
        skipped_examples=examples,
        freshness=freshness_view(found),
    )


@registry.operation(
    "project.doctor",
    permission="read",
    example={"path": EXAMPLE_PATH},
    positional=("path",),
    long=True,
    render=render_examined,
)
def project_doctor(call: Call, path: ProjectPath = None) -> ProjectExamined:
    """Check the code index of a project: its file, whether it is complete, and whether it is up to date.

    It changes nothing. `doctor` checks the store with the memories.
    """
    project = current_project(call, path)
    findings: list[ProjectFinding] = []
    found: FreshnessView | None = None
    try:
        with call.engine.code_indexes.reading(project.index) as index:
            findings += [_broken(problem) for problem in index.problems()]
            if not findings:
                found = freshness_view(freshness(call, project, index))
                findings += _state_findings(index.state(), found)
    except StoreCorrupt as exc:
        findings.append(_broken(exc.message))
    findings += _foreign_findings(call, project)
    broken = any(one.severity == "broken" for one in findings)
    return ProjectExamined(
        project=project.name,
        status="broken" if broken else "warnings" if findings else "ok",
        findings=findings,
        freshness=found,
        message=f"{count(len(findings), 'finding')}." if findings else "Nothing to report.",
    )


def _broken(problem: str) -> ProjectFinding:
    return ProjectFinding(
        severity="broken",
        message=problem if problem.endswith(".") else f"{problem}.",
        remedy="Run `vestige project rebuild`; it touches no memory.",
    )


def _state_findings(state: IndexState, found: FreshnessView) -> list[ProjectFinding]:
    findings = []
    if not state.complete:
        findings.append(("The last pass was stopped before its end.", "Run `vestige project refresh`."))
    elif found.word != "fresh":
        findings.append((f"The index is {found.word}.", "Run `vestige project refresh`."))
    if state.skips.get("unreadable"):
        number = count(state.skips["unreadable"], "file or folder")
        findings.append((f"{number} could not be read.", "See `vestige project status` for the names."))
    return [
        ProjectFinding(severity="warning", message=message, remedy=remedy) for message, remedy in findings
    ]


def _foreign_findings(call: Call, project: Project) -> list[ProjectFinding]:
    number = len(call.engine.code_indexes.others(project.directory))
    if not number:
        return []
    return [
        ProjectFinding(
            severity="warning",
            message=f"{_foreign(number)}.",
            remedy="Run `vestige project rebuild` to delete it, unless another Vestige uses it.",
        )
    ]


def _foreign(number: int) -> str:
    """What is said of indexes that were made elsewhere."""
    several = count(number, "other index")
    return f"Beside this one: {several}, not made here by your Vestige and not read"


def _indexed(
    call: Call, project: Project, done: Refreshed, word: str, shared: SharedReading | None = None
) -> ProjectIndexed:
    with call.engine.code_indexes.reading(project.index) as index:
        state, counts = index.state(), index.counts()
    # The pass has just compared every file; the next answer compares them again.
    found = Freshness(word=FreshWord.FRESH if state.complete else FreshWord.UNKNOWN)
    files = counts.files - sum(counts.skips.values())
    what = (
        "nothing had changed"
        if done.nothing
        else f"{done.added} added, {done.changed} changed, {done.removed} removed, {done.renamed} renamed"
    )
    others = len(call.engine.code_indexes.others(project.directory))
    return ProjectIndexed(
        project=project.name,
        root=_root(call, project),
        scope=project.scope,
        branch=state.branch or None,
        commit=state.commit or None,
        added=done.added,
        changed=done.changed,
        removed=done.removed,
        renamed=done.renamed,
        files=files,
        sections=counts.sections,
        skipped=_skipped(state, counts),
        redacted=counts.redacted,
        shared=None if shared is None or shared.nothing else SharedFiles.of(shared),
        freshness=freshness_view(found),
        message=f"{word} {project.name}: {count(files, 'file')} in {count(counts.sections, 'section')}; "
        f"{what}.{f' {_foreign(others)}.' if others else ''}",
    )


def _skipped(state: IndexState, counts: IndexCounts) -> dict[str, int]:
    """What is not indexed, by reason: left out by the walk, or on reading it."""
    return dict(sorted((Counter(state.skips) + Counter(counts.skips)).items()))


def _examples(state: IndexState, counts: IndexCounts, index: CodeIndex) -> dict[str, list[str]]:
    """The first of the paths that are not indexed, by reason."""
    named = {why: list(names) for why, names in state.examples.items()}
    for why in counts.skips:
        named[why] = [*named.get(why, []), *index.skipped(why, limit=EXAMPLES)][:EXAMPLES]
    return dict(sorted(named.items()))


def _root(call: Call, project: Project) -> str | None:
    return str(project.root) if call.local or call.sees_installation else None


def _memories(call: Call, project: Project) -> int:
    return call.engine.store.count(Filter(scope=project.scope), access=call.access)
