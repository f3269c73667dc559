"""The onnxruntime embedder on a tiny model."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.embed.minilm import tiny_bert
from vestige.core.errors import ModelDamaged
from vestige.embed import onnx
from vestige.embed.onnx import UNPACKED_RUNS, OnnxEmbedder, OpenGraph

TEXTS = [
    "the cat sat on the mat",
    "the user prefers coffee",
    "",
    "deploy failed on tuesday because the database migration held a lock for ten minutes",
    "red",
]


@pytest.fixture(scope="module")
def embedder(tiny_model: Path) -> OnnxEmbedder:
    return OnnxEmbedder(tiny_model, threads=2)


def test_vectors_have_length_one_and_the_signatures_dimension(embedder: OnnxEmbedder) -> None:
    vectors = embedder.embed_documents(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.signature.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_a_text_has_the_same_vector_alone_and_in_any_batch(embedder: OnnxEmbedder) -> None:
    batch = embedder.embed_documents(TEXTS)
    for text, vector in zip(TEXTS, batch, strict=True):
        np.testing.assert_array_equal(embedder.embed_query(text), vector)
        np.testing.assert_array_equal(embedder.encode_query(text).vector, vector)


def test_the_number_of_threads_changes_no_vector(embedder: OnnxEmbedder, tiny_model: Path) -> None:
    alone = OnnxEmbedder(tiny_model, threads=1)
    np.testing.assert_array_equal(alone.embed_documents(TEXTS), embedder.embed_documents(TEXTS))


def test_rows_come_in_the_order_of_the_texts(embedder: OnnxEmbedder) -> None:
    forward = embedder.embed_documents(TEXTS)
    backward = embedder.embed_documents(TEXTS[::-1])
    np.testing.assert_array_equal(forward, backward[::-1])
    assert len({vector.tobytes() for vector in forward}) == len(TEXTS)


def test_no_texts_give_no_rows(embedder: OnnxEmbedder) -> None:
    assert embedder.embed_documents([]).shape == (0, embedder.signature.dimension)
    assert embedder.encode_documents([]) == []
    assert embedder.count_tokens([]) == []


def test_token_states_are_unit_rows_with_their_pieces_and_places(embedder: OnnxEmbedder) -> None:
    text = "The typescript cat"
    tokens = embedder.encode_query(text).tokens
    assert tokens is not None
    pieces = [tiny_bert.VOCABULARY[index] for index in tokens.ids]
    assert pieces == ["the", "type", "##script", "cat"]
    assert [text[start:end] for start, end in tokens.spans] == ["The", "type", "script", "cat"]
    assert tokens.states.shape == (4, embedder.signature.dimension)
    np.testing.assert_allclose(np.linalg.norm(tokens.states, axis=1), 1.0, atol=1e-5)


def test_token_states_follow_the_numpy_forward_pass(embedder: OnnxEmbedder) -> None:
    tokens = embedder.encode_query("the user prefers coffee over tea").tokens
    assert tokens is not None
    states = tiny_bert.forward(tiny_bert.make_weights(), [2, *(int(one) for one in tokens.ids), 3])[1:-1]
    expected = states / np.linalg.norm(states, axis=1, keepdims=True)
    assert float(np.sum(expected * tokens.states, axis=1).min()) > 0.97


def test_an_empty_text_has_a_vector_and_no_tokens(embedder: OnnxEmbedder) -> None:
    encoded = embedder.encode_query("")
    assert encoded.tokens is not None
    assert encoded.tokens.states.shape == (0, embedder.signature.dimension)
    assert encoded.tokens.spans.shape == (0, 2)
    np.testing.assert_allclose(np.linalg.norm(encoded.vector), 1.0, atol=1e-5)


def test_tokens_are_counted_uncut_and_seen_up_to_the_limit(embedder: OnnxEmbedder) -> None:
    long = "cat " * 400
    assert embedder.count_tokens(["the cat", "", long]) == [2, 0, 400]
    encoded = embedder.encode_query(long)
    assert encoded.tokens is not None
    assert len(encoded.tokens.ids) == embedder.max_tokens
    np.testing.assert_array_equal(encoded.vector, embedder.embed_query("cat " * embedder.max_tokens))


def test_text_that_is_not_unicode_is_embedded_with_its_places_kept(embedder: OnnxEmbedder) -> None:
    text = "cat \ud800 dog \x00 mat"
    tokens = embedder.encode_query(text).tokens
    assert tokens is not None
    start, end = tokens.spans[-1]
    assert text[start:end] == "mat"


def test_full_width_letters_and_ligatures_are_read_as_the_letters_they_stand_for(
    embedder: OnnxEmbedder,
) -> None:
    plain, wide = "the cat prefers coﬀee", "ｔｈｅ ｃａｔ prefers coffee"
    np.testing.assert_array_equal(embedder.embed_query(plain), embedder.embed_query("the cat prefers coffee"))
    np.testing.assert_array_equal(embedder.embed_query(wide), embedder.embed_query("the cat prefers coffee"))
    tokens = embedder.encode_query(plain).tokens
    assert tokens is not None
    assert [plain[start:end] for start, end in tokens.spans] == ["the", "cat", "prefers", "coﬀee"]
    tokens = embedder.encode_query(wide).tokens
    assert tokens is not None
    assert [wide[start:end] for start, end in tokens.spans][:2] == ["ｔｈｅ", "ｃａｔ"]


def test_many_threads_can_embed_at_once(embedder: OnnxEmbedder) -> None:
    expected = embedder.embed_documents(TEXTS)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: embedder.embed_documents(TEXTS), range(24)))
    for answer in answers:
        np.testing.assert_array_equal(answer, expected)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_file_that_cannot_be_loaded_is_a_damaged_model(name: str, tiny_model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "model"
    shutil.copytree(tiny_model, copy)
    (copy / name).write_bytes(b"not this")
    with pytest.raises(ModelDamaged, match=name) as caught:
        OnnxEmbedder(copy, threads=1).count_tokens(["naïve"])
    assert caught.value.hint == "vestige model install --force"


def test_a_text_that_was_just_read_has_the_same_encoding_without_another_run(tiny_model: Path) -> None:
    warm = OnnxEmbedder(tiny_model, threads=1)
    first = warm.encode_documents(TEXTS)

    again = warm.encode_documents([TEXTS[3], "a new text", TEXTS[0]])

    assert again[0] is first[3]
    assert again[2] is first[0]
    for one, text in zip(again, (TEXTS[3], "a new text", TEXTS[0]), strict=True):
        (alone,) = OnnxEmbedder(tiny_model, threads=1).encode_documents([text])
        np.testing.assert_array_equal(one.vector, alone.vector)
        assert one.tokens is not None
        assert alone.tokens is not None
        np.testing.assert_array_equal(one.tokens.states, alone.tokens.states)
        np.testing.assert_array_equal(one.tokens.spans, alone.tokens.spans)


def test_the_encoding_of_a_long_text_is_not_kept(tiny_model: Path) -> None:
    embedder = OnnxEmbedder(tiny_model, threads=1)
    long = "the cat sat " * 40
    (first,), (again,) = embedder.encode_documents([long]), embedder.encode_documents([long])
    assert again is not first
    np.testing.assert_array_equal(again.vector, first.vector)


def test_results_stay_the_same_when_the_weights_are_packed(tiny_model: Path) -> None:
    embedder = OnnxEmbedder(tiny_model, threads=2)
    texts = [
        f"the user prefers coffee over tea {'and milk ' * number}" for number in range(UNPACKED_RUNS + 1)
    ]
    before = [embedder.embed_query(text).tolist() for text in texts]
    assert [embedder.embed_query(text).tolist() for text in texts] == before
    assert embedder.embed_documents(texts).tolist() == before


def test_a_graph_that_was_replaced_is_not_opened_again(tiny_model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "model"
    shutil.copytree(tiny_model, copy)
    embedder = OnnxEmbedder(copy, threads=1)
    before = embedder.embed_query("the cat").tolist()
    (copy / "model.onnx").unlink()
    (copy / "model.onnx").write_bytes(b"another")
    assert [embedder.embed_query("the cat").tolist() for _ in range(UNPACKED_RUNS)][-1] == before


def test_threads_whose_runs_end_together_open_the_graph_again_once(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    real = onnx.open_session

    def counted(path: Path, *, packed: bool = True) -> object:
        opened.append(path)
        return real(path, packed=packed)

    monkeypatch.setattr(onnx, "open_session", counted)
    graph = OpenGraph(tiny_model / "model.onnx")
    for _ in range(UNPACKED_RUNS + 3):  # the last three waited for the one that opened it
        graph._count()
    assert len(opened) == 2
