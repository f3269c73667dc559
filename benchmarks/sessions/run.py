"""The whole benchmark of sessions: quality on public transcripts, speed on made-up ones."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.quality.transcripts import FOLDER
from benchmarks.report import Cell, Report, Target
from benchmarks.sessions.quality import quality
from benchmarks.sessions.speed import speed

PARTS = ("quality", "speed")
NOTES = (
    "Quality: subjects of commits as questions, the sessions that led to them as gold, through the shipped "
    "readers, index and ranking. Baselines have messages, thoughts and short arguments of tool calls, "
    "without tool output. The last arm takes, for the questions about a fifth of the sessions, the weights "
    "that are best for the other four fifths.",
    "Speed: `vestige sessions index` as a process, on files of Claude Code and Codex that are made from the "
    "public sessions with other words (`benchmarks/sessions/made.py`). The first run is killed, the second "
    "goes on. The time for 5 GB is extrapolated; by CPU time it does not depend on what else the machine "
    "does.",
)


def run(data: Path, parts: Sequence[str], *, megabytes: int) -> Report:
    tables: dict[str, list[dict[str, Cell]]] = {}
    targets: list[Target] = []
    skipped: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="vestige-sessions-") as folder:
        if "quality" in parts:
            if (data / FOLDER).is_dir():
                tables["Sessions found"], wanted = quality(data, Path(folder))
                targets += wanted
            else:
                skipped["quality"] = f"{data / FOLDER} is missing"
        if "speed" in parts:
            if (data / FOLDER).is_dir():
                tables["Speed"], wanted = speed(data, Path(folder) / "speed", megabytes)
                targets += wanted
            else:
                skipped["speed"] = f"{data / FOLDER} is missing"
    return Report(
        benchmark="sessions",
        settings={"parts": ", ".join(parts), "megabytes": megabytes},
        tables=tables,
        targets=targets,
        notes=NOTES,
        skipped=skipped,
    )
