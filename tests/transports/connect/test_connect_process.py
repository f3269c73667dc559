"""`vestige connect` as a real process: at a terminal it asks, and the entry that it writes works."""

import json
import subprocess
from pathlib import Path

import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.transports.cli.test_process import at_a_terminal, environment, vestige

pytestmark = pytest.mark.slow

QUESTION = b"[y/N]"


def test_at_a_terminal_the_difference_is_shown_before_the_question(tmp_path: Path) -> None:
    path = tmp_path / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text("{} // mine\n", encoding="utf-8")
    code, screen = at_a_terminal(tmp_path, ["connect", "cursor"], QUESTION, b"n\n")
    assert code != 0
    assert screen.index('+    "vestige"') < screen.index("[y/N]")
    assert "Nothing was changed" in screen
    assert path.read_text(encoding="utf-8") == "{} // mine\n"
    code, screen = at_a_terminal(tmp_path, ["connect", "cursor"], QUESTION, b"y\n")
    assert code == 0, screen
    assert "The entry is written." in screen
    assert "// mine" in path.read_text(encoding="utf-8")
    code, screen = at_a_terminal(tmp_path, ["connect", "cursor", "--undo"], QUESTION, b"y\n")
    assert code == 0, screen
    assert path.read_text(encoding="utf-8") == "{} // mine\n"


def test_what_is_written_starts_a_server_that_answers(tmp_path: Path) -> None:
    done = vestige(tmp_path, "connect", "claude-desktop", "--data-dir", str(tmp_path / "data"), "--yes")
    assert done.returncode == 0, done.stderr
    config = json.loads(Path(json.loads(done.stdout)["file"]).read_text(encoding="utf-8"))
    entry = config["mcpServers"]["vestige"]
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    served = subprocess.run(
        [entry["command"], *entry["args"]],
        input=json.dumps({**hello, "params": params}) + "\n",
        capture_output=True,
        encoding="utf-8",
        env=environment(tmp_path),
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert json.loads(served.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "vestige"
