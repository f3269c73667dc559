"""Python children that cannot disturb us, nor outlive us."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.embed.minilm.silent_index import SilentIndex
from vestige.embed.minilm.child import ChildExit, end_children_of, run_module

pytestmark = pytest.mark.slow


def test_a_child_is_run_and_the_end_of_what_it_said_is_kept(tmp_path: Path) -> None:
    outcome = run_module("pip", "--version", directory=tmp_path, timeout_seconds=PATIENCE_SECONDS)
    assert outcome.ok
    assert outcome.said.startswith("pip ")


def test_a_module_in_the_childs_directory_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text("print('ran')", encoding="utf-8")
    outcome = run_module("planted", directory=tmp_path, timeout_seconds=PATIENCE_SECONDS)
    assert not outcome.ok
    assert "No module named planted" in outcome.said


def test_a_child_that_does_not_end_is_ended(tmp_path: Path) -> None:
    outcome = run_module("http.server", "--bind", "127.0.0.1", "0", directory=tmp_path, timeout_seconds=0.5)
    assert not outcome.ok
    assert "did not finish" in outcome.said


def test_a_directory_that_is_not_there_is_a_failure_not_an_exception(tmp_path: Path) -> None:
    outcome = run_module("pip", directory=tmp_path / "nowhere", timeout_seconds=PATIENCE_SECONDS)
    assert not outcome.ok
    assert "nowhere" in outcome.said


def test_a_child_finds_its_stdin_empty(tmp_path: Path) -> None:
    outcome = run_module("json.tool", directory=tmp_path, timeout_seconds=PATIENCE_SECONDS)
    assert not outcome.ok
    assert "Expecting value" in outcome.said


def test_a_child_can_be_ended_from_another_thread_which_may_then_start_no_more(tmp_path: Path) -> None:
    outcomes: list[ChildExit] = []

    def run_two() -> None:
        outcomes.append(run_module(*index.fetching, directory=tmp_path, timeout_seconds=PATIENCE_SECONDS))
        outcomes.append(run_module("pip", "--version", directory=tmp_path, timeout_seconds=PATIENCE_SECONDS))

    with SilentIndex() as index:
        thread = threading.Thread(target=run_two)
        thread.start()
        pip = index.asked()
        end_children_of(thread)
        index.hung_up(pip)
        thread.join(PATIENCE_SECONDS)

    assert outcomes == [ChildExit(status=None, said="it was ended")] * 2
    # Other threads may.
    assert run_module("pip", "--version", directory=tmp_path, timeout_seconds=PATIENCE_SECONDS).ok


PARENT = """
import sys
from pathlib import Path
from vestige.embed.minilm.child import run_module
run_module(*sys.argv[2:], directory=Path(sys.argv[1]), timeout_seconds=600)
"""


def test_a_child_does_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    with SilentIndex() as index:
        command = [sys.executable, "-c", PARENT, str(tmp_path), *index.fetching]
        with subprocess.Popen(command, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}) as parent:
            pip = index.asked()
            parent.kill()
        index.hung_up(pip)
