"""The pair graph: against plain numpy, and which weights are refused."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from tests.embed.minilm import tiny_bert
from vestige.core.errors import EmbedderError
from vestige.embed.minilm.convert import build_pair_graph, read_config, read_weights
from vestige.embed.minilm.pair_graph import read_pair_weights
from vestige.embed.minilm.weights import MINILM, PairDelta
from vestige.embed.onnx import RELATIONS

PAIRS = [([5, 17, 40], [12, 9, 8, 30, 31]), ([], [6]), ([6], []), ([7, 7, 7], [7, 7, 7])]


def probabilities(source: Path, delta: PairDelta, old: list[int], new: list[int]) -> tiny_bert.Array:
    graph = build_pair_graph(
        read_weights(source / "model.safetensors"), read_config(source / "config.json"), delta
    )
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    ids = np.array([[2, *old, 3, *new, 3]])
    types = np.array([[0] * (len(old) + 2) + [1] * (len(new) + 1)])
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types}
    (rows,) = session.run([RELATIONS], feed)
    result: tiny_bert.Array = rows[0]
    return result


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_the_float_graph_equals_plain_numpy(
    old: list[int], new: list[int], tiny_source: Path, tiny_delta: PairDelta
) -> None:
    expected = tiny_bert.relate(tiny_bert.make_weights(), tiny_bert.make_delta(), old, new)
    found = probabilities(tiny_source, tiny_delta, old, new)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert float(found.sum()) == pytest.approx(1.0, abs=1e-5)


def test_deltas_concatenated_along_the_rank_are_added(
    tiny_source: Path, tiny_delta: PairDelta, tmp_path: Path
) -> None:
    arrays = tiny_bert.make_delta()
    halves = {
        name: np.concatenate([value, value])
        if name.endswith(".A")
        else np.concatenate([value / 2, value / 2], axis=1)
        if name.endswith(".B")
        else value
        for name, value in arrays.items()
    }
    doubled = tiny_bert.write_delta(tmp_path / "pair_model.npz", halves)
    old, new = PAIRS[0]
    np.testing.assert_allclose(
        probabilities(tiny_source, doubled, old, new),
        probabilities(tiny_source, tiny_delta, old, new),
        atol=1e-3,
    )


def test_another_file_than_the_one_this_version_names_is_refused(
    tiny_delta: PairDelta, tmp_path: Path
) -> None:
    path = tmp_path / "pair_model.npz"
    path.write_bytes(tiny_delta.path.read_bytes() + b"\0")
    with pytest.raises(EmbedderError, match="are not those of this version") as caught:
        read_pair_weights(PairDelta(path=path, sha256=tiny_delta.sha256))
    assert tiny_delta.sha256 in caught.value.message
    with pytest.raises(EmbedderError, match="cannot be read"):
        read_pair_weights(PairDelta(path=tmp_path / "nowhere.npz", sha256=tiny_delta.sha256))


def test_a_file_that_holds_no_arrays_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pair_model.npz").write_bytes(b"no arrays here")
    digest = PairDelta(path=tmp_path / "pair_model.npz", sha256="")
    with pytest.raises(EmbedderError) as caught:
        read_pair_weights(digest)
    found = caught.value.message.split("sha256 ")[1].split(",")[0]
    with pytest.raises(EmbedderError, match="not an archive of arrays"):
        read_pair_weights(PairDelta(path=digest.path, sha256=found))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"enc.L.0.q.A": None}, r"enc\.L\.0\.q\.A is missing"),
        ({"enc.L.7.q.A": np.zeros((3, 32))}, r"enc\.L\.7\.q\.A is unknown"),
        ({"enc.L.0.q.A": np.zeros((2, 32))}, r"enc\.L\.0\.q\.B has the shape"),
        ({"h2.bias": np.zeros(4)}, r"h2\.bias has the shape \(4,\) instead of \(5,\)"),
        ({"T": np.float32(0)}, "temperature"),
        ({"h2.bias": np.full(5, np.nan)}, "not a finite number"),
    ],
)
def test_arrays_that_do_not_fit_the_encoder_are_named(
    change: dict[str, tiny_bert.Array | None], message: str, tiny_source: Path, tmp_path: Path
) -> None:
    arrays = {k: v for k, v in (tiny_bert.make_delta() | change).items() if v is not None}
    delta = tiny_bert.write_delta(tmp_path / "pair_model.npz", arrays)
    with pytest.raises(EmbedderError, match=message):
        probabilities(tiny_source, delta, [5], [6])


def test_the_shipped_weights_are_those_that_the_code_names() -> None:
    assert MINILM.pair_model is not None
    arrays = read_pair_weights(MINILM.pair_model).arrays
    assert arrays["enc.te"].shape == (2, 384)
    assert arrays["T"] > 0
