"""The HTTP server of mcp-memory-service, run by an interpreter that has it: `memory_service.py PORT`.

Its vectors are made by the hash it falls back to without a model: the real one would be downloaded, and what
is compared is the server. Needs a Python whose SQLite can load extensions.
"""

import importlib
import sys
from typing import Any

storage: Any = importlib.import_module("mcp_memory_service.storage.mixins.embeddings")
web: Any = importlib.import_module("mcp_memory_service.web.app")
uvicorn: Any = importlib.import_module("uvicorn")


async def bring(store: Any) -> None:
    """Give a store the model that costs nothing."""
    store.embedding_model = storage._HashEmbeddingModel(store.embedding_dimension)


if __name__ == "__main__":
    storage.EmbeddingsMixin._initialize_embedding_model = bring
    uvicorn.run(web.app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
