"""Ways into the engine: its operations called in this process, or through `vestige-mcp`."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from benchmarks.client import Client, Json, console_script
from benchmarks.conversation import Turn
from vestige.app.app import App, Clock, open_app
from vestige.core.caller import Invocation
from vestige.core.events import EventBus
from vestige.embed.background import EmbedderSource
from vestige.embed.protocol import Embedder
from vestige.engine.context import Engine
from vestige.settings.directories import environment_name

MODEL_SECONDS = 60.0
FILL_BATCH = 100

Item = dict[str, str | int]


class Service(Protocol):
    """Something that answers tool calls."""

    def call(self, tool: str, arguments: Json) -> Json:
        """Call a tool; its structured answer."""


def items_of(turns: Sequence[Turn], *, threaded: bool, scope: str | None = None) -> list[Item]:
    """The turns as `smart_ingest` takes them: parts of threads, or plain notes, in a scope."""
    where: Item = {} if scope is None else {"scope": scope}
    if not threaded:
        return [{"content": turn.content, **where} for turn in turns]
    return [
        {
            "content": turn.content,
            "author": turn.speaker,
            "thread": turn.thread,
            "position": turn.position,
            **where,
        }
        for turn in turns
    ]


class Ingester(Protocol):
    """Something that remembers."""

    decisions: Counter[str]

    def ingest(self, items: Sequence[Item]) -> None:
        """Remember all items in one request."""

    def cpu_seconds(self) -> float:
        """CPU time used so far, by all threads of the process that does the work."""


ALL_TEXTS: Json = {"memory.secrets": "allow", "review.policy": "off"}
"""What is measured is how texts are kept and found: none is to be refused, and none is to wait for a review
(`benchmarks.orders` counts those that would)."""


class InProcess:
    """The engine of this process, on a store of its own, with its model loaded."""

    def __init__(
        self,
        data_dir: Path,
        *,
        clock: Clock | None = None,
        settings: Mapping[str, object] | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self._app = open_app({"data_dir": str(data_dir), **ALL_TEXTS, **(settings or {})}, clock=clock)
        if embedder is not None:
            given = embedder
            source = EmbedderSource(lambda _: given)
            # A bus of its own: the first application does not react to what the second one does.
            self._app = App(replace(self._app.engine, embedders=source, events=EventBus()))
        self.decisions: Counter[str] = Counter()
        if (settings or {}).get("embeddings.provider") == "off":  # searched by words only
            return
        embedder = self._app.engine.embedders.get(MODEL_SECONDS)
        if embedder is None:
            reason = self._app.engine.embedders.status().detail
            self._app.close()
            raise SystemExit(f"There is no embedding model ({reason}). Run `vestige model install` first.")
        self.embedder: Embedder = embedder

    @property
    def engine(self) -> Engine:
        """The engine itself, for what no tool offers."""
        return self._app.engine

    def call(self, tool: str, arguments: Json) -> Json:
        """Run a tool as a transport does."""
        return self._app.call_tool(Invocation(name=tool, arguments=arguments))

    def scan(self, **arguments: object) -> Json:
        """Run the operation `scan`, which is no tool."""
        return self._app.call_operation(Invocation(name="scan", arguments=arguments, local=True))

    def settle(self) -> None:
        """Have the memory react to everything so far."""
        self._app.settle()

    def ingest(self, items: Sequence[Item]) -> None:
        """Remember all items in one request."""
        self.decisions.update(decisions_in(self.call("smart_ingest", request(items))))

    def cpu_seconds(self) -> float:
        """CPU time of this process."""
        return time.process_time()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._app.close()


class OverStdio:
    """The engine of a `vestige-mcp` process, on a store of its own, with its model loaded."""

    def __init__(self, data_dir: Path) -> None:
        settings = {environment_name(name): str(value) for name, value in ALL_TEXTS.items()}
        command = [console_script(), "--data-dir", str(data_dir)]
        self._client = Client(command, timeout_seconds=3600, environment=settings)
        self.decisions: Counter[str] = Counter()
        self._client.initialize()
        self._client.tool("search", {"query": "anything", "record": False})  # waits for the model

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._client.pid

    def call(self, tool: str, arguments: Json) -> Json:
        """Call a tool of the server."""
        return self._client.tool(tool, arguments)

    def ingest(self, items: Sequence[Item]) -> None:
        """Remember all items in one request."""
        self.decisions.update(decisions_in(self.call("smart_ingest", request(items))))

    def cpu_seconds(self) -> float:
        """CPU time of the server."""
        return self._client.cpu_seconds()

    def close(self) -> None:
        """End the server."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def fill(data_dir: Path, turns: Sequence[Turn], *, scope: str | None = None) -> str:
    """Make a store that holds these turns; the name of the model that made its vectors."""
    with InProcess(data_dir) as engine:
        for at in range(0, len(turns), FILL_BATCH):
            engine.ingest(items_of(turns[at : at + FILL_BATCH], threaded=True, scope=scope))
        return engine.embedder.signature.name


def request(items: Sequence[Item]) -> Json:
    """The arguments for these items: a single one goes by itself, as clients send it."""
    return dict(items[0]) if len(items) == 1 else {"items": list(items)}


def decisions_in(answer: Json) -> list[str]:
    """What became of each item. An item without vectors would make us look faster than we are."""
    results = answer.get("results", [answer])
    if not all(result["hasEmbedding"] for result in results):
        raise RuntimeError("an item was stored without being embedded")
    return [str(result["decision"]) for result in results]
