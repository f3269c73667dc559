"""`vestige-hook` as clients run it: payloads of every client, with a server and without, and all trouble."""

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.world import HandClock, World, open_world
from tests.transports.hooks.payloads import EVENTS, SPEAKING, payload_of, schema_of
from vestige.transports.hooks import command
from vestige.transports.hooks.listener import HookListener

FACT = "The staging database of the orders service listens on port 5439 at host pg-stage-2."
CASES = [(client, event) for client, events in EVENTS.items() for event in events]


class Ran:
    """What a run of the program gave."""

    def __init__(self, done: subprocess.CompletedProcess[bytes], data: Path) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout.decode(), done.stderr.decode()
        log = data / "agent" / "hooks.log"
        self.log = log.read_text(encoding="utf-8") if log.is_file() else ""


def hook(client: str, payload: Any, data: Path, home: Path, **variables: str) -> Ran:
    """Run the program as a client does."""
    words = [sys.executable, "-m", "vestige.transports.hooks.command", client]
    known = {
        "HOME": str(home),
        "VESTIGE_DATA_DIR": str(data),
        "VESTIGE_EMBEDDINGS_PROVIDER": "hashing",
        "VESTIGE_AGENT_HOOK_SECONDS": "100",
    }
    environ = {**known, "PATH": os.environ["PATH"], **variables}
    given = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return Ran(subprocess.run(words, input=given, capture_output=True, env=environ, timeout=150), data)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A store with a memory, and an agent's files."""
    folder = tmp_path / "data"
    with open_world(folder, clock=HandClock()) as world:
        world.remember(FACT)
        world.call("agent", action="init")
        world.call("agent", action="remember", text="Ada, a botanist.")
    return folder


@contextmanager
def server(folder: Path) -> Iterator[World]:
    """A running server beside the store, with a clock of its own: a day later."""
    clock = HandClock()
    clock.advance(days=1)
    with open_world(folder, clock=clock) as world:
        listener = HookListener(world.app, folder)
        assert listener.start()
        try:
            yield world
        finally:
            listener.close()


def context_in(client: str, out: str) -> str:
    if not out:
        return ""
    output = json.loads(out)
    if client in ("cursor", "copilot-cli"):
        return str(output.get("additional_context") or output.get("additionalContext"))
    return str(output["hookSpecificOutput"]["additionalContext"])


@pytest.mark.parametrize("client", list(EVENTS))
def test_every_event_of_a_client_is_answered_in_its_form(client: str, data: Path, tmp_path: Path) -> None:
    with server(data):
        for event in EVENTS[client]:
            ran = hook(client, payload_of(client, event, str(tmp_path)), data, data)
            assert (ran.code, ran.err, ran.log) == (0, "", "")
            if ran.out:
                jsonschema.validate(json.loads(ran.out), schema_of(client, event))
            speaks = event in SPEAKING and (client, event) != ("copilot-cli", "UserPromptSubmit")
            assert bool(ran.out) == speaks
            shown = context_in(client, ran.out)
            assert ("Ada, a botanist." in shown) == (event.lower() == "sessionstart")
            assert ("5439" in shown) == (speaks and event.lower() != "sessionstart")


@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_without_a_server_the_store_is_opened(client: str, data: Path, tmp_path: Path) -> None:
    started = hook(client, payload_of(client, "SessionStart", str(tmp_path)), data, data)
    assert (started.code, started.err, started.log) == (0, "", "")
    assert "Ada, a botanist." in context_in(client, started.out)
    prompted = hook(client, payload_of(client, "UserPromptSubmit", str(tmp_path)), data, data)
    assert "5439" in context_in(client, prompted.out)


def test_a_server_and_an_opened_store_give_a_session_the_same_pack(data: Path, tmp_path: Path) -> None:
    payload = payload_of("claude-code", "SessionStart", str(tmp_path))
    with server(data):
        first = hook("claude-code", payload, data, data).out
    again = hook("claude-code", {**payload, "source": "resume"}, data, data).out
    assert first
    assert again == first


