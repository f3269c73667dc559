"""Weights to ONNX: the graph against plain numpy, and what is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper
from safetensors.numpy import save_file

from tests.embed.minilm import tiny_bert
from vestige.core.errors import EmbedderError
from vestige.embed.minilm.bert_graph import SENTENCE, STATES
from vestige.embed.minilm.child import DISK_FULL
from vestige.embed.minilm.convert import (
    LEAST_COSINE,
    build_graph,
    check,
    convert,
    main,
    read_config,
    read_weights,
)
from vestige.embed.minilm.manifest import (
    EMBEDDINGS,
    GRAPH_WEIGHTS,
    MODEL_FILES,
    PAIR_MODEL,
    PAIR_WEIGHTS,
    read_manifest,
    write_manifest,
)
from vestige.embed.minilm.weights import PairDelta
from vestige.embed.onnx import OnnxEmbedder
from vestige.embed.protocol import Signature


def test_the_float_graph_equals_a_plain_numpy_forward_pass(tiny_source: Path) -> None:
    weights = read_weights(tiny_source / "model.safetensors")
    graph = build_graph(weights, read_config(tiny_source / "config.json"))
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    ids = [2, 5, 17, 40, 12, 9, 3]
    feed = {
        "input_ids": np.array([ids]),
        "attention_mask": np.ones((1, len(ids)), dtype=np.int64),
        "token_type_ids": np.zeros((1, len(ids)), dtype=np.int64),
    }
    sentence, states = session.run([SENTENCE, STATES], feed)
    expected = tiny_bert.forward(tiny_bert.make_weights(), ids)
    np.testing.assert_allclose(states[0], expected, atol=1e-5)
    np.testing.assert_allclose(sentence[0], tiny_bert.pooled(expected), atol=1e-5)


def test_padding_does_not_reach_the_float_vectors(tiny_source: Path) -> None:
    weights = read_weights(tiny_source / "model.safetensors")
    graph = build_graph(weights, read_config(tiny_source / "config.json"))
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    padded = np.array([[2, 5, 17, 3, 0, 0], [2, 8, 9, 10, 11, 3]])
    mask = np.array([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
    feed = {"input_ids": padded, "attention_mask": mask, "token_type_ids": np.zeros_like(padded)}
    (sentences,) = session.run([SENTENCE], feed)
    expected = tiny_bert.pooled(tiny_bert.forward(tiny_bert.make_weights(), [2, 5, 17, 3]))
    np.testing.assert_allclose(sentences[0], expected, atol=1e-5)


def test_the_int8_model_stays_close_to_the_float_one(tiny_model: Path) -> None:
    embedder = OnnxEmbedder(tiny_model, threads=1)
    text = "the user prefers coffee over tea"
    ids = [2, *embedder.encode_query(text).tokens.ids, 3]  # type: ignore[union-attr]  # MiniLM has tokens
    expected = tiny_bert.pooled(tiny_bert.forward(tiny_bert.make_weights(), [int(one) for one in ids]))
    assert float(embedder.embed_query(text) @ expected) > LEAST_COSINE


def test_weights_have_a_scale_per_channel_and_seven_bits_so_that_sums_cannot_saturate(
    tiny_model: Path,
) -> None:
    constants = {
        one.name: numpy_helper.to_array(one) for one in onnx.load(tiny_model / "model.onnx").graph.initializer
    }
    matrices = {name: one for name, one in constants.items() if one.dtype == np.int8 and one.ndim == 2}
    assert len(matrices) == 4 * tiny_bert.LAYERS
    for name, matrix in matrices.items():
        assert np.abs(matrix.astype(np.int16)).max() <= 64
        assert constants[name.replace("_quantized", "_scale")].shape == (matrix.shape[1],)


def test_every_published_file_can_be_read_by_whom_the_graph_can(tiny_model: Path) -> None:
    assert len({(tiny_model / name).stat().st_mode for name in ("model.onnx", "embeddings.bin")}) == 1


def test_a_checkpoint_with_prefixed_tensor_names_gives_the_same_model(
    tiny_source: Path, tmp_path: Path
) -> None:
    weights = tiny_bert.make_weights()
    save_file({f"bert.{name}": value for name, value in weights.items()}, tmp_path / "model.safetensors")
    assert read_weights(tmp_path / "model.safetensors").keys() == weights.keys()


def test_the_signature_names_the_weights_and_the_precision(tiny_source: Path, tmp_path: Path) -> None:
    manifest = convert(tiny_source, tmp_path / "model", name="tiny")
    assert manifest.signature.name == "tiny"
    assert manifest.signature.precision == "int8"
    assert manifest.signature.dimension == tiny_bert.HIDDEN
    assert len(manifest.signature.revision) == 12
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_converting_twice_gives_the_same_bytes(tiny_source: Path, tiny_model: Path, tmp_path: Path) -> None:
    again = convert(tiny_source, tmp_path / "model", name="tiny")
    assert (tmp_path / "model" / "model.onnx").read_bytes() == (tiny_model / "model.onnx").read_bytes()
    assert again.files.keys() == {*MODEL_FILES}
    assert (tmp_path / "model" / GRAPH_WEIGHTS).read_bytes() == (tiny_model / GRAPH_WEIGHTS).read_bytes()


def test_the_pair_graph_shares_the_word_embeddings_and_changes_no_other_file(
    tiny_model: Path, tiny_pair_model: Path
) -> None:
    for name in MODEL_FILES:
        assert (tiny_pair_model / name).read_bytes() == (tiny_model / name).read_bytes()
    words = len(tiny_bert.VOCABULARY) * tiny_bert.HIDDEN * 4
    outside = [
        {entry.key: entry.value for entry in one.external_data}
        for one in onnx.load(tiny_pair_model / PAIR_MODEL, load_external_data=False).graph.initializer
        if one.data_location == onnx.TensorProto.EXTERNAL
    ]
    assert {"location": EMBEDDINGS, "offset": "0", "length": str(words)} in outside
    assert {one["location"] for one in outside} == {EMBEDDINGS, PAIR_WEIGHTS}


def test_converting_twice_gives_the_same_pair_graph(
    tiny_source: Path, tiny_delta: PairDelta, tiny_pair_model: Path, tmp_path: Path
) -> None:
    manifest = convert(tiny_source, tmp_path / "model", name="tiny", pair_model=tiny_delta)
    assert (tmp_path / "model" / PAIR_MODEL).read_bytes() == (tiny_pair_model / PAIR_MODEL).read_bytes()
    assert manifest.pair_model == tiny_delta.sha256
    assert manifest == read_manifest(tmp_path / "model")


def test_the_command_refuses_another_delta_than_the_one_it_was_asked_for(
    tiny_source: Path, tiny_delta: PairDelta, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(tiny_source), str(tmp_path / "model"), "tiny", str(tiny_delta.path)]
    assert main([*arguments, "f" * 64]) == 1
    assert "are not those of this version" in capsys.readouterr().err


def test_a_conversion_that_left_the_original_is_refused(tiny_source: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(tiny_source, other)
    weights = tiny_bert.make_weights()
    weights["embeddings.word_embeddings.weight"] = weights["embeddings.word_embeddings.weight"][::-1].copy()
    save_file(weights, other / "model.safetensors")
    convert(tiny_source, tmp_path / "good", name="tiny")
    convert(other, tmp_path / "wrong", name="tiny")
    good = OnnxEmbedder(tmp_path / "good", threads=1)
    check(good, good)
    with pytest.raises(EmbedderError, match="not close enough"):
        check(good, OnnxEmbedder(tmp_path / "wrong", threads=1))


def test_vectors_that_are_not_numbers_are_refused(
    tiny_source: Path, tiny_model: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(tiny_model, broken)
    (broken / "embeddings.bin").write_bytes(
        np.full((len(tiny_bert.VOCABULARY), tiny_bert.HIDDEN), np.nan, dtype=np.float32).tobytes()
    )
    write_manifest(broken, Signature(name="tiny", revision="nan", dimension=tiny_bert.HIDDEN))
    with pytest.raises(EmbedderError, match="not close enough"):
        check(OnnxEmbedder(tiny_model, threads=1), OnnxEmbedder(broken, threads=1))


@pytest.mark.parametrize(
    "change", [{"model_type": "gpt2"}, {"hidden_act": "relu"}, {"position_embedding_type": "relative_key"}]
)
def test_another_kind_of_model_is_refused(change: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(tiny_bert.CONFIG | change), encoding="utf-8")
    with pytest.raises(EmbedderError, match="only a plain BERT"):
        read_config(path)


def test_a_config_that_is_not_json_and_weights_that_are_not_safetensors_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(EmbedderError, match="configuration"):
        read_config(tmp_path / "config.json")
    (tmp_path / "model.safetensors").write_bytes(b"no tensors here")
    with pytest.raises(EmbedderError, match="safetensors"):
        read_weights(tmp_path / "model.safetensors")


def test_missing_tensors_are_named(tiny_source: Path) -> None:
    weights = tiny_bert.make_weights()
    del weights["encoder.layer.1.output.dense.bias"]
    with pytest.raises(EmbedderError, match=r"encoder\.layer\.1\.output\.dense\.bias"):
        build_graph(weights, read_config(tiny_source / "config.json"))


def test_the_command_says_why_it_failed(
    tiny_source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "source"
    shutil.copytree(tiny_source, broken)
    (broken / "config.json").write_text("{}", encoding="utf-8")
    assert main([str(broken), str(tmp_path / "model"), "tiny"]) == 1
    assert "configuration" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_the_command_says_in_its_status_that_the_disk_is_full(
    tiny_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copy_to_a_full_disk(source: Path, _target: Path) -> None:
        with Path("/dev/full").open("wb") as full:
            full.write(source.read_bytes())

    monkeypatch.setattr(shutil, "copyfile", copy_to_a_full_disk)
    assert main([str(tiny_source), str(tmp_path / "model"), "tiny"]) == DISK_FULL
