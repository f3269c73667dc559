"""What the installed default model really does. Skipped loudly where it is not installed."""

from pathlib import Path

import numpy as np
import pytest

from vestige.embed.minilm.weights import MINILM
from vestige.embed.onnx import OnnxEmbedder

pytestmark = pytest.mark.slow

SENTENCES = [
    "Paris is the capital of France.",
    "The Seine flows through northern France.",
    "Berlin became the capital of Germany again in 1990.",
    "The user prefers dark roast coffee in the morning.",
    "The deploy failed because the migration held a lock.",
]


@pytest.fixture(scope="module")
def embedder(real_model_dir: Path) -> OnnxEmbedder:
    return OnnxEmbedder(real_model_dir, threads=2)


def test_the_signature_names_the_published_weights(embedder: OnnxEmbedder) -> None:
    assert embedder.signature.name == "all-MiniLM-L6-v2"
    assert embedder.signature.dimension == 384
    assert MINILM.sha256["model.safetensors"].startswith(embedder.signature.revision)
    assert embedder.signature.precision == "int8"


def test_a_question_finds_its_answer(embedder: OnnxEmbedder) -> None:
    cosines = embedder.embed_documents(SENTENCES) @ embedder.embed_query("capital of France")
    assert int(np.argmax(cosines)) == 0
    assert cosines[0] > 0.7 > cosines[3:].max() + 0.4


def test_a_paraphrase_without_common_words_is_closer_than_another_subject(embedder: OnnxEmbedder) -> None:
    query = embedder.embed_query("favourite hot drink at breakfast")
    cosines = embedder.embed_documents(SENTENCES) @ query
    assert int(np.argmax(cosines)) == 3


@pytest.mark.parametrize(
    ("claim", "opposite"),
    [
        ("Always run the linter before committing.", "Never run the linter before committing."),
        ("We deploy on PostgreSQL 16.", "We deploy on PostgreSQL 14."),
    ],
)
def test_opposite_claims_are_neighbours_so_cosine_alone_cannot_tell_them_apart(
    claim: str, opposite: str, embedder: OnnxEmbedder
) -> None:
    first, second = embedder.embed_documents([claim, opposite])
    assert 0.9 < float(first @ second) < 0.999


def test_a_text_has_the_same_vector_alone_and_in_a_batch(embedder: OnnxEmbedder) -> None:
    batch = embedder.embed_documents([*SENTENCES, " ".join(SENTENCES * 4)])
    for text, vector in zip(SENTENCES, batch, strict=False):
        np.testing.assert_array_equal(embedder.embed_query(text), vector)


def test_token_states_are_one_unit_row_per_word_piece(embedder: OnnxEmbedder) -> None:
    text = "Tokenizers embed PostgreSQL."
    encoded = embedder.encode_query(text)
    assert encoded.tokens is not None
    assert encoded.tokens.states.shape == (len(encoded.tokens.ids), 384)
    assert embedder.count_tokens([text]) == [len(encoded.tokens.ids)]
    np.testing.assert_allclose(np.linalg.norm(encoded.tokens.states, axis=1), 1.0, atol=1e-5)
    assert "".join(text[start:end] for start, end in encoded.tokens.spans) == text.replace(" ", "")


def test_a_long_text_is_cut_at_the_limit(embedder: OnnxEmbedder) -> None:
    long = "memory " * 1000
    assert embedder.count_tokens([long]) == [1000]
    np.testing.assert_array_equal(
        embedder.embed_query(long), embedder.embed_query("memory " * embedder.max_tokens)
    )
