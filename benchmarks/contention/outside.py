"""Another program keeps the database for itself: writers wait, then say so; readers go on."""

import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contention.durability import TEST_EMBEDDER
from benchmarks.contention.servers import Refused, Server
from benchmarks.report import Cell, Target

HELD_SECONDS = 10.0
BUSY_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a writer and a reader saw meanwhile, in seconds, and what the writer was told."""

    waited: float
    told: str
    code: str
    slowest_search: float
    searches: int
    stored_after: bool

    def rows(self) -> list[dict[str, Cell]]:
        return [
            {
                "a write waited s": self.waited,
                "then": self.code,
                "searches meanwhile": self.searches,
                "slowest s": self.slowest_search,
                "a write after": "stored" if self.stored_after else "failed",
            }
        ]

    def targets(self) -> list[Target]:
        named = self.code == "store_busy" and "locked" not in self.told.lower()
        return [
            Target(name="a write waits, s", value=self.waited, limit=BUSY_SECONDS + 2, at_least=False),
            Target(name="the cause is named", value=float(named), limit=1, at_least=True),
            Target(name="slowest search meanwhile, s", value=self.slowest_search, limit=2, at_least=False),
            Target(name="stored after", value=float(self.stored_after), limit=1, at_least=True),
        ]


def run(folder: Path, *, held_seconds: float = HELD_SECONDS) -> Held:
    """Hold a write transaction from outside and look at a writer and a reader."""
    data_dir, log = folder / "memory", folder / "servers.log"
    with Server(data_dir, TEST_EMBEDDER, log) as writer, Server(data_dir, TEST_EMBEDDER, log) as reader:
        writer.tool("smart_ingest", {"content": "The lighthouse keeper is called Edda."})
        released = threading.Event()
        holder = threading.Thread(target=_hold, args=(data_dir, held_seconds, released))
        searches: list[float] = []
        watcher = threading.Thread(target=_search, args=(reader, released, searches))
        holder.start()
        watcher.start()
        waited, error = _write(writer, "This one has to wait for its turn.")
        holder.join()
        watcher.join()
        _, after = _write(writer, "And this one comes when the way is free.")
    return Held(
        waited=waited,
        told=str(error.get("message", "")),
        code=str(error.get("code", "none")),
        slowest_search=max(searches, default=float("inf")),
        searches=len(searches),
        stored_after=not after,
    )


def _hold(data_dir: Path, seconds: float, released: threading.Event) -> None:
    try:
        with closing(sqlite3.connect(data_dir / "vestige.db", isolation_level=None, timeout=30)) as db:
            db.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)
            db.execute("ROLLBACK")
    finally:
        released.set()


def _search(reader: Server, released: threading.Event, taken: list[float]) -> None:
    while not released.is_set():
        started = time.perf_counter()
        reader.tool("search", {"query": "Who keeps the lighthouse?"})
        taken.append(time.perf_counter() - started)


def _write(writer: Server, text: str) -> tuple[float, dict[str, object]]:
    """How long a write took, and the error it ended with, if any."""
    started = time.perf_counter()
    try:
        writer.tool("smart_ingest", {"content": text})
    except Refused as refused:
        error = refused.error.get("error", refused.error)
        return time.perf_counter() - started, dict(error)
    return time.perf_counter() - started, {}
