"""Another program keeps a write transaction open: answers come; what cannot be written is told briefly."""

import json
import logging
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.world import HandClock, open_world
from tests.transports.cli.harness import ENVIRONMENT, Outcome, invoke
from tests.transports.mcp.lines import ENVELOPE
from vestige.app.app import App, open_app

LITTLE_SECONDS = 1.5
"""Half a second for the trace of an answer, and less than one for the end."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store with one memory."""
    folder = tmp_path / "data"
    assert run(folder, HandClock(), "ingest", "Ada prefers tea.").exit_code == 0
    return folder


@contextmanager
def outside_transaction(home: Path) -> Iterator[None]:
    with closing(sqlite3.connect(home / "vestige.db", isolation_level=None)) as outsider:
        outsider.execute("BEGIN IMMEDIATE")
        yield


def opener(clock: HandClock) -> Callable[[Mapping[str, Any]], App]:
    return lambda flags: open_app(flags, clock=clock.parts())


def run(home: Path, clock: HandClock, *words: str) -> Outcome:
    return invoke([*words, "--data-dir", str(home)], open_app=opener(clock))


def assert_brief(log: str) -> None:
    """No traceback, none of the driver's words."""
    for word in ("Traceback", "sqlite3", "locked"):
        assert word not in log
    assert "The store stayed busy" in log


@pytest.mark.parametrize("words", [("search", "tea"), ("backup",)])
def test_a_command_that_can_answer_does_so_without_waiting_long_for_what_it_cannot_write(
    home: Path, words: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    clock = HandClock()
    before = clock.now
    with outside_transaction(home):
        outcome = run(home, clock, *words)
    assert outcome.exit_code == 0
    assert (clock.now - before).total_seconds() < LITTLE_SECONDS
    assert not [record for record in caplog.records if record.levelno > logging.WARNING or record.exc_info]
    assert_brief(caplog.text)


def test_what_a_command_caused_is_worked_off_at_its_end_without_waiting_long(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = HandClock()
    with open_world(tmp_path, clock=clock) as world:
        world.call("intention", action="set", description="Thank Bo.", trigger={"condition": "launch"})
        world.app.settle()
        world.remember("The launch is done.")
        with outside_transaction(tmp_path):
            before = clock.now
            world.app.close()
    assert (clock.now - before).total_seconds() < LITTLE_SECONDS
    assert_brief(caplog.text)
    assert "intentions.on_created was not done" in caplog.text


@pytest.mark.slow
def test_the_log_of_a_command_and_of_a_server_is_brief(home: Path) -> None:
    environment = {
        **os.environ,
        **ENVIRONMENT,
        "VESTIGE_DATA_DIR": str(home),
        "VESTIGE_STORAGE_BUSY_SECONDS": "0.5",
    }
    params = {"name": "search", "arguments": {"query": "tea"}, "_meta": ENVELOPE}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    with outside_transaction(home):
        for words, typed in ((["search", "tea"], ""), (["mcp"], json.dumps(asked) + "\n")):
            done = subprocess.run(
                [sys.executable, "-m", "vestige", *words],
                input=typed,
                capture_output=True,
                encoding="utf-8",
                env=environment,
                timeout=PATIENCE_SECONDS,
                check=False,
            )
            assert done.returncode == 0
            assert "Ada prefers tea." in done.stdout
            assert_brief(done.stderr)
            assert "on_searches was not done" in done.stderr
