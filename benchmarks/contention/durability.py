"""Writers that are killed at random lose nothing they were told was stored."""

import random
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.client import Json
from benchmarks.contention.servers import Died, JournalWatch, Refused, Server
from benchmarks.progress import say
from benchmarks.report import Cell, Target
from vestige.app.app import open_app
from vestige.core.models import EVERYTHING
from vestige.operations.registry.groups import registry

TEST_EMBEDDER = {"embeddings.provider": "hashing", "log_level": "error"}
WORDS = (
    "amber basalt cedar delta ember fjord granite harbor indigo juniper kelp lagoon marble nectar onyx "
    "pepper quartz raven saffron timber umber velvet willow yarrow zephyr anchor beacon copper dune echo"
).split()
CHECKED = 200
"""So many ids are asked for at once."""


@dataclass(slots=True, kw_only=True)
class Tally:
    """What one client saw. A text is acknowledged once its answer has been read."""

    name: str
    acknowledged: dict[str, str] = field(default_factory=dict)
    first: list[float] = field(default_factory=list)
    """Milliseconds until a server's first answer: it opens the store then, and imports what it needs."""
    milliseconds: list[float] = field(default_factory=list)
    """Those of all other calls."""
    refusals: list[Json] = field(default_factory=list)
    alive_seconds: float = 0.0
    starts: int = 0

    @property
    def rate(self) -> float:
        """Acknowledged calls in a second of being alive."""
        calls = len(self.first) + len(self.milliseconds)
        return calls / self.alive_seconds if self.alive_seconds else 0.0


