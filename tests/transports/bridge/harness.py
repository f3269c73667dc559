"""A bridge in this process or in one of its own, in front of a real `vestige-mcp` or of a program that stands
in for it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from testbed.patience import PATIENCE_SECONDS
from tests.transports.http.support.socket import served
from vestige.app.app import system_clock
from vestige.settings.settings import load_settings
from vestige.transports.bridge.app import Bridge, build, child_command
from vestige.transports.bridge.supervisor import Supervisor

TOKEN = "correct horse battery staple"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
FAKE = [sys.executable, str(Path(__file__).parent / "fake_child.py")]
POLL_SECONDS = 0.01


@dataclass(kw_only=True)
class Bridged:
    """A bridge that runs."""

    folder: Path
    url: str
    http: httpx.Client
    supervisor: Supervisor

    def post(
        self, path: str, body: object = None, agent: str | None = None, **headers: str
    ) -> httpx.Response:
        """Send a request with the token, and as an agent if one is named."""
        named = {"X-Agent-Id": agent} if agent is not None else {}
        return self.http.post(path, json=body or {}, headers={**BEARER, **named, **headers})

    def told(
        self, path: str, body: object = None, agent: str | None = None, **headers: str
    ) -> dict[str, Any]:
        """The answer to such a request that was taken."""
        response = self.post(path, body, agent, **headers)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def data(
        self, path: str, body: object = None, agent: str | None = None, **headers: str
    ) -> dict[str, Any]:
        """What the tool said, when it did what it was asked for."""
        answer = self.told(path, body, agent, **headers)
        assert answer["success"], answer
        structured: dict[str, Any] = answer["data"]["structured"]
        return structured

    def remember(self, content: str, agent: str | None = None, **more: object) -> str:
        """Ingest a text; the id of its memory."""
        return str(self.data("/ingest", {"content": content, **more}, agent)["nodeId"])

    def get(self, memory_id: str, agent: str | None = None) -> dict[str, Any]:
        """A memory in full."""
        node: dict[str, Any] = self.data("/memory", {"action": "get", "memory_id": memory_id}, agent)["node"]
        return node

    def pid(self, other_than: int = 0) -> int:
        """The number of the process behind it, once there is one (other than that)."""
        found: list[int] = []

        def there() -> bool:
            child = self.supervisor.child
            found.extend([child.pid] if child is not None and child.pid != other_than else [])
            return bool(found)

        wait_for(there)
        return found[0]


@contextmanager
def bridged(
    folder: Path,
    command: Sequence[str] | None = None,
    *,
    token: str | None = TOKEN,
    probe_seconds: float = 5.0,
    **settings: object,
) -> Iterator[Bridged]:
    """A bridge on a data directory; settings such as `bridge__isolate_agents=True`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vestige.toml").write_text('[embeddings]\nprovider = "hashing"\n', encoding="utf-8")
    flags = {name.replace("__", "."): value for name, value in settings.items()}
    chosen = load_settings({"data_dir": str(folder), **flags}, environ={})
    clock = system_clock()
    supervisor = Supervisor(command or child_command(chosen, []), probe_seconds=probe_seconds)
    app = build(
        Bridge(
            settings=chosen,
            supervisor=supervisor,
            now=clock.now,
            monotonic=clock.monotonic,
            new_id=clock.new_id,
            token=token,
        )
    )
    with served(app) as url, httpx.Client(base_url=url, timeout=PATIENCE_SECONDS) as http:
        yield Bridged(folder=folder, url=url, http=http, supervisor=supervisor)


@contextmanager
def running(
    folder: Path, *words: str, bind: str = "127.0.0.1:0", descriptors: int | None = None, **environ: str
) -> Iterator["tuple[str, subprocess.Popen[str], Path]"]:
    """A bridge on a data directory, which may have so many files open: its address, its process and the file
    with its log."""
    log = folder / "log"
    limited = ["sh", "-c", f'ulimit -n {descriptors} && exec "$@"', "sh"] if descriptors else []
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "VESTIGE_DATA_DIR": str(folder / "data"),
        "VESTIGE_EMBEDDINGS_PROVIDER": "hashing",
        "VESTIGE_LOG_LEVEL": "info",
        **environ,
    }
    with (
        log.open("w") as written,
        subprocess.Popen(
            [*limited, sys.executable, "-m", "vestige", "bridge", "--bind", bind, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=written,
            encoding="utf-8",
            env=environ,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, log.read_text(encoding="utf-8")
            yield json.loads(line)["url"], process, log
        finally:
            process.kill()


def gone(pid: int) -> bool:
    """Whether a process is gone, not even left for its parent to look at."""
    return not Path(f"/proc/{pid}").exists()


def wait_for(happened: Callable[[], bool]) -> None:
    """Wait for another thread or process to get that far."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(POLL_SECONDS)
