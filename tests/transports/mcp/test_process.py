"""The MCP server as a process of its own: its streams, signals, flags and imports."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from testbed.failures import each
from testbed.patience import PATIENCE_SECONDS
from tests.embed.minilm.silent_index import SilentIndex
from tests.transports.mcp.harness import STDIO_MODES, sdk_process
from vestige import __version__
from vestige.transports.mcp.catalog import packaged

pytestmark = pytest.mark.slow

CHILD = Path(__file__).with_name("child.py")
COMMAND = str(Path(sys.executable).with_name("vestige-mcp"))
VESTIGE = [sys.executable, "-m", "vestige"]
HELLO = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}


class Child:
    """A running server and the end of the pipe that its tool waits on."""

    def __init__(self, process: "subprocess.Popen[bytes]", gate: int) -> None:
        assert process.stdin
        assert process.stdout
        self.process, self.gate = process, gate
        self.stdin, self.stdout = process.stdin, process.stdout

    def send(self, message: dict[str, Any]) -> None:
        self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()

    def call(self, request_id: object, **arguments: Any) -> None:
        params = {"name": "search", "arguments": arguments, "_meta": {"progressToken": "p"}}
        self.send({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params})

    def read(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.stdout.readline())
        return message


@contextmanager
def child(grace_seconds: float = PATIENCE_SECONDS) -> Iterator[Child]:
    held, gate = os.pipe()
    with subprocess.Popen(
        [sys.executable, str(CHILD), str(held), str(grace_seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[held],
    ) as process:
        try:
            running = Child(process, gate)
            running.send(HELLO)
            assert running.read()["id"] == "hello"
            yield running
        finally:
            process.kill()
            os.close(held)
            os.close(gate)


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_stray_output_reaches_stderr_and_stray_reads_find_nothing() -> None:
    with child() as server:
        server.call(1)
        assert server.read()["method"] == "notifications/progress"
        assert server.read()["result"]["structuredContent"] == {"stdin": ""}
        out, err = server.process.communicate(timeout=PATIENCE_SECONDS)

    assert out == b""
    assert err.decode().splitlines() == ["a stray print", "a stray write", "closed"]
    assert server.process.returncode == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_lets_the_running_job_finish_and_ends_with_its_code(number: int, code: int) -> None:
    with child() as server:
        server.call("job", wait=True)
        assert server.read()["method"] == "notifications/progress"
        server.process.send_signal(number)
        os.write(server.gate, b"x")
        assert server.read()["id"] == "job"

        assert server.process.wait(PATIENCE_SECONDS) == code
        assert server.process.stderr
        assert server.process.stderr.read().endswith(b"closed\n")


def test_a_job_that_a_signal_cut_short_shows_in_the_exit_code() -> None:
    with child(grace_seconds=0.05) as server:
        server.call("job", wait=True)
        assert server.read()["method"] == "notifications/progress"
        server.process.terminate()

        assert server.process.wait(PATIENCE_SECONDS) == 1
        assert server.process.stderr
        assert b"stopped without finishing 1 jobs: search" in server.process.stderr.read()


@pytest.mark.parametrize("command", [[COMMAND], [*VESTIGE, "mcp"]], ids=["vestige-mcp", "vestige mcp"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_fetches_an_absent_model_and_leaves_no_download_behind(
    command: list[str], number: int, tmp_path: Path
) -> None:
    with (
        SilentIndex() as index,
        subprocess.Popen(
            [*command, "--data-dir", str(tmp_path / "data")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **index.pip_settings},
        ) as process,
    ):
        try:
            running = Child(process, -1)
            running.send(HELLO)
            assert running.read()["id"] == "hello"
            pip = index.asked()
            process.send_signal(number)
            assert process.wait(PATIENCE_SECONDS) == (0 if number == signal.SIGTERM else -number)
            index.hung_up(pip)
        finally:
            process.kill()


def test_a_short_command_fetches_nothing_and_says_how_to_get_the_model(tmp_path: Path) -> None:
    with SilentIndex() as index:
        answer = subprocess.run(
            [*VESTIGE, "search", "tea", "--data-dir", str(tmp_path / "data")],
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **index.pip_settings},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=True,
        )
        assert "vestige model install" in json.loads(answer.stdout)["note"]
        assert not index.was_asked()
    assert not (tmp_path / ".cache").exists()


def test_a_second_signal_does_not_wait_for_the_job() -> None:
    with child() as server:
        server.call("job", wait=True)
        assert server.read()["method"] == "notifications/progress"
        while server.process.poll() is None:
            server.process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                server.process.wait(0.05)

    assert server.process.returncode == -signal.SIGTERM


def test_a_client_that_closes_its_reading_end_ends_the_process_quietly() -> None:
    with child() as server:
        server.stdout.close()
        server.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})

        assert server.process.wait(PATIENCE_SECONDS) == 0
        assert server.process.stderr
        assert server.process.stderr.read() == b""


LEAN = """
import sys
before = set(sys.modules)
from io import FileIO
from vestige.transports.mcp import stdio
stdio.StdioServer(FileIO(0), FileIO(1, "w"), lambda: 1 / 0).run()
sys.stderr.write(" ".join(set(sys.modules) - before))
"""


def test_nothing_heavy_is_imported_before_the_first_answers() -> None:
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    answer = subprocess.run(
        [sys.executable, "-c", LEAN],
        input=f"{json.dumps(HELLO)}\n{json.dumps(listing)}\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    modules = set(answer.stderr.split())

    assert [json.loads(line)["id"] for line in answer.stdout.splitlines()] == ["hello", 2]
    heavy = {"numpy", "pydantic", "asyncio", "typing", "dataclasses", "inspect", "logging", "pathlib"}
    assert heavy & modules == set()
    ours = {name for name in modules if name.startswith("vestige.")}
    assert {name for name in ours if "transports" not in name} == {
        "vestige.settings",
        "vestige.settings.directories",
    }


@pytest.mark.parametrize("mode", STDIO_MODES)
def test_the_installed_command_serves_the_official_client(mode: str, tmp_path: Path) -> None:
    with sdk_process(COMMAND, "--data-dir", str(tmp_path), mode=mode, VESTIGE_OFFLINE="1") as call:
        assert "search" in [tool.name for tool in call.tools()]


@pytest.mark.parametrize(
    ("flags", "environment", "profile", "mode"),
    [
        ([], {}, "core", "minimal"),
        (["--profile", "full"], {}, "full", "minimal"),
        (["--profile=core"], {"VESTIGE_MCP_PROFILE": "full"}, "core", "minimal"),
        ([], {"VESTIGE_MCP_PROFILE": " Full ", "VESTIGE_MCP_INSTRUCTIONS": "full"}, "full", "full"),
        ([], {"VESTIGE_SYSTEM_PROMPT_MODE": "full", "VESTIGE_MCP_PROFILE": ""}, "core", "full"),
        (
            [],
            {"VESTIGE_SYSTEM_PROMPT_MODE": "full", "VESTIGE_MCP_INSTRUCTIONS": "minimal"},
            "core",
            "minimal",
        ),
    ],
)
def test_flags_and_variables_choose_what_is_listed_and_told(
    flags: list[str], environment: dict[str, str], profile: str, mode: str, tmp_path: Path
) -> None:
    with sdk_process(COMMAND, "--data-dir", str(tmp_path), *flags, **environment) as call:
        shown = packaged(profile, mode)
        assert [tool.name for tool in call.tools()] == [tool["name"] for tool in shown.tools]
        assert call.instructions == shown.instructions


@pytest.mark.parametrize(
    "variable", ["VESTIGE_MCP_PROFILE", "VESTIGE_MCP_INSTRUCTIONS", "VESTIGE_SYSTEM_PROMPT_MODE"]
)
def test_a_variable_that_says_something_else_is_explained_on_stderr(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "loud")
    refused = run()

    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"vestige-mcp: {variable} must be ")
    assert run("--version").returncode == 0


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_is_on_stdout(flag: str) -> None:
    shown = run(flag)

    assert (shown.returncode, shown.stderr) == (0, "")
    assert "--data-dir PATH" in shown.stdout


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_on_stdout(flag: str) -> None:
    assert run(flag).stdout == f"vestige-mcp {__version__}\n"


@each(
    ("arguments", "message"),
    [
        (["--data-dri", "x"], "unknown flag --data-dri (did you mean --data-dir?)"),
        (["--cofnig=x"], "unknown flag --cofnig (did you mean --config?)"),
        (["-x"], "unknown flag -x"),
        (["serve"], "unexpected argument 'serve'"),
        (["--data-dir"], "--data-dir needs a path"),
        (["--data-dir", "--config"], "--data-dir needs a path"),
        (["--config="], "--config needs a path"),
        (["--profile"], "--profile needs a name"),
        (["--profile=all"], "--profile must be core or full, not 'all'"),
        (["--profil", "full"], "unknown flag --profil (did you mean --profile?)"),
    ],
)
def test_a_wrong_command_line_is_explained_on_stderr(arguments: list[str], message: str) -> None:
    refused = run(*arguments)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"vestige-mcp: {message}\n")
    assert "usage:" in refused.stderr
