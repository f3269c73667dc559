"""Models for the embedder tests: a tiny one made here, and the real one if it is installed."""

import os
from pathlib import Path

import pytest

from tests.embed import tiny_bert
from vestige.embed.convert import convert
from vestige.embed.install import Presence, status


@pytest.fixture(scope="session")
def tiny_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The three original files of a tiny BERT."""
    folder = tmp_path_factory.mktemp("tiny") / "source"
    tiny_bert.write_source(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_model(tiny_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny BERT, converted. Not to be changed: copy it first."""
    folder = tmp_path_factory.mktemp("tiny") / "model"
    convert(tiny_source, folder, name="tiny")
    return folder


@pytest.fixture(scope="session")
def real_model_dir() -> Path:
    """The installed default model; `make` installs it, and nothing is downloaded here."""
    override = os.environ.get("VESTIGE_MODEL_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = Path(override) if override else cache / "vestige" / "models"
    found = status(root)
    if found.presence is not Presence.READY:
        pytest.skip(f"THE REAL MODEL IS NOT TESTED: {found.presence} in {root}; run `vestige model install`")
    return found.path
