"""Hostile projects: a clear report, nothing lost, and work only where it was asked for."""

import os
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from testbed.effort import effort
from tests.engine.project.conftest import Git
from vestige.engine.context import Call
from vestige.engine.project.freshness import freshness
from vestige.engine.project.package import ESTIMATE, task_package
from vestige.engine.project.place import new_project
from vestige.engine.project.refresh import Refreshed, refresh
from vestige.engine.project.search import search_code
from vestige.engine.project.warm_up import warm_up_text

Write = Callable[..., Path]
MANY = effort(2_000, nightly=200_000)


def test_a_file_of_one_long_line_is_indexed_or_counted(call: Call, write: Write) -> None:
    write("data.json", '{"harbour": "' + "x " * 500_000 + '"}')
    write("bundle.js", "var harbour = 1;" * 100_000)
    project = new_project(call)
    assert refresh(call, project).files == 2
    with call.engine.code_indexes.reading(project.index) as index:
        found = search_code(call, project, index, "harbour", limit=5)
        assert [hit.path for hit in found] == ["data.json"]
        assert index.counts().skips == {"minified": 1}
        assert index.files()["bundle.js"].skip == "minified"


def test_many_tiny_files_are_all_there(call: Call, root: Path, git: Git) -> None:
    for number in range(MANY):
        folder = root / f"d{number % 50}"
        folder.mkdir(exist_ok=True)
        (folder / f"f{number}.py").write_text(f"def harbour_{number}(): ...\n", encoding="utf-8")
    project = new_project(call)
    assert refresh(call, project) == Refreshed(files=MANY, added=MANY)
    with call.engine.code_indexes.reading(project.index) as index:
        found = search_code(call, project, index, f"harbour_{MANY - 1}", limit=1)
        assert [hit.path for hit in found] == [f"d{(MANY - 1) % 50}/f{MANY - 1}.py"]


def test_reading_about_a_project_indexes_nothing(call: Call, write: Write) -> None:
    write("a.py", "def harbour(): ...\n")
    project = new_project(call)
    refresh(call, project)
    before = project.index.read_bytes()
    write("b.py", "def harbour_two(): ...\n")
    with call.engine.code_indexes.reading(project.index) as index:
        warm_up_text(call, project, index, ESTIMATE, budget=500)
        task_package(call, project, index, "harbour_two", budget=500)
        assert list(index.files()) == ["a.py"]
    assert project.index.read_bytes() == before


def test_an_index_that_came_with_a_repository_shows_nothing_outside_it(
    call: Call, write: Write, tmp_path: Path
) -> None:
    (tmp_path / "diary.txt").write_text("harbour at night\n", encoding="utf-8")
    write("a.py", "def harbour(): ...\n")
    project = new_project(call)
    refresh(call, project)
    with closing(sqlite3.connect(project.index)) as database, database:
        database.execute("update file set path = '../diary.txt'")
    with call.engine.code_indexes.reading(project.index) as index:
        assert search_code(call, project, index, "harbour", limit=5) == []


def test_a_line_of_nine_mebibytes_is_indexed_in_bounded_time(call: Call, write: Write) -> None:
    """The parts of the line are not read again and again: the text is looked through a few times at most."""
    write("data.json", '{"harbour": "' + "x " * (9 * 1024 * 1024 // 2 - 20) + '"}')
    project = new_project(call)
    assert refresh(call, project) == Refreshed(files=1, added=1)
    with call.engine.code_indexes.reading(project.index) as index:
        (row,) = index.sections(["data.json"])["data.json"]
        assert (row.start_line, row.end_line) == (1, 1)


def test_names_that_differ_in_case_or_have_line_breaks_are_files_of_their_own(
    call: Call, write: Write, root: Path, git: Git
) -> None:
    write("Harbour.py", "def upper_harbour(): ...\n")
    write("two\nlines.py", "def broken_harbour(): ...\n")
    write("docs/HARBOUR/note.md", "upper folder\n")
    if not (root / "harbour.py").exists():  # a file system that tells them apart
        write("harbour.py", "def lower_harbour(): ...\n")
        write("docs/harbour/note.md", "lower folder\n")
    git("add", "-A")
    project = new_project(call)
    done = refresh(call, project)
    with call.engine.code_indexes.reading(project.index) as index:
        assert len(index.files()) == done.files == done.added
        for symbol, path in (("upper_harbour", "Harbour.py"), ("broken_harbour", "two\nlines.py")):
            assert search_code(call, project, index, symbol, limit=1)[0].path == path
        if done.files == 5:
            assert search_code(call, project, index, "lower_harbour", limit=1)[0].path == "harbour.py"
    assert refresh(call, project).nothing


def test_a_file_that_changes_while_it_is_read_is_read_again_later(
    call: Call, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write("log.py", "def harbour_0(): ...\n")
    real, times = os.fstat, iter(range(1, 100))

    def growing(handle: int) -> os.stat_result:
        """The file grows between the two looks at it, each time it is read."""
        seen = real(handle)
        with place.open("a", encoding="utf-8") as file:
            file.write(f"def harbour_{next(times)}(): ...\n")
        return seen

    monkeypatch.setattr(os, "fstat", growing)
    project = new_project(call)
    assert refresh(call, project).added == 1
    monkeypatch.undo()
    last = place.read_text(encoding="utf-8").split("\n")[-2].removeprefix("def ").removesuffix("(): ...")
    assert refresh(call, project).changed == 1
    with call.engine.code_indexes.reading(project.index) as index:
        assert last in search_code(call, project, index, last, limit=1)[0].text
        assert freshness(call, project, index).text == "fresh"


def test_loops_of_links_and_ways_out_leave_the_rest_whole(
    call: Call, write: Write, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside.py").write_text("def harbour_outside(): ...\n", encoding="utf-8")
    write("a/b/inside.py", "def harbour_inside(): ...\n")
    (root / "a" / "b" / "up").symlink_to(root / "a")
    (root / "self").symlink_to("self")
    (root / "out.py").symlink_to(tmp_path / "outside.py")
    os.mkfifo(root / "pipe.py")
    project = new_project(call)
    assert refresh(call, project) == Refreshed(files=1, added=1)
    with call.engine.code_indexes.reading(project.index) as index:
        assert list(index.files()) == ["a/b/inside.py"]
        assert index.state().skips == {"build output": 1, "link": 3, "not a file": 1}


def test_a_pass_without_changes_reads_no_file_and_writes_nothing(
    call: Call, write: Write, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):
        os.utime(write(f"d{number % 7}/f{number}.py", f"def f{number}(): ...\n"), (1e9, 1e9 + 0.5))
    git("add", "-A")
    git("commit", "-qm", "Add everything")
    project = new_project(call)
    assert refresh(call, project).added == 300
    before = project.index.stat().st_mtime_ns
    opened: list[str] = []
    started: list[object] = []
    real_open, real_start = os.open, subprocess.Popen

    def counted(*given: Any, **named: Any) -> int:
        opened.append(str(given[0]))
        return real_open(*given, **named)

    class Counted(real_start):  # type: ignore[misc,valid-type]  # a class that is held in a variable
        def __init__(self, *given: Any, **named: Any) -> None:
            started.append(given)
            super().__init__(*given, **named)

    monkeypatch.setattr(os, "open", counted)
    monkeypatch.setattr(subprocess, "Popen", Counted)
    assert refresh(call, project).nothing
    assert [path for path in opened if path != os.devnull] == [f"{project.index}.lock"]
    assert len(started) == 2  # git: the list of files; the branch and the commit
    assert project.index.stat().st_mtime_ns == before
