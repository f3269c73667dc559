"""mcp-memory-service on its SQLite-vec store: one memory per turn, found by its hybrid search.

Its embedding model is replaced by the benchmark's: the real one would be downloaded. Needs a Python whose
SQLite can load extensions.
"""

import asyncio
import importlib
import os
import tempfile
from collections.abc import Callable, Coroutine
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

# Read when it is imported; the user's own memories and settings stay out of this.
os.environ["MCP_MEMORY_BASE_DIR"] = tempfile.mkdtemp(prefix="memory-service-")
storage: Any = importlib.import_module("mcp_memory_service.storage.sqlite_vec")
models: Any = importlib.import_module("mcp_memory_service.models.memory")
hashing: Any = importlib.import_module("mcp_memory_service.utils.hashing")
BATCH = 100

Embed = Callable[[list[str]], list[list[float]]]


def version() -> str:
    return installed("mcp-memory-service")


class Model:
    """What the store expects of a sentence-transformers model."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed

    def encode(self, texts: list[str], **_options: object) -> list[list[float]]:
        return self._embed(list(texts))


class Peer:
    def __init__(self, folder: str, embed: Embed) -> None:
        async def bring(store: Any) -> None:
            store.embedding_model = Model(embed)

        storage.SqliteVecMemoryStorage._initialize_embedding_model = bring
        self._loop = asyncio.new_event_loop()
        self._keys: dict[str, list[str]] = {}
        self._held = storage.SqliteVecMemoryStorage(str(Path(folder) / "memories.db"))
        self._run(self._held.initialize())

    def add(self, items: list[dict[str, Any]]) -> None:
        for at in range(0, len(items), BATCH):
            memories = [self._memory(item) for item in items[at : at + BATCH]]
            self._run(self._held.store_batch(memories))

    def search(self, query: str, limit: int) -> list[str]:
        found = self._run(self._held.retrieve_hybrid(query, n_results=limit))
        return [key for hit in found for key in self._keys[hit.memory.content_hash]]

    def _memory(self, item: dict[str, Any]) -> Any:  # Any: the peer's own class
        text_hash = hashing.generate_content_hash(item["content"])
        # A text that is there already is not stored again; whoever finds it has found both.
        self._keys.setdefault(text_hash, []).append(item["key"])
        return models.Memory(content=item["content"], content_hash=text_hash, tags=[item["author"]])

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:  # Any: whatever the peer answers
        return self._loop.run_until_complete(work)
