"""Vestige over the network, with one typed method for each operation.

    from vestige.client import Client

    with Client("http://127.0.0.1:3927", key="vst_…") as client:
        client.smart_ingest("Ada prefers tea.")
        for hit in client.search("What does Ada drink?")["results"]:
            print(hit["content"])

`AsyncClient` has the same methods, awaited. `Operations` and `AsyncOperations` are what a server and a memory
in the program have in common.

Answers are plain dictionaries, typed in `vestige.client.values`. Errors are those of `vestige.core.errors`,
with the same codes as everywhere, and those of `vestige.client.failures`.
"""

from vestige.client.async_operations import AsyncOperations
from vestige.client.client import AsyncClient, Client
from vestige.client.failures import Refused, Unauthenticated, Unreachable
from vestige.client.operations import Operations

__all__ = [
    "AsyncClient",
    "AsyncOperations",
    "Client",
    "Operations",
    "Refused",
    "Unauthenticated",
    "Unreachable",
]
