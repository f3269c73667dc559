"""Chroma: a persistent collection in cosine space."""

import importlib
from collections.abc import Callable
from importlib.metadata import version as installed
from typing import Any

chromadb: Any = importlib.import_module("chromadb")
BATCH = 500


def version() -> str:
    return installed("chromadb")


class Peer:
    def __init__(self, folder: str, embed: Callable[[list[str]], list[list[float]]]) -> None:
        self._embed = embed
        client = chromadb.PersistentClient(
            path=folder, settings=chromadb.config.Settings(anonymized_telemetry=False)
        )
        self._held = client.create_collection(
            "memories", metadata={"hnsw:space": "cosine"}, embedding_function=None
        )

    def add(self, items: list[dict[str, Any]]) -> None:
        for at in range(0, len(items), BATCH):
            part = items[at : at + BATCH]
            texts = [item["content"] for item in part]
            self._held.add(ids=[item["key"] for item in part], documents=texts, embeddings=self._embed(texts))

    def search(self, query: str, limit: int) -> list[str]:
        found = self._held.query(query_embeddings=self._embed([query]), n_results=limit)
        return list(found["ids"][0])