@dataclass(slots=True)
class Client:
    """A client with its server, which it starts again whenever that is gone."""

    tally: Tally
    data_dir: Path
    log: Path
    rng: random.Random
    writes: bool
    stop: threading.Event
    server: Server | None = None
    at_work: bool = False
    """Whether the present server has answered a call: one that is only starting has nothing to lose."""

    def run(self) -> None:
        while not self.stop.is_set():
            try:
                with Server(self.data_dir, TEST_EMBEDDER, self.log) as server:
                    self.server = server
                    self.tally.starts += 1
                    self._work(server)
            except Died:
                continue
            finally:
                self.server, self.at_work = None, False

    def _work(self, server: Server) -> None:
        began = time.perf_counter()
        try:
            while not self.stop.is_set():
                started = time.perf_counter()
                try:
                    self._once(server)
                except Refused as refused:
                    self.tally.refusals.append(refused.error)
                else:
                    taken = self.tally.milliseconds if self.at_work else self.tally.first
                    taken.append(1000 * (time.perf_counter() - started))
                    self.at_work = True
        finally:
            self.tally.alive_seconds += time.perf_counter() - began

    def _once(self, server: Server) -> None:
        text = " ".join([*self.rng.choices(WORDS, k=4), f"{self.rng.getrandbits(64):016x}"])
        if self.writes:
            answer = server.tool("smart_ingest", {"content": f"Note {text}."})
            self.tally.acknowledged[answer["nodeId"]] = f"Note {text}."
        else:
            server.tool("search", {"query": text, "limit": 5})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it."""

    writers: list[Tally]
    readers: list[Tally]
    kills: int
    lost: list[str]
    integrity: list[str]
    journal_megabytes: float
    nodes: int = 1

    @property
    def locked(self) -> int:
        """Errors that speak of a lock."""
        return sum("locked" in str(one).lower() for one in self.refusals)

    @property
    def refusals(self) -> list[Json]:
        return [one for tally in (*self.writers, *self.readers) for one in tally.refusals]

    @property
    def fairness(self) -> float:
        """Jain's index of the writers' rates: 1 when all are served alike, 1/n when one takes all."""
        rates = np.array([tally.rate for tally in self.writers])
        return float(rates.sum() ** 2 / (len(rates) * (rates**2).sum()))

    def rows(self) -> list[dict[str, Cell]]:
        return [_row(tally) for tally in (*self.writers, *self.readers)]

    def targets(self) -> list[Target]:
        return [
            Target(name="acknowledged writes lost", value=len(self.lost), limit=0, at_least=False),
            Target(name="integrity errors", value=len(self.integrity), limit=0, at_least=False),
            Target(name="installations the log tells of", value=self.nodes, limit=1, at_least=False),
            Target(name="errors that speak of a lock", value=self.locked, limit=0, at_least=False),
            Target(name="calls refused", value=len(self.refusals), limit=0, at_least=False),
            Target(name="write-ahead log, MB", value=self.journal_megabytes, limit=128, at_least=False),
        ]


def run(
    folder: Path, *, writers: int = 8, readers: int = 4, kills: int = 200, every_seconds: float = 0.5
) -> Outcome:
    """Let clients write and read, kill a random writer again and again, then count."""
    data_dir, log = folder / "memory", folder / "servers.log"
    stop = threading.Event()
    rng = random.Random(20261116)
    clients = [
        Client(
            tally=Tally(name=f"{'writer' if writes else 'reader'} {number + 1}"),
            data_dir=data_dir,
            log=log,
            rng=random.Random(rng.getrandbits(64)),
            writes=writes,
            stop=stop,
        )
        for writes, many in ((True, writers), (False, readers))
        for number in range(many)
    ]
    threads = [threading.Thread(target=client.run, name=client.tally.name) for client in clients]
    with JournalWatch(data_dir) as watch:
        for thread in threads:
            thread.start()
        try:
            done = _kill(clients[:writers], rng, kills, every_seconds)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    tallies = [client.tally for client in clients]
    troubles, nodes = _looked_at(data_dir)
    return Outcome(
        writers=tallies[:writers],
        readers=tallies[writers:],
        kills=done,
        lost=_lost(data_dir, {key: text for one in tallies for key, text in one.acknowledged.items()}),
        integrity=troubles,
        journal_megabytes=watch.megabytes,
        nodes=nodes,
    )


def _kill(writers: list[Client], rng: random.Random, kills: int, every_seconds: float) -> int:
    """Kill a random writer that is at work, at this pace; how often."""
    done = 0
    while done < kills:
        time.sleep(every_seconds)
        alive = [server for client in writers if client.at_work and (server := client.server) is not None]
        if alive:
            rng.choice(alive).kill()
            done += 1
            if done % 20 == 0:
                written = sum(len(client.tally.acknowledged) for client in writers)
                say(f"{done} kills, {written:,} acknowledged writes")
    return done


def _lost(data_dir: Path, acknowledged: dict[str, str]) -> list[str]:
    """Acknowledged texts that are not in the store, word for word."""
    ids, lost = list(acknowledged), []
    with open_app({"data_dir": str(data_dir), "embeddings.provider": "off"}, environ={}) as app:
        for at in range(0, len(ids), CHECKED):
            page = ids[at : at + CHECKED]
            records = app.engine.store.get_many(page, access=EVERYTHING)
            kept = {one.memory.id: (one.memory.content, *one.memory.phrasings) for one in records}
            lost += [acknowledged[one] for one in page if acknowledged[one] not in kept.get(one, ())]
    return lost


def _looked_at(data_dir: Path) -> tuple[list[str], int]:
    """What SQLite and `doctor` find broken, and how many installations have written to the log."""
    with closing(sqlite3.connect(data_dir / "vestige.db")) as db:
        broken = [row[0] for row in db.execute("PRAGMA integrity_check") if row[0] != "ok"]
        broken += [str(row) for row in db.execute("PRAGMA foreign_key_check")]
        nodes: int = db.execute("SELECT count(DISTINCT node) FROM events").fetchone()[0]
    with open_app({"data_dir": str(data_dir), **TEST_EMBEDDER}, environ={}) as app:
        seen = app.run(registry.operations["doctor"], {}, lambda *_: None).wire()
    return broken + [str(one) for one in seen["findings"] if one["severity"] == "broken"], nodes


def _row(tally: Tally) -> dict[str, Cell]:
    taken = tally.milliseconds or [float("nan")]
    return {
        "client": tally.name,
        "calls": len(tally.first) + len(tally.milliseconds),
        "starts": tally.starts,
        "first p50 ms": float(np.percentile(tally.first or [float("nan")], 50)),
        "calls/s alive": tally.rate,
        "p50 ms": float(np.percentile(taken, 50)),
        "p95 ms": float(np.percentile(taken, 95)),
        "slowest ms": float(np.max(taken)),
        "refused": len(tally.refusals),
    }
