"""A tiny model for the embedder tests, made here."""

from pathlib import Path

import pytest

from tests.embed.minilm import tiny_bert
from vestige.embed.minilm.convert import convert
from vestige.embed.minilm.weights import PairDelta


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
def tiny_delta(tmp_path_factory: pytest.TempPathFactory) -> PairDelta:
    """The low-rank weights of a tiny pair model."""
    return tiny_bert.write_delta(tmp_path_factory.mktemp("tiny") / "pair_model.npz")


@pytest.fixture(scope="session")
def tiny_pair_model(
    tiny_source: Path, tiny_delta: PairDelta, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The tiny BERT, converted with its pair graph. Not to be changed: copy it first."""
    folder = tmp_path_factory.mktemp("tiny") / "pairs"
    convert(tiny_source, folder, name="tiny", pair_model=tiny_delta)
    return folder
