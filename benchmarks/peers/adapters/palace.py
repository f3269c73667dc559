"""MemPalace: one drawer per turn, written as its miner writes them, found by `search_memories`.

Its embedding function is Chroma's MiniLM, whose forward pass is replaced by the benchmark's model: the real
one would be downloaded.
"""

import importlib
import os
import tempfile
from collections.abc import Callable
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

# Read when it is imported; the user's own palace and settings stay out of this.
os.environ["MEMPALACE_CONFIG_DIR"] = tempfile.mkdtemp(prefix="mempalace-")
os.environ["MEMPALACE_EMBEDDING_MODEL"] = "minilm"
collections: Any = importlib.import_module("mempalace.palace")
miner: Any = importlib.import_module("mempalace.miner")
searcher: Any = importlib.import_module("mempalace.searcher")
minilm: Any = importlib.import_module("chromadb.utils.embedding_functions").ONNXMiniLM_L6_V2
numpy: Any = importlib.import_module("numpy")
BATCH = 100


def version() -> str:
    return installed("mempalace")


class Peer:
    def __init__(self, folder: str, embed: Callable[[list[str]], list[list[float]]]) -> None:
        def forward(_self: object, documents: list[str], batch_size: int = 0) -> object:
            return numpy.array(embed(list(documents)), dtype=numpy.float32)

        minilm._forward = forward
        minilm._download_model_if_not_exists = lambda _self: None
        self._folder = folder
        self._held = collections.get_collection(folder)

    def add(self, items: list[dict[str, Any]]) -> None:
        for at in range(0, len(items), BATCH):
            part = items[at : at + BATCH]
            self._held.upsert(
                ids=[item["key"] for item in part],
                documents=[item["content"] for item in part],
                metadatas=[self._facts(item) for item in part],
            )

    def search(self, query: str, limit: int) -> list[str]:
        found = searcher.search_memories(query, palace_path=self._folder, n_results=limit)
        return [str(hit["drawer_id"]) for hit in found["results"]]

    def _facts(self, item: dict[str, Any]) -> object:
        path = str(Path(self._folder) / item["key"])
        return miner._build_drawer_metadata(
            "talk", item["thread"], path, 0, "benchmark", item["content"], None
        )
