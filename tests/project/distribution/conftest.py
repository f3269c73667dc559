"""The built packages of the project, and the wheels that they need."""

import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

from supply.dist import build
from supply.requirements import LOCK, requirements
from testbed.project import PROJECT

WHEELS = PROJECT / "build" / "wheels"


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source package of this tree."""
    folder = tmp_path_factory.mktemp("dist")
    build(PROJECT, folder, "wheel")
    build(PROJECT, folder, "sdist")
    return folder


@pytest.fixture(scope="session")
def wheel(packages: Path) -> Path:
    return next(packages.glob("*.whl"))


@pytest.fixture(scope="session")
def wheel_of_the_sdist(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that the source package builds."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(next(packages.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    return build(unpacked, tmp_path_factory.mktemp("from-sdist"), "wheel")


@pytest.fixture(scope="session")
def wheels() -> Path:
    """The locked wheels of Vestige with its extras `local` and `server`, so that installers need no index."""
    wanted = requirements(["local", "server"], [])
    key = hashlib.sha256(LOCK.read_bytes() + "\n".join(wanted).encode()).hexdigest()[:16]
    place = WHEELS / f"{key}-{sys.version_info.major}.{sys.version_info.minor}"
    if not place.exists():
        WHEELS.mkdir(parents=True, exist_ok=True)
        # Elsewhere first: what is cut off, or made at the same time by another worker, must not be found.
        with tempfile.TemporaryDirectory(dir=WHEELS) as making:
            whole = Path(making) / "whole"
            listed = Path(making) / "requirements.txt"
            listed.write_text("\n".join(wanted), encoding="utf-8")
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes"]
            options = ["--constraint", str(LOCK), "--requirement", str(listed), "--dest", str(whole)]
            subprocess.run([*pip, *options], check=True)
            try:
                whole.rename(place)
            except OSError:
                assert place.exists(), f"{place} cannot be made"
    return place
