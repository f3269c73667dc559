"""`vestige model install` at a terminal."""

import shutil
from pathlib import Path

import pytest

from tests.transports.cli.test_process import at_a_terminal
from vestige.embed.minilm.install import model_dir
from vestige.embed.minilm.manifest import read_manifest, write_manifest
from vestige.embed.minilm.weights import MINILM


@pytest.mark.slow
def test_a_model_that_is_there_is_told_without_a_bar(tiny_pair_model: Path, tmp_path: Path) -> None:
    folder = model_dir(tmp_path / "models")
    shutil.copytree(tiny_pair_model, folder)
    assert MINILM.pair_model is not None
    write_manifest(folder, read_manifest(folder).signature, pair_model=MINILM.pair_model.sha256)
    cache = {"VESTIGE_EMBEDDINGS_CACHE_DIR": str(tmp_path / "models")}
    code, screen = at_a_terminal(tmp_path, ["model", "install"], b"", b"", **cache)
    assert code == 0, screen
    assert screen.startswith("tiny is ready")
    assert "The pair model is ready." in screen


@pytest.mark.slow
def test_a_missing_relation_model_is_said_with_the_reason(tiny_model: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_model, model_dir(tmp_path / "models"))
    cache = {"VESTIGE_EMBEDDINGS_CACHE_DIR": str(tmp_path / "models"), "VESTIGE_OFFLINE": "1"}
    code, screen = at_a_terminal(tmp_path, ["model", "install"], b"", b"", **cache)
    assert code == 0, screen
    assert "The pair model was not built" in screen
    code, screen = at_a_terminal(tmp_path, ["model", "status"], b"", b"", **cache)
    assert "The pair model is not installed" in screen
