"""Any model of the `fastembed` library, with the prefixes its family was trained on."""

from pathlib import Path
from typing import TYPE_CHECKING

from vestige.core.errors import EmbedderError, MissingExtra, ModelUnavailable
from vestige.embed.dense import DenseEmbedder
from vestige.embed.protocol import Signature
from vestige.settings.settings import forbid_telemetry

if TYPE_CHECKING:
    from fastembed import TextEmbedding
    from numpy.typing import ArrayLike

PREFIXES = (
    # (part of the model's name, before a document, before a query): from the models' own cards
    ("nomic-embed-text", "search_document: ", "search_query: "),
    ("e5-", "passage: ", "query: "),
)
_BATCH = 32


class FastembedEmbedder(DenseEmbedder):
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
        signature = Signature(
            name=model_name,
            revision="fastembed",
            dimension=self._model.embedding_size,
            pooling="model",
            document_prefix=document_prefix,
            query_prefix=query_prefix,
        )
        super().__init__(signature, max_tokens)

    def _embed(self, texts: list[str]) -> "ArrayLike":
        readable = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        try:
            return list(self._model.embed(readable, batch_size=_BATCH))
        except Exception as error:  # fastembed lets the errors of several libraries through
            raise EmbedderError(f"{self._signature.name} failed: {error}") from error


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
