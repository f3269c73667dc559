"""`vestige sessions browse` at a terminal: search as you type, preview, copy, resume in place."""

import os
import pty
import select
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.engine.recall.sessions.transcripts import LOGIN, plant
from tests.transports.cli.harness import ENVIRONMENT

pytestmark = pytest.mark.slow

VESTIGE = [sys.executable, "-m", "vestige"]


def environment(home: Path) -> dict[str, str]:
    program = home / "bin"
    return {
        **ENVIRONMENT, "HOME": str(home), "TERM": "xterm",
        "PATH": f"{program}{os.pathsep}{os.environ['PATH']}",
        "VESTIGE_DATA_DIR": str(home / "data"), "VESTIGE_EMBEDDINGS_PROVIDER": "hashing",
    }  # fmt: skip


class Terminal:
    """A program at a terminal, and everything that it has written."""

    def __init__(self, leader: int, process: "subprocess.Popen[bytes]") -> None:
        self._leader = leader
        self.process = process
        self.screen = b""

    def expect(self, text: str) -> None:
        """Wait until the program writes this."""
        while text.encode() not in self.screen:
            if not select.select([self._leader], [], [], PATIENCE_SECONDS)[0]:
                raise AssertionError(f"{text!r} did not appear")
            try:
                chunk = os.read(self._leader, 65_536)
            except OSError:
                chunk = b""
            assert chunk, f"the program ended before {text!r} appeared"
            self.screen += chunk

    def type(self, text: str) -> None:
        self.screen = b""
        os.write(self._leader, text.encode())


@contextmanager
def browsing(home: Path, *words: str) -> Iterator[Terminal]:
    leader, follower = pty.openpty()
    ioctl(follower, TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    process = subprocess.Popen(
        [*VESTIGE, "sessions", "browse", *words],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment(home),
        cwd=home,
        start_new_session=True,
    )
    os.close(follower)
    try:
        yield Terminal(leader, process)
    finally:
        process.kill()
        process.wait()
        os.close(leader)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    plant(tmp_path)
    ran = subprocess.run(
        [*VESTIGE, "sessions", "index"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return tmp_path


def test_typing_searches_and_enter_becomes_the_client(home: Path) -> None:
    client = home / "bin" / "claude"
    client.parent.mkdir()
    client.write_text('#!/bin/sh\necho "resumed $2"\n', encoding="utf-8")
    client.chmod(0o755)
    with browsing(home) as terminal:
        terminal.expect("2 sessions, everywhere")
        terminal.type("flaky")
        terminal.expect("user: the login test is flaky")  # the preview; of the rest only changes are written
        terminal.type("\x05")  # Ctrl-E
        terminal.expect("The clock of the token is wrong")
        terminal.type("\t")
        terminal.expect("Copied")
        terminal.type("\r")
        terminal.expect(f"resumed {LOGIN}")
        assert terminal.process.wait(PATIENCE_SECONDS) == 0


def test_escape_leaves_and_a_client_that_is_not_installed_gets_its_command_shown(home: Path) -> None:
    with browsing(home, "flaky", "login") as terminal:
        terminal.expect("1 session,")
        terminal.type("\x1b")
        assert terminal.process.wait(PATIENCE_SECONDS) == 0
    with browsing(home, "flaky") as terminal:
        terminal.expect("1 session,")
        terminal.type("\r")
        terminal.expect(f"cd /w/shop && claude --resume {LOGIN}")


def test_without_a_terminal_or_an_index_the_command_says_what_to_do(tmp_path: Path) -> None:
    words = [*VESTIGE, "sessions", "browse"]
    ran = subprocess.run(words, env=environment(tmp_path), capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert "vestige sessions search" in ran.stderr
    with browsing(tmp_path) as terminal:
        terminal.expect("vestige sessions index")
        assert terminal.process.wait(PATIENCE_SECONDS) != 0
