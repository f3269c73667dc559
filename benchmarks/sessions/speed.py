"""How fast transcripts are indexed and with how much memory, what a kill costs, and when an appended line is
found. Everything through the shipped programs: `vestige sessions index`, `vestige sessions search` and the
server `vestige-mcp`. Linux only, because processes are watched through /proc."""

import json
import math
import os
import pty
import re
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from threading import Thread

from benchmarks.client import Client, Json, console_script
from benchmarks.process import cpu_seconds, family_of
from benchmarks.progress import say
from benchmarks.quality.transcripts import FOLDER
from benchmarks.report import Cell, Target
from benchmarks.sessions.made import MadeFile, said, write_transcripts
from vestige.engine.recall.sessions.recall import find_sessions
from vestige.store.contract.sessions import SessionFilter
from vestige.store.sqlite.sessions.index import SqliteSessionIndex

KILLED_AT = 40
"""The percentage at which the first run is killed."""
GOAL_BYTES, GOAL_MINUTES, GOAL_MEGABYTES, GOAL_SECONDS = 5_000_000_000, 20.0, 500.0, 2.0
LOOK_SECONDS = 0.25
MARKS, QUESTIONS = 200, 40
SEED = 7
NOW = datetime(2026, 11, 1, tzinfo=UTC)
_PERCENT = re.compile(rb"(\d{1,3}) %")


@dataclass(slots=True, kw_only=True)
class IndexRun:
    """A run of `vestige sessions index` with all its processes."""

    answer: Json | None = None
    wall: float = 0.0
    cpu: dict[int, float] = field(default_factory=dict)
    megabytes: float = 0.0
    """The most memory at one moment, shared pages counted once."""
    largest: float = 0.0
    """The most memory of one process."""
    percent: int = 0
    moved: list[float] = field(default_factory=list)
    """When the percentage changed."""

    @property
    def cpu_seconds(self) -> float:
        return sum(self.cpu.values())

    @property
    def longest_pause(self) -> float:
        return max(
            (after - before for before, after in zip(self.moved, self.moved[1:], strict=False)), default=0.0
        )


def environment(home: Path, data_dir: Path) -> dict[str, str]:
    return {
        "VESTIGE_SESSIONS_HOME": str(home),
        "VESTIGE_DATA_DIR": str(data_dir),
        "VESTIGE_EMBEDDINGS_PROVIDER": "off",
        "COLUMNS": "100",
    }


