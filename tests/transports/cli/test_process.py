"""`vestige` as a real process: pipes, terminals, signals, the shell, and MCP."""

import json
import os
import pty
import select
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.transports.cli.harness import ENVIRONMENT
from vestige import __version__

pytestmark = pytest.mark.slow

VESTIGE = [sys.executable, "-m", "vestige"]
ANSWER_SECONDS = 10
"""How long a program at a terminal is silent before it is asked again: a second signal may end it rudely."""


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **ENVIRONMENT, **more}


def vestige(home: Path, *words: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*VESTIGE, *words],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        env=environment(home, **more),
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def at_a_terminal(
    home: Path, words: Sequence[str], until: bytes, typed: bytes, **more: str
) -> tuple[int, str]:
    """Run at a terminal, type once the screen shows `until`; the exit code and the whole screen."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*VESTIGE, *words],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment(home, TERM="xterm", **more),
        start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),  # becomes the controlling terminal
    )
    os.close(follower)
    screen, silences = b"", 0
    try:
        while silences < PATIENCE_SECONDS / ANSWER_SECONDS:
            if select.select([leader], [], [], ANSWER_SECONDS)[0]:
                chunk = _read(leader)
                if not chunk:
                    break
                answered, screen = until in screen, screen + chunk
            else:
                # A signal that comes just before a read begins waits for the next one, as at any prompt.
                answered, silences = False, silences + 1
            if typed and until in screen and not answered:
                os.write(leader, typed)
        return process.wait(PATIENCE_SECONDS), screen.decode("utf-8")
    finally:
        process.kill()
        process.wait()
        os.close(leader)


def _read(leader: int) -> bytes:
    try:
        return os.read(leader, 4096)
    except OSError:  # the other side has closed the terminal
        return b""


def test_a_pipe_gets_json_and_the_store_goes_where_the_flag_says(tmp_path: Path) -> None:
    stored = vestige(tmp_path, "ingest", "-", "--data-dir", "~/tea", stdin="Ada prefers tea.\n")
    assert (stored.returncode, stored.stderr) == (0, "")
    assert json.loads(stored.stdout)["decision"] == "create"
    assert (tmp_path / "tea" / "vestige.db").exists()
    found = vestige(tmp_path, "--data-dir", "~/tea", "search", "tea")
    assert [hit["content"] for hit in json.loads(found.stdout)["results"]] == ["Ada prefers tea."]


def test_a_terminal_gets_a_table_and_colour_only_without_no_color(tmp_path: Path) -> None:
    vestige(tmp_path, "ingest", "Ada prefers tea.")
    code, screen = at_a_terminal(tmp_path, ["memory", "list"], b"", b"")
    assert code == 0
    assert "1 of 1 memory in" in screen
    code, screen = at_a_terminal(tmp_path, ["memory", "get", "x"], b"", b"")
    assert code == 1
    assert "\x1b[31mError: \x1b[0mThere is no memory x." in screen
    _, screen = at_a_terminal(tmp_path, ["memory", "get", "x"], b"", b"", NO_COLOR="please")
    assert screen.startswith("Error: There is no memory x.")


@pytest.mark.parametrize(("typed", "code", "left"), [(b"n\n", 1, 1), (b"\x03", 130, 1), (b"y\n", 0, 0)])
def test_deleting_at_a_terminal_asks_first(typed: bytes, code: int, left: int, tmp_path: Path) -> None:
    memory = json.loads(vestige(tmp_path, "ingest", "Ada prefers tea.").stdout)["nodeId"]
    ended, screen = at_a_terminal(tmp_path, ["memory", "delete", memory], b"[y/N]", typed)
    assert ended == code
    assert "Traceback" not in screen
    assert json.loads(vestige(tmp_path, "memory", "list").stdout)["total"] == left


@pytest.mark.parametrize("command", ["rm", "forget", "purge"])
def test_the_question_before_deleting_shows_the_memory(command: str, tmp_path: Path) -> None:
    memory = json.loads(vestige(tmp_path, "ingest", "Ada prefers\x1b[2J tea.").stdout)["nodeId"]
    _, screen = at_a_terminal(tmp_path, [command, memory[-8:]], b"[y/N]", b"n\n")
    assert "Ada prefers\\x1b[2J tea." in screen


def test_a_bulk_change_runs_in_a_process_that_has_imported_nothing_else(tmp_path: Path) -> None:
    vestige(tmp_path, "add", "Ada drinks tea.")
    shown = vestige(tmp_path, "memory", "bulk", "tag", "--add", "drinks")
    assert (shown.returncode, json.loads(shown.stdout)["matched"]) == (0, 1), shown.stderr
    run = ("memory", "bulk", "tag", "--add", "drinks", "--no-dry-run", "--expected", "1")
    assert vestige(tmp_path, *run).returncode == 2, "a dry run is not asked about, the change is"
    assert json.loads(vestige(tmp_path, *run, "--yes").stdout)["changed"] == 1


def test_the_plan_of_uninstall_is_plain_text_at_a_terminal(tmp_path: Path) -> None:
    code, screen = at_a_terminal(tmp_path, ["uninstall"], b"[y/N]", b"n\n")
    assert code == 1
    assert "client entries" in screen
    assert not [char for char in screen if "\ue000" <= char <= "\uf8ff"]  # private use: our marks


def test_a_long_command_shows_how_far_it_is_at_a_terminal_only(tmp_path: Path) -> None:
    vestige(tmp_path, "ingest", "Ada prefers tea.")
    _, screen = at_a_terminal(tmp_path, ["rebuild"], b"", b"")
    assert "━" in screen  # the bar, which is cleared at the end
    assert vestige(tmp_path, "rebuild").stderr == ""


def test_a_reader_that_has_seen_enough_ends_it_quietly(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*VESTIGE, "docs", "operations"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(PATIENCE_SECONDS) == 0


def test_closed_streams_are_no_reason_to_fail(tmp_path: Path) -> None:
    command = f"{shlex.join(VESTIGE)} ingest 'Ada prefers tea.' >&- 2>&- <&-"
    done = subprocess.run(
        ["sh", "-c", command], env=environment(tmp_path), timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == 0
    assert json.loads(vestige(tmp_path, "memory", "list").stdout)["total"] == 1


def test_help_and_pages_leave_nothing_behind(tmp_path: Path) -> None:
    for words in (["--help"], ["docs", "settings"], ["completion", "bash"], ["config"], ["version"]):
        assert vestige(tmp_path, *words).returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_the_completion_script_works_in_bash(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    script = vestige(tmp_path, "completion", "bash").stdout
    asked = f'vestige() {{ {shlex.join(VESTIGE)} "$@"; }}\n{script}\ncomplete -p vestige'
    sourced = subprocess.run(
        [bash, "-e", "-c", asked],
        capture_output=True,
        encoding="utf-8",
        env=environment(tmp_path),
        check=False,
    )
    assert sourced.stderr == ""
    assert "_vestige_completion" in sourced.stdout
    offered = vestige(
        tmp_path, COMP_WORDS="vestige memory get", COMP_CWORD="2", _VESTIGE_COMPLETE="bash_complete"
    )
    assert offered.stdout.splitlines() == ["plain,get", "plain,get-batch"]


def test_mcp_is_served_by_the_same_program(tmp_path: Path) -> None:
    question = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    served = vestige(tmp_path, "mcp", "--data-dir", str(tmp_path / "d"), stdin=json.dumps(question) + "\n")
    assert served.returncode == 0
    assert json.loads(served.stdout)["result"]["serverInfo"]["name"] == "vestige"


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_told_before_anything_is_imported_for_it(flag: str, tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "vestige", flag],
        capture_output=True,
        encoding="utf-8",
        env=environment(tmp_path),
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    assert told.stdout == f"vestige {__version__}\n"
    imported = {line.rpartition("|")[2].strip() for line in told.stderr.splitlines()}
    assert imported.isdisjoint({"vestige.app.app", "click", "numpy", "pydantic"})


INTERRUPTED = """
import builtins, sys
from vestige.__main__ import main
find = builtins.__import__
module = sys.argv[1]
def interrupt(name, *rest):
    if name == module:
        raise KeyboardInterrupt
    return find(name, *rest)
builtins.__import__ = interrupt
sys.argv[1:] = ["status"]
main()
"""


@pytest.mark.parametrize("module", ["vestige.settings.settings", "vestige.app.app", "vestige.transports.cli"])
def test_ctrl_c_while_things_are_imported_ends_it_quietly(module: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module],
        capture_output=True,
        encoding="utf-8",
        env=environment(tmp_path),
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (ended.returncode, ended.stderr.strip()) == (130, "")
