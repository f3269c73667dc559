"""`relate` and `answer` of the embedders: scores of a pair of texts, or None."""

import logging
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.embed.minilm import tiny_bert
from vestige.core.pair_model import PairModelState, RelationScores
from vestige.embed.hashing import HashingEmbedder
from vestige.embed.minilm.weights import MINILM, PairDelta
from vestige.embed.onnx import MAX_TEXT_TOKENS, OnnxEmbedder

OLD, NEW = "the user prefers coffee", "the user likes tea over coffee"


@pytest.fixture(scope="module")
def embedder(tiny_pair_model: Path) -> OnnxEmbedder:
    return OnnxEmbedder(tiny_pair_model, threads=2)


def scores(embedder: OnnxEmbedder, old: str, new: str) -> RelationScores:
    found = embedder.relate(old, new)
    assert found is not None
    return found


def test_the_scores_are_close_to_those_of_plain_numpy(embedder: OnnxEmbedder) -> None:
    ids = [[tiny_bert.VOCABULARY.index(word) for word in text.split()] for text in (OLD, NEW)]
    expected = tiny_bert.relate(tiny_bert.make_weights(), tiny_bert.make_delta(), *ids)
    np.testing.assert_allclose(astuple(scores(embedder, OLD, NEW)), expected, atol=0.05)


def test_the_log_odds_of_an_answer_are_close_to_those_of_plain_numpy(embedder: OnnxEmbedder) -> None:
    ids = [[tiny_bert.VOCABULARY.index(word) for word in text.split()] for text in (OLD, NEW)]
    expected = tiny_bert.answer(tiny_bert.make_weights(), tiny_bert.make_delta(), *ids)
    assert embedder.answer(OLD, NEW) == pytest.approx(expected, abs=0.1)


def test_a_pair_has_the_same_scores_every_time_and_the_order_matters(
    embedder: OnnxEmbedder, tiny_pair_model: Path
) -> None:
    first = scores(embedder, OLD, NEW)
    scores(embedder, "cat", "dog")
    assert scores(embedder, OLD, NEW) == first
    assert scores(OnnxEmbedder(tiny_pair_model, threads=1), OLD, NEW) == first
    assert scores(embedder, NEW, OLD) != first
    assert sum(astuple(first)) == pytest.approx(1.0, abs=1e-5)


def test_empty_and_long_notes_have_scores_too(embedder: OnnxEmbedder) -> None:
    assert sum(astuple(scores(embedder, "", ""))) == pytest.approx(1.0, abs=1e-5)
    long, cut = "cat " * 300, "cat " * MAX_TEXT_TOKENS
    assert scores(embedder, long, long + "dog") == scores(embedder, cut, cut)


def test_threads_that_open_the_model_at_once_get_the_same_scores(tiny_pair_model: Path) -> None:
    fresh = OnnxEmbedder(tiny_pair_model, threads=2)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: scores(fresh, OLD, NEW), range(24)))
    assert set(answers) == {scores(fresh, OLD, NEW)}


def test_the_embedding_vectors_are_those_of_a_folder_without_the_pair_graph(
    embedder: OnnxEmbedder, tiny_model: Path
) -> None:
    np.testing.assert_array_equal(
        embedder.embed_query(OLD), OnnxEmbedder(tiny_model, threads=1).embed_query(OLD)
    )


def test_embedders_without_a_pair_model_give_no_scores(tiny_model: Path) -> None:
    hashing, earlier = HashingEmbedder(), OnnxEmbedder(tiny_model, threads=1)
    assert (hashing.pair_model_state, hashing.relate(OLD, NEW)) == (PairModelState.UNSUPPORTED, None)
    assert (earlier.pair_model_state, earlier.relate(OLD, NEW)) == (PairModelState.ABSENT, None)
    assert (hashing.answer(OLD, NEW), earlier.answer(OLD, NEW)) == (None, None)


def test_a_graph_of_other_weights_than_this_versions_is_not_used(
    tiny_pair_model: Path, tiny_delta: PairDelta
) -> None:
    current = OnnxEmbedder(tiny_pair_model, threads=1, pair_model=tiny_delta.sha256)
    other = OnnxEmbedder(tiny_pair_model, threads=1, pair_model="f" * 64)
    assert current.pair_model_state is PairModelState.READY
    assert current.relate(OLD, NEW) is not None
    assert (other.pair_model_state, other.relate(OLD, NEW)) == (PairModelState.OUTDATED, None)


def test_a_graph_that_cannot_be_opened_is_logged_once_and_gives_no_scores(
    tiny_pair_model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(tiny_pair_model, tmp_path / "model")
    (tmp_path / "model" / "pair_model.onnx").write_bytes(b"not this")
    embedder = OnnxEmbedder(tmp_path / "model", threads=1)
    with caplog.at_level(logging.WARNING):
        assert [embedder.relate(OLD, NEW) for _ in range(3)] == [None] * 3
    assert [record.name for record in caplog.records] == ["vestige.embed.onnx"]
    assert "pair_model.onnx cannot be loaded" in caplog.text
    assert embedder.embed_query(OLD).shape == (tiny_bert.HIDDEN,)


def test_a_graph_that_fails_at_a_pair_is_logged_once_and_gives_no_scores(
    tiny_pair_model: Path, tiny_model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(tiny_pair_model, tmp_path / "model")
    shutil.copyfile(tiny_model / "model.onnx", tmp_path / "model" / "pair_model.onnx")  # it has other outputs
    embedder = OnnxEmbedder(tmp_path / "model", threads=1)
    with caplog.at_level(logging.WARNING):
        assert [embedder.relate(OLD, NEW) for _ in range(3)] == [None] * 3
    assert len(caplog.records) == 1


EMBED = """
import sys
from pathlib import Path
from vestige.embed.onnx import OnnxEmbedder
embedder = OnnxEmbedder(Path(sys.argv[1]), threads=1)
embedder.embed_query("the cat")
embedder.pair_model_state
lazy = ("vestige.embed.minilm.pair_graph",)
print([name for name in lazy if name in sys.modules])
"""


@pytest.mark.slow
def test_nothing_of_the_relation_model_is_loaded_before_the_first_pair(tiny_pair_model: Path) -> None:
    command = [sys.executable, "-c", EMBED, str(tiny_pair_model)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert shown.stdout.strip() == "[]"


@pytest.mark.slow
def test_the_installed_model_recognises_a_correction(real_model_dir: Path) -> None:
    assert MINILM.pair_model is not None
    real = OnnxEmbedder(real_model_dir, threads=1, pair_model=MINILM.pair_model.sha256)
    if real.pair_model_state is not PairModelState.READY:
        pytest.skip(f"THE PAIR MODEL IS NOT TESTED: {real.pair_model_state}; run `vestige model install`")
    renamed = "The default branch was renamed from main to trunk."
    assert scores(real, "The default branch is main.", renamed).corrects > 0.5
    assert scores(real, "The default branch is main.", "The office is in Bergen.").other > 0.5


def test_a_pair_that_was_just_read_has_the_same_scores_as_with_a_fresh_model(
    embedder: OnnxEmbedder, tiny_pair_model: Path
) -> None:
    for old, new in ((OLD, NEW), (NEW, OLD), (OLD, NEW)):
        fresh = scores(OnnxEmbedder(tiny_pair_model, threads=1), old, new)
        assert scores(embedder, old, new) == scores(embedder, old, new) == fresh