def indexed(settings: Mapping[str, str], *, killed_at: int | None = None) -> IndexRun:
    """Index on a terminal of its own; killed as soon as the bar shows this percentage."""
    run = IndexRun()
    ours, theirs = pty.openpty()
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "vestige", "sessions", "index", "--json"],
        env={**os.environ, **settings, "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    reader = Thread(target=_read_bar, args=(ours, run), daemon=True)
    reader.start()
    while process.poll() is None:
        _look(process.pid, run)
        if killed_at is not None and run.percent >= killed_at:
            process.send_signal(signal.SIGKILL)
        time.sleep(LOOK_SECONDS)
    run.wall = time.monotonic() - began
    out, _ = process.communicate()
    reader.join(10)  # a worker that outlives its killed parent holds the terminal
    os.close(ours)
    run.answer = json.loads(out) if process.returncode == 0 else None
    return run


def _read_bar(terminal: int, run: IndexRun) -> None:
    with suppress(OSError):  # the last process closed it
        while part := os.read(terminal, 4096):
            percent = max((int(found[1]) for found in _PERCENT.finditer(part)), default=0)
            if percent > run.percent or not run.moved:
                run.moved.append(time.monotonic())
                run.percent = max(run.percent, percent)


def _look(pid: int, run: IndexRun) -> None:
    shared = 0.0
    for one in family_of(pid):
        with suppress(OSError):  # it ended
            run.cpu[one] = cpu_seconds(one)
            resident, own = _memory(one)
            shared += own
            run.largest = max(run.largest, resident)
    run.megabytes = max(run.megabytes, shared)


def _memory(pid: int) -> tuple[float, float]:
    """The resident memory of a process, and its share of it where several have the same pages."""
    held = {
        line.split(":")[0]: int(line.split()[1]) / 1_000
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    }
    return held["Rss"], held["Pss"]


def speed(data: Path, folder: Path, megabytes: int) -> tuple[list[dict[str, Cell]], list[Target]]:
    home, data_dir = folder / "home", folder / "data"
    say(f"writing {megabytes:,} MB of transcripts")
    files = write_transcripts(data, home, megabytes * 1_000_000)
    written = sum(one.size for one in files)
    settings = environment(home, data_dir)
    say(f"indexing {len(files):,} files, with a kill at {KILLED_AT} %")
    first = indexed(settings, killed_at=KILLED_AT)
    second = indexed(settings)
    if second.answer is None:
        raise RuntimeError("The second run did not end well.")
    lost = _not_found(data_dir / "sessions.db", files)
    say("appending lines, and searching")
    by_command = [_appended(one, number, settings) for number, one in enumerate(_some(files))]
    by_server, asked = _through_server(data, files, settings)
    searches = [one.wall for one in asked]
    search_cpu = statistics.median(one.cpu for one in asked)
    minutes = (first.wall + second.wall) / 60 * GOAL_BYTES / written
    cpu = first.cpu_seconds + second.cpu_seconds
    memory = max(first.megabytes, second.megabytes)
    size = sum(one.stat().st_size for one in data_dir.glob("sessions.db*"))
    pause = max(first.longest_pause, second.longest_pause)
    again = float(second.answer["bytesRead"]) / written
    rows: list[dict[str, Cell]] = [
        {"measure": "transcripts, MB", "value": written / 1e6},
        {"measure": "files", "value": len(files)},
        {"measure": "largest file, MB", "value": max(one.size for one in files) / 1e6},
        {"measure": "index, seconds (both runs)", "value": first.wall + second.wall},
        {"measure": "index, CPU seconds of all processes", "value": cpu},
        {"measure": "MB a second", "value": written / (first.wall + second.wall) / 1e6},
        {"measure": "5 GB by CPU time on 2 cores, minutes", "value": cpu / 60 / 2 * GOAL_BYTES / written},
        {"measure": "killed at, %", "value": first.percent},
        {"measure": "read by the second run, %", "value": 100 * again},
        {"measure": "memory of all processes, MB", "value": memory},
        {"measure": "largest process, MB", "value": max(first.largest, second.largest)},
        {"measure": "index file, MB", "value": size / 1e6},
        {"measure": "longest time at one percentage of the progress bar, seconds", "value": pause},
        {"measure": f"last lines not found, of {min(MARKS, len(files))}", "value": lost},
        {
            "measure": "appended line found by a new process, seconds",
            "value": max(one.wall for one in by_command),
        },
        {"measure": "the same, CPU seconds", "value": max(one.cpu for one in by_command)},
        {
            "measure": "appended line found by a running server, seconds",
            "value": max(one.wall for one in by_server),
        },
        {"measure": "the same, CPU seconds", "value": max(one.cpu for one in by_server)},
        {
            "measure": f"search of a running server, median of {len(asked)}, seconds",
            "value": statistics.median(searches),
        },
        {"measure": "the same, slowest", "value": max(searches)},
        {"measure": "the same, median of CPU seconds", "value": search_cpu},
    ]
    found = max(one.wall for one in (*by_command, *by_server))
    targets = [
        Target(name="5 GB indexed, minutes", value=minutes, limit=GOAL_MINUTES, at_least=False),
        Target(name="memory of all processes, MB", value=memory, limit=GOAL_MEGABYTES, at_least=False),
        Target(name="last lines not found", value=lost, limit=0, at_least=False),
        Target(name="appended line found, seconds", value=found, limit=GOAL_SECONDS, at_least=False),
    ]
    return rows, targets


def _not_found(path: Path, files: Sequence[MadeFile]) -> int:
    """How many of a sample of files are not found by a word that only their last line has."""
    index = SqliteSessionIndex(path)
    sample = Random(SEED).sample(files, min(MARKS, len(files)))
    lost = 0
    for one in sample:
        made = find_sessions(index, one.mark, SessionFilter(), NOW, limit=3)
        lost += one.session not in [found.session.id for found in made.sessions]
    index.close()
    return lost


def _some(files: Sequence[MadeFile]) -> list[MadeFile]:
    """The largest file of each client, and a small one."""
    ordered = sorted(files, key=lambda one: one.size)
    largest = {one.client: one for one in ordered}
    return [ordered[0], *largest.values()]


def _append(one: MadeFile, word: str) -> None:
    with one.path.open("a", encoding="utf-8") as file:
        file.write(said(one.client, one.session, word, f"the {word} question"))


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search took; without an end if it did not find what it should."""

    wall: float
    cpu: float


def _appended(one: MadeFile, number: int, settings: Mapping[str, str]) -> Searched:
    """What it takes a new process to find a line that was just appended."""
    word = f"xylophone{number}"
    _append(one, word)
    before, began = _children_cpu(), time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-m", "vestige", "sessions", "search", word, "--json"],
        env={**os.environ, **settings},
        capture_output=True,
        check=True,
    )
    took = Searched(time.monotonic() - began, _children_cpu() - before)
    return took if _finds(json.loads(ran.stdout), one) else NEVER


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _finds(answer: Json, one: MadeFile) -> bool:
    return one.session in [found["sessionId"] for found in answer["sessions"]]


NEVER = Searched(math.inf, math.inf)


def _through_server(
    data: Path, files: Sequence[MadeFile], settings: Mapping[str, str]
) -> tuple[list[Searched], list[Searched]]:
    """What it takes a running server to find appended lines, and to answer questions."""
    with Client([console_script()], timeout_seconds=3_600, environment=settings) as client:
        client.initialize()
        _asked(client, "warm")
        found = []
        for number, one in enumerate(_some(files)):
            word = f"glockenspiel{number}"
            _append(one, word)
            took, answer = _asked(client, word)
            found.append(took if _finds(answer, one) else NEVER)
        questions = json.loads((data / FOLDER / "queries.json").read_text(encoding="utf-8"))
        texts = [str(one["subject"]) for one in questions][:QUESTIONS]
        return found, [_asked(client, text)[0] for text in texts]


def _asked(client: Client, query: str) -> tuple[Searched, Json]:
    before, began = client.cpu_seconds(), time.monotonic()
    answer = client.tool("recall_sessions", {"query": query})
    return Searched(time.monotonic() - began, client.cpu_seconds() - before), answer
