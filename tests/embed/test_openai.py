"""The OpenAI-compatible embedder against an endpoint on this machine."""

import gzip
import json
import logging
import socket
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.embed.fake_endpoint import DIMENSION, Endpoint, answered, serving, vector_of
from vestige.core.errors import ConfigError, EmbedderError
from vestige.embed import openai
from vestige.embed.openai import LONGEST_PAUSE_SECONDS, TRIES, OpenAIEmbedder

KEY = "sk-very-secret-key"


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as running:
        yield running


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def embedder(endpoint: Endpoint, pauses: list[float]) -> Iterator[OpenAIEmbedder]:
    made = OpenAIEmbedder(endpoint.url, "fake", KEY, DIMENSION, sleep=pauses.append, batch_size=3)
    yield made
    made.close()


def unit(text: str) -> list[float]:
    vector = np.array(vector_of(text))
    return list(vector / np.linalg.norm(vector))


def test_rows_follow_the_index_of_the_answer_and_have_length_one(
    endpoint: Endpoint, embedder: OpenAIEmbedder
) -> None:
    texts = [f"text {number}" for number in range(7)]
    vectors = embedder.embed_documents(texts)
    np.testing.assert_allclose(vectors, [unit(text) for text in texts], atol=1e-6)
    assert vectors.dtype == np.float32
    assert [len(request["input"]) for request in endpoint.requests] == [3, 3, 1]
    assert endpoint.paths == ["/v1/embeddings"] * 3
    assert {request["model"] for request in endpoint.requests} == {"fake"}


def test_a_query_is_one_vector_without_token_states(embedder: OpenAIEmbedder) -> None:
    encoded = embedder.encode_query("hello")
    assert encoded.tokens is None
    np.testing.assert_allclose(encoded.vector, unit("hello"), atol=1e-6)
    np.testing.assert_array_equal(embedder.embed_query("hello"), encoded.vector)
    assert [one.tokens for one in embedder.encode_documents(["a", "b"])] == [None, None]


def test_no_texts_ask_nothing(endpoint: Endpoint, embedder: OpenAIEmbedder) -> None:
    assert embedder.embed_documents([]).shape == (0, DIMENSION)
    assert endpoint.requests == []


def test_an_empty_text_and_a_broken_one_are_sent_as_something_every_server_takes(
    endpoint: Endpoint, embedder: OpenAIEmbedder
) -> None:
    embedder.embed_documents(["", "a\ud800b"])
    assert endpoint.requests[0]["input"] == [" ", "a?b"]


def test_an_unknown_dimension_is_asked_for_once(endpoint: Endpoint, pauses: list[float]) -> None:
    embedder = OpenAIEmbedder(endpoint.url + "/", "fake", None, sleep=pauses.append)
    assert embedder.signature.dimension == DIMENSION
    assert len(endpoint.requests) == 1
    assert endpoint.keys == [None]
    embedder.close()


def test_the_signature_is_the_models_and_not_the_endpoints(
    endpoint: Endpoint, embedder: OpenAIEmbedder, pauses: list[float]
) -> None:
    elsewhere = OpenAIEmbedder("http://elsewhere.invalid/v1", "fake", "other", DIMENSION, sleep=pauses.append)
    assert elsewhere.signature == embedder.signature
    elsewhere.close()


def test_a_server_is_asked_to_shorten_only_on_request(endpoint: Endpoint, pauses: list[float]) -> None:
    for shorten in (False, True):
        made = OpenAIEmbedder(endpoint.url, "fake", None, DIMENSION, sleep=pauses.append, shorten=shorten)
        made.embed_query("x")
        made.close()
    assert [request.get("dimensions") for request in endpoint.requests] == [None, DIMENSION]


def test_an_overloaded_server_is_asked_again_after_growing_pauses(
    endpoint: Endpoint, embedder: OpenAIEmbedder, pauses: list[float]
) -> None:
    endpoint.script = [(503, {}, {}), (500, {}, {})]
    np.testing.assert_allclose(embedder.embed_query("x"), unit("x"), atol=1e-6)
    assert pauses == [0.5, 1.0]


