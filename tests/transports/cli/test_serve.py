"""What `vestige serve` says: where it is, how to connect, who has its place, and its log at a terminal."""

import json
import logging
import os
import pty
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from pathlib import Path

import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.transports.cli.harness import invoke
from tests.transports.http.support.harness import environment, key_in, serving
from vestige.settings.settings import load_settings
from vestige.transports.cli.commands.log_lines import ACCESS, ShortLines
from vestige.transports.cli.commands.serve import Greeting, fetches_model, occupied
from vestige.transports.cli.program import own_command
from vestige.transports.connect.clients import Http, InlineKey, claude_add
from vestige.transports.http.auth.addresses import Bind
from vestige.transports.http.middleware import access_log

URL = "http://127.0.0.1:3927"
KEY = re.compile(r"vst_[\w-]{30}")


def test_with_the_first_key_the_lines_can_be_copied_as_they_are() -> None:
    said = Greeting(url=URL, key="vst_real").lines()
    server = Http(url=f"{URL}/mcp", key=InlineKey(text="vst_real"))
    assert shlex.join(claude_add(server, "vestige")) in said  # as `connect` has it
    assert '"Authorization":"Bearer vst_real"' in said
    assert "vst_…" not in said
    assert "keys create" not in said


def test_later_the_lines_say_how_to_get_a_key_with_the_command_that_runs() -> None:
    said = Greeting(url=URL, command="/opt/venv/bin/vestige").lines()
    assert "/opt/venv/bin/vestige keys create --label NAME" in said
    assert "/opt/venv/bin/vestige connect CLIENT --http\n" in said


def test_a_server_at_another_place_than_the_settings_say_is_connected_to_by_its_address() -> None:
    assert f"vestige connect CLIENT --http {URL}\n" in Greeting(url=URL, own=False).lines()


def test_who_listens_for_other_machines_is_told_which_name_they_use_and_what_that_takes() -> None:
    said = Greeting(url=URL, name="harbour").lines()
    assert "http://harbour:3927" in said
    assert "VESTIGE_SERVER_ALLOWED_HOSTS=harbour" in said
    assert "server.allowed_hosts" not in Greeting(url=URL).lines()


def test_who_listens_for_other_machines_gets_lines_that_work_there_and_one_for_this_machine() -> None:
    other = "http://192.0.2.7:3927"
    said = Greeting(url=other, local=URL, own=False).lines()
    assert [line for line in said.splitlines() if URL in line] == [f"  On this machine:  {URL}"]
    assert said.count(other) == 6
    assert "On this machine" not in Greeting(url=URL, local=URL).lines()


def test_that_a_model_has_to_be_fetched_is_told_in_one_line(tmp_path: Path) -> None:
    assert "The model is being downloaded" in Greeting(url=URL, fetching=True).lines()
    assert "model" not in Greeting(url=URL).lines()
    usual = {"data_dir": str(tmp_path), "embeddings.cache_dir": str(tmp_path / "models")}
    assert fetches_model(load_settings(usual, environ={}))
    assert not fetches_model(load_settings({**usual, "offline": True}, environ={}))
    assert not fetches_model(load_settings({**usual, "embeddings.provider": "hashing"}, environ={}))


def test_the_command_is_named_so_that_it_works_in_any_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Path(sys.executable).with_name("vestige")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shlex.split(own_command({})) == [str(script)]
    assert shlex.split(own_command({"data_dir": str(tmp_path / "my memory")})) == [
        *(str(script), "--data-dir", str(tmp_path / "my memory"))
    ]
    monkeypatch.setenv("PATH", str(script.parent))
    assert own_command({}) == "vestige"


