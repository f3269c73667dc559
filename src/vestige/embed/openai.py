"""Any endpoint that speaks the OpenAI embeddings protocol: Ollama, vLLM, llama.cpp, OpenAI itself."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from vestige.core.errors import ConfigError, EmbedderError, MissingExtra
from vestige.embed.dense import estimated_tokens, unit_rows, without_tokens
from vestige.embed.offline import is_loopback
from vestige.embed.protocol import Encoded, Signature, Vectors

if TYPE_CHECKING:
    import httpx

TRIES = 4
LONGEST_PAUSE_SECONDS = 30.0
_FIRST_PAUSE_SECONDS = 0.5
_RETRIED = (408, 429, 500, 502, 503, 504)
_SHOWN_CHARS = 300
_PROBE = "dimension"


class OpenAIEmbedder:
    """Embeds over HTTP. The key goes into one header and nowhere else: no log, no error, no signature.

    `dimension` is what the vectors must have; without it one request finds out. `shorten` asks the
    server to cut its vectors to that dimension, which only some models can do. The signature names
    the model but not the endpoint: the same model is the same space wherever it runs.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None,
        dimension: int | None = None,
        *,
        sleep: Callable[[float], None],
        shorten: bool = False,
        batch_size: int = 64,
        timeout_seconds: float = 30.0,
        max_tokens: int = 256,
    ) -> None:
        self._host = urlsplit(base_url).hostname or base_url  # a URL can carry a password
        self._key = api_key
        self._model = model
        self._sleep = sleep
        self._batch_size = batch_size
        self._max_tokens = max_tokens
        self._shorten_to = dimension if shorten else None
        self._client = _open_client(base_url, api_key, timeout_seconds)
        self._signature = Signature(
            name=model, revision="openai", dimension=dimension or self._probe(), pooling="model"
        )

    @property
    def signature(self) -> Signature:
        return self._signature

    @property
    def max_tokens(self) -> int:
        return self._max_tokens

    @property
    def token_states(self) -> bool:
        return False

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """An estimate: the model's tokenizer is on the server."""
        return estimated_tokens(texts)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One unit row per text, `batch_size` texts per request."""
        rows: list[list[float]] = []
        for start in range(0, len(texts), self._batch_size):
            rows += self._request(texts[start : start + self._batch_size])
        return unit_rows(rows, count=len(texts), dimension=self._signature.dimension)

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed_documents([text])[0]
        return vector

    def encode_documents(self, texts: Sequence[str]) -> list[Encoded]:
        return without_tokens(self.embed_documents(texts))

    def encode_query(self, text: str) -> Encoded:
        return Encoded(vector=self.embed_query(text), tokens=None)

    def close(self) -> None:
        self._client.close()

    def _probe(self) -> int:
        try:
            return len(self._request([_PROBE])[0])
        except EmbedderError:
            self.close()
            raise

    def _request(self, texts: Sequence[str]) -> list[list[float]]:
        # Several servers refuse an empty input; a space means as much and is taken.
        readable = [text.encode("utf-8", "replace").decode("utf-8") or " " for text in texts]
        body: dict[str, Any] = {"model": self._model, "input": readable, "encoding_format": "float"}
        if self._shorten_to is not None:
            body["dimensions"] = self._shorten_to
        return self._vectors(self._post(body), len(texts))

    def _post(self, body: Mapping[str, Any]) -> "httpx.Response":
        """The response to a request, after pauses while the server is overloaded or starting."""
        tries = 1
        response = self._try(body)
        while tries < TRIES and (response is None or response.status_code in _RETRIED):
            self._sleep(_pause_seconds(response, tries))
            tries += 1
            response = self._try(body)
        if response is None:
            raise self._failure("it closed the connection without an answer")
        if not response.is_success:
            said = response.text[:_SHOWN_CHARS].strip()
            raise self._failure(f"it answered {response.status_code} after {tries} tries: {said}")
        return response

    def _try(self, body: Mapping[str, Any]) -> "httpx.Response | None":
        """One attempt; None when the connection broke, which is worth a retry."""
        import httpx

        try:
            return self._client.post("embeddings", json=body)
        except (httpx.RemoteProtocolError, httpx.ReadError):
            return None
        except httpx.HTTPError as error:  # refused, unknown host, timeout: the same again is no help
            raise self._failure(f"{error} ({type(error).__name__})") from error

    def _vectors(self, response: "httpx.Response", count: int) -> list[list[float]]:
        """The vectors in the order of their `index`, which may differ from that of the response."""
        try:
            by_index = {int(item["index"]): item["embedding"] for item in response.json()["data"]}
            vectors = [by_index[index] for index in range(count)]
        except (ValueError, LookupError, TypeError) as error:
            raise self._failure(f"its answer is not one of {count} embeddings ({error!r})") from error
        if len(by_index) != count or not all(isinstance(vector, list) for vector in vectors):
            raise self._failure(f"its answer is not one of {count} embeddings")
        return vectors

    def _failure(self, reason: str) -> EmbedderError:
        shown = reason.replace(self._key, "***") if self._key else reason
        return EmbedderError(
            f"The embeddings endpoint at {self._host} failed: {shown}",
            hint="Check the URL, the model's name and the key, and that the server is running.",
            details={"model": self._model, "host": self._host},
        )


def _open_client(base_url: str, api_key: str | None, timeout_seconds: float) -> "httpx.Client":
    try:
        import httpx
    except ImportError as error:
        raise MissingExtra.named("remote", "An embeddings endpoint") from error
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            "The URL of the embeddings endpoint is not an http(s) URL.",
            hint="Give one such as http://localhost:11434/v1",
        )
    if parts.username or parts.password:
        # It would show up wherever a URL does, in logs above all.
        raise ConfigError("The URL of the embeddings endpoint holds a password.", hint="Use the key setting.")
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    # An endpoint on this machine is asked directly: a proxy would carry the texts away.
    direct = is_loopback(parts.hostname)
    return httpx.Client(base_url=base_url, headers=headers, timeout=timeout_seconds, trust_env=not direct)


def _pause_seconds(response: "httpx.Response | None", tries: int) -> float:
    """The server's retry-after, or else twice as long each time; never more than half a minute."""
    asked = "" if response is None else response.headers.get("retry-after", "")
    pause = float(asked) if asked.isdecimal() else _FIRST_PAUSE_SECONDS * 2.0 ** (tries - 1)
    return min(pause, LONGEST_PAUSE_SECONDS)
