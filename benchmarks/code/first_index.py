"""What a first index of a large repository costs, and a refresh after a change.

    python -m benchmarks.code.first_index --repo DIR [--files N] [--out FILE]

`--repo` is the git directory of a large repository. N files of its newest commit, the same ones each time,
become a repository of their own. `vestige project init` runs in it, then `vestige project refresh` after
edits of 0, 1, 10 and 100 files. CPU is that of the command and all its processes, user and system. Memory
is the largest sum over its processes, looked at ten times a second. Linux only.
"""

import argparse
import os
import random
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.process import family_of
from benchmarks.report import Cell, Report, Target, publish

FILES = 11_000
EDITS = (0, 1, 10, 100)
RUNS = 3
LOOK_SECONDS = 0.1
MEGABYTE = 1_000_000
MOST_MEGABYTES = 600
SEARCHABLE_SECONDS, REFRESH_SECONDS, NOTHING_SECONDS = 60, 2, 0.3
NOTES = (
    "A first index makes no vectors: with its end everything can be searched. Seconds on the clock depend on "
    "what else the machine does (its load is in the JSON file), seconds of CPU hardly.",
    "Memory: resident pages, those that are shared counted for each process; own: without pages of files.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a command took."""

    wall: float
    user: float
    system: float
    resident: float
    own: float

    @property
    def cpu(self) -> float:
        return self.user + self.system


def prepared(git: Path, folder: Path, files: int) -> tuple[int, float]:
    """Files of the newest commit as a repository in a folder: their number, and megabytes."""
    archive = ["git", "--git-dir", str(git), "archive", "HEAD"]
    with (
        subprocess.Popen(archive, stdout=subprocess.PIPE) as made,
        tarfile.open(fileobj=made.stdout, mode="r|") as packed,
    ):
        packed.extractall(folder, filter="data")
    held = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    kept = set(random.Random(24).sample(held, min(files, len(held))))
    for path in held:
        if path not in kept:
            path.unlink()
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "-A", "-f"], [*settings, "commit", "-q", "-m", "All"]):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    return len(kept), sum(path.stat().st_size for path in kept) / MEGABYTE


def cost_of(words: Sequence[str]) -> Cost:
    """Run a command of Vestige to its end."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    resident = own = 0.0
    program = str(Path(sys.executable).parent / "vestige")
    with subprocess.Popen([program, *words], stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            now = _memory(process.pid)
            resident, own = max(resident, now[0]), max(own, now[1])
            time.sleep(LOOK_SECONDS)
        wall = time.monotonic() - began
    if process.returncode:
        raise SystemExit(f"vestige {' '.join(words)} ended with {process.returncode}.")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(
        wall=wall,
        user=after.ru_utime - before.ru_utime,
        system=after.ru_stime - before.ru_stime,
        resident=resident,
        own=own,
    )


def _memory(pid: int) -> tuple[float, float]:
    """Megabytes of a process and its descendants: resident, and without pages of files."""
    resident = own = 0.0
    waiting, seen = [pid], set[int]()
    while waiting:
        one = waiting.pop()
        seen.add(one)
        with suppress(OSError):  # it has ended meanwhile
            lines = Path(f"/proc/{one}/status").read_text(encoding="ascii", errors="replace").splitlines()
            sizes = {
                line.split(":")[0]: line.split() for line in lines if line.startswith(("VmRSS", "RssAnon"))
            }
            resident += int(sizes["VmRSS"][1]) / 1_000 if "VmRSS" in sizes else 0.0
            own += int(sizes["RssAnon"][1]) / 1_000 if "RssAnon" in sizes else 0.0
            waiting += [child for child in family_of(one) if child not in seen]
    return resident, own


def edit(folder: Path, number: int, run: int) -> None:
    """Add a line to some files."""
    paths = sorted(path for path in folder.rglob("*.go") if path.is_file()) or sorted(folder.rglob("*.py"))
    for path in random.Random(run).sample(paths, min(number, len(paths))):
        with path.open("a", encoding="utf-8") as file:
            file.write(f"// {number} {run}\n")


def run(git: Path, files: int) -> Report:
    with tempfile.TemporaryDirectory(prefix="vestige-first-") as scratch:
        folder, data = Path(scratch) / "code", f"{scratch}/data"
        number, megabytes = prepared(git, folder, files)
        first = cost_of(["project", "init", str(folder), "--data-dir", data])
        rows = [_row("init", number, [first])]
        later: dict[int, float] = {}
        for edited in EDITS:
            costs = []
            for again in range(RUNS):
                edit(folder, edited, again)
                costs.append(cost_of(["project", "refresh", str(folder), "--data-dir", data]))
            rows.append(_row("refresh", edited, costs))
            later[edited] = median(one.cpu for one in costs)
    return Report(
        benchmark="first_index",
        settings={"files": number, "megabytes": round(megabytes, 1), "load": round(os.getloadavg()[0], 1)},
        tables={"Cost": rows},
        targets=[
            Target(name="init: s on the clock", value=first.wall, limit=SEARCHABLE_SECONDS, at_least=False),
            Target(name="init: resident MB", value=first.resident, limit=MOST_MEGABYTES, at_least=False),
            Target(name="refresh after 10 files: s of CPU", value=later[10], limit=REFRESH_SECONDS,
                   at_least=False),
            Target(name="refresh without changes: s of CPU", value=later[0], limit=NOTHING_SECONDS,
                   at_least=False),
        ],
        notes=NOTES,
    )  # fmt: skip


def _row(command: str, files: int, costs: Sequence[Cost]) -> dict[str, Cell]:
    return {
        "command": command,
        "files": files,
        "runs": len(costs),
        "user s": median(one.user for one in costs),
        "system s": median(one.system for one in costs),
        "clock s": median(one.wall for one in costs),
        "resident MB": max(one.resident for one in costs),
        "own MB": max(one.own for one in costs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.code.first_index", description=__doc__)
    parser.add_argument("--repo", type=Path, required=True, help="git directory of a large repository")
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--out", type=Path, help="write the results here as JSON and Markdown")
    given = parser.parse_args()
    publish(run(given.repo, given.files), given.out, page=True)


if __name__ == "__main__":
    main()
