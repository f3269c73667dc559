"""The project that a call is about: its folder, and the memory directory in it.

A caller means the project around its own folder. Another one is named by its path: the user at the command
line may name any, other callers only one that has an index already, and only with access to everything.
"""

import os
from contextlib import suppress
from pathlib import Path

from vestige.core.errors import Forbidden, InvalidInput, NotFound, StoreError
from vestige.core.lazy_dataclass import dataclass
from vestige.engine.care.filenames import absolute
from vestige.engine.context import Call
from vestige.settings.settings import PROJECT_DIRECTORY

MARKS = (".git", ".hg", ".jj", ".svn")
UNREADABLE = (OSError, ValueError, RuntimeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A repository or another folder, and where its index is."""

    root: Path
    scope: str
    index: Path

    @property
    def directory(self) -> Path:
        return self.root / PROJECT_DIRECTORY

    @property
    def name(self) -> str:
        return self.root.name


def current_project(call: Call, path: str | None = None) -> Project:
    """The project of a call, which must have an index that this installation made."""
    folder = _folder(call, path)
    found = _indexed(call, folder)
    if found is not None:
        return found
    foreign = _foreign(call, folder) if path is None or _may_look(call) else None
    if foreign is not None:
        raise NotFound(
            f"The code index in {foreign.name}/{PROJECT_DIRECTORY} was not made here by your Vestige, so it "
            "is not read.",
            hint="It came with the project, or the project was moved. Make your own with `vestige project "
            "init`.",
        )
    raise NotFound(
        "This folder belongs to no project with an index.",
        hint="Make one with `vestige project init` in the folder of the project; nothing is indexed before "
        "that.",
    )


def new_project(call: Call, path: str | None = None) -> Project:
    """The project of a call, which may have no index yet: the repository around the folder, or the folder."""
    folder = _folder(call, path)
    found = _indexed(call, folder)
    if found is not None:
        return found
    if path is not None and not call.local:
        raise Forbidden(
            "Only the user at the command line may index a folder by its path.",
            hint="Run `vestige project init` there.",
            details={"argument": "path"},
        )
    root = next((place for place in _around(folder) if _is_marked(place)), folder)
    if root in (Path(root.anchor), _home()):
        raise InvalidInput(
            f"{root} is too large to be a project.",
            hint="Run `vestige project init` in the folder of one project.",
            details={"argument": "path"},
        )
    return Project(
        root=root, scope=_scope(call, root), index=call.engine.code_indexes.place(root / PROJECT_DIRECTORY)
    )


def rebuilt_project(call: Call, path: str | None = None) -> Project:
    """The project of a call, which must have an index, of its own or of others."""
    folder = _folder(call, path)
    seen = path is None or _may_look(call)
    unread = seen and _indexed(call, folder) is None and _foreign(call, folder) is not None
    return new_project(call, path) if unread else current_project(call, path)


def _indexed(call: Call, folder: Path) -> Project | None:
    """The nearest project around a folder with an index that this installation made."""
    for root in _around(folder):
        with suppress(*UNREADABLE):
            index = call.engine.code_indexes.known(root / PROJECT_DIRECTORY)
            if index is not None:
                return Project(root=root, scope=_scope(call, root), index=index)
    return None


def _foreign(call: Call, folder: Path) -> Path | None:
    """The nearest folder with an index that was made elsewhere."""
    others = call.engine.code_indexes.others
    return next((root for root in _around(folder) if others(root / PROJECT_DIRECTORY)), None)


def _around(folder: Path) -> tuple[Path, ...]:
    return (folder, *folder.parents)


def prepare(project: Project) -> None:
    """Make the memory directory of a project, private and ignored by git."""
    directory = project.directory
    if directory.is_symlink():
        raise StoreError(
            f"{directory} is a symbolic link, which a project may not have.",
            hint="A project must not redirect what is written for it. Remove the link.",
        )
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        ignore = directory / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as exc:
        raise StoreError(f"The folder {directory} cannot be made: {exc.strerror}.") from exc


def _folder(call: Call, path: str | None) -> Path:
    if path is None:
        if call.folder is None:
            raise NotFound(
                "There is no project here.",
                hint="Start the server in the folder of a project, or use the command line there.",
            )
        return _real(call.folder)
    if not call.local and not call.sees_installation:
        raise Forbidden("You may not name a folder of the server.", details={"argument": "path"})
    folder = _real(absolute(Path(path)))
    # A client of the network is not told which folders there are: only those with an index answer it.
    if _may_look(call) and not folder.is_dir():
        raise InvalidInput(f"{path} is not a folder.", details={"argument": "path"})
    return folder


def _may_look(call: Call) -> bool:
    """Whether the caller may know which folders there are: the user of this machine, or an agent of that
    user."""
    return call.local or call.on_this_machine


def _real(folder: Path) -> Path:
    try:
        return folder.resolve()
    except UNREADABLE as exc:
        raise InvalidInput("The folder cannot be found.") from exc


def _home() -> Path | None:
    try:
        return Path.home().resolve()
    except UNREADABLE:
        return None


def _is_marked(folder: Path) -> bool:
    return any(os.path.lexists(folder / mark) for mark in MARKS)


def _scope(call: Call, root: Path) -> str:
    """The scope of the project's memories: that of the call in its own project, else that of the folder."""
    own = call.folder is not None and root in (_real(call.folder), *_real(call.folder).parents)
    return call.scope if own else call.engine.scope_of(root)
