"""`vestige bridge` at a terminal: what somebody who watches it sees."""

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.transports.bridge.harness import TOKEN
from tests.transports.cli.test_serve import read
from tests.transports.http.support.harness import environment


@pytest.mark.slow
def test_its_log_is_for_people_and_it_says_when_it_is_over(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "vestige", "bridge", "--bind", "127.0.0.1:0"],
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
        env=environment(tmp_path, TERM="dumb", VESTIGE_AUTH_TOKEN=TOKEN),
    ) as process:
        os.close(follower)
        screen = b""
        while b"press Ctrl-C to stop." not in screen and (piece := read(leader)):
            screen += piece
        url = re.search(r"http://127\.0\.0\.1:\d+", screen.decode())
        assert url is not None
        httpx.post(f"{url[0]}/search", json={}, timeout=PATIENCE_SECONDS, trust_env=False)
        process.send_signal(signal.SIGINT)
        while piece := read(leader):
            screen += piece
    os.close(leader)
    shown = screen.decode()
    assert "  401  POST /search  " in shown
    assert '{"' not in shown
    assert shown.rstrip().endswith("The bridge has stopped.")
