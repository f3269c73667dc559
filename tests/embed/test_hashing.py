"""The embedder other tests stand on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.embed.hashing import HashingEmbedder


def test_texts_that_share_words_are_closer_than_texts_that_do_not() -> None:
    embedder = HashingEmbedder()
    query = embedder.embed_query("which database does the project use")
    near, far = embedder.embed_documents(
        ["the project uses PostgreSQL as its database", "coffee tastes bitter without sugar"]
    )
    assert float(query @ near) > 0.4 > float(query @ far)


def test_forms_of_a_word_are_closer_than_other_words() -> None:
    embedder = HashingEmbedder()
    base = embedder.embed_query("deployment")
    assert float(base @ embedder.embed_query("deployments")) > float(base @ embedder.embed_query("breakfast"))


def test_case_does_not_matter_and_the_answer_never_changes() -> None:
    first = HashingEmbedder().embed_query("The Cat")
    np.testing.assert_array_equal(first, HashingEmbedder().embed_query("the cat"))


@pytest.mark.parametrize("text", ["", " ", "\x00", "?!", "\ud800", "…"])
def test_a_text_without_words_has_a_unit_vector_and_no_tokens(text: str) -> None:
    encoded = HashingEmbedder().encode_query(text)
    assert np.linalg.norm(encoded.vector) == pytest.approx(1.0)
    assert encoded.tokens is not None
    assert encoded.tokens.states.shape == (0, 64)


def test_each_word_has_an_id_a_place_and_a_unit_state() -> None:
    text = "Tea and tea"
    tokens = HashingEmbedder(dimension=16).encode_query(text).tokens
    assert tokens is not None
    assert [text[start:end] for start, end in tokens.spans] == ["Tea", "and", "tea"]
    assert tokens.ids[0] == tokens.ids[2] != tokens.ids[1]
    np.testing.assert_allclose(np.linalg.norm(tokens.states, axis=1), 1.0, atol=1e-6)


def test_no_texts_give_no_rows_and_the_dimension_is_in_the_signature() -> None:
    embedder = HashingEmbedder(dimension=16)
    assert embedder.embed_documents([]).shape == (0, 16)
    assert embedder.signature.dimension == 16
    assert embedder.signature.name == "hashing"
    assert embedder.signature.profile != HashingEmbedder(dimension=32).signature.profile


@given(st.lists(st.text(max_size=80), max_size=5))
def test_every_text_gets_a_unit_vector_equal_to_the_one_it_has_alone(texts: list[str]) -> None:
    embedder = HashingEmbedder(dimension=8)
    vectors = embedder.embed_documents(texts)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_array_equal(embedder.embed_query(text), vector)
    assert embedder.count_tokens(texts) == [
        len(encoded.tokens.ids) for encoded in embedder.encode_documents(texts) if encoded.tokens
    ]
