"""The load of the soak: clients that write, delete and read, and a ledger of what was acknowledged."""

import http.client
import json
import random
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

from benchmarks.client import Json
from benchmarks.contention.durability import WORDS
from benchmarks.contention.servers import Died, Refused
from benchmarks.soak.arms import Arm, HttpServer, StdioServer

PAUSE_SECONDS = 0.05
"""Between two calls of a client, so that the load is steady and not the machine's limit."""
TIMEOUT_SECONDS = 60.0
REMEMBERED = 20_000
"""Deleted memories of which it is checked that they do not come back."""
PAGE = 100
PATIENCE = 100
"""Attempts to read back what was stored."""
KNOWN = frozenset(("store_full", "store_busy", "store_unavailable", "overloaded", "deadline_exceeded"))
"""Codes of refusals that the attacks explain; any other one is an unexplained error."""
NOT_FOUND = 404


@dataclass(kw_only=True)
class Ledger:
    """What the servers of one store have acknowledged. A call whose answer never came counts as neither."""

    kept: int
    stored: deque[tuple[str, str]] = field(default_factory=deque)
    deleted: deque[str] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    writes: int = 0
    deletes: int = 0
    reads: int = 0
    unanswered: int = 0
    starts: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    reappeared: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def wrote(self, memory_id: str, text: str) -> None:
        with self.lock:
            self.writes += 1
            self.stored.append((memory_id, text))

    def surplus(self) -> tuple[str, str] | None:
        """A memory to delete, which nobody else will: the store stays at one size."""
        with self.lock:
            return self.stored.popleft() if len(self.stored) > self.kept else None

    def removed(self, memory_id: str) -> None:
        with self.lock:
            self.deletes += 1
            self.deleted.append(memory_id)

    def refused(self, error: Mapping[str, object]) -> None:
        inner = error.get("error", error)
        code = inner.get("code") if isinstance(inner, Mapping) else None
        with self.lock:
            self.refusals[str(code or inner)[:200]] += 1

    @property
    def unexplained(self) -> int:
        return sum(many for code, many in self.refusals.items() if code not in KNOWN)


class Away(Died):
    """No server listens: nothing was sent."""


class HttpClient:
    """One connection to a server, opened again whenever it is gone."""

    def __init__(self, server: HttpServer, key: str) -> None:
        self._server, self._key = server, key
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, body: Json | None = None) -> Json:
        """The answer; Refused with the problem, Died when nobody answers."""
        try:
            connection = self._connection or self._connected()
            headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
            sent = None if body is None else json.dumps(body)
            connection.request(method, f"/api/v1{path}", sent, headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as exc:
            self.close()
            raise (Away if isinstance(exc, ConnectionRefusedError) else Died) from exc
        value: Json = json.loads(text) if text else {}
        if answer.status >= 400:
            raise Refused({**value, "status": answer.status})
        return value

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> http.client.HTTPConnection:
        parts = urlsplit(self._server.url)
        self._connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=TIMEOUT_SECONDS
        )
        return self._connection