@pytest.mark.parametrize("first", [True, False])
def test_the_data_directory_may_be_named_before_the_client_or_after_it(
    first: bool, data: Path, tmp_path: Path
) -> None:
    named = ["--data-dir", str(data)]
    words = [*named, "claude-code"] if first else ["claude-code", *named]
    with server(data):
        done = subprocess.run(
            [sys.executable, "-m", "vestige.transports.hooks.command", *words],
            input=json.dumps(payload_of("claude-code", "SessionStart", str(tmp_path))).encode(),
            capture_output=True,
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "VESTIGE_AGENT_HOOK_SECONDS": "100"},
            timeout=150,
        )
    assert b"Ada, a botanist." in done.stdout


def test_a_subagent_is_left_alone(data: Path, tmp_path: Path) -> None:
    payload = payload_of("claude-code", "SessionStart", str(tmp_path))
    ran = hook("claude-code", {**payload, "agent_id": "a1", "agent_type": "Explore"}, data, data)
    assert (ran.code, ran.out, ran.log) == (0, "", "")


def test_cursor_gets_its_own_form_although_it_runs_the_hook_of_claude_code(
    data: Path, tmp_path: Path
) -> None:
    with server(data):
        ran = hook("claude-code", payload_of("cursor", "sessionStart", str(tmp_path)), data, data)
    jsonschema.validate(json.loads(ran.out), schema_of("cursor", "sessionStart"))


@pytest.mark.parametrize("given", [b"", b"no json", b"[]", b"\xff\xfe", b"null", b"[" * 100_000])
def test_an_unreadable_payload_is_silent(given: bytes, data: Path) -> None:
    ran = hook("claude-code", given, data, data)
    assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_an_unknown_client_is_silent_and_doctor_shows_it(data: Path, tmp_path: Path) -> None:
    ran = hook("emacs", payload_of("claude-code", "SessionStart", str(tmp_path)), data, data)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    with open_world(data, clock=HandClock()) as world:
        assert "emacs" in world.call("agent", action="doctor")["hookLog"][-1]


def test_a_server_that_went_away_leaves_a_socket_that_does_not_matter(data: Path, tmp_path: Path) -> None:
    state = data / "agent"
    state.mkdir(exist_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        handle = os.open(state, os.O_RDONLY)
        dead.bind(f"/proc/self/fd/{handle}/999999999.sock")
        os.close(handle)
    ran = hook("claude-code", payload_of("claude-code", "SessionStart", str(tmp_path)), data, data)
    assert "Ada, a botanist." in context_in("claude-code", ran.out)


def test_a_server_that_does_not_answer_is_given_up_and_the_session_goes_on(
    data: Path, tmp_path: Path
) -> None:
    state = data / "agent"
    state.mkdir(exist_ok=True)
    handle = os.open(state, os.O_RDONLY)
    taken: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as slow:
        slow.bind(f"/proc/self/fd/{handle}/{os.getpid()}.sock")
        slow.listen()
        thread = threading.Thread(target=lambda: taken.append(slow.accept()[0]), daemon=True)
        thread.start()
        payload = payload_of("claude-code", "SessionStart", str(tmp_path))
        ran = hook("claude-code", payload, data, data, VESTIGE_AGENT_HOOK_SECONDS="0.2")
        thread.join(PATIENCE_SECONDS)
    os.close(handle)
    for one in taken:
        one.close()
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert "claude-code" in ran.log


def test_a_client_that_never_ends_its_payload_is_given_up(data: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "vestige.transports.hooks.command", "claude-code"]
    environ = {"HOME": str(tmp_path), "VESTIGE_DATA_DIR": str(data), "VESTIGE_AGENT_HOOK_SECONDS": "0.5"}
    reading, writing = os.pipe()
    try:
        done = subprocess.run(words, stdin=reading, capture_output=True, env=environ, timeout=100)
    finally:
        os.close(reading)
        os.close(writing)
    ran = Ran(done, data)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert "claude-code: no answer in time" in ran.log


def test_at_the_end_of_a_session_a_server_has_no_more_time_than_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("VESTIGE_AGENT_HOOK_SECONDS", raising=False)
    given = [command.seconds_for({"hook_event_name": one}) for one in ("SessionEnd", "sessionEnd", "Stop")]
    assert given == [command.END_SECONDS, command.END_SECONDS, command.ANSWER_SECONDS]


def test_a_locked_store_is_left_alone(data: Path, tmp_path: Path) -> None:
    database = sqlite3.connect(data / "vestige.db", isolation_level=None)
    database.execute("PRAGMA locking_mode=EXCLUSIVE")
    database.execute("BEGIN EXCLUSIVE")
    try:
        payload = payload_of("claude-code", "SessionStart", str(tmp_path))
        ran = hook("claude-code", payload, data, data, VESTIGE_STORAGE_BUSY_SECONDS="0.2")
    finally:
        database.close()
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert re.search(r"^\d{4}-\d\d-\d\dT[\d:]{8}\+00:00 claude-code: ", ran.log, re.MULTILINE)


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "SessionEnd"])
def test_a_folder_that_cannot_be_written_is_silent(event: str, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a full disk or a read-only home cannot make folders either", encoding="utf-8")
    ran = hook("claude-code", payload_of("claude-code", event, str(tmp_path)), blocked / "data", tmp_path)
    assert (ran.code, ran.out, ran.err) == (0, "", "")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_home_is_silent(data: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o500)
    ran = hook("claude-code", payload_of("claude-code", "SessionStart", str(tmp_path)), home / "data", home)
    home.chmod(0o700)
    assert (ran.code, ran.out, ran.err) == (0, "", "")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits of files")
@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"])
def test_a_full_disk_is_silent(event: str, data: Path, tmp_path: Path) -> None:
    program = (
        "import resource, signal; from vestige.transports.hooks.command import main; "
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); main()"
    )
    before = (data / "agent" / "hooks.log").exists()
    done = subprocess.run(
        [sys.executable, "-c", program, "claude-code"],
        input=json.dumps(payload_of("claude-code", event, str(tmp_path))).encode(),
        capture_output=True,
        env={
            "HOME": str(data), "PATH": os.environ["PATH"], "VESTIGE_DATA_DIR": str(data),
            "VESTIGE_EMBEDDINGS_PROVIDER": "hashing", "VESTIGE_AGENT_HOOK_SECONDS": "100",
        },
        timeout=150,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr, before) == (0, b"", b"", False)


