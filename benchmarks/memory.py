"""How much memory a server takes for large batches, and when it gives it back.

    python -m benchmarks.memory [--batches 16] [--bytes 4000000] [--quick] [--out FILE]

A server is started as a process, three times: with the test embedder and time enough that every batch is
stored, with the model and the time that a request has by default, and with the model and time enough for
smaller batches. A batch that is given up has taken less than one that is stored, so the number of stored
batches is beside each peak. Clients send batches of new texts to `smart_ingest`, all at
once. A client that is told to come back later does so once the server has time, as Retry-After asks. The peak
is that of the kernel (VmHWM), not of samples, so nothing is missed between two looks. Idle is a server that
has loaded its models and stored two notes. What is left is looked at for a minute after the last answer.
Linux only.
"""

import argparse
import http.client
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

from benchmarks.conversation import generated
from benchmarks.http.serving import TEST_EMBEDDER, Serving, serve
from benchmarks.progress import say
from benchmarks.report import Cell, Report, Target, publish

BATCHES = 16
BATCH_BYTES = 4_000_000
ITEMS = 500
PEAK_MEGABYTES = 600.0
"""How far above the idle server the peak may be."""
KEPT_MEGABYTES = 60.0
"""How far above the idle server it may be after the work. Pages of the database are given back; a heap that
many threads have fragmented and the caches of words stay."""
BACK_SECONDS = 60.0
"""How soon after the last answer."""
PATIENCE_SECONDS = 90.0
"""How long a client that was refused for the moment goes on asking, with the default time."""
NO_HURRY = {"VESTIGE_SERVER_REQUEST_SECONDS": "3600"}
MODEL_SECONDS = 120.0
STORED_BATCHES, STORED_BYTES = 4, 500_000
"""What the model stores in some minutes."""
LOOK_SECONDS = 0.5
STEP_MEGABYTES = 1.0
SEED = 7


@dataclass(kw_only=True)
class Taken:
    """The memory of a server before, during and after the work, and how its requests ended."""

    idle: float
    peak: float = 0.0
    after: float = 0.0
    seconds: float = 0.0
    back_seconds: float = 0.0
    answers: Counter[str] = field(default_factory=Counter)
    slowest_health: float = 0.0

    def row(self, name: str) -> dict[str, Cell]:
        return {
            "embedder": name,
            "stored": self.answers[str(int(http.HTTPStatus.CREATED))],
            "idle MB": self.idle,
            "peak above idle MB": self.peak - self.idle,
            "left above idle MB": self.after - self.idle,
            "given back after s": self.back_seconds,
            "work s": self.seconds,
            "slowest health check s": self.slowest_health,
            "answers": ", ".join(f"{kind}: {number}" for kind, number in sorted(self.answers.items())),
        }

    def targets(self, name: str) -> list[Target]:
        peak, left = self.peak - self.idle, self.after - self.idle
        return [
            Target(name=f"{name}: peak above idle, MB", value=peak, limit=PEAK_MEGABYTES, at_least=False),
            Target(name=f"{name}: left after a minute, MB", value=left, limit=KEPT_MEGABYTES, at_least=False),
        ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description="Memory of batches.")
    parser.add_argument("--batches", type=int, default=BATCHES, help="batches at once (default 16)")
    parser.add_argument("--bytes", type=int, default=BATCH_BYTES, help="bytes of a batch (default 4,000,000)")
    parser.add_argument("--quick", action="store_true", help="the test embedder only")
    parser.add_argument("--out", type=Path, help="write the results here as JSON")
    given = parser.parse_args()
    if sys.platform != "linux":
        parser.error("the peak of a process is read from /proc, which only Linux has")
    publish(run(batches=given.batches, size=given.bytes, quick=given.quick), given.out)


def run(*, batches: int = BATCHES, size: int = BATCH_BYTES, quick: bool = False) -> Report:
    """Measure with the test embedder and, unless `quick`, with the model."""
    taken = {"test embedder, all stored": measure({**TEST_EMBEDDER, **NO_HURRY}, batches, size)}
    if not quick:
        taken["model, default time"] = measure({}, batches, size)
        few = (min(batches, STORED_BATCHES), min(size, STORED_BYTES))
        taken[f"model, {few[0]} of {few[1]:,} bytes, all stored"] = measure(NO_HURRY, *few)
    return Report(
        benchmark="memory",
        settings={"batches": batches, "bytes": size, "items": ITEMS},
        tables={"Memory of the server": [one.row(name) for name, one in taken.items()]},
        targets=[target for name, one in taken.items() for target in one.targets(name)],
        notes=(
            "A batch of 4 MB is about a million tokens, more than the model reads in the 60 s of a request "
            "on two cores. Such a request ends with `deadline_exceeded`, and a later one with `overloaded`.",
        ),
    )


