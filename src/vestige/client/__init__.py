"""Vestige over the network, with one typed method for each operation.

    from vestige.client import Client

    with Client("http://127.0.0.1:3927", key="vst_…") as client:
        client.smart_ingest("Ada prefers tea.")
        for hit in client.search("What does Ada drink?")["results"]:
            print(hit["content"])

Answers are plain dictionaries, typed in `vestige.client.values`. Errors are those of `vestige.core.errors`,
with the same codes as everywhere, and those of `vestige.client.failures`.
"""

from vestige.client.client import Client
from vestige.client.failures import Refused, Unauthenticated, Unreachable

__all__ = ["Client", "Refused", "Unauthenticated", "Unreachable"]
