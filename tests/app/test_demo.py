"""The demo shows what it promises."""

import json
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from vestige.app.demo import LOST, OLD_SESSION, WIDTH, connecting, show
from vestige.embed.minilm.install import ModelPresence, status
from vestige.settings.settings import load_settings


def test_the_demo_runs_to_its_end_without_a_model(tmp_path: Path) -> None:
    lines: list[str] = []
    show(lines.append, tmp_path / "data", {"embeddings.provider": "off", "log_level": "error"})
    assert lines[0].startswith("Words only")
    assert max(map(len, lines)) <= WIDTH
    answered = lines.index("? HBR-2207") + 1
    assert lines[answered].startswith("  1. The error HBR-2207 means that the carrier's certificate expired")
    assert lines[answered + 1].strip() == "words in common +0.50; exact words +0.50"


def test_the_demo_shows_a_cold_start_and_an_old_session(tmp_path: Path) -> None:
    lines: list[str] = []
    show(lines.append, tmp_path / "data", {"embeddings.provider": "off", "log_level": "error"})
    start = next(at for at, line in enumerate(lines) if line.startswith("A cold start"))
    pack = lines[start + 2 : lines.index("> Write a haiku about autumn.")]
    for known in ("Ada, who runs Harbour", "Move to PostgreSQL 16", "Run the fast tests first."):
        assert any(known in line for line in pack)
    assert "(silent" in lines[lines.index("> Write a haiku about autumn.") + 1]
    session = lines[lines.index(f"? {LOST}") :]
    assert "lock file" in session[1] + session[2]
    assert f"  claude --resume {OLD_SESSION}" in session


def test_the_demo_stays_out_of_the_store_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VESTIGE_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    show(lambda line: None, tmp_path / "data", {"embeddings.provider": "off", "log_level": "error"})
    assert (tmp_path / "data" / "vestige.db").exists()


def test_the_lines_for_agents_survive_spaces_and_quotes_in_the_path() -> None:
    path = Path("/home/ada's files/my venv/bin/vestige-mcp")
    lines = connecting(path)
    toml = "\n".join(line.strip() for line in lines if line.strip().startswith(("[mcp", "command")))
    assert tomllib.loads(toml) == {"mcp_servers": {"vestige": {"command": str(path)}}}
    assert json.loads(lines[-1]) == {"mcpServers": {"vestige": {"command": str(path)}}}
    shell = next(line for line in lines if "claude mcp add" in line)
    assert shlex.split(shell)[-1] == str(path)


@pytest.mark.slow
def test_the_demo_finds_by_meaning_corrects_and_forgets() -> None:
    if status(load_settings().model_cache).presence is not ModelPresence.READY:
        pytest.skip("THE DEMO IS NOT TESTED: the real model is not installed; run `vestige model install`")
    done = subprocess.run(
        [sys.executable, "-m", "vestige.app.demo"],
        capture_output=True,
        check=True,
        text=True,
        encoding="utf-8",
    )
    said = done.stdout.splitlines()
    assert done.stderr == ""
    assert max(len(line) for line in said if sys.prefix not in line) <= WIDTH  # paths cannot be cut
    assert _answers(said, "? What must Ada not eat?")[0] == "Ada is allergic to peanuts."
    assert _answers(said, "? What caused the authentication outage?")[0].startswith("Customers could not")
    assert _answers(said, "? Did we consider container orchestration?")[0].startswith("We decided against")
    assert "HBR-2207" in _answers(said, "? HBR-2207")[0]
    assert _answers(said, "? Who is on call?   (as of 2026-03-04)")[0].startswith("Bruno")
    assert _answers(said, "? Who is on call?   (as of 2026-03-11)")[0].startswith("Chiara")
    for decision in ("create", "reinforce", "update", "supersede"):
        assert any(line.startswith(decision) for line in said)
    question = "? Which PostgreSQL does Harbour run on?   (as of "
    then, now = (said[said.index(f"{question}{day})") + 1] for day in ("2026-04-01", "2026-05-01"))
    assert (then.strip(), now.strip()) == ("Harbour runs on PostgreSQL 14.", "Harbour runs on PostgreSQL 16.")
    assert any("claude mcp add --scope user vestige" in line for line in said)


def _answers(said: list[str], question: str) -> list[str]:
    """The answers below a question, best first."""
    below = said[said.index(question) + 1 :]
    return [line.split(". ", 1)[1] for line in below[: below.index("")] if line[2:4] in ("1.", "2.")]
