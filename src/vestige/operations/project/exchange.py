"""Moving and keeping a project's memory: `project.export`, `import`, `backup`, `restore`.

The file is `vestige.portable.v1`, the same that `export` writes and `import` reads.
"""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from vestige.core.errors import Forbidden, InvalidInput
from vestige.core.models import EVERYTHING
from vestige.engine.context import Call
from vestige.engine.exchange.export import export_portable
from vestige.engine.exchange.import_foreign import import_foreign
from vestige.engine.project.memory.portable_copy import extent_of, import_copies, memories_of
from vestige.engine.project.memory.snapshot import make_snapshot, restore_snapshot
from vestige.engine.project.place import Project, current_project
from vestige.exchange.importers.recognition import ImportFormat
from vestige.exchange.portable.file import PortableContents
from vestige.operations.care.import_ import (
    Imported,
    import_file,
    import_portable_file,
    imported_view,
    recognised_format,
    render_imported,
)
from vestige.operations.project.view import EXAMPLE_PATH, ProjectPath
from vestige.operations.registry.arguments import FilePath, Switch, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import advice, count, size, styled, warning

NewFile = Annotated[
    FilePath | None,
    Field(
        max_length=4096, description="Name of the new file (any path on the command line). Default: dated."
    ),
]
GivenFile = Annotated[
    FilePath,
    Field(
        min_length=1,
        max_length=4096,
        description="File in exports/ or backups/ (any path on the command line).",
    ),
]


class ProjectFileWritten(Wire):
    """A new portable file with the memories of a project, their histories and the links between them."""

    file: str
    scope: str
    memories: int
    edges: int
    documents: int
    size_bytes: int


class ProjectRestored(Wire):
    """How the memories of a project became those of a snapshot: `revised` ones got the fields of then,
    `returned` ones had been deleted (`renewed` maps their old ids to new ones), `archived` ones are newer
    than the snapshot, `strengths` were set back. `keptAs` is a snapshot of the state before; restoring it
    undoes this."""

    file: str
    dry_run: bool
    memories: int
    revised: int
    returned: int
    archived: int
    strengths: int
    linked: int
    unlinked: int
    renewed: dict[str, str]
    kept_as: str | None = None
    embedded: int = 0
    note: str | None = None


def render_written(done: ProjectFileWritten) -> str:
    what = f"{count(done.memories, 'memory')} and {count(done.edges, 'link')} of {done.scope}"
    return f"{what}\n{styled('link', done.file)} ({size(done.size_bytes)})"


def render_project_restored(done: ProjectRestored) -> str:
    would = "would be " if done.dry_run else ""
    lines = [
        f"{styled('link', done.file)}: {count(done.memories, 'memory')}.",
        f"{done.revised} {would}revised, {done.returned} {would}brought back, {done.archived} newer "
        f"{would}archived, {done.linked} {would}linked, {done.unlinked} {would}unlinked.",
    ]
    if done.kept_as:
        lines.append(
            advice(f"The state before is in {done.kept_as}: `vestige project restore` of it undoes this.")
        )
    if done.note:
        lines.append(warning(done.note))
    return "\n".join(lines)


@registry.operation(
    "project.export",
    permission="admin",
    example={"path": EXAMPLE_PATH},
    positional=("file",),
    long=True,
    render=render_written,
)
def project_export(call: Call, file: NewFile = None, path: ProjectPath = None) -> ProjectFileWritten:
    """Write the project's memories to a new file, for `project import`.

    The portable file has observations and the diary, with tags, source, strength, validity, citations, links
    and all revisions. Nothing is overwritten.
    """
    project = _project(call, path)
    made, contents = export_portable(
        call, memories_of(project.scope), name=file, vectors=False, stem="project-memories"
    )
    return _written(call, project, made, contents)


