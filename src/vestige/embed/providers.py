"""The embedder and the reranker that the settings name. Nothing heavy is imported before it is loaded."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vestige.embed.background import EmbedderSource, Progress
from vestige.embed.protocol import Embedder, Reranker
from vestige.embed.rerank import FastembedReranker, RerankerSource
from vestige.settings.settings import Settings

MOST_THREADS = 4
"""The default number of the model's threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Loads what the settings name. `allow_install` allows a missing local model to be fetched."""

    settings: Settings
    cores: int
    sleep: Callable[[float], None]
    allow_install: bool

    def load(self, progress: Progress) -> Embedder:
        """The embedder of the provider in the settings, which is not `off`."""
        loaders: dict[str, Callable[[Progress], Embedder]] = {
            "local": self._local,
            "fastembed": self._fastembed,
            "openai": self._openai,
            "hashing": self._hashing,
        }
        return loaders[self.settings.embeddings.provider](progress)

    @property
    def _threads(self) -> int:
        return self.settings.embeddings.threads or min(MOST_THREADS, self.cores)

    def _local(self, progress: Progress) -> Embedder:
        from vestige.embed.minilm.install import load_local

        return load_local(
            self.settings.model_cache,
            threads=self._threads,
            offline=self.settings.offline,
            allow_install=self.allow_install,
            progress=progress,
        )

    def _fastembed(self, progress: Progress) -> Embedder:
        from vestige.embed.fastembed import FastembedEmbedder

        chosen = self.settings.embeddings
        return FastembedEmbedder(
            chosen.model,
            self.settings.model_cache,
            threads=self._threads,
            offline=self.settings.offline,
            model_path=Path(chosen.model_path).expanduser() if chosen.model_path else None,
        )

    def _openai(self, progress: Progress) -> Embedder:
        from vestige.embed.openai import OpenAIEmbedder, require_loopback

        chosen = self.settings.embeddings
        if self.settings.offline:
            require_loopback(chosen.url)
        return OpenAIEmbedder(
            chosen.url, chosen.model, chosen.api_key or None, chosen.dimension or None, sleep=self.sleep
        )

    def _hashing(self, progress: Progress) -> Embedder:
        from vestige.embed.hashing import HashingEmbedder

        return HashingEmbedder()


# -- sources: nothing is loaded yet ----------------------------------------------------------------


def embedder_source(
    settings: Settings, *, monotonic: Callable[[], float], sleep: Callable[[float], None], allow_install: bool
) -> EmbedderSource:
    if settings.embeddings.provider == "off":
        return EmbedderSource.off("The setting embeddings.provider is off.")
    provider = Provider(
        settings=settings, cores=os.cpu_count() or 1, sleep=sleep, allow_install=allow_install
    )
    return EmbedderSource(provider.load, monotonic=monotonic)


def reranker_source(settings: Settings, *, monotonic: Callable[[], float]) -> RerankerSource:
    if settings.search.reranker == "off":
        return RerankerSource.off()

    def load() -> Reranker:
        folder = settings.search.reranker_path
        return FastembedReranker(
            settings.search.reranker_model,
            settings.model_cache,
            threads=settings.embeddings.threads or min(MOST_THREADS, os.cpu_count() or 1),
            offline=settings.offline,
            model_path=Path(folder).expanduser() if folder else None,
        )

    return RerankerSource(load, monotonic=monotonic, wait_seconds=settings.embeddings.wait_seconds)
