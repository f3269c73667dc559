"""Watching a project: a refresh after each change, one watcher at a time."""

from collections.abc import Callable
from pathlib import Path

import pytest

from vestige.core.errors import NotFound, StoreBusy
from vestige.engine.context import Call
from vestige.engine.project.place import Project, current_project, new_project
from vestige.engine.project.refresh import refresh
from vestige.engine.project.watcher import watch_project

SHARED = "---\nid: 01890000-0000-7000-8000-00000000aaaa\n---\nSums are exact.\n"
Write = Callable[..., Path]


@pytest.fixture
def project(call: Call, root: Path, write: Write) -> Project:
    write("sums.py", "def add(a, b):\n    return a + b\n")
    refresh(call, new_project(call, str(root)))
    return current_project(call, str(root))


class Script:
    """Pauses in which something happens, one after the other; then the watch ends."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self.steps = list(steps)
        self.pauses: list[float] = []

    def __call__(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        if not self.steps:
            return True
        self.steps.pop(0)()
        return False


def test_each_change_is_followed_by_a_refresh(call: Call, project: Project, root: Path, write: Write) -> None:
    script = Script(
        lambda: write("more.py", "def sub(a, b):\n    return a - b\n"),
        lambda: None,
        lambda: write("sums.py", "def plus(a, b):\n    return a + b + 0\n"),
        lambda: (root / "more.py").unlink(),
        lambda: write(
            ".vestige-shared/a.md", "---\nid: 01890000-0000-7000-8000-00000000aaaa\n---\nSums are exact.\n"
        ),
        lambda: (root / ".vestige-shared" / "a.md").unlink(),
    )
    found = list(watch_project(call, project, script))
    done = [(one.refreshed.added, one.refreshed.changed, one.refreshed.removed) for one in found]
    assert done == [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0), (0, 0, 0)]
    assert [(one.shared.added, one.shared.ended) for one in found[3:]] == [(1, 0), (0, 1)]
    with call.engine.code_indexes.reading(project.index) as index:
        assert list(index.files()) == ["sums.py"]


def test_nothing_is_written_while_nothing_changes(call: Call, project: Project) -> None:
    before = project.index.read_bytes()
    script = Script(*[lambda: None] * 5)
    assert list(watch_project(call, project, script, every_seconds=7.0)) == []
    assert project.index.read_bytes() == before
    assert len(script.pauses) == 6
    assert min(script.pauses) >= 7.0


def test_one_process_watches_at_a_time(call: Call, project: Project) -> None:
    def second() -> None:
        with pytest.raises(StoreBusy, match="watches this project already"):
            next(watch_project(call, project, Script()), None)

    assert list(watch_project(call, project, Script(second))) == []
    assert list(watch_project(call, project, Script())) == []  # the lock ends with the watch


def test_others_write_while_it_watches(call: Call, project: Project, write: Write) -> None:
    def other() -> None:
        write("more.py", "x = 1\n")
        assert refresh(call, project).added == 1

    assert list(watch_project(call, project, Script(other, lambda: None))) == []


def test_without_an_index_nothing_is_watched(call: Call, root: Path) -> None:
    with pytest.raises(NotFound):
        current_project(call, str(root))
