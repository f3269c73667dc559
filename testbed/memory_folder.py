"""A folder on a file system in memory, for the temporary files of tests."""

import os
import shutil
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
_ROOM = 4 << 30
"""Bytes that must be free there, and in memory: several times what a run needs at once."""


def memory_folder() -> Path | None:
    """Where temporary files cost no disk; None if it does not exist, has no room or runs no programs."""
    try:
        flags = os.statvfs(SHARED_MEMORY).f_flag
        free = shutil.disk_usage(SHARED_MEMORY).free
        memory = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not Linux
        return None
    usable = os.access(SHARED_MEMORY, os.W_OK | os.X_OK) and not flags & os.ST_NOEXEC
    return SHARED_MEMORY if usable and min(free, memory) >= _ROOM else None
