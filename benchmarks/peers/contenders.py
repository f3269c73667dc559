"""Memories that take part: each is opened on an empty folder, filled, and asked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from benchmarks.bm25 import Bm25
from benchmarks.engine import OverStdio
from benchmarks.peers.process import PeerProcess
from benchmarks.process import Memory, own_memory
from benchmarks.quality import arms
from benchmarks.quality.corpus import Document
from benchmarks.quality.shelf import BATCH


class Contender(Protocol):
    """A memory under test."""

    version: str

    def open(self, folder: Path) -> None:
        """Begin with an empty memory in this folder."""

    def add(self, documents: Sequence[Document]) -> None:
        """Remember all of them."""

    def search(self, query: str, limit: int) -> list[str]:
        """Keys, best first."""

    def cpu_seconds(self) -> float | None:
        """CPU time of its own process, where it has one."""

    def memory(self) -> Memory | None:
        """Memory of its own process, where it has one."""

    def close(self) -> None:
        """End it."""


class Ours:
    """Vestige through MCP."""

    def __init__(self, version: str) -> None:
        self.version = version
        self._server: OverStdio | None = None
        self._keys: dict[str, str] = {}

    def open(self, folder: Path) -> None:
        self.close()
        self._server, self._keys = OverStdio(folder), {}

    def add(self, documents: Sequence[Document]) -> None:
        for at in range(0, len(documents), BATCH):
            part = documents[at : at + BATCH]
            answered = self._opened.call("smart_ingest", {"items": [one.item() for one in part]})
            for document, result in zip(part, answered["results"], strict=True):
                self._keys[result["nodeId"]] = document.key

    def search(self, query: str, limit: int) -> list[str]:
        return arms.found_keys(arms.ask(self._opened, query, limit), self._keys)

    def cpu_seconds(self) -> float | None:
        return self._opened.cpu_seconds()

    def memory(self) -> Memory | None:
        return own_memory(self._opened.pid)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    @property
    def _opened(self) -> OverStdio:
        assert self._server is not None
        return self._server


class Theirs:
    """A peer in its own interpreter."""

    def __init__(self, process: PeerProcess) -> None:
        self._process = process
        self.version = process.version

    def open(self, folder: Path) -> None:
        self._process.open(folder)

    def add(self, documents: Sequence[Document]) -> None:
        self._process.add([{"key": document.key, **document.item()} for document in documents])

    def search(self, query: str, limit: int) -> list[str]:
        return self._process.search(query, limit)

    def cpu_seconds(self) -> float | None:
        return self._process.cpu_seconds()

    def memory(self) -> Memory | None:
        return self._process.memory()

    def close(self) -> None:
        self._process.close()


class Plain:
    """BM25 over the texts, in this process: what every memory has to beat."""

    version = "–"

    def open(self, folder: Path) -> None:
        self._keys: list[str] = []

    def add(self, documents: Sequence[Document]) -> None:
        self._keys = [document.key for document in documents]
        self._index = Bm25([document.content for document in documents])

    def search(self, query: str, limit: int) -> list[str]:
        return [self._keys[place] for place in self._index.top(query, limit)]

    def cpu_seconds(self) -> float | None:
        return None

    def memory(self) -> Memory | None:
        return None

    def close(self) -> None:
        """Nothing to end."""