@dataclass(kw_only=True)
class Load:
    """The clients of one store, each in a thread, which pause between rounds."""

    arm: Arm
    ledger: Ledger
    steady: HttpServer
    victim: HttpServer
    key: str
    seed: int
    stop: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)
    stdio: StdioServer | None = None
    _threads: list[threading.Thread] = field(default_factory=list)
    _busy: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def start(self) -> None:
        works: list[Callable[[random.Random], None]] = [
            *(self._over_http(server, writes=True) for server in (self.steady, self.victim)),
            *(self._over_http(server, writes=False) for server in (self.steady, self.victim)),
            self._over_stdio,
        ]
        for number, work in enumerate(works):
            rng = random.Random(self.seed + number)
            thread = threading.Thread(target=work, args=(rng,), name=f"{self.arm.name} {number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def fill(self) -> None:
        """Store as many memories as are kept, so that the store has its size from the beginning."""
        rng, client = random.Random(self.seed - 1), HttpClient(self.steady, self.key)
        while len(self.ledger.stored) < self.ledger.kept:
            texts = [_text(rng) for _ in range(min(PAGE, self.ledger.kept - len(self.ledger.stored)))]
            items = [{"content": text, "force_create": True} for text in texts]
            answer = client.ask("POST", "/memories", {"items": items})
            for one, text in zip(answer["results"], texts, strict=True):
                self.ledger.wrote(one["nodeId"], text)
        client.close()

    def pause(self) -> None:
        """Let every client finish its call and wait."""
        self.go.clear()
        with self._changed:
            self._changed.wait_for(lambda: self._busy == 0, TIMEOUT_SECONDS)

    def close(self) -> None:
        self.stop.set()
        self.go.set()
        for thread in self._threads:
            thread.join(2 * TIMEOUT_SECONDS)

    def check(self) -> None:
        """Look for everything that was acknowledged: lost texts and deleted ones that came back."""
        client = HttpClient(self.steady, self.key)
        texts = dict(self.ledger.stored)
        found = self._read(client, list(texts))
        self.ledger.lost += [f"{one}: {text}" for one, text in texts.items() if found.get(one) != text]
        gone = list(self.ledger.deleted)[-PAGE * 10 :]
        self.ledger.reappeared += sorted(self._read(client, gone))
        client.close()

    def _read(self, client: HttpClient, ids: list[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for at in range(0, len(ids), PAGE):
            query = urlencode([("ids", one) for one in ids[at : at + PAGE]])
            answer = self._asked(client, f"/memories/batch?{query}")
            found |= {one["id"]: one["content"] for one in answer["results"]}
        return found

    def _asked(self, client: HttpClient, path: str) -> Json:
        """The answer, also when the database has just been restarted."""
        for _ in range(PATIENCE):
            try:
                return client.ask("GET", path)
            except (Died, Refused):
                self.stop.wait(PAUSE_SECONDS)
        return client.ask("GET", path)

    def _calls(self) -> bool:
        """Wait for the next call; False when there is none."""
        self.stop.wait(PAUSE_SECONDS)
        self.go.wait()
        return not self.stop.is_set()

    def _once(self, call: Callable[[], None]) -> bool:
        """Make a call and count how it failed; whether the server is still there."""
        with self._changed:
            self._busy += 1
        try:
            call()
        except Refused as refused:
            self.ledger.refused(refused.error)
        except Died as died:
            with self.ledger.lock:
                self.ledger.unanswered += not isinstance(died, Away)
            return False
        finally:
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()
        return True

    def _over_http(self, server: HttpServer, *, writes: bool) -> Callable[[random.Random], None]:
        def work(rng: random.Random) -> None:
            client = HttpClient(server, self.key)
            while self._calls():
                self._once(lambda: self._write(client, rng) if writes else self._look(client, rng))
            client.close()

        return work

    def _write(self, client: HttpClient, rng: random.Random) -> None:
        text = _text(rng)
        answer = client.ask("POST", "/memories", {"content": text, "force_create": True})
        self.ledger.wrote(answer["nodeId"], text)
        while old := self.ledger.surplus():  # those that the stdio client stored too
            self._delete(client, *old)

    def _delete(self, client: HttpClient, memory_id: str, text: str) -> None:
        try:
            client.ask("DELETE", f"/memories/{memory_id}")
        except Refused as refused:
            if refused.error.get("status") == NOT_FOUND:
                self.ledger.lost.append(f"{memory_id}: {text}")
            raise
        self.ledger.removed(memory_id)

    def _look(self, client: HttpClient, rng: random.Random) -> None:
        match rng.randrange(4):
            case 0:
                client.ask("GET", "/memories?limit=20")
            case 1:
                client.ask("GET", "/stats")
            case _:
                client.ask("POST", "/search", {"query": " ".join(rng.choices(WORDS, k=4)), "limit": 5})
        with self.ledger.lock:
            self.ledger.reads += 1

    def _over_stdio(self, rng: random.Random) -> None:
        while self._calls():
            try:
                server = StdioServer(self.arm)
            except (Died, Refused):
                continue
            self.stdio = server
            with self.ledger.lock:
                self.ledger.starts += 1
            alive = True
            while alive and self._calls():
                alive = self._once(lambda: self._talk(server, rng))  # noqa: B023 - it is called at once
            self.stdio = None
            with suppress(OSError):
                server.close()

    def _talk(self, server: StdioServer, rng: random.Random) -> None:
        text = _text(rng)
        if rng.random() < 0.5:
            answer = server.tool("smart_ingest", {"content": text, "force_create": True})
            self.ledger.wrote(answer["nodeId"], text)
            return
        server.tool("search", {"query": text, "limit": 5})
        with self.ledger.lock:
            self.ledger.reads += 1


def _text(rng: random.Random) -> str:
    return f"Note {' '.join(rng.choices(WORDS, k=12))} {rng.getrandbits(64):016x}."
