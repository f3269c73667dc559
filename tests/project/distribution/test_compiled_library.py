"""The compiled library is built where a compiler is, and missing without harm where none is."""

import ctypes
import shutil
from pathlib import Path

import pytest

from supply.kernel import FOLDER, build, compiler
from testbed.project import PROJECT
from vestige.cognition.native.kernel import INTERFACE, Kernel
from vestige.cognition.native.platforms import file_name


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that has the sources of the library only."""
    shutil.copytree(
        PROJECT / FOLDER, tmp_path / FOLDER, ignore=shutil.ignore_patterns("kernel.*-*", "__pycache__")
    )
    return tmp_path


def libraries(project: Path) -> list[str]:
    return [path.name for path in (project / FOLDER).iterdir() if path.suffix not in (".c", ".h", ".py")]


def test_without_a_compiler_nothing_is_built(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    assert build(project) == ["No C compiler for this platform: searches run in numpy."]
    assert libraries(project) == []


def test_a_compiler_that_fails_leaves_nothing_behind(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / FOLDER / "kernel.c").write_text("this is not C", encoding="utf-8")
    if compiler() is None:
        pytest.skip("A FAILING COMPILER IS NOT TESTED: there is none")
    [line] = build(project)
    assert "was not built, searches run in numpy" in line
    assert libraries(project) == []


def test_a_compiler_builds_a_library_that_can_be_used(project: Path) -> None:
    if compiler() is None:
        pytest.skip("THE BUILD OF THE COMPILED LIBRARY IS NOT TESTED: there is no C compiler")
    assert build(project) == [f"{file_name()} was built."]
    assert libraries(project) == [file_name()]
    library = ctypes.CDLL(str(project / FOLDER / str(file_name())))
    assert library.vestige_interface() == INTERFACE
    assert Kernel(library).lanes in (4, 8, 16)


def test_a_library_that_is_up_to_date_is_left_alone(project: Path) -> None:
    if compiler() is None:
        pytest.skip("THE BUILD OF THE COMPILED LIBRARY IS NOT TESTED: there is no C compiler")
    build(project)
    library = project / FOLDER / str(file_name())
    before = library.stat()
    build(project)
    assert (library.stat().st_ino, library.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
