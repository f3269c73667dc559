"""Programs of the system's packages, for tests: downloaded with `apt-get download` and unpacked.

They go into the environment of the project. That needs no root, and nothing is installed on the machine.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

DOWNLOAD_SECONDS = 300


def unpack(packages: Sequence[str], folder: Path) -> None:
    """Unpack those of these packages that the system has into a folder; nothing happens where it has none."""
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        return
    with tempfile.TemporaryDirectory(dir=sys.prefix) as name:
        here = Path(name)
        if not _download(packages, here) and os.geteuid() == 0 and run("apt-get", "update"):
            _download(packages, here)
        for package in here.glob("*.deb"):
            run("dpkg", "-x", str(package), str(here / "root"))
        with suppress(OSError):  # another process may have been faster, or there is nothing
            (here / "root").rename(folder)


def run(*command: str, folder: Path | None = None, environ: Mapping[str, str] | None = None) -> bool:
    """Run a program; whether it is there and succeeded."""
    try:
        done = subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, timeout=DOWNLOAD_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _download(packages: Sequence[str], folder: Path) -> bool:
    done = [run("apt-get", "download", name, folder=folder) for name in packages]
    return any(done)
