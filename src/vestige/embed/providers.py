"""The embedder and the reranker that the settings name. Nothing heavy is imported before it is loaded."""

import os
from collections.abc import Callable
from pathlib import Path

from vestige.core.lazy_dataclass import dataclass
from vestige.embed.background import EmbedderSource, EmbedderStatus, Progress
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

    def check(self) -> EmbedderStatus | None:
        """The status of a local model that would load, from its files; None if only loading can tell."""
        if self.settings.embeddings.provider != "local":
            return None
        from vestige.embed.minilm.install import loadable

        return loadable(self.settings.model_cache)

    def load(self, progress: Progress) -> Embedder:
        """The embedder of the provider in the settings, which is not `off`."""
        settings, chosen = self.settings, self.settings.embeddings
        threads = chosen.threads or min(MOST_THREADS, self.cores)
        if chosen.provider == "local":
            from vestige.embed.minilm.install import load_local

            return load_local(
                settings.model_cache,
                threads=threads,
                offline=settings.offline,
                allow_install=self.allow_install,
                progress=progress,
            )
        if chosen.provider == "fastembed":
            from vestige.embed.fastembed import FastembedEmbedder

            return FastembedEmbedder(
                chosen.model,
                settings.model_cache,
                threads=threads,
                offline=settings.offline,
                model_path=Path(chosen.model_path).expanduser() if chosen.model_path else None,
            )
        if chosen.provider == "openai":
            from vestige.embed.openai import OpenAIEmbedder, require_loopback

            if settings.offline:
                require_loopback(chosen.url)
            return OpenAIEmbedder(
                chosen.url, chosen.model, chosen.api_key or None, chosen.dimension or None, sleep=self.sleep
            )
        from vestige.embed.hashing import HashingEmbedder

        return HashingEmbedder()


# -- Sources: nothing is loaded yet


def embedder_source(
    settings: Settings, *, monotonic: Callable[[], float], sleep: Callable[[float], None], allow_install: bool
) -> EmbedderSource:
    if settings.embeddings.provider == "off":
        return EmbedderSource.off("The setting embeddings.provider is off.")
    provider = Provider(
        settings=settings, cores=os.cpu_count() or 1, sleep=sleep, allow_install=allow_install
    )
    return EmbedderSource(provider.load, check=provider.check, monotonic=monotonic)


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
