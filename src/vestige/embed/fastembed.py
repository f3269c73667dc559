"""Any model of the `fastembed` library, with the prefixes its family was trained on."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vestige.core.errors import EmbedderError, MissingExtra, ModelUnavailable
from vestige.embed.dense import estimated_tokens, unit_rows, without_tokens
from vestige.embed.protocol import Encoded, Signature, Vectors
from vestige.settings.settings import forbid_telemetry

if TYPE_CHECKING:
    from fastembed import TextEmbedding

PREFIXES = (
    # (part of the model's name, before a document, before a query): from the models' own cards
    ("nomic-embed-text", "search_document: ", "search_query: "),
    ("e5-", "passage: ", "query: "),
)
_BATCH = 32


class FastembedEmbedder:
    """Embeds with a fastembed model, which fastembed downloads on first use unless `offline`.

    `model_path` is a folder with the model's files, for machines without network access.
    """

    def __init__(
        self,
        model_name: str,
        cache_dir: Path,
        *,
        threads: int,
        offline: bool = False,
        model_path: Path | None = None,
        max_tokens: int = 256,
    ) -> None:
        self._model = _open(model_name, cache_dir, threads, offline, model_path)
        document_prefix, query_prefix = prefixes(model_name)
        self._max_tokens = max_tokens
        self._signature = Signature(
            name=model_name,
            revision="fastembed",
            dimension=self._model.embedding_size,
            pooling="model",
            document_prefix=document_prefix,
            query_prefix=query_prefix,
        )

    @property
    def signature(self) -> Signature:
        return self._signature

    @property
    def max_tokens(self) -> int:
        """The longest piece. Short pieces are found better, so it is below the model's limit."""
        return self._max_tokens

    @property
    def token_states(self) -> bool:
        return False

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """An estimate: fastembed counts only whole batches."""
        return estimated_tokens(texts)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._embed([self._signature.document_prefix + text for text in texts])

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._embed([self._signature.query_prefix + text])[0]
        return vector

    def encode_documents(self, texts: Sequence[str]) -> list[Encoded]:
        return without_tokens(self.embed_documents(texts))

    def encode_query(self, text: str) -> Encoded:
        return Encoded(vector=self.embed_query(text), tokens=None)

    def _embed(self, texts: list[str]) -> Vectors:
        readable = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        try:
            rows = list(self._model.embed(readable, batch_size=_BATCH))
        except Exception as error:  # fastembed lets the errors of several libraries through
            raise EmbedderError(f"{self._signature.name} failed: {error}") from error
        return unit_rows(rows, count=len(texts), dimension=self._signature.dimension)


def prefixes(model_name: str) -> tuple[str, str]:
    """The prefixes of a document and of a query for this model."""
    for part, document, query in PREFIXES:
        if part in model_name.lower():
            return document, query
    return "", ""


def _open(
    model_name: str, cache_dir: Path, threads: int, offline: bool, model_path: Path | None
) -> "TextEmbedding":
    try:
        forbid_telemetry()
        from fastembed import TextEmbedding
    except ImportError as error:
        raise MissingExtra.named("fastembed", f"The embedding model {model_name}") from error
    try:
        return TextEmbedding(
            model_name,
            cache_dir=str(cache_dir),
            threads=threads,
            specific_model_path=None if model_path is None else str(model_path),
            local_files_only=offline,
        )
    except Exception as error:  # an unknown model, no network, a damaged file: each another library's
        raise ModelUnavailable(
            f"The fastembed model {model_name} cannot be loaded: {error}",
            hint="Check the model's name and the network, or give a folder with its files.",
            details={"reason": "offline" if offline else "failed", "model": model_name},
        ) from error
