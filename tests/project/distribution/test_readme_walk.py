"""A new user with only the README: its commands on a terminal, from the wheel and from the checkout."""

import fcntl
import os
import re
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from testbed.project import PROJECT
from tests.project.distribution.installation import PROGRAMS, clean_environ
from vestige.operations.shared.text import width_of

pytestmark = pytest.mark.slow

README = (PROJECT / "README.md").read_text(encoding="utf-8")
STEPS = [
    line.removeprefix("vestige ")
    for line in README.partition("## Two minutes")[2].partition("```sh\n")[2].partition("```")[0].splitlines()
]
MORE = [
    "session",
    'ask "Which database does Harbour use?"',
    "graph",
    "health",
    "ls",
    "help",
    "find tea",
    "show x",
]
"""What the README does not show, and a new user tries next."""
_CODES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\]8;[^\x1b]*\x1b\\)")
LONG = re.compile(r"(?:/[^/ ]+){3,}")
"""A path, which must stay in one piece to be copied."""


@pytest.fixture(scope="module")
def programs(
    request: pytest.FixtureRequest, wheel: Path, wheels: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[str]:
    """The command `vestige`: of the wheel in an environment of its own, or of the checkout."""
    if request.param == "checkout":
        return [sys.executable, "-m", "vestige"]
    made = tmp_path_factory.mktemp("walk") / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(made)], check=True)
    pip = [str(made / PROGRAMS / "python"), "-m", "pip", "install", "--quiet", "--no-index"]
    subprocess.run([*pip, "--find-links", str(wheels), f"{wheel}[local,server]"], check=True)
    return [str(made / PROGRAMS / "vestige")]


def on_terminal(command: Sequence[str], columns: int, folder: Path, environ: Mapping[str, str]) -> str:
    """What a person sees who types a command."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with subprocess.Popen(
        command, cwd=folder, env=dict(environ), stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True
    ):
        os.close(theirs)
        seen = b""
        while part := _read(ours):
            seen += part
    os.close(ours)
    return _CODES.sub("", seen.decode("utf-8")).replace("\r\n", "\n")


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 65_536)
    except OSError:  # Linux says so when the other end is closed
        return b""


@pytest.mark.parametrize("programs", ["checkout", "wheel"], indirect=True)
@pytest.mark.parametrize(
    ("zone", "label", "columns"), [("America/New_York", r"E[SD]T", 80), ("Asia/Tokyo", "JST", 140)]
)
def test_the_walk_of_the_readme_says_nothing_false_and_nothing_wraps(
    programs: list[str], zone: str, label: str, columns: int, tmp_path: Path, real_model_dir: Path
) -> None:
    environ = clean_environ(
        tmp_path, TZ=zone, TERM="xterm-256color", VESTIGE_EMBEDDINGS_CACHE_DIR=str(real_model_dir.parent)
    )
    seen = {
        step: on_terminal([*programs, *shlex.split(step)], columns, tmp_path, environ)
        for step in (*STEPS, *MORE)
    }

    wide = [
        line
        for text in seen.values()
        for line in text.splitlines()
        if width_of(line) > columns and not LONG.search(line)
    ]
    assert wide == []
    assert not any("Traceback" in text or "bug" in text for text in seen.values())
    first, preference, search, reminder, listed, timeline, status, backup = (seen[step] for step in STEPS)
    assert first.startswith("Remembered as a new memory.")
    assert "/user (about the user: tagged preference)" in preference
    assert re.match(r"1\s+Harbour runs on PostgreSQL 14\.", search)
    assert f"Due every Monday at 09:00 {zone}" in reminder
    for text in (reminder, listed, timeline, status):
        assert re.search(rf"\d\d:\d\d {label}\b", text), text
        assert " UTC" not in text
    assert "2 of 2 memories" in listed
    assert "vestige backup" not in status  # two memories are not worth one yet
    assert list((tmp_path / ".local/share/vestige/core/backups").glob("vestige-*.db"))
    assert "checked" in backup
