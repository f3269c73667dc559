"""A refresh leaves the same index as a rebuild, whatever happened before it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testbed.world import World
from tests.engine.project.conftest import Git
from vestige.core.errors import StoreBusy
from vestige.engine.context import Call
from vestige.engine.project.freshness import FreshWord, freshness
from vestige.engine.project.place import Project, new_project
from vestige.engine.project.refresh import Refreshed, refresh

Write = Callable[..., Path]
SOURCE = "def add(a, b):\n    return a + b\n"


def contents(call: Call, project: Project) -> list[object]:
    """Everything that an index says, without numbers of its own."""
    with call.engine.code_indexes.reading(project.index) as index:
        files = index.files()
        sections = index.sections(list(files))
        rows = [
            (path, row.hash, row.size, row.skip, row.summary, [_plain(one) for one in sections[path]])
            for path, row in files.items()
        ]
        names = sorted({one.name for path in files for one in sections[path] if one.name})
        return [
            rows,
            [_plain(one) for one in index.defining(names, limit=1_000)],
            [_plain(one) for one in index.referring([*names, "print"], limit=1_000)],
            index.state().skips,
            index.counts().definitions,
            index.counts().references,
        ]


def _plain(one: object) -> tuple[object, ...]:
    return tuple(getattr(one, name) for name in ("path", "start_line", "end_line", "symbol_path", "hash"))


def rebuilt(call: Call, project: Project) -> list[object]:
    refresh(call, project, anew=True)
    return contents(call, project)


def word(call: Call, project: Project) -> str:
    with call.engine.code_indexes.reading(project.index) as index:
        return freshness(call, project, index).text


def test_a_first_pass_reads_everything_and_the_next_nothing(call: Call, write: Write) -> None:
    write("a.py", SOURCE)
    write("b/c.md", "# Title\n\nWords about it.\n")
    project = new_project(call)
    assert refresh(call, project) == Refreshed(files=2, added=2)
    before = project.index.stat().st_mtime_ns
    assert refresh(call, project) == Refreshed(files=2)
    assert project.index.stat().st_mtime_ns == before
    assert word(call, project) == "fresh"


def test_nothing_is_indexed_before_init(call: Call, write: Write, root: Path) -> None:
    write("a.py", SOURCE)
    assert not (root / ".vestige").exists()


def test_the_memory_directory_is_ignored_by_git(call: Call, write: Write, git: Git) -> None:
    write("a.py", SOURCE)
    refresh(call, new_project(call))
    assert ".vestige" not in git("status", "--porcelain", "--untracked-files=all")


def test_changes_are_found_by_contents(call: Call, write: Write) -> None:
    place = write("a.py", SOURCE)
    write("gone.py", "x = 1\n")
    project = new_project(call)
    refresh(call, project)
    seen = place.stat()
    place.write_text(SOURCE.replace("+", "-"), encoding="utf-8")
    os.utime(place, ns=(seen.st_atime_ns, seen.st_mtime_ns))  # the same size and time
    (project.root / "gone.py").unlink()
    write("new.py", "y = 2\n")
    assert word(call, project) == "stale (3 files)"
    assert refresh(call, project) == Refreshed(files=2, added=1, changed=1, removed=1)
    assert contents(call, project) == rebuilt(call, project)


def test_a_touched_file_has_not_changed(call: Call, write: Write) -> None:
    place = write("a.py", SOURCE)
    project = new_project(call)
    refresh(call, project)
    os.utime(place, ns=(1, 1))
    assert word(call, project) == "fresh"
    assert refresh(call, project).nothing
    assert word(call, project) == "fresh"


def test_a_renamed_file_keeps_its_identity(call: Call, write: Write) -> None:
    write("a.py", SOURCE)
    write("b.py", SOURCE.replace("add", "sum"))
    project = new_project(call)
    refresh(call, project)
    (project.root / "in").mkdir()
    (project.root / "a.py").rename(project.root / "in/b.py")
    (project.root / "b.py").rename(project.root / "in/a.py")
    assert refresh(call, project) == Refreshed(files=2, renamed=2)
    assert contents(call, project) == rebuilt(call, project)


def test_a_file_that_became_a_folder_is_read_anew(call: Call, write: Write) -> None:
    place = write("a", SOURCE)
    project = new_project(call)
    refresh(call, project)
    place.unlink()
    write("a/b.py", SOURCE)
    refresh(call, project)
    assert contents(call, project) == rebuilt(call, project)


def test_another_branch_is_another_word_until_the_next_refresh(call: Call, write: Write, git: Git) -> None:
    write("a.py", SOURCE)
    git("add", ".")
    git("commit", "-qm", "one")
    project = new_project(call)
    refresh(call, project)
    assert word(call, project) == "fresh"
    git("switch", "-qc", "feature")
    write("a.py", SOURCE + SOURCE)
    assert word(call, project) == "diverged (feature; indexed on main)"
    refresh(call, project)
    assert word(call, project) == "fresh"
    git("stash", "-q")
    git("switch", "-q", "main")
    refresh(call, project)
    assert contents(call, project) == rebuilt(call, project)


def test_a_worktree_has_an_index_of_its_own(call: Call, write: Write, git: Git, tmp_path: Path) -> None:
    write("a.py", SOURCE)
    git("add", ".")
    git("commit", "-qm", "one")
    refresh(call, new_project(call))
    git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "other")
    other = new_project(call, str(tmp_path / "tree"))
    assert other.root == tmp_path / "tree"
    assert refresh(call, other).added == 1
    assert word(call, other) == "fresh"


def test_a_shallow_clone_and_a_repository_without_commits_work(
    call: Call, write: Write, git: Git, tmp_path: Path
) -> None:
    write("a.py", SOURCE)
    assert refresh(call, new_project(call)).added == 1
    git("add", ".")
    git("commit", "-qm", "one")
    git("clone", "-q", "--depth", "1", f"file://{new_project(call).root}", str(tmp_path / "shallow"))
    assert refresh(call, new_project(call, str(tmp_path / "shallow"))).added == 1


def test_without_git_the_word_is_unknown(call: Call, write: Write, git: Git) -> None:
    write("a.py", SOURCE)
    project = new_project(call)
    refresh(call, project)
    (project.root / ".git").rename(project.root.parent / "elsewhere")
    assert word(call, project).startswith(FreshWord.UNKNOWN)


EDITS = st.lists(
    st.tuples(
        st.sampled_from(["write", "delete", "rename", "ignore"]),
        st.sampled_from(["a.py", "b.py", "c/d.md", "c/e.py"]),
        st.sampled_from(["a.py", "f.py", "c/e.py"]),
        st.sampled_from([SOURCE, "# Head\n\nText.\n", "", "print(add(1, 2))\n", "\0binary"]),
    ),
    max_size=6,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rounds=st.lists(EDITS, min_size=1, max_size=3))
def test_after_any_edits_a_refresh_equals_a_rebuild(
    call: Call, write: Write, rounds: list[list[tuple[str, str, str, str]]]
) -> None:
    project = new_project(call)
    for edits in rounds:
        for what, path, other, text in edits:
            place = project.root / path
            match what:
                case "write":
                    write(path, text)
                case "delete" if place.exists():
                    place.unlink()
                case "rename" if place.exists():
                    place.replace(write(other))
                case "ignore":
                    write(".gitignore", f"/{path}\n")
        refresh(call, project)
    assert contents(call, project) == rebuilt(call, project)


KILLED = """
import os, signal, sys
from dataclasses import replace
from pathlib import Path
from testbed.world import open_world
from vestige.engine.context import Call
from vestige.engine.project import refresh as module
from vestige.engine.project.place import new_project

