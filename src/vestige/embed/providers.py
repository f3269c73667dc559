"""The embedder each provider of the settings means. Nothing heavy is imported before it is loaded."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vestige.embed.progress import Progress
from vestige.embed.protocol import Embedder
from vestige.settings import Settings

MOST_THREADS = 4
"""Threads of the model when the settings leave the choice to us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Loads what the settings name. `allow_install` lets an absent local model be fetched too."""

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
        from vestige.embed.install import load_local

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
        from vestige.embed.offline import require_loopback
        from vestige.embed.openai import OpenAIEmbedder

        chosen = self.settings.embeddings
        if self.settings.offline:
            require_loopback(chosen.url)
        return OpenAIEmbedder(
            chosen.url, chosen.model, chosen.api_key or None, chosen.dimension or None, sleep=self.sleep
        )

    def _hashing(self, progress: Progress) -> Embedder:
        from vestige.embed.hashing import HashingEmbedder

        return HashingEmbedder()
