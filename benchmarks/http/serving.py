"""`vestige serve` as a process on a data directory, and a key for it."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from vestige.app.app import open_app
from vestige.engine.care import keys
from vestige.engine.context import Call

SERVE = (sys.executable, "-m", "vestige", "serve", "--bind", "127.0.0.1:0")
END_SECONDS = 60.0
LOOK_SECONDS = 0.1
NO_LIMITS = {
    "VESTIGE_SERVER_REQUESTS_PER_MINUTE": "0",
    "VESTIGE_MEMORY_SECRETS": "allow",
    "VESTIGE_REVIEW_POLICY": "off",
}
"""One key sends everything here, and no text is to be refused."""
TEST_EMBEDDER = {"VESTIGE_EMBEDDINGS_PROVIDER": "hashing"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A server that runs, and the headers that let one in."""

    url: str
    pid: int
    headers: Mapping[str, str]


@contextmanager
def serve(
    data_dir: Path, *, settings: Mapping[str, str] | None = None, workers: int = 1
) -> Iterator[Serving]:
    """Start a server on the memories in a folder, with authentication, and end it. It serves when all of its
    workers do."""
    given = dict(settings or {})
    key = _new_key(data_dir, given)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VESTIGE_")}
    log = data_dir / "serve.log"
    with (
        log.open("wb") as written,
        subprocess.Popen(
            [*SERVE, "--workers", str(workers), "--data-dir", str(data_dir)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=written,
            env={**kept, **NO_LIMITS, **given},
        ) as process,
    ):
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"The server did not start: {log.read_text(encoding='utf-8')}")
            headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
            url = json.loads(line)["url"]
            while workers > 1 and _serving(url) < workers:
                time.sleep(LOOK_SECONDS)
            yield Serving(url=url, pid=process.pid, headers=headers)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(END_SECONDS)
            finally:
                process.kill()


def _serving(url: str) -> int:
    """The workers that serve."""
    with urllib.request.urlopen(f"{url}/readyz") as answer:
        return list(json.load(answer)["workers"].values()).count("serving")


def _new_key(data_dir: Path, settings: Mapping[str, str]) -> str:
    data_dir.mkdir(parents=True, exist_ok=True)
    environ = {"HOME": str(Path.home()), **settings}
    with open_app({"data_dir": str(data_dir)}, environ=environ) as app:
        return keys.mint(Call(engine=app.engine), "benchmark", ("read", "write", "admin"), None, None, None)[
            1
        ]
