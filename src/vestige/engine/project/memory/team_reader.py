"""What a refresh asks about shared memories each time: whether there are any, in files or from earlier files.

The code that reads them takes longer to import than a refresh without changes takes, so it is imported where
there are some.
"""

from collections.abc import Iterator
from dataclasses import field

from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ROOT_SCOPE, Filter, Record
from vestige.core.origin import Origin
from vestige.engine.context import Call
from vestige.engine.project.files.fail_safe import SHARED_FOLDER
from vestige.engine.project.memory.team_file import shared_note
from vestige.engine.project.place import Project

MOST_FILES = 2_000
BATCH = 500


@dataclass(slots=True, kw_only=True)
class SharedReading:
    """What reading the shared files did, in files. `own` are memories of this store. `left` are files that
    could not be read, and why."""

    files: int = 0
    added: int = 0
    changed: int = 0
    ended: int = 0
    returned: int = 0
    waiting: int = 0
    own: int = 0
    redacted: int = 0
    left: dict[str, str] = field(default_factory=dict)

    @property
    def nothing(self) -> bool:
        return not (self.files or self.ended or self.left)


def read_shared(call: Call, project: Project) -> SharedReading:
    """Bring the memories of shared files up to date with the files. Reading the same files again changes
    nothing."""
    names, before = _names(project), list(_read_before(call, project))
    if not (names or before):
        return SharedReading()
    from vestige.engine.project.memory.team_memory import read_files

    return read_files(call, project, names, before)


def _names(project: Project) -> list[str]:
    folder = project.root / SHARED_FOLDER
    if folder.is_symlink() or not folder.is_dir():
        return []
    try:
        found = sorted(one.name for one in folder.iterdir() if one.name.endswith(".md"))
    except OSError:
        return []
    return [name for name in found if not name.startswith(".") and name.lower() != "readme.md"][:MOST_FILES]


def _read_before(call: Call, project: Project) -> Iterator[Record]:
    where = Filter(
        scope=project.scope,
        scope_only=project.scope == ROOT_SCOPE,
        origin=Origin.DOCUMENT.value,
        archived=None,
    )
    for batch in call.engine.store.stream(where, access=call.access, batch=BATCH):
        yield from (one for one in batch if shared_note(one.memory))
