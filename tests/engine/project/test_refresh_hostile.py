"""Hostile projects: a clear report, nothing lost, and work only where it was asked for."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from testbed.effort import effort
from tests.engine.project.conftest import Git
from vestige.engine.context import Call
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
        assert index.counts().skipped == 1
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
