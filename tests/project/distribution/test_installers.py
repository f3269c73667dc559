"""The lines of docs/howto/install.md, each run as it is written by the installer that it names."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.project import PROJECT
from tests.project.distribution.installation import PROGRAMS, Installation, clean_environ, run
from vestige import __version__

pytestmark = pytest.mark.slow

PAGE = (PROJECT / "docs" / "howto" / "install.md").read_text(encoding="utf-8")
LINES = {
    line.split()[0]: line
    for line in re.findall(r"^\| [^|]+ \| `((?:uvx?|pipx?) [^`]+)` \|$", PAGE, re.MULTILINE)
}
"""The line of each installer."""


@pytest.fixture
def here(tmp_path: Path, wheel: Path, wheels: Path) -> Installation:
    """A user with an empty home and the downloaded wheel in it. Packages come from a folder, not an index."""
    shutil.copy(wheel, tmp_path)
    found = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "UV_NO_INDEX": "1"}
    places = {"UV_FIND_LINKS": str(wheels), "UV_CACHE_DIR": str(tmp_path / ".uv"), "UV_LINK_MODE": "copy"}
    python = {
        "UV_PYTHON": sys.executable,
        "UV_PYTHON_DOWNLOADS": "never",
        "PIPX_DEFAULT_PYTHON": sys.executable,
    }
    environ = clean_environ(tmp_path, **found, **places, **python)
    return Installation(programs=tmp_path / ".local" / "bin", home=tmp_path, environ=environ)


def follow(line: str, here: Installation) -> str:
    return run(["bash", "-c", line], here.home, here.environ)


def left_behind(home: Path) -> set[str]:
    """What is in a home, without the caches and locks of the installers and the downloaded wheel."""
    files = {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}
    own = re.compile(r"\.uv/|\.cache/|\.local/(share|state)/(uv|pipx)/|\.local/share/man/|[^/]*\.whl$")
    return {name for name in files if not own.match(name)}


def test_the_page_has_a_line_for_each_installer() -> None:
    assert LINES.keys() == {"uv", "uvx", "pipx", "pip"}


@pytest.mark.parametrize(("installer", "remove"), [("uv", "uv tool uninstall"), ("pipx", "pipx uninstall")])
def test_a_tool_is_installed_and_removed_without_a_trace(
    installer: str, remove: str, here: Installation
) -> None:
    follow(LINES[installer], here)
    programs = {"vestige", "vestige-hook", "vestige-mcp", "vestige-restore"}
    assert {path.name for path in here.programs.iterdir()} == programs
    assert here.initialise()["protocolVersion"] == "2025-11-25"
    assert here.health() == 200
    shown = json.loads(here.run("vestige", "uninstall"))
    assert f"{remove} vestige" in shown["program"]
    shutil.rmtree(here.home / ".local" / "share" / "vestige")  # the store that `serve` made
    follow(shown["program"], here)
    assert left_behind(here.home) == set()


def test_uvx_runs_a_command_without_installing_it(here: Installation) -> None:
    assert json.loads(follow(LINES["uvx"], here))["version"] == __version__
    assert not here.programs.exists()


def test_pip_installs_into_an_environment(here: Installation) -> None:
    made = here.home / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(made)], check=True)
    programs = made / PROGRAMS
    environ = {**here.environ, "PATH": f"{programs}:{here.environ['PATH']}"}
    inside = Installation(programs=programs, home=here.home, environ=environ)
    follow(LINES["pip"], inside)
    assert inside.initialise()["protocolVersion"] == "2025-11-25"
    shown = json.loads(inside.run("vestige", "uninstall"))
    assert shown["program"].endswith("-m pip uninstall vestige")
