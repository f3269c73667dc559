"""What a running process has used: CPU time of all its threads, and memory that is its own.

On Linux both come from the kernel, to the nanosecond and the kilobyte. Elsewhere `ps` answers: CPU time
in hundredths of a second, and the whole resident set, shared libraries included.
"""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_SCHEDULED = 2  # CPUCLOCK_SCHED: the time the scheduler accounted for, user and system together


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Resident memory, and which kind was measured: `RssAnon`, or `RSS` where that is not known."""

    megabytes: float
    kind: str


def cpu_seconds(pid: int) -> float:
    """CPU time since the process was made, over all its threads, ended ones included."""
    if sys.platform == "linux":
        # The process's CPU-time clock, as clock_getcpuclockid(3) names it.
        return time.clock_gettime(~pid << 3 | _SCHEDULED)
    return parse_cpu_time(_ps(pid, "time"))


def family_of(pid: int) -> list[int]:
    """A process and its children, such as the workers of a server. Only Linux lists them here."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [pid, *map(int, listed.read_text(encoding="ascii").split())] if listed.exists() else [pid]


def own_memory(pid: int) -> Memory:
    """Anonymous resident memory: what this process alone costs the machine."""
    if sys.platform == "linux":
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("RssAnon:"):
                return Memory(megabytes=int(line.split()[1]) / 1024, kind="RssAnon")
    return Memory(megabytes=int(_ps(pid, "rss")) / 1024, kind="RSS")


def parse_cpu_time(text: str) -> float:
    """Seconds in what `ps -o time=` prints: [[days-]hours:]minutes:seconds[.hundredths]."""
    days, _, clock = text.strip().rpartition("-")
    seconds = 0.0
    for part in clock.split(":"):
        seconds = 60 * seconds + float(part)
    return seconds + 86_400 * int(days or 0)


def _ps(pid: int, column: str) -> str:
    asked = ["ps", "-o", f"{column}=", "-p", str(pid)]
    return subprocess.run(asked, check=True, capture_output=True, encoding="ascii").stdout.strip()
