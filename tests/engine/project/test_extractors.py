"""Several processes give the rows that one gives."""

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from vestige.engine.context import Call
from vestige.engine.project import extractors
from vestige.engine.project.extractors import processes_for, rows_of, rows_of_batches
from vestige.engine.project.place import new_project
from vestige.engine.project.refresh import Refreshed, refresh
from vestige.store.contract.code_index import IndexedFile

Write = Callable[..., Path]
PATHS = ("harbour.py", "docs/crane.md", "lib/ship.js", "data.json", "gone.py")


@pytest.fixture
def batches(write: Write) -> list[list[str]]:
    write("harbour.py", 'class Harbour:\n    def dock(self):\n        token = "ghp_' + "a1B2" * 9 + '"\n')
    write("docs/crane.md", "# Crane\n\nLifts what arrives.\n\n## Übersee\n\n…\n")
    write("lib/ship.js", "export function sail(to) { return to }\n" * 40)
    write("data.json", '{"harbour": 1}')
    return [list(PATHS[:2]), [], list(PATHS[2:]), ["harbour.py"]]


def test_several_processes_give_the_same_rows_in_the_same_order(root: Path, batches: list[list[str]]) -> None:
    alone = [rows_of(root, batch, 3) for batch in batches]
    assert alone[0][0] is not None
    assert alone[0][0].file.redacted == 1
    assert alone[2][-1] is None
    assert list(rows_of_batches(root, batches, 3, processes=0)) == alone
    assert list(rows_of_batches(root, batches, 3, processes=2)) == alone


def test_work_of_a_process_that_cannot_be_started_is_done_here(
    root: Path, batches: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    alone = [rows_of(root, batch, 1) for batch in batches]
    for program in (str(tmp_path / "missing"), "/bin/true"):  # the second ends without an answer
        monkeypatch.setattr(sys, "executable", program)
        assert list(rows_of_batches(root, batches, 1, processes=2)) == alone


def test_a_project_cannot_bring_the_program_of_the_processes(
    root: Path, batches: list[list[str]], write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = write("vestige/__init__.py", "import pathlib; pathlib.Path('trapped').touch()\n").parent
    write("pickle.py", "import pathlib; pathlib.Path('trapped').touch()\n")
    monkeypatch.chdir(root)
    assert len(list(rows_of_batches(root, batches, 1, processes=1))) == len(batches)
    assert not (root / "trapped").exists()
    assert not (trap / "trapped").exists()


def test_a_pass_that_is_stopped_ends_its_processes(root: Path, batches: list[list[str]]) -> None:
    def endless() -> Iterator[list[str]]:
        while True:
            yield from batches

    with closing(rows_of_batches(root, endless(), 1, processes=1)) as rows:
        first: list[IndexedFile | None] = next(rows)
    assert first == rows_of(root, batches[0], 1)
    assert next(rows, None) is None


def test_only_a_large_project_is_worth_processes() -> None:
    assert processes_for(extractors.LEAST_FILES - 1) == 0
    assert 0 <= processes_for(extractors.LEAST_FILES) <= extractors.MOST_PROCESSES


def test_an_index_made_by_several_processes_is_refreshed_like_any(
    call: Call, write: Write, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        write(f"part{number}.py", f"def crane_{number}():\n    return {number}\n")
    monkeypatch.setattr("vestige.engine.project.refresh.processes_for", lambda _files: 2)
    monkeypatch.setattr("vestige.engine.project.refresh.BATCH_FILES", 5)
    project = new_project(call)
    assert refresh(call, project) == Refreshed(files=12, added=12)
    write("part3.py", "def winch():\n    return 3\n")
    (root / "part4.py").rename(root / "moved.py")
    (root / "part5.py").unlink()
    assert refresh(call, project) == Refreshed(files=11, changed=1, renamed=1, removed=1)
    assert refresh(call, project).nothing
