"""Sharing memories in the repository: `project.share`."""

from typing import Annotated

from pydantic import Field

from vestige.engine.context import Call
from vestige.engine.project.memory.team_memory import share
from vestige.engine.project.place import current_project
from vestige.operations.memory.read import EXAMPLE_ID
from vestige.operations.project.view import EXAMPLE_PATH, ProjectPath
from vestige.operations.registry.arguments import MemoryId, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import advice, short_id, styled


class SharedFileView(Wire):
    """A memory and its file, from the root of the project; `written` is false if it said the same already."""

    id: str
    file: str
    written: bool


class ProjectShared(Wire):
    """The files of shared memories."""

    files: list[SharedFileView]
    message: str


def render_shared(done: ProjectShared) -> str:
    lines = [
        f"{styled('link', one.file)}  {short_id(one.id)}{'' if one.written else '  unchanged'}"
        for one in done.files
    ]
    return "\n".join([*lines, advice(done.message)])


@registry.operation(
    "project.share",
    permission="admin",
    example={"ids": [EXAMPLE_ID], "path": EXAMPLE_PATH},
    positional=("ids",),
    title="Share memories in the repository",
    render=render_shared,
)
def project_share(
    call: Call,
    ids: Annotated[list[MemoryId], Field(min_length=1, max_length=100, description="Memories to share.")],
    path: ProjectPath = None,
) -> ProjectShared:
    """Write memories of the project as small text files into `.vestige-shared/`, for everyone who clones it.

    A memory with a secret is refused. You commit the files. Others read them with `project refresh`; when a
    file is removed, its memory stops being valid there.
    """
    project = current_project(call, path)
    done = share(call, project, ids)
    return ProjectShared(
        files=[SharedFileView(id=one.memory_id, file=one.file, written=one.written) for one in done],
        message="Look at the files, then commit them.",
    )
