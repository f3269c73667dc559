"""The wheel and the source package: what is in them, and that the wheel works on every Python we claim."""

import email
import json
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from supply.requirements import CONSTRAINTS, pyproject
from testbed.project import PROJECT
from tests.project.distribution.installation import PROGRAMS, Installation, clean_environ, python_of
from vestige import __version__

pytestmark = pytest.mark.slow

SOURCE = PROJECT / "src"
CLAIMED = [
    line.rpartition(" ")[2]
    for line in pyproject()["project"]["classifiers"]
    if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", line)
]


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    package = {
        path.relative_to(SOURCE).as_posix(): path.read_bytes()
        for path in (SOURCE / "vestige").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    found = contents(wheel)
    about = f"vestige-{__version__}.dist-info/"
    assert {name: content for name, content in found.items() if not name.startswith(about)} == package
    assert f"{about}licenses/LICENSE" in found


def test_what_is_read_at_run_time_is_in_the_wheel(wheel: Path) -> None:
    wanted = {
        "vestige/py.typed",
        "vestige/embed/minilm/data/pair_model.npz",
        "vestige/store/sqlite/migrations/0001_initial.sql",
        "vestige/store/postgres/migrations/0001_initial.sql",
        "vestige/transports/connect/clients.toml",
        "vestige/transports/http/static/login.html",
        "vestige/transports/mcp/tools.json",
    }
    assert wanted <= contents(wheel).keys()


def test_the_source_package_has_what_the_wheel_is_built_of_and_nothing_else(packages: Path) -> None:
    with tarfile.open(next(packages.glob("*.tar.gz"))) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    outside = {name for name in names if not name.startswith("src/vestige/")}
    wanted = {"CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml", "supply/kernel.py"}
    assert outside == {".gitignore", *wanted}


def test_the_source_package_builds_the_same_wheel(wheel: Path, wheel_of_the_sdist: Path) -> None:
    assert wheel_of_the_sdist.name == wheel.name
    assert contents(wheel_of_the_sdist) == contents(wheel)


def test_the_metadata_name_the_version_the_licence_and_the_extras(wheel: Path) -> None:
    about = email.message_from_bytes(contents(wheel)[f"vestige-{__version__}.dist-info/METADATA"])
    assert (about["Version"], about["License-Expression"]) == (__version__, "Apache-2.0")
    assert set(about.get_all("Provides-Extra", [])) == set(pyproject()["project"]["optional-dependencies"])
    assert about["Description-Content-Type"] == "text/markdown"


@pytest.mark.parametrize("version", CLAIMED)
def test_the_wheel_works_in_a_clean_environment_of_every_python_that_is_here(
    version: str, wheel: Path, tmp_path: Path
) -> None:
    python = python_of(version)
    if python is None:
        pytest.skip(f"THE WHEEL IS NOT TESTED WITH PYTHON {version}: it is not on this machine")
    made = tmp_path / "environment"
    subprocess.run([str(python), "-m", "venv", str(made)], check=True)
    home = tmp_path / "home"
    home.mkdir()
    here = Installation(programs=made / PROGRAMS, home=home, environ=clean_environ(home))
    pip = [str(made / PROGRAMS / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--constraint", str(CONSTRAINTS), f"{wheel}[server]"], check=True)

    assert json.loads(here.run("vestige", "version"))["version"] == __version__
    assert "search" in here.run("vestige", "--help")
    here.run("vestige", "ingest", "The staging server restarts every Sunday.")
    found = json.loads(here.run("vestige", "search", "staging restart"))
    assert [hit["content"] for hit in found["results"]] == ["The staging server restarts every Sunday."]
    assert here.initialise()["serverInfo"] == {"name": "vestige", "title": "Vestige", "version": __version__}
    assert here.health() == 200


def test_the_classifiers_name_the_pythons_that_are_tested() -> None:
    assert CLAIMED == ["3.11", "3.12", "3.13"]
    page = (PROJECT / "docs" / "howto" / "install.md").read_text(encoding="utf-8")
    assert "Python 3.11, 3.12 and 3.13" in page