def test_the_pause_a_server_asks_for_is_kept_within_bounds(
    endpoint: Endpoint, embedder: OpenAIEmbedder, pauses: list[float]
) -> None:
    endpoint.script = [
        (429, {"retry-after": "7"}, {}),
        (429, {"retry-after": "86400"}, {}),
        (429, {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, {}),
    ]
    embedder.embed_query("x")
    assert pauses == [7.0, LONGEST_PAUSE_SECONDS, 2.0]


def test_the_tries_are_bounded(endpoint: Endpoint, embedder: OpenAIEmbedder, pauses: list[float]) -> None:
    endpoint.script = [(503, {}, {"error": "still loading"})] * 10
    with pytest.raises(EmbedderError, match=f"503 after {TRIES} tries.*still loading"):
        embedder.embed_query("x")
    assert len(endpoint.requests) == TRIES
    assert len(pauses) == TRIES - 1


def test_a_refusal_is_not_repeated_and_never_shows_the_key(
    endpoint: Endpoint, embedder: OpenAIEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    endpoint.script = [(401, {}, {"error": f"Incorrect API key provided: {KEY}"})]
    with pytest.raises(EmbedderError, match="401") as caught:
        embedder.embed_query("x")
    assert len(endpoint.requests) == 1
    assert endpoint.keys == [f"Bearer {KEY}"]
    assert KEY not in str(caught.value.value())
    assert KEY not in caplog.text
    assert KEY not in repr(embedder)
    assert caught.value.hint is not None


def test_a_redirect_is_not_followed_with_the_key(endpoint: Endpoint, embedder: OpenAIEmbedder) -> None:
    endpoint.script = [(307, {"location": f"{endpoint.url}/elsewhere"}, {})]
    with pytest.raises(EmbedderError, match="307"):
        embedder.embed_query("x")
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>", "is not one of 2 embeddings"),
        ([], "is not one of 2 embeddings"),
        ({"data": []}, "is not one of 2 embeddings"),
        ({"data": [{"index": 0, "embedding": [1.0] * DIMENSION}]}, "is not one of 2 embeddings"),
        ({"data": [{"index": 0, "embedding": [1.0] * 8}] * 2}, "is not one of 2 embeddings"),
        ({"data": [{"index": i, "embedding": [1.0] * 8} for i in range(3)]}, "is not one of 2 embeddings"),
        ({"data": [{"index": i, "embedding": "AAAA"} for i in range(2)]}, "is not one of 2 embeddings"),
        ({"data": [{"index": i, "embedding": [1.0] * 5} for i in range(2)]}, "5 dimensions instead of 8"),
        ({"data": [{"index": i, "embedding": [1.0] * (7 + i)} for i in range(2)]}, "with 2 vectors"),
        ({"data": [{"index": i, "embedding": [0.0] * 8} for i in range(2)]}, "no direction"),
        ({"data": [{"index": i, "embedding": ["a"] * 8} for i in range(2)]}, "with 2 vectors"),
    ],
)
def test_an_answer_that_is_not_the_vectors_asked_for_is_refused(
    content: object, message: str, endpoint: Endpoint, embedder: OpenAIEmbedder
) -> None:
    endpoint.script = [(200, {}, content)]
    with pytest.raises(EmbedderError, match=message):
        embedder.embed_documents(["a", "b"])


@pytest.mark.parametrize("dimension", [DIMENSION, None])
def test_an_endless_answer_is_cut(endpoint: Endpoint, pauses: list[float], dimension: int | None) -> None:
    endpoint.endless = (b'HTTP/1.1 200 OK\r\n\r\n{"data": [{"index": 0, "embedding": [', b"0.125, " * 10_000)
    with pytest.raises(EmbedderError, match=r"its answer is longer than 1,572,864 bytes"):
        OpenAIEmbedder(endpoint.url, "fake", KEY, dimension, sleep=pauses.append).embed_query("x")
    assert endpoint.sent < 50_000_000  # what the buffers of both ends take besides
    assert pauses == []


PACKED = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\xff"
NOTHING_PACKED = b"\0\0\0\xff\xff"
"""A block of deflate that holds nothing."""


