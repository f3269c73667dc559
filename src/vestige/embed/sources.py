"""Where the models come from that the settings name. Nothing is loaded yet."""

import os
from collections.abc import Callable
from pathlib import Path

from vestige.embed.background import EmbedderSource
from vestige.embed.protocol import Reranker
from vestige.embed.providers import MOST_THREADS, Provider
from vestige.embed.rerank import FastembedReranker, RerankerSource
from vestige.settings import Settings


def embedder_source(
    settings: Settings,
    *,
    monotonic: Callable[[], float],
    sleep: Callable[[float], None],
    allow_install: bool,
) -> EmbedderSource:
    """The embedding model."""
    if settings.embeddings.provider == "off":
        return EmbedderSource.off("The setting embeddings.provider is off.")
    provider = Provider(
        settings=settings, cores=os.cpu_count() or 1, sleep=sleep, allow_install=allow_install
    )
    return EmbedderSource(provider.load, monotonic=monotonic)


def reranker_source(settings: Settings, *, monotonic: Callable[[], float]) -> RerankerSource:
    """The cross-encoder, if one is wanted."""
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