def measure(settings: Mapping[str, str], batches: int, size: int) -> Taken:
    """Send the batches to a server of its own."""
    with tempfile.TemporaryDirectory(prefix="vestige-memory-") as folder:
        bodies = [_body(number, size) for number in range(batches)]
        with serve(Path(folder), settings=settings) as server:
            for warm in ("Ada prefers tea in the morning.", "The office moved to the third floor."):
                _send(server, json.dumps({"content": warm}).encode())
            _wait_for_the_models(server)
            taken = Taken(idle=_megabytes(server.pid, "VmRSS"))
            Path(f"/proc/{server.pid}/clear_refs").write_text("5", encoding="ascii")  # forget the peak so far
            began = time.perf_counter()
            _send_all(
                server,
                bodies,
                taken,
                patience=3_600 if settings.keys() & NO_HURRY.keys() else PATIENCE_SECONDS,
            )
            taken.seconds = time.perf_counter() - began
            taken.peak = _megabytes(server.pid, "VmHWM")
            _wait_until_given_back(server, taken)
        return taken


def _body(number: int, size: int) -> bytes:
    """A batch of notes that no other batch has."""
    rng = Random(SEED + number)
    turns = [turn.content for turn in generated(1_000, seed=SEED)]
    each = size // ITEMS - 40  # the rest is JSON
    items = []
    for _ in range(ITEMS):
        words = " ".join(rng.choice(turns) for _ in range(each // 20))
        items.append({"content": words[: each - 10] + f" {rng.random():.8f}"[:10]})
    return json.dumps({"items": items}).encode()


def _send_all(server: Serving, bodies: list[bytes], taken: Taken, *, patience: float) -> None:
    done = threading.Event()
    latest = time.perf_counter() + patience

    def batch(body: bytes) -> None:
        while True:
            status, answer, wait = _send(server, body)
            if status != http.HTTPStatus.SERVICE_UNAVAILABLE or time.perf_counter() > latest:
                break
            taken.answers["asked to come back"] += 1
            time.sleep(wait)
        taken.answers[str(answer.get("code", status))] += 1

    def watch() -> None:
        while not done.wait(LOOK_SECONDS):
            began = time.perf_counter()
            _request(server, "GET", "/health", b"")
            taken.slowest_health = max(taken.slowest_health, time.perf_counter() - began)

    threads = [threading.Thread(target=batch, args=(body,)) for body in bodies]
    watching = threading.Thread(target=watch)
    for thread in (watching, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    watching.join()


def _wait_for_the_models(server: Serving) -> None:
    """Wait until all models are loaded and used once: what they take is no memory of a batch."""
    latest = time.perf_counter() + MODEL_SECONDS
    while True:
        _, status, _ = _request(server, "GET", "/api/v1/stats", b"")
        model = status["embeddingModel"]
        assert isinstance(model, dict)
        if {model["state"], model.get("pairModel", "ready")} <= {"ready", "unsupported", None}:
            break
        if time.perf_counter() > latest:
            raise SystemExit("The models do not become ready: run `vestige model install`.")
        time.sleep(LOOK_SECONDS)
    for warm in ("Ada prefers coffee in the morning.", "The office moved to the fourth floor."):
        _send(server, json.dumps({"content": warm}).encode())
    time.sleep(2 * LOOK_SECONDS)


def _wait_until_given_back(server: Serving, taken: Taken) -> None:
    """Look for a minute: when the last was given back, and what is left."""
    began = time.perf_counter()
    taken.after = _megabytes(server.pid, "VmRSS")
    while (seconds := time.perf_counter() - began) < BACK_SECONDS:
        time.sleep(LOOK_SECONDS)
        now = _megabytes(server.pid, "VmRSS")
        if now < taken.after - STEP_MEGABYTES:
            taken.after, taken.back_seconds = now, seconds
    say(f"memory: idle {taken.idle:.0f} MB, peak {taken.peak:.0f} MB, after {taken.after:.0f} MB")


def _send(server: Serving, body: bytes) -> tuple[int, dict[str, object], float]:
    return _request(server, "POST", "/api/v1/memories", body)


def _request(server: Serving, method: str, path: str, body: bytes) -> tuple[int, dict[str, object], float]:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=600)
    try:
        connection.request(method, path, body, dict(server.headers))
        response = connection.getresponse()
        wait = float(response.headers.get("Retry-After", "1"))
        return response.status, json.loads(response.read()), wait
    finally:
        connection.close()


def _megabytes(pid: int, field_name: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(f"{field_name}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"the kernel does not report {field_name}")


if __name__ == "__main__":
    main()
