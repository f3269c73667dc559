"""How fast transcripts are indexed, with how much memory, and what an appended line costs."""

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.report import Cell, Target

FILE_MEGABYTES = 4
LOG_KINDS = ("assert", "import", "return", "class", "def", "raise", "yield", "with", "for", "while")
SEED = 7
BEGINNINGS, ENDINGS = "ca lo mi ter pro ne sta qua", "che gin nal ken duct work tus lity ber ing port form"
WORDS = [f"{first}{second}" for first in BEGINNINGS.split() for second in ENDINGS.split()]


def write_transcripts(home: Path, megabytes: int) -> int:
    """Claude Code files of this size in all, mostly tool output and what the client writes beside it, as in
    real ones. Returns the bytes written."""
    rng = random.Random(SEED)
    folder = home / ".claude" / "projects" / "-w-project"
    folder.mkdir(parents=True, exist_ok=True)
    written = number = 0
    while written < megabytes * 1_000_000:
        session = f"{number:08x}-0000-4000-8000-000000000000"
        path = folder / f"{session}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            size = 0
            for line in _lines(session, rng):
                size += file.write(line)
                if size >= FILE_MEGABYTES * 1_000_000:
                    break
        written += size
        number += 1
    return written


def _lines(session: str, rng: random.Random) -> Iterator[str]:
    parent = None
    number = 0
    content: str | list[dict[str, object]]
    while True:
        if number % 12 == 0:
            role, content = "user", _talk(rng, 30)
        elif number % 3 == 1:
            role, content = "assistant", [{"type": "text", "text": _talk(rng, 60)}]
        elif number % 3 == 2:
            tool: dict[str, object] = {
                "type": "tool_use",
                "id": f"t{number}",
                "name": "Bash",
                "input": {"command": f"make {_talk(rng, 3)}"},
            }
            role, content = "assistant", [tool]
        else:
            lines = "\n".join(f"{rng.choice(LOG_KINDS)} {_talk(rng, 8)}" for _ in range(60))
            role, content = (
                "user",
                [{"type": "tool_result", "tool_use_id": f"t{number - 1}", "content": lines}],
            )
        uid = f"{session[:8]}-{number}"
        yield json.dumps({
            "type": role, "uuid": uid, "parentUuid": parent, "sessionId": session, "cwd": "/w/project",
            "timestamp": f"2026-02-20T10:{number // 60 % 60:02d}:{number % 60:02d}Z",
            "message": {"role": role, "content": content, "id": f"m{number}"},
            "toolUseResult": content if role == "user" and number % 12 else None,
        }) + "\n"  # fmt: skip
        parent = uid
        number += 1


def _talk(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words)) + f" {rng.randrange(10_000)}."


def speed(folder: Path, megabytes: int) -> tuple[list[dict[str, Cell]], list[Target]]:
    home, data = folder / "home", folder / "data"
    written = write_transcripts(home, megabytes)
    environment = {**os.environ, "HOME": str(home), "VESTIGE_DATA_DIR": str(data)}
    first = _run(environment, "sessions", "index")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1_000
    path = next((home / ".claude" / "projects" / "-w-project").glob("*.jsonl"))
    with path.open("a", encoding="utf-8") as file:
        line = {
            "type": "user",
            "uuid": "new",
            "parentUuid": None,
            "message": {"content": "the xylophone question"},
        }
        file.write(json.dumps(line) + "\n")
    search = _run(environment, "sessions", "search", "xylophone")
    found = json.loads(search[2])["sessions"]
    rate = written / first[0] / 1_000_000
    index = (data / "sessions.db").stat().st_size
    rows: list[dict[str, Cell]] = [
        {"measure": "transcripts, MB", "value": written / 1_000_000},
        {"measure": "index, seconds", "value": first[0]},
        {"measure": "index, CPU seconds of all processes", "value": first[1]},
        {"measure": "MB a second", "value": rate},
        {"measure": "5 GB at this rate, minutes", "value": 5_000 / rate / 60},
        {"measure": "largest process, MB", "value": peak},
        {"measure": "index file, MB", "value": index / 1_000_000},
        {"measure": "5 GB by CPU time on 2 cores, minutes", "value": first[1] * 5e9 / written / 60 / 2},
        {"measure": "appended line found by a new process, seconds", "value": search[0] if found else None},
        {"measure": "the same, CPU seconds", "value": search[1]},
    ]
    targets = [
        Target(name="5 GB indexed, minutes", value=5_000 / rate / 60, limit=20.0, at_least=False),
        Target(name="largest process, MB", value=peak, limit=500.0, at_least=False),
        Target(
            name="appended line found, seconds",
            value=search[0] if found else 999.0,
            limit=2.0,
            at_least=False,
        ),
    ]
    return rows, targets


def _run(environment: dict[str, str], *arguments: str) -> tuple[float, float, str]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-m", "vestige", *arguments, "--json"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    wall = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, ran.stdout