@pytest.mark.parametrize(
    ("first", "part"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n"),
        (PACKED, NOTHING_PACKED),
    ],
)
def test_an_answer_that_never_comes_to_its_point_is_cut_after_a_few_timeouts(
    endpoint: Endpoint, pauses: list[float], first: bytes, part: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.endless = (first, part)
    assert 1 < openai.ANSWER_TIMEOUTS < 10
    monkeypatch.setattr(openai, "ANSWER_TIMEOUTS", 0.01)  # while each part has a long time
    made = OpenAIEmbedder(endpoint.url, "fake", KEY, DIMENSION, sleep=pauses.append, timeout_seconds=20.0)
    for _ in range(2):  # the second one on a connection of its own
        with pytest.raises(EmbedderError, match=r"its answer took longer than 0\.2 seconds"):
            made.embed_query("x")
    endpoint.endless, made._answer_seconds = None, PATIENCE_SECONDS
    np.testing.assert_allclose(made.embed_query("x"), unit("x"), atol=1e-6)
    made.close()
    assert pauses == []


def test_an_answer_that_is_packed_wrongly_is_refused(endpoint: Endpoint, embedder: OpenAIEmbedder) -> None:
    endpoint.script = [(200, {"content-encoding": "gzip"}, b"not packed")]
    with pytest.raises(EmbedderError, match="cannot be unpacked"):
        embedder.embed_query("x")


def test_an_answer_that_could_grow_without_bounds_when_unpacked_is_refused(
    endpoint: Endpoint, embedder: OpenAIEmbedder
) -> None:
    endpoint.script = [(200, {"content-encoding": "br"}, b"...")]
    with pytest.raises(EmbedderError, match="compressed with br"):
        embedder.embed_query("x")
    bomb = gzip.compress(b" " * 30_000_000)
    endpoint.script = [(200, {"content-encoding": "gzip"}, bomb)]
    with pytest.raises(EmbedderError, match="longer than"):
        embedder.embed_query("x")


def test_an_answer_that_was_compressed_unasked_is_read(endpoint: Endpoint, embedder: OpenAIEmbedder) -> None:
    packed = gzip.compress(json.dumps(answered(["hello"])).encode())
    endpoint.script = [(200, {"content-encoding": "gzip"}, packed)]
    np.testing.assert_allclose(embedder.embed_query("hello"), unit("hello"), atol=1e-6)


def test_an_endpoint_that_is_not_there_is_named_without_retries(pauses: list[float]) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # it has the port, so that nobody else listens there
        port = silent.getsockname()[1]
        with pytest.raises(EmbedderError, match=r"127\.0\.0\.1") as caught:
            OpenAIEmbedder(f"http://127.0.0.1:{port}/v1", "fake", KEY, sleep=pauses.append)
    assert caught.value.details["model"] == "fake"
    assert pauses == []


def test_a_connection_that_breaks_is_tried_again(pauses: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            for _ in range(TRIES):
                connection, _address = server.accept()
                connection.recv(65536)
                connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        with pytest.raises(EmbedderError, match="without an answer"):
            OpenAIEmbedder(url, "fake", None, sleep=pauses.append)
        thread.join()
    assert len(pauses) == TRIES - 1


@pytest.mark.parametrize("url", ["ftp://host/v1", "host", "", "http://"])
def test_a_url_that_is_none_is_a_configuration_error(url: str, pauses: list[float]) -> None:
    with pytest.raises(ConfigError, match="not an http"):
        OpenAIEmbedder(url, "fake", None, DIMENSION, sleep=pauses.append)


def test_a_password_in_the_url_is_refused_without_repeating_it(pauses: list[float]) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAIEmbedder("http://me:hunter2@host/v1", "fake", None, DIMENSION, sleep=pauses.append)
    assert "hunter2" not in str(caught.value.value())


def test_tokens_are_estimated_and_never_fewer_than_words(embedder: OpenAIEmbedder) -> None:
    assert embedder.count_tokens(["", "a b c", "x" * 40, "日本語"]) == [0, 3, 10, 3]
