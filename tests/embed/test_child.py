"""Python children that cannot disturb us."""

from pathlib import Path

import pytest

from vestige.embed.child import run_module

pytestmark = pytest.mark.slow


def test_a_child_is_run_and_the_end_of_what_it_said_is_kept(tmp_path: Path) -> None:
    outcome = run_module("pip", "--version", directory=tmp_path, timeout_seconds=60)
    assert outcome.ok
    assert outcome.said.startswith("pip ")


def test_a_module_in_the_childs_directory_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text("print('ran')", encoding="utf-8")
    outcome = run_module("planted", directory=tmp_path, timeout_seconds=60)
    assert not outcome.ok
    assert "No module named planted" in outcome.said


def test_a_child_that_does_not_end_is_ended(tmp_path: Path) -> None:
    outcome = run_module("http.server", "--bind", "127.0.0.1", "0", directory=tmp_path, timeout_seconds=0.5)
    assert not outcome.ok
    assert "did not finish" in outcome.said


def test_a_directory_that_is_not_there_is_a_failure_not_an_exception(tmp_path: Path) -> None:
    outcome = run_module("pip", directory=tmp_path / "nowhere", timeout_seconds=60)
    assert not outcome.ok
    assert "nowhere" in outcome.said