@contextmanager
def answering(body: bytes) -> Iterator[Bind]:
    """Some server that answers everything so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield Bind(host="127.0.0.1", port=server.server_port)
        finally:
            server.shutdown()
            thread.join()


def test_a_place_of_a_vestige_is_told_with_the_line_that_connects_to_it() -> None:
    with answering(b'{"status": "ok", "version": "1"}') as place:
        told, own = occupied(place), occupied(place, own=True)
    assert told.hint is not None
    assert f"(`vestige connect CLIENT --http http://{place}`)" in told.hint
    assert own.hint is not None
    assert "(`vestige connect CLIENT --http`)" in own.hint


@pytest.mark.parametrize("body", [b"hello", b"[1]", b'{"status": "ok"}'])
def test_a_place_that_something_else_has_is_told_with_every_way_to_another(body: bytes) -> None:
    with answering(body) as place:
        told = occupied(place)
    assert told.message == f"Another program already listens on {place}."
    assert told.hint is not None
    assert "--bind" in told.hint
    assert "VESTIGE_SERVER_BIND" in told.hint


def test_a_warning_at_a_terminal_fits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    words = " ".join(["word"] * 30)
    record = logging.LogRecord("vestige.app.app", logging.WARNING, "", 0, words, (), None)
    lines = ShortLines().format(record).splitlines()
    assert max(map(len, lines)) <= 60
    assert " ".join(lines) == f"Warning: {words}"


def test_the_log_at_a_terminal_has_a_short_line_for_a_request() -> None:
    told = {
        "time": "2026-11-16T16:00:01.123456+00:00",
        "request": "r1",
        "method": "POST",
        "route": "/mcp",
        "status": 200,
        "ms": 12.4,
        "caller": "Ada's\nlaptop\x1b[31m",
        "via": "key",
    }
    record = logging.LogRecord(ACCESS, logging.INFO, "", 0, "%s", (json.dumps(told),), None)
    local = datetime(2026, 11, 16, 16, 0, 1, tzinfo=UTC).astimezone()
    said = f"{local:%H:%M:%S}  200  POST /mcp  12 ms  Ada's laptop\\x1b[31m"
    assert ShortLines().format(record) == said
    of_bridge = json.dumps({**told, "caller": None, "agent": "main"})
    record = logging.LogRecord(ACCESS, logging.INFO, "", 0, "%s", (of_bridge,), None)
    assert ShortLines().format(record).endswith("  12 ms  main")
    warning = logging.LogRecord("vestige.app.app", logging.WARNING, "", 0, "The %s.", ("rest",), None)
    assert ShortLines().format(warning) == "Warning: The rest."
    assert ACCESS == access_log.ACCESS


def test_a_port_beside_an_address_is_refused(tmp_path: Path) -> None:
    done = invoke(["--data-dir", str(tmp_path), "serve", "--bind", "127.0.0.1:0", "--port", "4000"])
    assert done.exit_code == 2
    assert "`--port` cannot be combined with `--bind`" in done.stderr


# -- as a process ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--bind", "--port"])
def test_a_second_server_at_one_place_is_told_that_a_vestige_is_there(tmp_path: Path, option: str) -> None:
    with serving(tmp_path, "--no-auth") as server:
        bind = server.url.removeprefix("http://")
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "vestige",
                "serve",
                option,
                bind if option == "--bind" else bind.rpartition(":")[2],
            ],
            capture_output=True,
            encoding="utf-8",
            env=environment(tmp_path),
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert "No key is needed" in server.log()
    assert done.returncode == 1
    told = json.loads(done.stderr)["error"]
    assert told["message"] == f"A Vestige server already listens on {bind}."
    assert f"--data-dir {tmp_path} connect CLIENT --http http://{bind}`" in told["hint"]


@pytest.mark.slow
def test_the_first_start_at_a_terminal_makes_a_key_also_beside_the_token_of_the_bridge(
    tmp_path: Path,
) -> None:
    screen = at_a_terminal(tmp_path, VESTIGE_AUTH_TOKEN="correct horse battery staple")
    shown = KEY.findall(screen)
    assert len(shown) == 3  # alone, and in the two lines that are copied
    assert len(set(shown)) == 1
    assert "VESTIGE_AUTH_TOKEN is accepted by this server too" in screen
    assert "only where `vestige bridge` starts" in screen
    assert "unset" not in screen


@pytest.mark.slow
def test_later_starts_at_a_terminal_show_no_key_and_no_json_and_say_when_it_is_over(tmp_path: Path) -> None:
    key_in(tmp_path)
    screen = at_a_terminal(tmp_path)
    assert "connect CLIENT --http http://127.0.0.1:" in screen
    assert KEY.findall(screen) == []
    assert "keys create --label NAME" in screen
    assert screen.rstrip().endswith("Vestige has stopped.")


@pytest.mark.slow
def test_the_address_is_left_out_only_where_another_shell_finds_it(tmp_path: Path) -> None:
    (tmp_path / "vestige.toml").write_text(f'[server]\nbind = "127.0.0.1:{free_port()}"\n', encoding="utf-8")
    screen = at_a_terminal(tmp_path, bind=None)
    assert f"--data-dir {tmp_path} connect CLIENT --http\r\n" in screen
    named = f"127.0.0.1:{free_port()}"
    screen = at_a_terminal(tmp_path, bind=None, VESTIGE_SERVER_BIND=named)
    assert f"--data-dir {tmp_path} connect CLIENT --http http://{named}\r\n" in screen


PORTS = count(10_000 + os.getpid() % 10_000)
"""Below those that the system hands out, so that nobody gets one before the server does."""


def free_port() -> int:
    """A port that nobody has, and another one each time."""
    while True:
        with suppress(OSError), socket.create_server(("127.0.0.1", port := next(PORTS))):
            return port


def at_a_terminal(folder: Path, bind: str | None = "127.0.0.1:0", **more: str) -> str:
    """Start a server at a terminal, and press Ctrl-C when it listens; the whole screen."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "vestige", "serve", *(["--bind", bind] if bind else [])],
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
        env=environment(folder, TERM="dumb", **more),
    ) as process:
        os.close(follower)
        screen = b""
        while b"/api/v1/docs" not in screen and (piece := read(leader)):
            screen += piece
        process.send_signal(signal.SIGINT)
        while piece := read(leader):
            screen += piece
    os.close(leader)
    return screen.decode()


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4_096)
    except OSError:  # Linux tells the end of a terminal so
        return b""
