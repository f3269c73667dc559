"""`relate` of the embedders: scores of a pair of notes, or None."""

import logging
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest

from tests.embed.minilm import tiny_bert
from vestige.core.relation import RelationScores, RelationState
from vestige.embed.hashing import HashingEmbedder
from vestige.embed.minilm.weights import MINILM, RelationDelta
from vestige.embed.onnx import OnnxEmbedder
from vestige.embed.relation import MAX_NOTE_TOKENS

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
    long, cut = "cat " * 300, "cat " * MAX_NOTE_TOKENS
    assert scores(embedder, long, long + "dog") == scores(embedder, cut, cut)


def test_threads_that_open_the_model_at_once_get_the_same_scores(tiny_pair_model: Path) -> None:
    fresh = OnnxEmbedder(tiny_pair_model, threads=2)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: scores(fresh, OLD, NEW), range(24)))
    assert set(answers) == {scores(fresh, OLD, NEW)}


def test_the_embedding_vectors_are_those_of_a_folder_without_the_relation_graph(
    embedder: OnnxEmbedder, tiny_model: Path
) -> None:
    np.testing.assert_array_equal(
        embedder.embed_query(OLD), OnnxEmbedder(tiny_model, threads=1).embed_query(OLD)
    )


def test_embedders_without_a_relation_model_give_no_scores(tiny_model: Path) -> None:
    hashing, earlier = HashingEmbedder(), OnnxEmbedder(tiny_model, threads=1)
    assert (hashing.relation_state, hashing.relate(OLD, NEW)) == (RelationState.UNSUPPORTED, None)
    assert (earlier.relation_state, earlier.relate(OLD, NEW)) == (RelationState.ABSENT, None)


def test_a_graph_of_other_weights_than_this_versions_is_not_used(
    tiny_pair_model: Path, tiny_delta: RelationDelta
) -> None:
    current = OnnxEmbedder(tiny_pair_model, threads=1, relation=tiny_delta.sha256)
    other = OnnxEmbedder(tiny_pair_model, threads=1, relation="f" * 64)
    assert current.relation_state is RelationState.READY
    assert current.relate(OLD, NEW) is not None
    assert (other.relation_state, other.relate(OLD, NEW)) == (RelationState.OUTDATED, None)


def test_a_graph_that_cannot_be_opened_is_logged_once_and_gives_no_scores(
    tiny_pair_model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(tiny_pair_model, tmp_path / "model")
    (tmp_path / "model" / "relation.onnx").write_bytes(b"not this")
    embedder = OnnxEmbedder(tmp_path / "model", threads=1)
    with caplog.at_level(logging.WARNING):
        assert [embedder.relate(OLD, NEW) for _ in range(3)] == [None] * 3
    assert [record.name for record in caplog.records] == ["vestige.embed.relation"]
    assert "relation.onnx cannot be loaded" in caplog.text
    assert embedder.embed_query(OLD).shape == (tiny_bert.HIDDEN,)


def test_a_graph_that_fails_at_a_pair_is_logged_once_and_gives_no_scores(
    tiny_pair_model: Path, tiny_model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(tiny_pair_model, tmp_path / "model")
    shutil.copyfile(tiny_model / "model.onnx", tmp_path / "model" / "relation.onnx")  # it has other outputs
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
embedder.relation_state
lazy = ("vestige.embed.relation", "vestige.embed.minilm.relation_graph")
print([name for name in lazy if name in sys.modules])
"""


@pytest.mark.slow
def test_nothing_of_the_relation_model_is_loaded_before_the_first_pair(tiny_pair_model: Path) -> None:
    command = [sys.executable, "-c", EMBED, str(tiny_pair_model)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert shown.stdout.strip() == "[]"


@pytest.mark.slow
def test_the_installed_model_recognises_a_correction(real_model_dir: Path) -> None:
    assert MINILM.relation is not None
    real = OnnxEmbedder(real_model_dir, threads=1, relation=MINILM.relation.sha256)
    if real.relation_state is not RelationState.READY:
        pytest.skip(f"THE RELATION MODEL IS NOT TESTED: {real.relation_state}; run `vestige model install`")
    renamed = "The default branch was renamed from main to trunk."
    assert scores(real, "The default branch is main.", renamed).corrects > 0.5
    assert scores(real, "The default branch is main.", "The office is in Bergen.").other > 0.5
