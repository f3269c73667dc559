"""`vestige model install` at a terminal."""

import shutil
from pathlib import Path

import pytest

from tests.transports.cli.test_process import at_a_terminal
from vestige.embed.minilm.install import model_dir


@pytest.mark.slow
def test_a_model_that_is_there_is_told_without_a_bar(tiny_model: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_model, model_dir(tmp_path / "models"))
    cache = {"VESTIGE_EMBEDDINGS_CACHE_DIR": str(tmp_path / "models")}
    code, screen = at_a_terminal(tmp_path, ["model", "install"], b"", b"", **cache)
    assert code == 0, screen
    assert screen.startswith("tiny is ready")
