"""Any endpoint that speaks the OpenAI embeddings protocol: Ollama, vLLM, llama.cpp, OpenAI itself. With
VESTIGE_OFFLINE, only one on this machine."""

import socket
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakSet

from vestige.core.errors import ConfigError, EmbedderError, MissingExtra, ModelUnavailable
from vestige.embed.dense import DenseEmbedder
from vestige.embed.protocol import Signature

if TYPE_CHECKING:
    import httpx

TRIES = 4
LONGEST_PAUSE_SECONDS = 30.0
_FIRST_PAUSE_SECONDS = 0.5
_RETRIED = (408, 429, 500, 502, 503, 504)
_SHOWN_CHARS = 300
_PROBE = "dimension"
_BYTES_PER_NUMBER = 32
"""Bytes of a number in JSON, at most: 17 digits, a sign, an exponent, and white space."""
_MAX_DIMENSION = 16_384
"""An answer may have vectors this long, so that a wrong dimension in the settings is named as such."""
_SLACK_BYTES = 1 << 20
"""Bytes of an answer besides its numbers."""
ANSWER_TIMEOUTS = 4
"""An answer may take this many times the timeout, which begins again with each part of it."""
_ZLIB_OR_GZIP = 47
"""The argument of zlib for data of either kind."""
_PLAIN = {"Accept-Encoding": "identity"}
_BOUNDED_CODINGS = ("identity", "gzip", "deflate")


class OpenAIEmbedder(DenseEmbedder):
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
        self._answer_seconds = ANSWER_TIMEOUTS * timeout_seconds
        self._batch_size = batch_size
        self._max_dimension = max(dimension or 0, _MAX_DIMENSION)
        self._shorten_to = dimension if shorten else None
        self._client = _open_client(base_url, api_key, timeout_seconds)
        self._connections = EndpointConnections()
        dimension = dimension or self._probe()
        super().__init__(
            Signature(name=model, revision="openai", dimension=dimension, pooling="model"), max_tokens
        )

    def _embed(self, texts: list[str]) -> list[list[float]]:
        """One row per text, `batch_size` texts per request."""
        starts = range(0, len(texts), self._batch_size)
        return [row for start in starts for row in self._request(texts[start : start + self._batch_size])]

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
        most = _SLACK_BYTES + len(texts) * self._max_dimension * _BYTES_PER_NUMBER
        return self._vectors(self._post(body, most), len(texts))

    def _post(self, body: Mapping[str, Any], most: int) -> "httpx.Response":
        """The response to a request, after pauses while the server is overloaded or starting."""
        for tries in range(1, TRIES + 1):
            response = self._try(body, most)
            if tries == TRIES or (response is not None and response.status_code not in _RETRIED):
                break
            self._sleep(_pause_seconds(response, tries))
        if response is None:
            raise self._failure("it closed the connection without an answer")
        if not response.is_success:
            said = response.text[:_SHOWN_CHARS].strip()
            raise self._failure(f"it answered {response.status_code} after {tries} tries: {said}")
        return response

    def _try(self, body: Mapping[str, Any], most: int) -> "httpx.Response | None":
        """One attempt; None when the connection broke, which is worth a retry. An answer of more bytes than
        `most`, or one that takes too long, is not read to its end, which it may not have."""
        import httpx

        with self._connections.ended_after(self._answer_seconds) as ended:
            try:
                with self._client.stream(
                    "POST",
                    "embeddings",
                    json=body,
                    headers=_PLAIN,
                    extensions={"trace": self._connections.trace},
                ) as response:
                    content = self._read(response, most)
            except (httpx.RemoteProtocolError, httpx.ReadError):
                if not ended.is_set():
                    return None
            except httpx.HTTPError as error:  # refused, unknown host, timeout: the same again is no help
                raise self._failure(f"{error} ({type(error).__name__})") from error
        if ended.is_set():
            raise self._failure(f"its answer took longer than {self._answer_seconds:g} seconds")
        return httpx.Response(
            response.status_code,
            headers={"retry-after": response.headers.get("retry-after", "")},
            content=content,
        )

    def _read(self, response: "httpx.Response", most: int) -> bytes:
        # It was asked for without compression. A part of another kind than these could become huge at once.
        if (coding := response.headers.get("content-encoding", "identity")) not in _BOUNDED_CODINGS:
            raise self._failure(f"its answer is compressed with {coding[:_SHOWN_CHARS]}")
        unpacker = None if coding == "identity" else zlib.decompressobj(_ZLIB_OR_GZIP)
        content = bytearray()
        for part in response.iter_raw():  # not those unpacked: a packed part may hold nothing
            try:
                content += part if unpacker is None else unpacker.decompress(part, most + 1)
            except zlib.error as error:
                raise self._failure(f"its answer cannot be unpacked ({error})") from error
            if len(content) > most:
                raise self._failure(f"its answer is longer than {most:,} bytes")
        return bytes(content)

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


class EndpointConnections:
    """The open connections of a client, which can be ended from another thread. The timeouts of a client
    begin again with each part of an answer, and while it waits for the end of the headers no code of ours
    runs that could give up."""

    def __init__(self) -> None:
        self._open: WeakSet[socket.socket] = WeakSet()
        self._lock = threading.Lock()

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Take note of a connection that was opened; the client calls it at each step of a request."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            with self._lock:
                self._open.add(info["return_value"].get_extra_info("socket"))

    @contextmanager
    def ended_after(self, seconds: float) -> Iterator[threading.Event]:
        """End all connections if the block takes longer, which the event shows. A request that another thread
        makes to the same endpoint then fails too, and is tried again."""
        ended = threading.Event()

        def end() -> None:
            ended.set()
            with self._lock:
                for connection in self._open:
                    with suppress(OSError):  # it was closed
                        connection.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            yield ended
        finally:
            timer.cancel()


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


def require_loopback(url: str) -> None:
    """Raise ModelUnavailable unless the endpoint is on this machine. The URL is validated elsewhere."""
    host = urlsplit(url).hostname
    if host is None or is_loopback(host):
        return
    raise ModelUnavailable(
        f"VESTIGE_OFFLINE allows only endpoints on this machine; {host} is not one.",
        hint="Unset VESTIGE_OFFLINE, or use a local endpoint such as http://localhost:11434/v1",
        details={"reason": "offline", "host": host},
    )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its name alone, without a lookup."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
