"""The fastembed embedder on a tiny model file made here; no hub is needed or reached."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType

from tests.embed.minilm import tiny_bert
from vestige.core.errors import ModelUnavailable
from vestige.embed.fastembed import FastembedEmbedder, prefixes
from vestige.embed.minilm.bert_graph import STATES, build
from vestige.embed.minilm.convert import read_config


def register(name: str) -> str:
    known = {str(model["model"]) for model in TextEmbedding.list_supported_models()}
    if name not in known:
        TextEmbedding.add_custom_model(
            model=name,
            pooling=PoolingType.MEAN,
            normalization=False,  # length one is our own business
            sources=ModelSource(hf=name),
            dim=tiny_bert.HIDDEN,
            model_file="model.onnx",
        )
    return name


@pytest.fixture(scope="module")
def model_path(tiny_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny BERT in the layout of a hub: token states first, and the usual JSON files."""
    folder = tmp_path_factory.mktemp("fastembed")
    graph = build(tiny_bert.make_weights(), read_config(tiny_source / "config.json"))
    states = next(output for output in graph.graph.output if output.name == STATES)
    del graph.graph.output[:]
    graph.graph.output.append(states)
    onnx.save(graph, folder / "model.onnx")
    tokenizer = tiny_bert.make_tokenizer()
    tokenizer.post_processor = tiny_bert.special_tokens()
    tokenizer.save(str(folder / "tokenizer.json"))
    files = {
        "config.json": tiny_bert.CONFIG,
        "tokenizer_config.json": {"model_max_length": tiny_bert.POSITIONS, "pad_token": "[PAD]"},
        "special_tokens_map.json": {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"},
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.fixture
def embedder(model_path: Path, tmp_path: Path) -> FastembedEmbedder:
    name = register("test/nomic-embed-text-tiny")
    return FastembedEmbedder(name, tmp_path, threads=1, offline=True, model_path=model_path)


def expected(text: str) -> tiny_bert.Array:
    ids = [2, *tiny_bert.make_tokenizer().encode(text).ids, 3]
    return tiny_bert.pooled(tiny_bert.forward(tiny_bert.make_weights(), ids))


def test_documents_and_queries_get_the_prefixes_of_their_family(embedder: FastembedEmbedder) -> None:
    text = "the cat sat"
    document = embedder.embed_documents([text])[0]
    query = embedder.embed_query(text)
    np.testing.assert_allclose(document, expected(f"search_document: {text}"), atol=1e-5)
    np.testing.assert_allclose(query, expected(f"search_query: {text}"), atol=1e-5)
    assert not np.allclose(document, query, atol=1e-3)
    assert embedder.signature.document_prefix == "search_document: "


def test_rows_have_length_one_in_the_order_of_the_texts(embedder: FastembedEmbedder) -> None:
    texts = ["red", "the user prefers coffee over tea because of the cat", "", "a\ud800b"]
    vectors = embedder.embed_documents(texts)
    assert vectors.shape == (4, tiny_bert.HIDDEN)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(vectors[1], embedder.embed_documents([texts[1]])[0], atol=1e-5)


def test_there_are_no_token_states_and_no_rows_for_no_texts(embedder: FastembedEmbedder) -> None:
    assert embedder.encode_query("red").tokens is None
    assert [one.tokens for one in embedder.encode_documents(["red", "blue"])] == [None, None]
    assert embedder.embed_documents([]).shape == (0, tiny_bert.HIDDEN)
    assert embedder.count_tokens(["two words", ""]) == [3, 0]
    assert embedder.max_tokens > 0


def test_a_model_of_no_known_family_has_no_prefixes() -> None:
    assert prefixes("BAAI/bge-small-en-v1.5") == ("", "")
    assert prefixes("intfloat/multilingual-e5-large") == ("passage: ", "query: ")
    assert prefixes("nomic-ai/nomic-embed-text-v1.5-Q") == ("search_document: ", "search_query: ")


def test_an_unknown_model_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="test/unknown") as caught:
        FastembedEmbedder("test/unknown", tmp_path, threads=1)
    assert caught.value.hint is not None


def test_offline_a_model_that_was_never_downloaded_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        FastembedEmbedder("BAAI/bge-small-en-v1.5", tmp_path, threads=1, offline=True)
    assert caught.value.details["reason"] == "offline"


def test_files_that_are_no_model_are_unavailable(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"nonsense")
    with pytest.raises(ModelUnavailable):
        FastembedEmbedder(register("test/broken-tiny"), tmp_path, threads=1, model_path=tmp_path)