@registry.operation(
    "project.import",
    permission="admin",
    example={"file": "memories.jsonl", "dry_run": True, "path": EXAMPLE_PATH},
    positional=("file",),
    long=True,
    render=render_imported,
)
def project_import(
    call: Call,
    file: GivenFile,
    dry_run: Annotated[Switch, Field(description="Report what would happen without writing.")] = False,
    path: ProjectPath = None,
) -> Imported:
    """Import memories into the project: its own export, another project's, or any format that `import` reads.

    An export of this project is merged with its history; memories of another one are copied, under ids of
    their own. Importing a file again adds nothing. Texts that give orders to an agent wait in the review
    inbox.
    """
    project = _project(call, path)
    given = import_file(call, file)
    form = recognised_format(given)
    if form is not ImportFormat.PORTABLE:
        done = import_foreign(call, given, form, project.scope, dry_run=dry_run)
    else:
        extent = extent_of(call, given, project.scope)
        if extent.within:
            return import_portable_file(call, given, None, dry_run=dry_run)
        done = import_copies(call, given, extent, project.scope, dry_run=dry_run)
    return imported_view(
        done.outcome,
        given,
        form,
        scope=project.scope,
        dry_run=dry_run,
        embedded=done.embedded,
        note=done.note,
    )


@registry.operation(
    "project.backup",
    permission="admin",
    example={"path": EXAMPLE_PATH},
    positional=("file",),
    long=True,
    render=render_written,
)
def project_backup(call: Call, file: NewFile = None, path: ProjectPath = None) -> ProjectFileWritten:
    """Write a snapshot of the project's memory, in backups/, checked by reading it.

    The code index is not in it: `project rebuild` makes it again. `backup` copies the whole store.
    """
    project = _project(call, path)
    made, contents = make_snapshot(call, project, name=file)
    return _written(call, project, made, contents)


@registry.operation(
    "project.restore",
    permission="admin",
    example={"file": "project.vestige.jsonl", "dry_run": True, "path": EXAMPLE_PATH},
    positional=("file",),
    long=True,
    title="Restore the project's memory",
    render=render_project_restored,
)
def project_restore(
    call: Call,
    file: GivenFile,
    confirm: Annotated[Switch, Field(description="Must be true, unless for dry_run.")] = False,
    dry_run: Annotated[Switch, Field(description="Report what would happen without writing.")] = False,
    path: ProjectPath = None,
) -> ProjectRestored:
    """Bring the memories of the project back to a snapshot, in one transaction.

    Other projects are not touched. What is newer than the snapshot is archived, not deleted. The state before
    is kept in backups/.
    """
    project = _project(call, path)
    given = import_file(call, file)
    if recognised_format(given) is not ImportFormat.PORTABLE:
        raise InvalidInput(
            f"{given.name} is not a snapshot of a project.",
            hint="Give a file of `vestige project backup` or `vestige project export`.",
            details={"argument": "file"},
        )
    if not confirm and not dry_run:
        raise InvalidInput(
            "This sets the memories of the project back to an earlier state.",
            hint="Pass `confirm: true` to proceed, or `dry_run: true` to see what would change.",
            details={"argument": "confirm"},
        )
    done = restore_snapshot(call, project, given, dry_run=dry_run)
    return ProjectRestored(
        file=_shown(call, given),
        dry_run=dry_run,
        memories=done.memories,
        revised=done.revised,
        returned=done.returned,
        archived=done.archived,
        strengths=done.strengths,
        linked=done.linked,
        unlinked=done.unlinked,
        renewed=done.renewed,
        kept_as=_shown(call, done.kept) if done.kept else None,
        embedded=done.embedded,
        note=done.note,
    )


def _project(call: Call, path: str | None) -> Project:
    """The project; Forbidden for a caller whose access is limited: histories have the numbers of the whole
    store's log."""
    if call.access != EVERYTHING:
        raise Forbidden("Moving the memory of a project needs access to the whole store.")
    return current_project(call, path)


def _shown(call: Call, file: Path) -> str:
    """The full path is for callers that may know the data directory."""
    return str(file) if call.sees_installation else f"{file.parent.name}/{file.name}"


def _written(call: Call, project: Project, file: Path, contents: PortableContents) -> ProjectFileWritten:
    return ProjectFileWritten(
        file=_shown(call, file),
        scope=project.scope,
        memories=contents.memories,
        edges=contents.edges,
        documents=contents.documents,
        size_bytes=file.stat().st_size,
    )