module.BATCH_FILES = 2
stop = int(sys.argv[3])

def progress(done, total, message):
    if done >= stop:
        os.kill(os.getpid(), signal.SIGKILL)

with open_world(Path(sys.argv[1])) as world:
    call = Call(engine=world.app.engine, local=True, folder=Path(sys.argv[2]), progress=progress)
    module.refresh(call, new_project(call))
"""


@pytest.mark.slow
@pytest.mark.parametrize("stop", [2, 6])
def test_a_killed_pass_is_finished_by_the_next(
    call: Call, write: Write, root: Path, tmp_path: Path, stop: int
) -> None:
    for number in range(9):
        write(f"m{number}.py", SOURCE.replace("add", f"add{number}"))
    words = [sys.executable, "-c", KILLED, str(tmp_path / "other"), str(root), str(stop)]
    done = subprocess.run(words, capture_output=True, check=False, cwd=Path(__file__).parents[3])
    assert done.returncode == -signal.SIGKILL, done.stderr
    project = new_project(call)
    with call.engine.code_indexes.reading(project.index) as index:
        assert not index.state().complete
        assert len(index.files()) == stop
    assert word(call, project) == f"stale ({9 - stop} files)"
    assert refresh(call, project) == Refreshed(files=9, added=9 - stop)
    assert contents(call, project) == rebuilt(call, project)


def test_there_is_one_writer_at_a_time_and_readers_go_on(call: Call, write: Write, world: World) -> None:
    write("a.py", SOURCE)
    project = new_project(call)
    refresh(call, project)
    write("b.py", SOURCE)
    with call.engine.code_indexes.writing(project.index, "a test"):
        with pytest.raises(StoreBusy, match="a test"):
            refresh(call, project)
        with call.engine.code_indexes.reading(project.index) as index:
            assert list(index.files()) == ["a.py"]
    assert refresh(call, project).added == 1


def test_secrets_are_in_no_file_of_the_directory(call: Call, write: Write) -> None:
    key = "AKIA" + "Q7R2ZK5N3JV8XWTM"
    write("settings.py", f'"""The key is {key}."""\n\n\ndef connect(key="{key}"):\n    return key\n')
    project = new_project(call)
    assert refresh(call, project).redacted == 2
    stored = b"".join(file.read_bytes() for file in project.directory.iterdir())
    assert key.encode() not in stored
    assert key.lower().encode() not in stored


def test_durable_memory_is_byte_equal_after_a_rebuild(world: World, root: Path, write: Write) -> None:
    write("a.py", SOURCE)
    call = Call(engine=world.app.engine, local=True, folder=root)
    project = new_project(call)
    refresh(call, project)
    memory = world.remember("The shop never stores card numbers.", scope=project.scope)
    before = world.get(memory)
    refresh(call, project, anew=True)
    assert world.get(memory) == before


def test_programs_are_searchable_before_tests_and_data(
    call: Call, root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vestige.engine.project.refresh.BATCH_FILES", 1)
    for path in ("a/data.json", "b/tests/test_x.py", "c/guide.md", "d/main.py"):
        write(path, "x = 1\n" if path.endswith(".py") else "{}\n")
    read: list[list[str]] = []

    def stopped(_done: float, _total: float | None, _what: str | None) -> None:
        with call.engine.code_indexes.reading(new_project(call).index) as index:
            read.append(sorted(index.files()))

    refresh(replace(call, progress=stopped), new_project(call))
    assert read == [
        ["d/main.py"],
        ["c/guide.md", "d/main.py"],
        ["b/tests/test_x.py", "c/guide.md", "d/main.py"],
        ["a/data.json", "b/tests/test_x.py", "c/guide.md", "d/main.py"],
    ]
