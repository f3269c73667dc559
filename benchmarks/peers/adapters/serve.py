"""Runs in a peer's own interpreter: answers requests on standard input with one of the adapters beside it.

    python serve.py ADAPTER

One JSON object per line, both ways. Requests are {"do": "open", "folder"}, {"do": "add", "items"} and
{"do": "search", "query", "limit"}. While one is served the adapter may ask back with {"embed": [texts]} and
gets {"vectors": […]}: no peer has a model here, so that all of them are compared with the same one. The last
line for a request is {"answer": …} or {"error": …}. Needs nothing but the peer.
"""

import importlib
import json
import sys
from typing import Any

_wire = sys.stdout


def main() -> None:
    sys.stdout = sys.stderr  # what a library prints must not get between the answers
    try:
        adapter: Any = importlib.import_module(sys.argv[1])
    except Exception as error:  # whatever keeps a peer from starting is the reason to skip it
        _send({"error": f"{type(error).__name__}: {error}"})
        return
    _send({"answer": adapter.version()})
    peer: Any = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if asked["do"] == "open":
                peer, answer = adapter.Peer(asked["folder"], embed), None
            elif asked["do"] == "add":
                answer = peer.add(asked["items"])
            else:
                answer = peer.search(asked["query"], asked["limit"])
        except Exception as error:  # told to the benchmark, which skips the peer with this reason
            _send({"error": f"{type(error).__name__}: {error}"})
        else:
            _send({"answer": answer})


def embed(texts: list[str]) -> list[list[float]]:
    """The vectors of the texts, made by the benchmark."""
    _send({"embed": texts})
    vectors: list[list[float]] = json.loads(sys.stdin.readline())["vectors"]
    return vectors


def _send(message: dict[str, object]) -> None:
    _wire.write(json.dumps(message) + "\n")
    _wire.flush()


if __name__ == "__main__":
    main()
