"""Servers on one data directory, started as clients start them, and killed as nobody should."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.client import PROTOCOL, Json, console_script

STARTING_SECONDS = 120.0


class Died(Exception):
    """The server is gone; whether the last request was done is not known."""


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(json.dumps(error))
        self.error = error


class Server:
    """One `vestige-mcp`, spoken to by one thread; another may kill it at any moment."""

    def __init__(self, data_dir: Path, settings: Mapping[str, str], log: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("VESTIGE_")}
        names = {f"VESTIGE_{name.upper().replace('.', '_')}": value for name, value in settings.items()}
        self._last_id = 0
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [console_script(), "--data-dir", str(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=kept | names,
        )
        self._watch = threading.Timer(STARTING_SECONDS, self._process.kill)
        self._watch.daemon = True
        self._watch.start()
        about = {"name": "contention", "version": "1"}
        self.ask("initialize", protocolVersion=PROTOCOL, capabilities={}, clientInfo=about)
        self._watch.cancel()
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    @property
    def pid(self) -> int:
        return self._process.pid

    def tool(self, name: str, arguments: Json) -> Json:
        """Call a tool; Refused for an error, Died when nobody answers."""
        answer = self.ask("tools/call", name=name, arguments=arguments)
        structured: Json = answer.get("structuredContent") or {}
        if answer.get("isError"):
            raise Refused(structured or {"message": json.dumps(answer["content"])})
        return structured

    def ask(self, method: str, **params: object) -> Json:
        """Send a request and wait for its result."""
        self._last_id += 1
        self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            try:
                message = json.loads(line)
            except ValueError as exc:  # killed in the middle of a line
                raise Died from exc
            if message.get("id") == self._last_id:
                if "error" in message:
                    raise Refused(message["error"])
                result: Json = message["result"]
                return result
        raise Died

    def kill(self) -> None:
        """As the kernel does it when memory runs out."""
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End it: as clients do, or what is left of it."""
        self._watch.cancel()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, message: Json) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise Died from error


class JournalWatch:
    """Looks at the size of the write-ahead log all the time."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / "vestige.db-wal"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="journal-watch", daemon=True)
        self.most = 0

    @property
    def megabytes(self) -> float:
        return self.most / 1024 / 1024

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            with suppress(OSError):
                self.most = max(self.most, self._path.stat().st_size)
