"""The two stores of the soak, SQLite and PostgreSQL, each with its servers, started as users start them.

Each store has a server that is never killed, whose memory is watched; another server on the same store that
is killed again and again; and a `vestige mcp` over stdio, killed too.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.client import PROTOCOL, Json
from benchmarks.contention.servers import Died, Refused
from benchmarks.process import own_memory

END_SECONDS = 60.0
START_SECONDS = 120.0
ROOM = "4g"
SETTINGS = {
    "VESTIGE_EMBEDDINGS_PROVIDER": "hashing",
    "VESTIGE_SERVER_REQUESTS_PER_MINUTE": "0",
    "VESTIGE_MEMORY_SECRETS": "allow",
    "VESTIGE_REVIEW_POLICY": "off",
    "VESTIGE_LOG_LEVEL": "error",
}
HELD = ("memory MB", "descriptors", "threads")


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallDisk:
    """A disk in memory whose size can be changed. Commands with `inside` before them see it."""

    folder: Path
    keeper: int

    @property
    def inside(self) -> list[str]:
        return [
            *("nsenter", "-t", str(self.keeper), "--user", "--mount"),
            *("--preserve-credentials", f"--wd={self.folder}", "--"),
        ]

    def fill(self) -> None:
        """Leave no room: the disk becomes as large as what is on it, which may grow meanwhile."""
        used = 0
        while not self._resize(str(used)):
            disk = os.statvfs(f"/proc/{self.keeper}/root{self.folder}")
            used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize

    def free(self) -> None:
        assert self._resize(ROOM)

    def _resize(self, size: str) -> bool:
        """Change the size; False if that is too small. (A size of 0 would be no limit.)"""
        resize = [*self.inside, "mount", "-o", f"remount,size={size}", str(self.folder)]
        return size != "0" and not subprocess.run(resize, capture_output=True, check=False).returncode


@contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk | None]:
    """A disk mounted on a folder; None on a system that lets nobody mount one."""
    folder.mkdir()
    mounted = f'mount -t tmpfs -o size={ROOM},mode=700 none "{folder}" && echo mounted && exec cat'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted]
    if not (shutil.which("unshare") and shutil.which("nsenter")):
        yield None
        return
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as keeper:
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        there = keeper.stdout.readline() == b"mounted\n"
        try:
            yield SmallDisk(folder=folder, keeper=keeper.pid) if there else None
        finally:
            keeper.stdin.close()


@dataclass(kw_only=True)
class Arm:
    """A store and what it takes to start processes on it."""

    name: str
    data_dir: Path
    offset: Path
    """The file of the clock's steps (`benchmarks.soak.clock`)."""
    log: Path
    environ: dict[str, str] = field(default_factory=dict)
    disk: SmallDisk | None = None

    def start(self, *words: str, stdin: int = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
        """A process of the command `vestige` on this store."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self._command(words), stdin=stdin, stdout=subprocess.PIPE, stderr=log, env=self._environment()
            )

    def answer(self, *words: str) -> tuple[int, Json]:
        """The exit code of a command, and what it printed."""
        done = subprocess.run(
            self._command(words), capture_output=True, env=self._environment(), check=False, timeout=600
        )
        if not done.stdout:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.decode()}")
        value: Json = json.loads(done.stdout)
        return done.returncode, value

    def _command(self, words: Sequence[str]) -> list[str]:
        program = [sys.executable, "-m", "benchmarks.soak.clock", str(self.offset)]
        return [*(self.disk.inside if self.disk else ()), *program, *words, "--data-dir", str(self.data_dir)]

    def _environment(self) -> dict[str, str]:
        root = Path(__file__).parents[2]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("VESTIGE_")}
        return {**kept, "PYTHONPATH": f"{root / 'src'}:{root}", **SETTINGS, **self.environ}


class HttpServer:
    """A `vestige serve`, which can be killed and started again."""

    def __init__(self, arm: Arm) -> None:
        self._arm = arm
        self.restarts = 0
        self._process, self.url = self._started()

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill_and_restart(self) -> None:
        """End it as the kernel does when memory runs out, and start another one."""
        self._process.kill()
        self._ended()
        self._process, self.url = self._started()
        self.restarts += 1

    def restart_if_ended(self) -> bool:
        """Start it again if it has ended by itself; whether it had."""
        if self._process.poll() is None:
            return False
        self._ended()
        self._process, self.url = self._started()
        return True

    def held(self) -> dict[str, float]:
        """What the process holds at this moment."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii", errors="replace")
        threads = next(line.split()[1] for line in status.splitlines() if line.startswith("Threads:"))
        return {
            "memory MB": own_memory(self.pid).megabytes,
            "descriptors": float(len(list(Path(f"/proc/{self.pid}/fd").iterdir()))),
            "threads": float(threads),
        }

    def close(self) -> int:
        """End it as a service manager does; its exit code. Safe to call twice."""
        if self._process.poll() is not None:
            return self._process.returncode
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
        finally:
            self._ended()

    def _started(self) -> tuple["subprocess.Popen[bytes]", str]:
        latest = time.monotonic() + START_SECONDS
        while True:  # a full disk or a server that is away may keep it from starting for a while
            process = self._arm.start("serve", "--bind", "127.0.0.1:0")
            assert process.stdout is not None
            line = process.stdout.readline()
            if line:
                return process, json.loads(line)["url"]
            process.wait()
            process.stdout.close()
            if time.monotonic() > latest:
                raise RuntimeError(f"The server did not start; see {self._arm.log.read_text()[-2000:]}")
            time.sleep(0.2)

    def _ended(self) -> None:
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class StdioServer:
    """A `vestige mcp`, spoken to by one thread; another may kill it at any moment."""

    def __init__(self, arm: Arm) -> None:
        self._process = arm.start("mcp", stdin=subprocess.PIPE)
        self._last = 0
        try:
            about = {"name": "soak", "version": "1"}
            self._ask("initialize", protocolVersion=PROTOCOL, capabilities={}, clientInfo=about)
        except (Died, Refused):
            self.close()
            raise

    def tool(self, name: str, arguments: Json) -> Json:
        """Call a tool; Refused for an error, Died when nobody answers."""
        answer = self._ask("tools/call", name=name, arguments=arguments)
        structured: Json = answer.get("structuredContent") or {}
        if answer.get("isError"):
            raise Refused(structured)
        return structured

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        """Close its input, as clients do, and wait for the end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _ask(self, method: str, **params: object) -> Json:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._last += 1
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as exc:
            raise Died from exc
        while (line := self._process.stdout.readline()).endswith(b"\n"):
            answer = json.loads(line)
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise Refused(answer["error"])
                result: Json = answer["result"]
                return result
        raise Died
