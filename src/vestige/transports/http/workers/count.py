"""How many workers a server starts."""

import os
import sys
from pathlib import Path

from vestige.settings.settings import Settings

WORKER_BYTES = 512 << 20
"""Memory that a worker needs at its peak: 150 MB with the model, and 200 MB or more for large batches."""
SLOTS_OF_A_WORKER = 8
"""By default a worker has at least this many of the `server.max_concurrent` slots, which are divided."""
_CGROUP = Path("/sys/fs/cgroup")


def worker_count(settings: Settings, *, cores: int, memory_bytes: int) -> int:
    """The number of workers on a machine: the setting, or by default one less than the cores, as far as the
    memory allows. 1 where a store cannot be shared by processes, and on systems that cannot pass sockets
    between them."""
    server = settings.server
    if sys.platform == "win32" or settings.place is None:
        return 1
    most = min(server.max_concurrent, server.max_connections)
    if server.workers:
        return min(server.workers, most)
    return max(1, min(cores - 1, memory_bytes // WORKER_BYTES, most // SLOTS_OF_A_WORKER))


def usable_cores(cgroup: Path = _CGROUP) -> int:
    """The cores that this process may use: those of its affinity, or fewer if its container has a quota."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota, _, period = _read(cgroup / "cpu.max").partition(" ")
    if quota.isdecimal() and period.isdecimal() and int(period):
        allowed = min(allowed, max(1, int(quota) // int(period)))
    return allowed


def usable_memory(cgroup: Path = _CGROUP) -> int:
    """The memory of the machine, or the limit of the container."""
    if sys.platform == "win32":  # it has no sysconf
        return WORKER_BYTES
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _read(cgroup / "memory.max")
    return min(whole, int(limit)) if limit.isdecimal() else whole


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except OSError:  # no Linux, or cgroups of version 1
        return ""