def test_a_damaged_store_is_silent_and_noted(data: Path, tmp_path: Path) -> None:
    for file in data.glob("vestige.db*"):
        file.unlink()
    (data / "vestige.db").write_bytes(b"not a database" * 1000)
    ran = hook("claude-code", payload_of("claude-code", "SessionStart", str(tmp_path)), data, data)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert "claude-code" in ran.log


def test_without_a_model_words_are_searched(data: Path, tmp_path: Path) -> None:
    payload = payload_of("claude-code", "UserPromptSubmit", str(tmp_path))
    ran = hook("claude-code", payload, data, data, VESTIGE_EMBEDDINGS_PROVIDER="off")
    assert (ran.code, ran.err, ran.log) == (0, "", "")


def test_a_program_that_asks_a_server_imports_nothing_heavy(data: Path, tmp_path: Path) -> None:
    code = (
        "import sys, runpy, os\n"
        "os._exit = lambda code: sys.stderr.write(' '.join(sorted(sys.modules))) or sys.exit(code)\n"
        "sys.argv = ['vestige-hook', 'claude-code']\n"
        "runpy.run_module('vestige.transports.hooks.command', run_name='__main__')\n"
    )
    seconds = {"VESTIGE_AGENT_HOOK_SECONDS": "100"}
    environ = {**seconds, "HOME": str(data), "VESTIGE_DATA_DIR": str(data), "PATH": os.environ["PATH"]}
    payload = json.dumps(payload_of("claude-code", "SessionStart", str(tmp_path))).encode()
    with server(data):
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=payload,
            capture_output=True,
            env=environ,
            timeout=PATIENCE_SECONDS,
        )
    loaded = set(done.stderr.decode().split())
    assert b"Ada, a botanist." in done.stdout
    assert not loaded & {
        "numpy",
        "pydantic",
        "click",
        "orjson",
        "sqlite3",
        "pathlib",
        "asyncio",
        "vestige.app",
    }
