"""Chromium for tests: that of the machine, or the packages of Debian unpacked into the environment.

Nothing is installed on the machine, and no other browser is downloaded.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.packages import unpack

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NOT_TESTED = "NO PAGE IS OPENED IN A BROWSER: there is no Chromium here, and apt-get cannot download one"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
UNPACKED = Path(sys.prefix) / "chromium"
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
"""Tests run as root in containers, where the sandbox cannot start. They open pages of the project only."""


def program() -> Path | None:
    """The browser, unpacked if the machine has none; None where that is not possible."""
    for name in NAMES:
        if found := shutil.which(name):
            return Path(found)
    if not UNPACKED.exists():
        unpack(_packages(), UNPACKED)
    found_here = UNPACKED / "usr" / "lib" / "chromium" / "chromium"
    return found_here if found_here.exists() else None


def _packages() -> list[str]:
    """Chromium and those packages that it needs and the machine does not have."""
    command = ["apt-get", "install", "--simulate", "--no-install-recommends", "chromium"]
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    except OSError:
        return []
    lines = [line.split() for line in done.stdout.splitlines()]
    return [words[1] for words in lines if len(words) > 1 and words[0] == "Inst"]


@contextmanager
def browser() -> Iterator["Browser | None"]:
    """A running browser without a window; None where there is none."""
    from playwright.sync_api import sync_playwright

    found = program()
    if found is None:
        yield None
        return
    libraries = {str(path.parent) for path in (UNPACKED / "usr" / "lib").glob("*-linux-gnu*/**/*.so*")}
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=found,
            args=list(ARGUMENTS),
            env={**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(sorted(libraries))},
        )
        try:
            yield opened
        finally:
            opened.close()
