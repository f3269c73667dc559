"""Watching a project on request: looks for changes in turns, and refreshes after them.

It polls, so that it needs no library and works on every file system. A look reads no file that has its size
and time; the pause after it grows with what it cost, so that a large project is looked at less often.
"""

from collections.abc import Callable, Iterator

from vestige.core.errors import StoreBusy
from vestige.core.lazy_dataclass import dataclass
from vestige.engine.context import Call
from vestige.engine.project.files.fail_safe import SHARED_FOLDER
from vestige.engine.project.freshness import FreshWord, freshness
from vestige.engine.project.memory.team_reader import SharedReading, read_shared
from vestige.engine.project.place import UNREADABLE, Project
from vestige.engine.project.refresh import Refreshed, refresh

EVERY_SECONDS = 2.0
PAUSES = 10.0
"""How many times as long as a look the pause after it is at least: at most a tenth of a core is used."""

SharedStamp = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedChange:
    """A refresh that found something."""

    refreshed: Refreshed
    shared: SharedReading


def watch_project(
    call: Call, project: Project, pause: Callable[[float], bool], *, every_seconds: float = EVERY_SECONDS
) -> Iterator[WatchedChange]:
    """Refresh a project after every change, until `pause` returns true: it waits for the given seconds, and
    says whether to stop. StoreBusy if another process watches the project."""
    with call.engine.code_indexes.watching(project.index):
        read: SharedStamp | None = None
        while True:
            began = call.engine.monotonic()
            stamp = _shared_stamp(project)
            if stamp != read or _is_stale(call, project):
                found = _refreshed(call, project)
                if found is not None:
                    read = stamp
                    if _says_something(found):
                        yield found
            spent = call.engine.monotonic() - began
            if pause(max(every_seconds, PAUSES * spent)):
                return


def _is_stale(call: Call, project: Project) -> bool:
    with call.engine.code_indexes.reading(project.index) as index:
        return freshness(call, project, index).word is not FreshWord.FRESH


def _refreshed(call: Call, project: Project) -> WatchedChange | None:
    """None while another process writes: the next look tries again."""
    try:
        return WatchedChange(refreshed=refresh(call, project), shared=read_shared(call, project))
    except StoreBusy:
        return None


def _says_something(found: WatchedChange) -> bool:
    shared = found.shared
    return not found.refreshed.nothing or any(
        (shared.added, shared.changed, shared.ended, shared.returned, shared.waiting)
    )


def _shared_stamp(project: Project) -> SharedStamp:
    """The files of shared memories by name, size and time."""
    folder = project.root / SHARED_FOLDER
    try:
        if folder.is_symlink() or not folder.is_dir():
            return ()
        stats = sorted((one.name, one.lstat()) for one in folder.iterdir())
    except UNREADABLE:
        return ()
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
