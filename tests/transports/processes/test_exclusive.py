"""A server that wants the store for itself: as processes, through both of its commands."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.transports.cli.harness import invoke
from vestige.store.sqlite.processes.presence import FOLDER, present

pytestmark = pytest.mark.slow

BESIDE = Path(sys.executable)
COMMANDS = {
    "vestige-mcp": [str(BESIDE.with_name("vestige-mcp"))],
    "vestige mcp": [sys.executable, "-m", "vestige", "mcp"],
}
BUSY = 3


class Client:
    """The other end of a server's pipes."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        request = {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        while (line := self.process.stdout.readline()) and (told := json.loads(line)).get("id") != "1":
            pass
        answer: dict[str, Any] = told["result"]
        return answer

    def status(self) -> dict[str, Any]:
        """What `system_status` says, or the error it ends with."""
        self.ask("initialize", protocolVersion="2025-11-25")
        answer: dict[str, Any] = self.ask("tools/call", name="system_status", arguments={})[
            "structuredContent"
        ]
        return answer


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VESTIGE_")}
    return {**kept, "VESTIGE_EMBEDDINGS_PROVIDER": "hashing", "VESTIGE_OFFLINE": "1", **extra}


@contextmanager
def server(folder: Path, *flags: str, command: str = "vestige-mcp", **extra: str) -> Iterator[Client]:
    with subprocess.Popen(
        [*COMMANDS[command], "--data-dir", str(folder), *flags],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(extra),
    ) as process:
        yield Client(process)
        process.kill()


def refused(folder: Path, *flags: str, command: str = "vestige-mcp", **extra: str) -> tuple[int, str]:
    """How a server ends that does not start: its exit code and what it said."""
    done = subprocess.run(
        [*COMMANDS[command], "--data-dir", str(folder), *flags],
        input=b"",
        capture_output=True,
        env=environment(extra),
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.stdout == b""
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("command", COMMANDS)
def test_an_exclusive_server_does_not_start_beside_another_and_names_it(tmp_path: Path, command: str) -> None:
    with server(tmp_path) as first:
        assert first.status()["status"] == "empty"
        code, said = refused(tmp_path, "--exclusive", command=command)
        assert code == BUSY
        assert f"pid {first.process.pid}" in said
        assert "vestige-mcp" in said
        assert "Traceback" not in said


@pytest.mark.parametrize("how", [{"VESTIGE_STORAGE_EXCLUSIVE": "1"}, {}], ids=["environment", "file"])
def test_the_setting_does_what_the_flag_does(tmp_path: Path, how: dict[str, str]) -> None:
    if not how:
        (tmp_path / "vestige.toml").write_text("[storage]\nexclusive = true\n", encoding="utf-8")
    with server(tmp_path, VESTIGE_STORAGE_EXCLUSIVE="0") as first:
        first.status()
        code, said = refused(tmp_path, **how)
    assert code == BUSY
    assert f"pid {first.process.pid}" in said


def test_beside_an_exclusive_server_no_other_works_until_it_ends_but_commands_do(tmp_path: Path) -> None:
    with server(tmp_path, "--exclusive") as first:
        seen = first.status()["processes"]
        assert [(one["pid"], one["server"]) for one in seen] == [(first.process.pid, True)]
        assert invoke(["--data-dir", str(tmp_path), "ingest", "Tea is served at four."]).exit_code == 0
        with server(tmp_path) as second:
            error = second.status()["error"]
            assert error["code"] == "store_busy"
            assert f"pid {first.process.pid}" in error["message"]
            first.process.send_signal(signal.SIGKILL)
            first.process.wait()
            assert second.status()["totalMemories"] == 1


def test_an_exclusive_server_that_nobody_asks_leaves_nothing_behind(tmp_path: Path) -> None:
    with server(tmp_path, "--exclusive") as only:
        assert only.process.stdin
        only.process.stdin.close()
        assert only.process.wait(PATIENCE_SECONDS) == 0
    assert not list((tmp_path / FOLDER).glob("*.json"))


def test_the_status_of_the_memory_names_every_process_and_no_words_of_its_user(tmp_path: Path) -> None:
    with server(tmp_path) as first, server(tmp_path) as second:
        first.status()
        names = {one["pid"]: one["command"] for one in second.status()["processes"]}
        assert names == {first.process.pid: "vestige-mcp", second.process.pid: "vestige-mcp"}
    assert present(tmp_path / "vestige.db") == []
