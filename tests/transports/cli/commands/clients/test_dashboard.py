"""`vestige dashboard`: a server that runs or is started, and a link that logs in once."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from testbed import patient_http
from tests.transports.cli.harness import invoke
from tests.transports.http.support.harness import environment, key_in, serving
from vestige.transports.cli.commands.clients.dashboard import LABEL

pytestmark = pytest.mark.slow

COMMAND = (sys.executable, "-m", "vestige", "dashboard", "--no-open")


@contextmanager
def started(folder: Path) -> Iterator[str]:
    """The command without a server; the link that it prints."""
    with subprocess.Popen(
        [*COMMAND, "--bind", "127.0.0.1:0"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        env=environment(folder),
    ) as process:
        try:
            assert process.stdout is not None
            lines = [json.loads(process.stdout.readline()) for _ in range(2)]
            yield str(lines[1]["dashboard"])
        finally:
            process.kill()


def log_in(link: str) -> httpx.Response:
    parts = urlsplit(link)
    ticket = parts.fragment.removeprefix("ticket=")
    return patient_http.post(f"{parts.scheme}://{parts.netloc}/login", json={"ticket": ticket})


def test_it_starts_a_server_and_its_link_logs_in_once(tmp_path: Path) -> None:
    with started(tmp_path) as link:
        first = log_in(link)
        assert (first.status_code, first.json()["label"]) == (200, LABEL)
        assert "admin" in first.json()["permissions"]
        assert log_in(link).status_code == 401


def test_it_uses_the_server_that_runs_and_one_key_for_all_its_logins(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        bind = urlsplit(server.local).netloc
        for _ in range(2):
            done = subprocess.run(
                [*COMMAND, "--bind", bind],
                capture_output=True,
                encoding="utf-8",
                env=environment(tmp_path),
                check=True,
            )
            link = json.loads(done.stdout)["dashboard"]
            assert log_in(link).status_code == 200
        headers = {"Authorization": f"Bearer {key_in(tmp_path)}"}
        keys = patient_http.get(f"{server.local}/api/v1/keys", headers=headers).json()["keys"]
        assert [key["label"] for key in keys].count(LABEL) == 1


def test_its_help_says_that_no_key_is_needed() -> None:
    assert "no key" in invoke(["dashboard", "--help"]).stdout
