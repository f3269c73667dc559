"""A peer in its own interpreter, spoken to in lines of JSON."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from benchmarks.process import Memory, cpu_seconds, own_memory

ADAPTERS = Path(__file__).parent / "adapters"


class Embed(Protocol):
    """Makes vectors, and knows what they cost."""

    cpu_seconds: float

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text."""


class Unavailable(Exception):
    """A peer cannot take part; the text says why."""


class PeerProcess:
    """A running peer. Its questions for vectors are answered on the way."""

    def __init__(self, python: Path, adapter: str, embed: Embed) -> None:
        self._embed = embed
        command = [str(python), str(ADAPTERS / "serve.py"), adapter]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            raise Unavailable(f"{python} does not run: {error.strerror}") from error
        try:
            self.version = str(self._answer())
        except Unavailable:
            self.close()
            raise

    def open(self, folder: Path) -> None:
        """Begin with an empty memory in this folder."""
        self._ask({"do": "open", "folder": str(folder)})

    def add(self, items: Sequence[dict[str, object]]) -> None:
        """Remember."""
        self._ask({"do": "add", "items": list(items)})

    def search(self, query: str, limit: int) -> list[str]:
        """Keys, best first."""
        found: list[str] = self._ask({"do": "search", "query": query, "limit": limit})
        return found

    def cpu_seconds(self) -> float:
        """CPU time of the peer's process, and that of the vectors made for it here."""
        return cpu_seconds(self._process.pid) + self._embed.cpu_seconds

    def memory(self) -> Memory:
        """Memory of the peer's process."""
        return own_memory(self._process.pid)

    def close(self) -> None:
        """End it by closing its input."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, message: dict[str, object]) -> Any:  # Any: what the adapter answers
        self._send(message)
        return self._answer()

    def _answer(self) -> Any:  # Any: what the adapter answers
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            message = json.loads(line)
            if "embed" in message:
                self._send({"vectors": self._embed(message["embed"])})
            elif "error" in message:
                raise Unavailable(message["error"])
            else:
                return message["answer"]
        raise Unavailable("its process ended")

    def _send(self, message: dict[str, object]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
